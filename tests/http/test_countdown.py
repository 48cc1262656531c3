"""countdown beside another reader of expressions, written from its page: they never disagree."""
import random
import re
from fractions import Fraction

from test_verify import verify


class Wrong(Exception):
    pass


class Reader:
    """expression = term {(+|-) term}; term = factor {(*|/) factor}; factor = number | ( expression ). Numbers are collected."""

    def __init__(self, text):
        self.parts = re.findall(r"[0-9]+|\S", text) if "\n" not in text.strip() else ["?"]
        self.at, self.numbers = 0, []

    def peek(self):
        return self.parts[self.at] if self.at < len(self.parts) else ""

    def take(self, *wanted):
        part = self.peek()
        if part and part in wanted:
            self.at += 1
            return part
        return ""

    def whole(self):
        value = self.expression()
        if self.peek():
            raise Wrong
        return value

    def expression(self):
        value = self.term()
        while sign := self.take("+", "-"):
            value = value + self.term() if sign == "+" else value - self.term()
        return value

    def term(self):
        value = self.factor()
        while sign := self.take("*", "/"):
            other = self.factor()
            if sign == "/" and other == 0:
                raise Wrong
            value = value * other if sign == "*" else value / other
        return value

    def factor(self):
        if self.take("("):
            value = self.expression()
            if not self.take(")"):
                raise Wrong
            return value
        part = self.peek()
        if not part.isascii() or not part.isdigit() or (part[0] == "0" and part != "0"):
            raise Wrong
        self.at += 1
        self.numbers.append(int(part))
        return Fraction(int(part))


def is_right(text, numbers, target):
    reader = Reader(text.strip().removesuffix("."))
    try:
        return reader.whole() == target and sorted(reader.numbers) == sorted(numbers)
    except Wrong:
        return False


def made_up(random_, numbers):
    """An expression over all the numbers, not always with the brackets that it was made with."""
    parts = [str(number) for number in numbers]
    random_.shuffle(parts)
    while len(parts) > 1:
        place = random_.randrange(len(parts) - 1)
        space = " " * random_.randrange(2)
        joined = f"{parts[place]}{space}{random_.choice('+-*/')}{space}{parts[place + 1]}"
        parts[place:place + 2] = [f"({joined})" if random_.random() < 0.7 else joined]
    return parts[0]


def changed(random_, text):
    """A few signs taken away, doubled or put in."""
    for _ in range(random_.randrange(3)):
        place = random_.randrange(len(text) + 1)
        text = text[:place] + random_.choice(["", random_.choice("+-*/()0123 .=^\n%")]) + text[place + random_.randrange(2):]
    return text


def puzzle(random_):
    numbers = [random_.choice((0, 1, 2, 3, 5, 10, 25)) for _ in range(random_.randrange(1, 6))]
    text = changed(random_, made_up(random_, numbers)) or "1"
    target = Fraction(random_.randrange(-5, 30))
    try:
        target = Reader(text.strip().removesuffix(".")).whole() if random_.random() < 0.9 else target
    except Wrong:
        pass
    return numbers, text, target


def test_expressions_are_read_as_the_page_says(plain):
    random_ = random.Random(7)
    puzzles = [puzzle(random_) for _ in range(4000)]
    items = [{"id": str(index), "completion": f"<answer>{text}</answer>", "reference": {"numbers": numbers, "target": str(target)}}
             for index, (numbers, text, target) in enumerate(puzzles)]
    found = verify(plain, items, [{"name": "countdown"}])
    for (numbers, text, target), item in zip(puzzles, found):
        assert item["failure"] is None, (item, target)
        assert (item["reward"] == 1) == is_right(text, numbers, target), (numbers, text, target, item["verdicts"][0])
    assert 500 < sum(item["reward"] for item in found) < 3500
    assert {item["verdicts"][0]["reason"] for item in found} >= {"equal", "different", "wrong_numbers", "unparsed_answer", "unary_minus", "division_by_zero",
                                                                 "implied_product", "equals_sign"}
