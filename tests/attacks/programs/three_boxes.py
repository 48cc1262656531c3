# The box, /tmp and /dev/shm are one space: three times its size must not fit.
# expected: verdict=ok|disk_limit|memory_limit|runtime_error; stdout!~ESCAPED
# memory_mb: 300
import os
seen = {}
for folder in ('.', '/tmp', '/dev/shm', '/var/tmp', '/box', os.environ.get('HOME', '.')):
    for number in range(8):
        try:
            with open(os.path.join(folder, 'attack_%d' % number), 'ab', 0) as file:
                for _ in range(64):
                    file.write(bytes(1 << 20))
        except OSError:
            pass
        try:
            found = os.stat(os.path.join(folder, 'attack_%d' % number))
            seen[found.st_dev, found.st_ino] = found.st_blocks * 512
        except OSError:
            pass
written = sum(seen.values())
print('ESCAPED' if written > 40 << 20 else 'BLOCKED', written >> 20)
