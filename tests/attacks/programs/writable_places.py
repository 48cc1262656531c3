# Everything that can be reached is read-only but the box and its other names.
# expected: verdict=pass|ok|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
# stdout: CLEAN\n
import os
own = {os.stat(path).st_dev for path in ('.', '/tmp', '/dev/shm', os.environ.get('HOME', '.')) if os.path.isdir(path)}
bad = []
for here, folders, files in os.walk('/', onerror=lambda problem: None):
    if here.startswith('/proc'):
        folders[:] = []
        continue
    if here.count('/') > 3:
        folders[:] = []
    try:
        if os.stat(here).st_dev in own:
            folders[:] = []
            continue
        made = os.path.join(here, 'attack_file')
        os.close(os.open(made, os.O_CREAT | os.O_WRONLY, 0o600))
        bad.append(here)
        os.unlink(made)
    except OSError:
        pass
for act in (lambda: os.chmod('/usr/bin/env', 0o777), lambda: os.utime('/usr/bin/env'), lambda: os.link('/usr/bin/env', '/usr/bin/attack_link'),
            lambda: os.rename('/usr/bin/env', '/usr/bin/attack_env'), lambda: os.unlink('/usr/bin/env'), lambda: os.symlink('x', '/attack_link'),
            lambda: os.setxattr('/usr/bin/env', 'user.attack', b'x'), lambda: os.truncate('/usr/bin/env', 0), lambda: os.mkdir('/etc/attack'),
            lambda: os.open('/etc/ld.so.cache', os.O_WRONLY), lambda: os.open('/usr/lib', os.O_TMPFILE | os.O_RDWR)):
    try:
        act()
        bad.append('call')
    except OSError:
        pass
print('ESCAPED ' + ' '.join(bad[:9]) if bad else 'CLEAN')
