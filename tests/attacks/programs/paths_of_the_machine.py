# Names of the machine: its host name, the service's folder, and paths of homes in the table of mounts.
# expected: verdict=pass|ok; stdout!~ESCAPED
# stdout: CLEAN\n
import os
bad = []
if os.uname().nodename == '@HOST@':
    bad.append('host name')
for name, words in {'mountinfo': ('@SERVICE_FOLDER@', '/home/', '/root/'), 'mounts': ('@SERVICE_FOLDER@', '/home/', '/root/'), 'cgroup': ('@SERVICE_FOLDER@',),
                    'cmdline': ('@SERVICE_FOLDER@',), 'maps': ('@SERVICE_FOLDER@',), 'environ': ('@SERVICE_FOLDER@', 'ROLLOUTD_', '/home/', '/root/')}.items():
    try:
        text = open('/proc/self/' + name).read()
    except OSError:
        continue
    bad += [name + ': ' + word for word in words if word in text]
print('ESCAPED ' + ' '.join(bad) if bad else 'CLEAN')
