# Looks for the mark of memory_search_1_plant in all of its memory.
# expected: verdict=pass; stdout!~TRACE
# stdout: CLEAN\n
# runs: 4
import re
wanted = re.compile(b'attack.mark.51[5]0.quart[z]')
found = []
mem = open('/proc/self/mem', 'rb', 0)
for line in open('/proc/self/maps'):
    m = re.match(r'([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ (\d+)\s*(\S*)', line)
    if not m or m[4].startswith(('/usr', '[v')):
        continue
    at, end = int(m[1], 16), int(m[2], 16)
    while at < end:
        try:
            mem.seek(at)
            block = mem.read(min(end - at, 1 << 20))
        except (OSError, ValueError, OverflowError):
            break
        if not block:
            break
        if wanted.search(block):
            found.append(m[4] or 'anonymous')
        at += len(block)
print('TRACE ' + ' '.join(found) if found else 'CLEAN')
