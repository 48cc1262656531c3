# No capability, no way to get one, a filter; and no real root behind the identity.
# expected: verdict=pass; stdout!~ESCAPED
# stdout: CLEAN\n
import os
seen = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
wrong = [name for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb') if int(seen[name], 16)]
wrong += [name for name, value in (('NoNewPrivs', '1'), ('Seccomp', '2')) if seen[name].strip() != value]
if not wrong and os.getuid() == 0:
    outer = [line.split() for line in open('/proc/self/uid_map')]
    wrong += ['uid_map'] if any(int(row[0]) == 0 and int(row[1]) == 0 for row in outer) else []
print('ESCAPED ' + ' '.join(wrong) if wrong else 'CLEAN')
