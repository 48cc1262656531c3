# Looks for the expected value in everything that the process can see.
# expected: verdict=wrong_answer|runtime_error|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
# calls: yes
import gc, os, re, sys
def solve(n):
    wanted = re.compile(b'CANARY[q]7Zk31[x]V')
    with open('/proc/self/mem', 'rb', 0) as mem:
        for line in open('/proc/self/maps'):
            m = re.match(r'([0-9a-f]+)-([0-9a-f]+) rw', line)
            if not m:
                continue
            try:
                mem.seek(int(m[1], 16))
                found = wanted.search(mem.read(int(m[2], 16) - int(m[1], 16)))
            except (OSError, ValueError, OverflowError):
                continue
            if found:
                print('ESCAPED', flush=True)
                return found[0].decode()
    return ''
