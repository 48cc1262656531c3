# Zero bytes without end, from the kernel at full speed.
# expected: verdict=output_limit
exec cat /dev/zero
