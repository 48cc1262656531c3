# Never answers, and ignores that its peer has gone.
# expected: verdict=wrong_answer|runtime_error|time_limit_wall|time_limit_cpu
# asserts: yes
import signal, time
for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
def solve(n):
    while True:
        time.sleep(100)
