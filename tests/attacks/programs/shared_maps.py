# A writable mapping that is shared is a letter box for the next program.
# expected: verdict=pass; stdout!~TRACE
# stdout: CLEAN\n
found = [line.strip() for line in open('/proc/self/maps') if line.split()[1][1] == 'w' and line.split()[1][3] == 's']
print('TRACE ' + ' '.join(found) if found else 'CLEAN')
