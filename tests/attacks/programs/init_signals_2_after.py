# After init_signals_1_send: programs run as before.
# expected: verdict=pass
# stdout: 4950\n
# runs: 4
print(sum(range(100)))
