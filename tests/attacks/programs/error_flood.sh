# Four gibibytes on standard error.
# expected: verdict=output_limit
yes EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE 1>&2
