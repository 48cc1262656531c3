# Its scheduling group and whatever else of it /proc lets a process change.
# expected: verdict=pass
# stdout: TRIED\n
# runs: 4
for name, value in (("autogroup", b"19"), ("timerslack_ns", b"1000000000"), ("oom_score_adj", b"0"), ("coredump_filter", b"0")):
    try:
        with open("/proc/self/" + name, "wb", 0) as file:
            file.write(value)
    except OSError:
        pass
print("TRIED")
