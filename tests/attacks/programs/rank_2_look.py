# After rank_1_lower.
# expected: verdict=pass; stdout!~TRACE
# stdout: CLEAN\n
# runs: 4
try:
    with open("/proc/self/autogroup") as file:
        rank = file.read().split()[-1]
except OSError:
    rank = "0"
print("CLEAN" if rank == "0" else "TRACE of nice " + rank)
