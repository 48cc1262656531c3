# Files of its own in /proc that change how the machine treats it, and what comes after it.
# expected: verdict=pass|ok; stdout!~ESCAPED
# stdout: CLEAN\n
import os
changed = []
for name, text in (('autogroup', '19'), ('oom_score_adj', '-1000'), ('oom_adj', '-17'), ('coredump_filter', '0xff'), ('comm', 'rolloutd'), ('timerslack_ns', '1000000000'),
                   ('sched', '0'), ('clear_refs', '1'), ('loginuid', '0'), ('setgroups', 'allow'), ('uid_map', '0 0 1'), ('projid_map', '0 0 1'),
                   ('attr/current', 'unconfined'), ('attr/exec', 'unconfined'), ('latency', '0'), ('timens_offsets', 'monotonic 1 0')):
    for base in ('/proc/self/', '/proc/1/', '/proc/thread-self/'):
        try:
            with open(base + name, 'w') as file:
                file.write(text)
        except OSError:
            continue
        if name not in ('comm', 'coredump_filter', 'timerslack_ns', 'clear_refs', 'sched') or base == '/proc/1/':
            changed.append(base + name)
print('ESCAPED ' + ' '.join(changed) if changed else 'CLEAN')
