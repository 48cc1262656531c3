# Everything that it can write goes to the process with the asserts: answers that nobody asked for, records, nonsense.
# expected: verdict=wrong_answer|runtime_error|output_limit|time_limit_wall|memory_limit|security_violation
# asserts: yes
import json, os, pickle, struct
class Run:
    def __reduce__(self):
        return (os._exit, (0,))
values = [json.dumps(value).encode() for value in ({'value': 3}, {'ok': True}, {'result': True, 'passed': True, 'index': 0}, [0, 'pass'], 3, None)]
values += [pickle.dumps(Run()), b'\xff' * 64, b'[' * 100000, b'9' * 100000]
for fd in range(3, 64):
    for value in values:
        for frame in (value + b'\n', struct.pack('<I', len(value)) + value, struct.pack('>I', len(value)) + value, struct.pack('<Q', len(value)) + value,
                      b'%d\n' % len(value) + value, b'%d %s\n' % (len(value), value)):
            try:
                os.write(fd, frame)
            except OSError:
                break
def solve(n):
    return 3
