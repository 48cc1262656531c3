"""Answers that cost a grader much: {kind: (completion, reference, options)}. Each kind once as large as an answer may be (8 KiB) and once 64 KiB."""

ANSWER, TEXT = 8000, 65536


def boxed(text):
    return "\\boxed{" + text + "}"


def nested(before, after, core, size):
    depth = max(1, (size - len(core)) // (len(before) + len(after)))
    return before * depth + core + after * depth


def repeated(unit, size):
    return (unit * (size // len(unit) + 1))[:size // len(unit) * len(unit)]


def listed(item, separator, size):
    """item(0), item(1), … up to the size."""
    parts, length = [], 0
    while length < size - 40:
        parts.append(item(len(parts)))
        length += len(parts[-1]) + len(separator)
    return separator.join(parts)


def structure(item, step=1, count=60):
    """A set of so many, forwards or backwards."""
    return "\\{" + ",".join([item(at) for at in range(count)][::step]) + "\\}"


def roots(count):
    return "+".join(f"\\sqrt{{{prime}}}" for prime in PRIMES[:count])


PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]

# kind: size -> (answer, reference)
ANSWERS = {
    "parentheses": lambda size: (nested("(", ")", "1", size), "1"),
    "braces": lambda size: (nested("{", "}", "1", size), "1"),
    "left right": lambda size: (nested("\\left(", "\\right)", "1", size), "1"),
    "open parentheses": lambda size: ("(" * size, "1"),
    "bars": lambda size: ("|" * (size // 2) + "x" + "|" * (size // 2), "x"),
    "fractions": lambda size: (nested("\\frac{1}{", "}", "2", size), "2"),
    "continued fraction": lambda size: (nested("1+\\frac{1}{", "}", "1", size), "2"),
    "continued fraction of a name": lambda size: (nested("x+\\frac{1}{", "}", "x", min(size, 4000)), "x"),
    "roots": lambda size: (nested("\\sqrt{", "}", "2", size), "2"),
    "roots of sums": lambda size: (nested("\\sqrt{2+", "}", "2", size), "2"),
    "power tower": lambda size: (nested("2^{", "}", "2", size), "2"),
    "power tower from below": lambda size: (nested("{", "}^2", "3", size), "3"),
    "minus signs": lambda size: ("-" * size + "1", "1"),
    "plus and minus": lambda size: ("1" + "\\pm 1" * (size // 6), "1"),
    "factorials": lambda size: ("3" + "!" * size, "6"),
    "factorial of a factorial": lambda size: (nested("(", ")!", "5", size), "120"),
    "binomials": lambda size: (nested("\\binom{", "}{2}", "9", size), "9"),
    "logarithms": lambda size: (nested("\\ln(", ")", "9", size), "1"),
    "sines": lambda size: (nested("\\sin(", ")", "1", size), "1"),
    "exponentials": lambda size: (nested("\\exp(", ")", "1", size), "1"),
    "digits": lambda size: ("7" * size, "7"),
    "digits of a fraction": lambda size: (f"\\frac{{{'7' * (size // 2)}}}{{{'3' * (size // 2)}}}", "7/3"),
    "decimals": lambda size: ("0." + "3" * size, "1/3"),
    "period": lambda size: ("0.\\overline{" + "3" * size + "}", "1/3"),
    "thousands": lambda size: ("1" + ",000" * (size // 4), "1"),
    "exponent": lambda size: ("10^{" + "9" * size + "}", "1"),
    "small exponent": lambda size: ("10^{-" + "9" * size + "}", "0"),
    "scientific": lambda size: ("1e" + "9" * size, "1"),
    "digits of a base": lambda size: ("1" * size + "_2", "1_2"),
    "product of digits": lambda size: (listed(lambda at: str(10 ** 40 + at), "\\cdot ", size), "1"),
    "sum of fractions": lambda size: (listed(lambda at: f"\\frac{{1}}{{{at + 1}}}", "+", size), "8"),
    "sum of fractions of primes": lambda size: (listed(lambda at: f"\\frac{{1}}{{{10 ** 30 + 7 * at * at + 1}}}", "+", size), "0"),
    "sum of roots": lambda size: (listed(lambda at: f"\\sqrt{{{at + 2}}}", "+", size), "1"),
    "sum of a few roots": lambda size: ("+".join(f"\\sqrt{{{prime}}}" for prime in PRIMES[:12]), "+".join(f"\\sqrt{{{prime}}}" for prime in PRIMES[:12][::-1])),
    "product of conjugates": lambda size: ("".join(f"(1+\\sqrt{{{prime}}})" for prime in PRIMES), "".join(f"(1+\\sqrt{{{prime}}})" for prime in PRIMES[::-1])),
    "inverse of a sum of roots": lambda size: ("\\frac{1}{" + "+".join(f"\\sqrt{{{prime}}}" for prime in PRIMES[:10]) + "}", "\\frac{1}{" + "+".join(f"\\sqrt{{{prime}}}" for prime in PRIMES[:10][::-1]) + "}"),
    "sum of cube roots": lambda size: ("+".join(f"\\sqrt[3]{{{prime}}}" for prime in PRIMES), "+".join(f"\\sqrt[3]{{{prime}}}" for prime in PRIMES[::-1])),
    "roots of high degree": lambda size: ("+".join(f"\\sqrt[{97 + at}]{{{prime}}}" for at, prime in enumerate(PRIMES)), "21"),
    "root of a root of a root": lambda size: ("\\sqrt{2+\\sqrt{3+\\sqrt{5+\\sqrt{7+\\sqrt{11+\\sqrt{13}}}}}}", "\\sqrt{2+\\sqrt{3+\\sqrt{5+\\sqrt{7+\\sqrt{11+\\sqrt{13+0}}}}}}"),
    "sum of logarithms": lambda size: (listed(lambda at: f"\\ln {at + 2}", "+", size), "1"),
    "sum of sines": lambda size: (listed(lambda at: f"\\sin {at + 2}", "+", size), "1"),
    "sines of fractions of pi": lambda size: (listed(lambda at: f"\\sin\\frac{{\\pi}}{{{at + 7}}}", "+", size), "1"),
    "cosines that nearly cancel": lambda size: ("\\cos\\frac{2\\pi}{257}+" + "+".join(f"\\cos\\frac{{{2 * at}\\pi}}{{257}}" for at in range(2, 129)), "-\\frac12"),
    "expansion": lambda size: ("(" + "+".join("abcdfghjkm") + ")^{40}", "(" + "+".join("mkjhgfdcba") + ")^{40}"),
    "expansion of one name": lambda size: ("(x+1)^{100000}", "(1+x)^{100000}"),
    "powers of powers": lambda size: ("((((x+1)^{99})^{99})^{99})^{99}", "x"),
    "product of sums": lambda size: (listed(lambda at: f"(x+{at})", "", size), "x"),
    "product of sums of two names": lambda size: (listed(lambda at: f"(x+{at}y)", "", size), listed(lambda at: f"({at}y+x)", "", min(size, ANSWER))),
    "sum of monomials": lambda size: (listed(lambda at: f"x^{{{at}}}y^{{{at * 7 % 101}}}", "+", size), "x"),
    "degree": lambda size: ("x^{10^{9}}+1", "1+x^{10^{9}}"),
    "degree above": lambda size: ("x^{10^{30}}", "x^{10^{30}}\\cdot 1"),
    "many names": lambda size: (listed(lambda at: f"x_{{{at}}}", "+", size), listed(lambda at: f"x_{{{at}}}", "+", min(size, ANSWER))),
    "rational functions": lambda size: (listed(lambda at: f"\\frac{{1}}{{x+{at}}}", "+", size), "x"),
    "rational functions of two names": lambda size: (listed(lambda at: f"\\frac{{y}}{{x+{at}y}}", "+", size), "x"),
    "functions of names": lambda size: (listed(lambda at: f"\\sin({at}x)", "+", size), "x"),
    "powers of functions": lambda size: ("(\\sin x+\\cos x+e^x+\\ln x+\\sqrt{x})^{60}", "(\\sqrt{x}+\\ln x+e^x+\\cos x+\\sin x)^{60}"),
    "roots of names": lambda size: (nested("\\sqrt{x+", "}", "x", size), "x"),
    "list": lambda size: (listed(str, ",", size), "1"),
    "list of lists": lambda size: (nested("(1,", ")", "1", size), "(1,1)"),
    "set like the reference": lambda size: ("\\{" + listed(str, ",", size) + "\\}", "\\{" + listed(lambda at: str(at + 1), ",", min(size, ANSWER)) + "\\}"),
    "set of roots": lambda size: ("\\{" + ",".join(f"\\sqrt{{{at}}}+\\sqrt{{{at + 1}}}" for at in range(2, 64)) + "\\}", "\\{" + ",".join(f"\\sqrt{{{at + 1}}}+\\sqrt{{{at}}}" for at in range(63, 1, -1)) + "\\}"),
    "set of functions": lambda size: ("\\{" + ",".join(f"\\sin({at}x)" for at in range(2, 64)) + "\\}", "\\{" + ",".join(f"\\sin({at}x)" for at in range(63, 1, -1)) + "\\}"),
    "set of what nobody decides": lambda size: ("\\{" + ",".join(f"e^{{e^{{{at}}}}}+\\pi^{{e}}" for at in range(2, 60)) + "\\}", "\\{" + ",".join(f"\\pi^{{e}}+e^{{e^{{{at}}}}}" for at in range(59, 1, -1)) + "\\}"),
    "union": lambda size: (listed(lambda at: f"({2 * at},{2 * at + 1})", "\\cup ", size), listed(lambda at: f"({2 * at},{2 * at + 1})", "\\cup ", min(size, ANSWER))),
    "union of roots": lambda size: ("\\cup ".join(f"(\\sqrt{{{2 * at}}},\\sqrt{{{2 * at + 1}}})" for at in range(1, 60)), "\\cup ".join(f"(\\sqrt{{{2 * at}}},\\sqrt{{{2 * at + 1}}})" for at in range(59, 0, -1))),
    "matrix": lambda size: ("\\begin{pmatrix}" + listed(lambda at: str(at % 7), "&", size) + "\\end{pmatrix}", "1"),
    "determinant": lambda size: ("\\begin{vmatrix}" + "\\\\".join("&".join(str(10 ** 20 + row * column) for column in range(12)) for row in range(12)) + "\\end{vmatrix}", "0"),
    "determinant of names": lambda size: ("\\begin{vmatrix}" + "\\\\".join("&".join(f"x_{{{row}}}^{{{column}}}" for column in range(8)) for row in range(8)) + "\\end{vmatrix}", "0"),
    "chain": lambda size: (listed(lambda at: "1", "=", size), "1"),
    "chain of relations": lambda size: (listed(str, "<", size), "1"),
    "equations": lambda size: (listed(lambda at: f"x_{{{at}}}={at}", ",", size), "x=1"),
    "large equation": lambda size: ("(x+y+1)^{60}=(x-y)^{60}", "(x-y)^{60}=(x+y+1)^{60}"),
    "ratio": lambda size: (listed(str, ":", size), "1:2"),
    "words": lambda size: ("\\text{" + repeated("word ", size - 10) + "}", "\\text{word}"),
    "text in text": lambda size: (nested("\\text{", "}", "a", size), "a"),
    "commands": lambda size: (repeated("\\alpha", size), "\\alpha"),
    "unknown commands": lambda size: (repeated("\\foo", size), "1"),
    "backslashes": lambda size: ("\\\\" * (size // 2), "1"),
    "dollars": lambda size: ("$" * size, "1"),
    "spaces": lambda size: ("1" + "\\quad" * (size // 5), "1"),
    "carets": lambda size: ("x" + "^" * size, "x"),
    "subscripts": lambda size: (nested("x_{", "}", "1", size), "x"),
    "not UTF-8 in order": lambda size: ("\u0301" * (size // 2), "1"),
    "root signs": lambda size: ("√" * (size // 3) + "2", "2"),
    "finite sum": lambda size: ("\\sum_{k=1}^{10^{9}}k", "1"),
    "sums in sums": lambda size: ("\\sum_{a=1}^{99}\\sum_{b=1}^{99}\\sum_{c=1}^{99}\\sum_{d=1}^{99}abcd", "1"),
    "finite product": lambda size: ("\\prod_{k=1}^{10^{6}}k", "1"),
    "factorial of a million": lambda size: ("1000000!", "1"),
    "factorial in a denominator": lambda size: ("\\frac{1}{99999!}", "\\frac{1}{100000!}"),
    "central binomial": lambda size: ("\\binom{1000000}{500000}", "1"),
    "large power": lambda size: ("3^{1000000}", "3^{1000001}"),
    "large power of a fraction": lambda size: ("\\left(\\frac{99999999}{99999998}\\right)^{99999}", "1"),
    "large power of a root": lambda size: ("(1+\\sqrt{2})^{9999}", "(\\sqrt{2}+1)^{9999}"),
    "large power of a complex number": lambda size: ("(1+2i)^{99999}", "(2i+1)^{99999}"),
    "almost a square": lambda size: ("\\sqrt{10^{2000}+1}", "10^{1000}"),
    "almost a whole number": lambda size: ("\\left(\\frac{1+\\sqrt{5}}{2}\\right)^{400}", "\\left(\\frac{1+\\sqrt{5}}{2}\\right)^{400}+\\left(\\frac{1-\\sqrt{5}}{2}\\right)^{400}"),
    "modulus": lambda size: ("7^{999999999}\\bmod 1000", "143"),
    "greatest common divisor": lambda size: (f"\\gcd({'7' * 3000},{'3' * 3000})", "1"),
    "floor of a near whole": lambda size: ("\\lfloor (2+\\sqrt{3})^{500}\\rfloor", "1"),
    "floors of complex arcs": lambda size: (structure(lambda at: f"\\lfloor\\arcsin({100 + at}!)\\rfloor"), structure(lambda at: f"\\lfloor\\arcsin({100 + at}!)\\rfloor", -1)),
    "powers with complex exponents": lambda size: (structure(lambda at: f"\\sqrt[3]{{\\binom{{10^{{6}}}}{{{12345 + at}}}^{{i}}}}"), structure(lambda at: f"\\sqrt[3]{{\\binom{{10^{{6}}}}{{{12345 + at}}}^{{i}}}}", -1)),
    "functions of large factorials": lambda size: (structure(lambda at: f"\\cosh({12345 + at}!)"), structure(lambda at: f"\\cosh({12345 + at}!)", -1)),
    "powers of mixed roots": lambda size: (structure(lambda at: f"(1+\\sqrt[3]{{{at + 2}}}+\\sqrt{{{at + 3}}})^{{9}}"), structure(lambda at: f"(1+\\sqrt[3]{{{at + 2}}}+\\sqrt{{{at + 3}}})^{{9}}", -1)),
    "interval of sums of roots": lambda size: (f"({roots(9)},{roots(10)}+10^{{-9}})", f"({roots(9)}+0,10^{{-9}}+{roots(10)})"),
    "greatest of sums of roots": lambda size: ("\\max(" + ",".join(f"{roots(9)}+\\frac{{1}}{{{at + 1}}}" for at in range(40)) + ")", f"1+{roots(9)}"),
    "angle": lambda size: ("\\sin(10^{1000})", "\\sin(10^{1000}+2\\pi)"),
}

# kind: size -> (completion, reference, options)
TEXTS = {
    "boxes": lambda size: (repeated("\\boxed{7}", size), "7", {}),
    "different boxes": lambda size: (listed(lambda at: f"\\boxed{{{at}}}", "", size), "7", {}),
    "open boxes": lambda size: (repeated("\\boxed{", size), "7", {}),
    "boxes in boxes": lambda size: (nested("\\boxed{", "}", "7", size), "7", {}),
    "joined boxes": lambda size: (listed(lambda at: f"\\boxed{{{at}}}", "", size), "7", {"join_boxes": True}),
    "open reasoning": lambda size: (repeated("<think>", size), "7", {}),
    "closed reasoning": lambda size: (repeated("</think>", size) + "\\boxed{7}", "7", {}),
    "tags": lambda size: (repeated("<answer>", size), "7", {"extract": "answer_tag"}),
    "answers": lambda size: (repeated("answer is ", size) + "7", "7", {"extract": "answer_is"}),
    "answer lines": lambda size: (repeated("Answer: 1\n", size), "7", {"extract": "answer_is"}),
    "hashes": lambda size: ("#" * size + " 7", "7", {"extract": "gsm8k"}),
    "numbers": lambda size: (repeated("1,000 ", size), "7", {"extract": "last_number"}),
    "commas": lambda size: ("1" + "," * size, "7", {"extract": "last_number"}),
    "points": lambda size: ("." * size, "7", {"extract": "last_number"}),
    "NUL": lambda size: ("\0" * size + "\\boxed{7}", "7", {}),
    "no answer": lambda size: (repeated("word ", size), "7", {}),
    "end of turn": lambda size: (repeated("<|im_end|>", size), "7", {}),
}


def hostile():
    """[(kind, completion, reference, options)]: each kind against a plain reference and against itself."""
    found = []
    for kind, make in ANSWERS.items():
        answer, reference = make(ANSWER)
        found.append((kind, boxed(answer), reference, {}))
        found.append((kind + ", itself", boxed(answer), answer, {}))
        large = make(TEXT)[0]
        if large != answer:
            found.append((kind + ", 64 KiB", boxed(large), reference, {}))
    return found + [(kind, *make(TEXT)) for kind, make in TEXTS.items()]
