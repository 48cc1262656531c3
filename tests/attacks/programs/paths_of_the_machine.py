# Names of the machine: its host name, and paths of the service in the table of mounts.
# expected: verdict=pass|ok; stdout!~ESCAPED
# stdout: CLEAN\n
import os
bad = []
if os.uname().nodename == '@HOST@':
    bad.append('host name')
for name in ('mountinfo', 'mounts', 'mountstats', 'cgroup', 'cmdline', 'maps', 'environ'):
    try:
        text = open('/proc/self/' + name).read()
    except OSError:
        continue
    bad += [name + ': ' + word for word in ('@SERVICE_FOLDER@', 'rolloutd', '/home/', '/root/', '/work/') if word in text]
print('ESCAPED ' + ' '.join(bad) if bad else 'CLEAN')
