# 16 threads at once: limits must not refuse what is honest.
# expected: verdict=pass
# stdout: 120\n
from concurrent.futures import ThreadPoolExecutor
import threading
barrier = threading.Barrier(16)
def work(n):
    barrier.wait()
    return n
with ThreadPoolExecutor(16) as pool:
    print(sum(pool.map(work, range(16))))
