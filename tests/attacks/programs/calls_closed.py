# The channel of results is closed, moved, or taken over by another process.
# expected: verdict=wrong_answer|runtime_error|output_limit|time_limit_wall
# calls: yes
import os
def solve(n):
    if os.fork() == 0:
        for fd in range(3, 64):
            try:
                os.dup2(1, fd)
                os.write(fd, b"1\n")
            except OSError:
                pass
        os._exit(0)
    os.wait()
    os.closerange(3, 64)
    return 1
