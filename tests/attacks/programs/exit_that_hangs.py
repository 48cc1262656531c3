# The program is over, but not its end: a thread, a function at exit, a destructor.
# expected: verdict=time_limit_wall|time_limit_cpu
# stdout: OVER\n
import atexit, threading, time
atexit.register(lambda: time.sleep(60))
threading.Thread(target=time.sleep, args=(60,)).start()
print('OVER', flush=True)
