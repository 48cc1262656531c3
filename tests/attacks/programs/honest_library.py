# What honest programs use: processes, pipes, locks, temporary files, big recursion, signals, subprocesses, random numbers, time.
# expected: verdict=pass
# stdout: done\n
import asyncio, multiprocessing, os, random, signal, subprocess, sys, tempfile, time
sys.setrecursionlimit(30000)
def down(n):
    return 0 if n == 0 else 1 + down(n - 1)
assert down(20000) == 20000
with tempfile.NamedTemporaryFile() as file:
    file.write(b'x' * 1000)
    file.flush()
    assert os.path.getsize(file.name) == 1000
assert subprocess.run(['sh', '-c', 'echo hello | tr a-z A-Z'], capture_output=True, text=True).stdout == 'HELLO\n'
caught = []
signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.01)
time.sleep(0.05)
assert caught
async def both():
    return await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.sleep(0.01, 2))
assert asyncio.run(both()) == [1, 2]
def square(n):
    return n * n
context = multiprocessing.get_context('fork')
mine, theirs = context.Pipe()
child = context.Process(target=lambda: theirs.send(square(9)))
child.start()
assert mine.recv() == 81
child.join()
with context.Pool(2) as pool:
    assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
random.SystemRandom().random()
assert len(os.urandom(8)) == 8
print('done')
