# Values that say of themselves that they are equal to everything, and that run when they are looked at.
# expected: verdict=wrong_answer|runtime_error|output_limit|time_limit_wall|security_violation
# asserts: yes
import os
class Equal(str):
    def __eq__(self, other):
        return True
    def __ne__(self, other):
        return False
    def __hash__(self):
        return 0
    def __reduce__(self):
        return (os._exit, (0,))
def solve(n):
    return Equal('x')
