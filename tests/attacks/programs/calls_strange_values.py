# Values that no writer of records likes.
# expected: verdict=wrong_answer|runtime_error|output_limit|memory_limit|time_limit_wall|time_limit_cpu
# calls: yes
class Odd(dict):
    def __eq__(self, other):
        return True
    def __iter__(self):
        raise SystemExit(0)
    def items(self):
        return [(float('nan'), self), (b'\xff', {1, 2})]
    def __repr__(self):
        raise MemoryError
    __hash__ = None
def solve(n):
    held = []
    held.append(held)
    return [Odd(a=1), float('nan'), float('inf'), '\ud800\x00', 10 ** 10000, held]
