# 30,000 folders in each other, too deep for a remover that walks them.
# expected: verdict=ok|pass|time_limit_wall|time_limit_cpu|memory_limit|runtime_error|disk_limit
# stdout: DEEP\n
import os
for number in range(30000):
    try:
        os.mkdir('d')
        os.chdir('d')
    except OSError:
        break
print('DEEP')
