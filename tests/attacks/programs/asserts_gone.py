# Ends in the middle of the asserts, with success and with its streams closed.
# expected: verdict=wrong_answer|runtime_error|time_limit_wall
# asserts: yes
import os
print('2 passed', flush=True)
def solve(n):
    os.closerange(0, 64)
    os._exit(0)
