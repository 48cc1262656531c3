# A flood of empty files, links, folders and attributes: the box has an end for each.
# expected: verdict=ok|pass|time_limit_wall|time_limit_cpu|memory_limit|runtime_error|disk_limit
# stdout: BLOCKED\n
# memory_mb: 400
import os
number, stopped = 0, 0
def until_error(act):
    global number, stopped
    for number in range(number, number + 150000):
        try:
            act(number)
        except OSError:
            stopped += 1
            return
os.close(os.open('base', os.O_CREAT | os.O_RDWR))
until_error(lambda n: os.close(os.open('f%d' % n, os.O_CREAT | os.O_WRONLY, 0o600)))
until_error(lambda n: os.symlink('x' * 200, 's%d' % n))
until_error(lambda n: os.link('base', 'l%d' % n))
until_error(lambda n: os.setxattr('base', 'user.a%d' % n, b'x' * 60000))
print('BLOCKED' if stopped >= 3 else 'MADE %d' % number)
