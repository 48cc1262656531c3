# Forks without end, each with a file of its own and an open pipe.
# expected: verdict=time_limit_wall|time_limit_cpu|runtime_error|memory_limit|ok
import os
while True:
    try:
        if os.fork() == 0:
            os.pipe()
            open('f%d' % os.getpid(), 'w').write('x' * 4096)
    except OSError:
        pass
