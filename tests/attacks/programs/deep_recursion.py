# Overflows the stack of the interpreter.
# expected: verdict=runtime_error|memory_limit|time_limit_cpu|time_limit_wall
import sys
sys.setrecursionlimit(1 << 30)
class Deep:
    def __repr__(self):
        return repr(self)
def down(n):
    return [down(n + 1)]
print(down(0))
