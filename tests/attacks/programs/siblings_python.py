# The same from a program that was forked, not exec'ed.
# expected: verdict=pass|ok|runtime_error|time_limit_wall
# stdout: DONE\n
# runs: 8
import ctypes, os, time
call = ctypes.CDLL(None).syscall
for number in range(8):
    if call(56, 0x8000 | 17, 0, 0, 0, 0) == 0:
        if number == 7:
            time.sleep(30)
        os._exit(number)
if call(56, 0x8000, 0, 0, 0, 0) == 0:
    os._exit(9)
time.sleep(0.02)
print('DONE', flush=True)
