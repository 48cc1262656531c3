# Threads count as processes.
# expected: verdict=pass|runtime_error|memory_limit; stdout!~ESCAPED
# stdout: BLOCKED\n
import threading, time
started = 0
try:
    for started in range(500):
        threading.Thread(target=time.sleep, args=(0.3,), daemon=True).start()
except RuntimeError:
    pass
print('BLOCKED' if started < 64 else 'ESCAPED %d' % started)
