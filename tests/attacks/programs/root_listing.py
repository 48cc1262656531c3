# The root has what a program needs, and nothing of the machine's.
# expected: verdict=pass; stdout!~ESCAPED
# stdout: CLEAN\n
import os
wanted = {'/var': {'tmp'}, '/': {'bin', 'lib', 'lib64', 'lib32', 'libx32', 'sbin', 'usr', 'etc', 'dev', 'proc', 'box', 'tmp', 'var', 'venv', 'testlib', 'opt'},
          '/dev': {'null', 'zero', 'full', 'urandom', 'random', 'shm', 'fd', 'stdin', 'stdout', 'stderr'},
          '/etc': {'ld.so.cache', 'alternatives', 'localtime', 'ld.so.conf', 'ld.so.conf.d', 'passwd', 'group', 'nsswitch.conf'}}
bad = []
for place, names in wanted.items():
    try:
        bad += [os.path.join(place, name) for name in os.listdir(place) if name not in names]
    except OSError:
        pass
for place in ('/etc/passwd', '/etc/group'):
    try:
        bad += [place] if len(open(place).readlines()) > 3 else []
    except OSError:
        pass
for place in ('/sys', '/run', '/home', '/root', '/boot', '/srv', '/mnt', '/media', '/proc/sys', '/proc/net', '/proc/keys', '/proc/kallsyms',
              '/proc/sysvipc', '/proc/kcore', '/proc/kmsg', '/proc/modules', '/proc/config.gz', '/proc/key-users', '/proc/swaps', '/proc/mounts.old'):
    try:
        bad += [place] if os.path.isfile(place) and open(place, 'rb').read(1) or os.listdir(place) else []
    except OSError:
        pass
print('ESCAPED ' + ' '.join(bad[:20]) if bad else 'CLEAN')
