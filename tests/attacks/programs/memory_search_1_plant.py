# Leaves a mark in its text and in its input: both pass through the process that the next program is forked from.
# expected: verdict=pass
# stdout: attack-mark-5150-quartz\nPLANTED\n
# stdin: attack-mark-5150-quartz\n
# runs: 4
MARK = 'attack-mark-5150-quartz'
print(input())
print('PLANTED')
