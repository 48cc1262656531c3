# Looks for what is expected in its memory, in its descriptors and in the memory of everything that it can open.
# expected: verdict=wrong_answer|runtime_error|time_limit_wall|time_limit_cpu|memory_limit; stdout!~ESCAPED
# asserts: yes
import os, re, sys
wanted = re.compile(b'CANARY[q]7Zk31[x]V')
def look(pid):
    try:
        with open('/proc/%s/mem' % pid, 'rb', 0) as mem:
            for line in open('/proc/%s/maps' % pid):
                m = re.match(r'([0-9a-f]+)-([0-9a-f]+) rw', line)
                try:
                    mem.seek(int(m[1], 16))
                    found = wanted.search(mem.read(int(m[2], 16) - int(m[1], 16)))
                except (OSError, ValueError, OverflowError, TypeError):
                    continue
                if found:
                    return found[0].decode()
    except OSError:
        pass
def solve(n):
    if n != 1:
        return 3
    for pid in ['self'] + [name for name in os.listdir('/proc') if name.isdigit()]:
        found = look(pid)
        if found:
            print('ESCAPED', flush=True)
            return found
    return ''
