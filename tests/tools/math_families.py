"""Families of writings: some that mean the same by a true identity, and some that do not.

    for family in families(seed=1, count=100): family.kind, family.right (equal among each other), family.wrong (equal to none of them)

Truth comes from here: fractions.Fraction, own polynomials, identities of the schoolbook. Nothing is read back from the service and no
algebra system is asked. Where two real numbers must differ, they differ by more than 1e-9 as floats, or as exact fractions.
"""
import math
import random
from collections import namedtuple
from fractions import Fraction

Family = namedtuple("Family", "kind right wrong")


# -- numbers ---------------------------------------------------------------------------------------------------------------

def fraction(value, command="\\frac"):
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}{command}{{{abs(value.numerator)}}}{{{value.denominator}}}"


def decimal(value):
    """The exact decimal expansion, or None."""
    digits, rest = 0, value.denominator
    while rest % 10 == 0:
        rest //= 10
        digits += 1
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
            digits += 1
    if rest != 1:
        return None
    scaled = str(abs(value.numerator) * 10 ** digits // value.denominator).rjust(digits + 1, "0")
    return ("-" if value < 0 else "") + (scaled[:-digits] + "." + scaled[-digits:] if digits else scaled)


def grouped(value):
    return f"{value:,}"


def repeating(value):
    """0.1\\overline{6} for what does not end, or None where the period is long."""
    whole, rest = divmod(abs(value.numerator), value.denominator)
    digits, seen = "", {}
    while rest and rest not in seen and len(digits) < 30:
        seen[rest] = len(digits)
        digit, rest = divmod(rest * 10, value.denominator)
        digits += str(digit)
    if rest not in seen or not rest:
        return None
    at = seen[rest]
    return f"{'-' if value < 0 else ''}{whole}.{digits[:at]}\\overline{{{digits[at:]}}}"


def mixed(value):
    whole, rest = divmod(abs(value.numerator), value.denominator)
    return f"{'-' if value < 0 else ''}{whole}\\frac{{{rest}}}{{{value.denominator}}}" if whole and rest else None


def number_writings(value, draw):
    """Different spellings of one rational."""
    times = draw.randint(2, 9)
    shift = Fraction(draw.randint(-9, 9), draw.randint(1, 4))
    found = [fraction(value), fraction(value, "\\dfrac"), f"{value.numerator}/{value.denominator}" if value.denominator > 1 else None,
             f"\\frac{{{value.numerator * times}}}{{{value.denominator * times}}}", f"\\frac{{{-value.numerator}}}{{{-value.denominator}}}",
             decimal(value), repeating(value), mixed(value), f"{fraction(value - shift)}+{bracket(fraction(shift))}",
             f"\\left({fraction(value)}\\right)", f"{fraction(value / times)}\\cdot {times}"]
    if value.denominator == 1 and abs(value) >= 1000:
        found += [grouped(value.numerator), grouped(value.numerator).replace(",", "{,}"), grouped(value.numerator).replace(",", "\\,")]
    if decimal(value * 100):
        found.append(decimal(value * 100) + "\\%")
    return [one for one in found if one]


def bracket(text):
    return f"({text})" if text.startswith("-") else text


def near(value, draw):
    """Rationals that are not `value`."""
    tiny = Fraction(1, 10 ** draw.randint(6, 40))
    found = {value + draw.choice([1, -1]), value * 10, value / 10, -value, value + tiny, value - tiny,
             Fraction(value.numerator + 1, value.denominator), Fraction(value.numerator, value.denominator + 1)}
    if value:
        found.add(1 / value)
    return sorted(found - {value})


def draw_rational(draw):
    kind = draw.randrange(4)
    if kind == 0:
        return Fraction(draw.randint(-10 ** draw.randint(1, 12), 10 ** draw.randint(1, 12)))
    if kind == 1:
        return Fraction(draw.randint(-9999, 9999), 10 ** draw.randint(1, 6))
    return Fraction(draw.randint(-60, 60), draw.choice([2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 25, 37, 60, 97]))


def rational(draw):
    value = draw_rational(draw)
    wrong = [draw.choice(number_writings(one, draw)) for one in near(value, draw)]
    return Family("rational", number_writings(value, draw), wrong)


def power(draw):
    base, one, two = draw.choice([2, 3, 5, 7, 10]), draw.randint(20, 120), draw.randint(2, 60)
    total = one + two
    right = [f"{base}^{{{total}}}", f"{base}^{{{one}}}\\cdot {base}^{{{two}}}", f"\\frac{{{base}^{{{total + 7}}}}}{{{base}^7}}", str(base ** total),
             f"{base}\\times {base}^{{{total - 1}}}", f"({base}^{{{total}}})", f"\\frac{{1}}{{{base}^{{-{total}}}}}"]
    wrong = [f"{base}^{{{total + 1}}}", f"{base}^{{{total}}}+1", str(base ** total - 1), f"{base}^{{{one}}}+{base}^{{{two}}}",
             f"{base}^{{{one * two}}}" if one * two != total else "0", f"{base}^{{-{total}}}", f"-{base}^{{{total}}}"]
    return Family("power", right, wrong)


def reciprocal_power(draw):
    base, top = draw.choice([2, 3, 10]), draw.randint(60, 140)
    right = [f"{base}^{{-{top}}}", f"\\frac{{1}}{{{base}^{{{top}}}}}", f"\\frac{{{base}}}{{{base}^{{{top + 1}}}}}", f"\\left(\\frac{{1}}{{{base}}}\\right)^{{{top}}}"]
    wrong = [f"{base}^{{-{top + 1}}}", f"\\frac{{1}}{{{base}^{{{top}}}+1}}", "0", f"\\frac{{1}}{{{base}^{{{top - 1}}}}}", f"\\frac{{2}}{{{base}^{{{top}}}}}"]
    return Family("reciprocal power", right, wrong)


# -- radicals --------------------------------------------------------------------------------------------------------------

SQUAREFREE = [2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19, 21]


def term(factor, what):
    """factor·what with the sign in front: "-3\\sqrt{2}", "+\\frac{1}{2}x"."""
    sign, size = ("-" if factor < 0 else "+"), abs(factor)
    return sign + ("" if size == 1 else fraction(size)) + what


def total(parts):
    text = "".join(parts)
    return text[1:] if text.startswith("+") else text


def surd(whole, factor, radicand):
    parts = ([term(whole, "")] if whole and abs(whole) != 1 else ["+1" if whole > 0 else "-1"] if whole else [])
    return total(parts + ([term(factor, f"\\sqrt{{{radicand}}}")] if factor else [])) or "0"


def surds(draw):
    whole, factor, radicand = draw.randint(-9, 9), draw.choice([-5, -3, -2, -1, 1, 2, 3, 4, 7]), draw.choice(SQUAREFREE)
    norm = whole * whole - factor * factor * radicand
    inside = ("+" if factor > 0 else "-") + f"\\sqrt{{{factor * factor * radicand}}}"
    right = [surd(whole, factor, radicand), total([term(factor, f"\\sqrt{{{radicand}}}"), f"{whole:+d}"]), f"{whole}{inside}",
             f"\\frac{{{norm}}}{{{surd(whole, -factor, radicand)}}}", f"\\frac{{{surd(2 * whole, 2 * factor, radicand)}}}{{2}}",
             f"{whole}{'+' if factor > 0 else '-'}\\frac{{{abs(factor) * radicand}}}{{\\sqrt{{{radicand}}}}}"]
    value = whole + factor * math.sqrt(radicand)
    wrong = [surd(whole + 1, factor, radicand), surd(whole, factor + 11, radicand), surd(whole, -factor, radicand), surd(whole, factor, radicand + 1),
             f"{value:.10f}", surd(whole, factor, radicand) + "i", f"{surd(whole, factor, radicand)}+10^{{-20}}"]
    return Family("surd", right, wrong)


def denested(draw):
    one, two = sorted(draw.sample(range(2, 30), 2))
    if math.isqrt(one) ** 2 == one or math.isqrt(two) ** 2 == two or math.isqrt(one * two) ** 2 == one * two:
        return surds(draw)
    right = [f"\\sqrt{{{one}}}+\\sqrt{{{two}}}", f"\\sqrt{{{two}}}+\\sqrt{{{one}}}", f"\\sqrt{{{one + two}+2\\sqrt{{{one * two}}}}}",
             f"\\frac{{{two - one}}}{{\\sqrt{{{two}}}-\\sqrt{{{one}}}}}"]
    wrong = [f"\\sqrt{{{one + two}}}", f"\\sqrt{{{one * two}}}", f"\\sqrt{{{two}}}-\\sqrt{{{one}}}", f"\\sqrt{{{one + two}-2\\sqrt{{{one * two}}}}}",
             f"\\sqrt{{{one}}}+\\sqrt{{{two + 1}}}", f"\\sqrt{{{one + two}+\\sqrt{{{one * two}}}}}", f"{math.sqrt(one) + math.sqrt(two):.12f}"]
    return Family("nested roots", right, wrong)


def roots(draw):
    base, degree = draw.choice([2, 3, 5, 7, 11]), draw.randint(3, 6)
    up = draw.randint(1, degree - 1)
    right = [f"\\sqrt[{degree}]{{{base ** up}}}", f"{base}^{{{up}/{degree}}}", f"{base}^{{\\frac{{{up}}}{{{degree}}}}}", f"\\frac{{{base}}}{{\\sqrt[{degree}]{{{base ** (degree - up)}}}}}",
             f"\\sqrt[{2 * degree}]{{{base ** (2 * up)}}}", f"\\left(\\sqrt[{degree}]{{{base}}}\\right)^{{{up}}}"]
    wrong = [f"\\sqrt[{degree + 1}]{{{base ** up}}}", f"\\sqrt[{degree}]{{{base ** up + 1}}}", f"{base}^{{{degree}/{up}}}", f"-\\sqrt[{degree}]{{{base ** up}}}", f"{base ** (up / degree):.11f}"]
    return Family("roots", right, wrong)


# -- transcendental ----------------------------------------------------------------------------------------------------------

def logarithms(draw):
    one, two, up = draw.randint(2, 30), draw.randint(2, 30), draw.randint(2, 5)
    product = one * two
    right = [f"\\ln {product}", f"\\ln({product})", f"\\ln {one}+\\ln {two}", f"\\ln {product * product}-\\ln {product}", f"\\frac{{\\ln {product ** up}}}{{{up}}}", f"-\\ln\\frac{{1}}{{{product}}}",
             f"\\frac{{1}}{{{up}}}\\ln {product ** up}", f"\\log_e {product}"]
    wrong = [f"\\ln {product + 1}", f"\\ln {one}\\cdot\\ln {two}" if abs(math.log(one) * math.log(two) - math.log(product)) > 1e-6 else "\\ln 0", f"\\ln {one}-\\ln {two}", f"{math.log(product):.12f}", f"\\ln(-{product})", f"{up}\\ln {product}",
             f"\\ln {product}+10^{{-25}}"]
    return Family("logarithms", right, wrong)


def bases_of_logarithms(draw):
    one, two = draw.sample([2, 3, 5, 6, 7, 10, 11], 2)
    up = draw.randint(2, 4)
    right = [f"\\log_{{{one}}} {two}", f"\\frac{{\\ln {two}}}{{\\ln {one}}}", f"\\log_{{{one ** up}}} {two ** up}", f"\\frac{{1}}{{\\log_{{{two}}} {one}}}",
             f"\\log_{{{one}}}{{{two * one}}}-1", f"\\frac{{\\log {two}}}{{\\log {one}}}"]
    wrong = [f"\\log_{{{two}}} {one}", f"\\log_{{{one}}} {two + 1}", f"\\log_{{{one + 1}}} {two}" if (one + 1) != 1 else "1", f"{math.log(two, one):.11f}", f"\\frac{{{two}}}{{{one}}}", f"\\ln\\frac{{{two}}}{{{one}}}"]
    return Family("bases of logarithms", right, wrong)


def exponentials(draw):
    one, two = draw.randint(1, 9), draw.randint(2, 6)
    right = [f"e^{{{one * two}}}", f"(e^{{{one}}})^{{{two}}}", f"\\exp({one * two})", f"e^{{{one}}}\\cdot e^{{{one * (two - 1)}}}", f"\\frac{{1}}{{e^{{-{one * two}}}}}", f"\\mathrm{{e}}^{{{one * two}}}"]
    wrong = [f"e^{{{one * two + 1}}}", f"e^{{-{one * two}}}", f"{one * two}e" if one * two != 1 else "0", f"{math.exp(one * two):.8f}", f"e^{{{one * two}}}+10^{{-9}}", f"e^{{{one}}}+e^{{{one * (two - 1)}}}+1"]
    return Family("exponentials", right, wrong)


def pi_times(value):
    return "0" if not value else total([term(value, "\\pi")])


def angles(draw):
    parts = draw.choice([3, 4, 5, 6, 10, 12])
    angle = Fraction(draw.randint(1, 2 * parts - 1), parts)
    turns = 2 * draw.choice([-2, -1, 1, 2, 3])
    right = [f"\\sin\\left({pi_times(one)}\\right)" for one in (angle, angle + turns, 1 - angle)]
    right += [f"\\cos\\left({pi_times(Fraction(1, 2) - angle)}\\right)", f"-\\sin\\left({pi_times(-angle)}\\right)", f"\\sin\\left({decimal(180 * angle)}^\\circ\\right)"]
    value = math.sin(float(angle) * math.pi)
    wrong = [f"\\sin\\left({pi_times(one)}\\right)" for one in (angle + 1, angle + Fraction(1, 7), -angle, angle + Fraction(1, 10 ** 12))
             if abs(math.sin(float(one) * math.pi) - value) > 1e-13]
    if abs(math.cos(float(angle) * math.pi) - value) > 1e-9:
        wrong.append(f"\\cos\\left({pi_times(angle)}\\right)")
    if min(abs(abs(value) - one) for one in (0, 0.5, 1)) > 1e-9:
        wrong.append(f"{value:.14f}")
    return Family("angles", right, wrong or ["2"])


def multiples_of_pi(draw):
    value = Fraction(draw.randint(1, 40), draw.randint(1, 12))
    right = [pi_times(value), f"{fraction(value)}\\cdot\\pi", f"\\pi\\cdot {fraction(value)}", f"\\frac{{{value.numerator}\\pi}}{{{value.denominator}}}", f"{fraction(2 * value)}\\arcsin 1", f"{fraction(value)}π"]
    wrong = [pi_times(value + 1), pi_times(value + Fraction(1, 10 ** 15)), fraction(value), f"{fraction(value)}\\pi^2", f"{float(value) * math.pi:.12f}", f"\\frac{{{value.numerator}}}{{{value.denominator}\\pi}}",
             fraction(value * Fraction(22, 7)), f"{decimal(180 * value) or fraction(180 * value)}^\\circ", f"{pi_times(value)} i"]
    return Family("multiples of pi", right, wrong)


# -- polynomials: {exponents: coefficient} -------------------------------------------------------------------------------------

def multiply(left, right):
    found = {}
    for one, factor in left.items():
        for two, other in right.items():
            key = tuple(a + b for a, b in zip(one, two))
            found[key] = found.get(key, 0) + factor * other
    return {key: factor for key, factor in found.items() if factor}


def add(left, right):
    found = dict(left)
    for key, factor in right.items():
        found[key] = found.get(key, 0) + factor
    return {key: factor for key, factor in found.items() if factor}


def monomial(key, names):
    return "".join(name + (f"^{{{power_}}}" if power_ > 9 else f"^{power_}" if power_ > 1 else "") for name, power_ in zip(names, key) if power_)


def show(polynomial, names, draw=None):
    keys = sorted(polynomial, reverse=True)
    if draw:
        draw.shuffle(keys)
    parts = []
    for key in keys:
        what, factor = monomial(key, names), polynomial[key]
        parts.append(term(factor, what) if what else ("-" if factor < 0 else "+") + fraction(abs(factor)))
    return total(parts) or "0"


def draw_polynomial(draw, names, terms, top):
    found = {}
    while len(found) < terms:
        key = tuple(draw.randint(0, top) for _ in names)
        found[key] = Fraction(draw.choice([value for value in range(-9, 10) if value]), draw.choice([1, 1, 1, 2, 3]))
    return found


def perturbed(polynomial, draw):
    """The polynomial with one coefficient, sign or exponent changed."""
    key = draw.choice(sorted(polynomial))
    change = dict(polynomial)
    kind = draw.randrange(4)
    if kind == 0:
        change[key] = -change[key]
    elif kind == 1:
        change[key] += draw.choice([Fraction(1), Fraction(1, 10 ** draw.randint(3, 25))])
    elif kind == 2:
        change = add(polynomial, {tuple(one + 5 for one in key): Fraction(1)})
    else:
        change = add(polynomial, {tuple(one + 1 for one in key): polynomial[key], key: -polynomial[key]})
    return {one: factor for one, factor in change.items() if factor}


def polynomials(draw):
    names = draw.choice([["x"], ["x"], ["x", "y"], ["a", "b"], ["n"], ["t", "u", "v"]])
    one, two = draw_polynomial(draw, names, 2, 3), draw_polynomial(draw, names, draw.randint(2, 3), 3)
    product, extra = multiply(one, two), draw_polynomial(draw, names, 2, 4)
    right = [show(product, names), show(product, names, draw), f"({show(one, names)})({show(two, names)})", f"({show(two, names, draw)})\\cdot({show(one, names)})",
             f"\\left({show(add(product, extra), names)}\\right)-\\left({show(extra, names, draw)}\\right)", f"\\frac{{{show({key: 6 * factor for key, factor in product.items()}, names)}}}{{6}}",
             f"-(-({show(product, names, draw)}))"]
    wrong = [show(perturbed(product, draw), names) for _ in range(4)]
    wrong += [f"({show(perturbed(one, draw), names)})({show(two, names)})", show(product, ["z", "w", "s"][:len(names)]), f"({show(one, names)})+({show(two, names)})^9", f"{show(product, names)}=0"]
    return Family("polynomials", right, wrong)


def rational_functions(draw):
    one, two = draw.sample(range(1, 12), 2)
    top, other = draw.randint(1, 9), draw.randint(1, 9)
    joined = {(1,): Fraction(top + other), (0,): Fraction(top * two + other * one)}
    below = multiply({(1,): Fraction(1), (0,): Fraction(one)}, {(1,): Fraction(1), (0,): Fraction(two)})
    right = [f"\\frac{{{top}}}{{x+{one}}}+\\frac{{{other}}}{{x+{two}}}", f"\\frac{{{show(joined, 'x')}}}{{{show(below, 'x')}}}", f"\\frac{{{show(joined, 'x')}}}{{(x+{one})(x+{two})}}",
             f"\\frac{{{other}}}{{x+{two}}}-\\frac{{-{top}}}{{x+{one}}}"]
    wrong = [f"\\frac{{{top}}}{{x+{one}}}-\\frac{{{other}}}{{x+{two}}}", f"\\frac{{{top + other}}}{{{show(below, 'x')}}}", f"\\frac{{{show(joined, 'x')}}}{{{show(perturbed(below, draw), 'x')}}}",
             f"\\frac{{{top + other}}}{{2x+{one + two}}}", f"\\frac{{{show(joined, 'y')}}}{{{show(below, 'y')}}}", f"\\frac{{{show(below, 'x')}}}{{{show(joined, 'x')}}}"]
    return Family("rational functions", right, wrong)


IDENTITIES = [
    ("functions of names", ["\\sin^2 x", "1-\\cos^2 x", "(\\sin x)^2"], ["\\cos^2 x", "\\sin x^2", "\\sin^2 y", "1+\\cos^2 x", "2\\sin x"]),
    ("functions of names", ["\\sin 2x", "2\\sin x\\cos x", "\\sin(2x+2\\pi)"], ["2\\sin x", "\\sin x\\cos x", "\\cos 2x", "\\sin 2y", "\\sin(2x+\\pi)", "\\sin(2x+2\\cdot3.14159265358979)"]),
    ("functions of names", ["\\cos 2x", "2\\cos^2 x-1", "1-2\\sin^2 x", "\\cos^2 x-\\sin^2 x"], ["2\\cos x", "\\cos^2 x", "2\\cos^2 x+1", "\\cos^2 x+\\sin^2 x", "\\cos(2x+10^{-9})"]),
    ("functions of names", ["e^{x+y}", "e^x e^y", "\\exp(x+y)", "\\frac{e^x}{e^{-y}}"], ["e^x+e^y", "e^{xy}", "e^{x-y}", "e^{x+z}"]),
    ("functions of names", ["2^{n+3}", "8\\cdot 2^n", "2^n\\cdot 2^3", "4\\cdot 2^{n+1}"], ["2^{3n}", "8^n", "2^n+8", "6\\cdot 2^n", "2^{n-3}"]),
    ("functions of names", ["\\sqrt{x^2+2x+1}", "|x+1|", "\\sqrt{(x+1)^2}"], ["x+1", "-x-1", "|x-1|", "x^2+1", "|x|+1"]),
    ("functions of names", ["\\sqrt{4x^2+4}", "2\\sqrt{x^2+1}", "2(x^2+1)^{1/2}"], ["4\\sqrt{x^2+1}", "2x+2", "2\\sqrt{x^2-1}", "-2\\sqrt{x^2+1}"]),
    ("functions of names", ["\\frac{1}{1+e^{-x}}", "\\frac{e^x}{1+e^x}", "1-\\frac{1}{1+e^x}"], ["\\frac{1}{1+e^x}", "\\frac{1}{1-e^{-x}}", "\\frac{e^x}{1+e^{2x}}", "1"]),
    ("functions of names", ["\\tan x", "\\frac{\\sin x}{\\cos x}"], ["\\cot x", "\\frac{\\cos x}{\\sin x}", "\\tan y", "\\tan 2x", "\\sin x"]),
    ("functions of names", ["\\ln 4x-\\ln 2", "\\ln(2x)", "\\ln 2+\\ln x"], ["\\ln(4x)", "2\\ln x", "\\ln 2\\cdot\\ln x", "\\ln(2+x)", "\\ln(2y)"]),
    ("functions of names", ["\\frac{\\sqrt{x}}{x}", "\\frac{1}{\\sqrt{x}}", "x^{-1/2}"], ["\\sqrt{x}", "x^{1/2}", "\\frac{1}{x}", "-\\frac{1}{\\sqrt{x}}"]),
    ("complex", ["e^{i\\pi/4}", "\\frac{1+i}{\\sqrt{2}}", "\\cos\\frac{\\pi}{4}+i\\sin\\frac{\\pi}{4}", "\\frac{\\sqrt2}{2}+\\frac{\\sqrt2}{2}i"], ["e^{-i\\pi/4}", "\\frac{1-i}{\\sqrt{2}}", "1+i", "0.7071+0.7071i"]),
    ("factorials", ["\\frac{12!}{10!}", "12\\cdot 11", "132", "2\\binom{12}{2}"], ["\\frac{12!}{9!}", "12!", "\\binom{12}{2}", "131", "\\frac{10!}{12!}"]),
    ("factorials", ["\\frac{1}{300!}", "\\frac{301}{301!}", "\\frac{1}{300\\cdot 299!}"], ["\\frac{1}{301!}", "0", "\\frac{1}{299!}", "300!"]),
]


def identities(draw):
    kind, right, wrong = draw.choice(IDENTITIES)
    return Family(kind, list(right), list(wrong))


# -- complex numbers --------------------------------------------------------------------------------------------------------

def complex_text(real, imaginary):
    if not imaginary:
        return fraction(real)
    return total(([("-" if real < 0 else "+") + fraction(abs(real))] if real else []) + [term(imaginary, "i")])


def complex_numbers(draw):
    a, b, c, d = (Fraction(draw.choice([value for value in range(-7, 8) if value])) for _ in range(4))
    real, imaginary = a * c - b * d, a * d + b * c
    size = c * c + d * d
    right = [complex_text(real, imaginary), f"({complex_text(a, b)})({complex_text(c, d)})", f"({complex_text(c, d)})\\cdot({complex_text(a, b)})",
             f"\\frac{{({complex_text(a, b)})\\cdot {size}}}{{{complex_text(c, -d)}}}"]
    wrong = [complex_text(one, two) for one, two in ((real, imaginary + 1), (real + 1, imaginary), (imaginary, real), (real, -imaginary), (-real, imaginary)) if (one, two) != (real, imaginary)]
    wrong += [fraction(real) if imaginary else "i", f"({complex_text(a, b)})({complex_text(c, -d)})"]
    return Family("complex", right, wrong)


# -- structures -------------------------------------------------------------------------------------------------------------

def distinct(draw, count):
    found = []
    while len(found) < count:
        value = Fraction(draw.randint(-20, 20), draw.choice([1, 1, 2, 3, 4]))
        if value not in found:
            found.append(value)
    return found


def written(values, draw):
    """The values, each in some spelling that has no comma and no percent sign."""
    return [draw.choice([one for one in number_writings(value, draw) if "," not in one and "%" not in one]) for value in values]


def tuples(draw):
    values = distinct(draw, draw.randint(2, 4))
    swapped = [values[1], values[0], *values[2:]]
    right = ["(" + ",".join(written(values, draw)) + ")" for _ in range(3)] + ["\\left(" + ",\\,".join(written(values, draw)) + "\\right)"]
    wrong = ["(" + ",".join(written(one, draw)) + ")" for one in (swapped, values[:-1] if len(values) > 2 else [*values, Fraction(0)], [*values[:-1], values[-1] + 1], [*values, Fraction(1)])]
    wrong += ["\\{" + ",".join(written(values, draw)) + "\\}", "[" + ",".join(written(values, draw)) + "]", fraction(values[0])]
    return Family("tuples", right, wrong)


def sets(draw):
    values = distinct(draw, draw.randint(2, 5))

    def shuffled(some):
        return draw.sample(some, len(some))

    right = ["\\{" + ", ".join(written(shuffled(values), draw)) + "\\}" for _ in range(3)]
    right += [",".join(written(shuffled(values), draw)), "\\left\\{" + ",".join(written([*values, values[0]], draw)) + "\\right\\}"]
    other = [*values[:-1], values[-1] + Fraction(1, 10 ** 12)]
    wrong = ["\\{" + ",".join(written(one, draw)) + "\\}" for one in (values[:-1], [*values, max(values) + 1], other, [*values, max(values) + Fraction(1, 10 ** 9)])]
    wrong += ["(" + ",".join(written(values, draw)) + ")", fraction(values[0]), fraction(sum(values))]
    return Family("sets", right, wrong)


def intervals(draw):
    low, high = sorted(distinct(draw, 2))
    left, right_ = draw.choice("(["), draw.choice(")]")
    signs = {"(": "<", "[": "\\le ", ")": "<", "]": "\\le "}

    def ends():
        return written([low, high], draw)

    right = [f"{left}{','.join(ends())}{right_}", f"\\left{left}{', '.join(ends())}\\right{right_}", f"x\\in{left}{','.join(ends())}{right_}", f"{ends()[0]}{signs[left]}x{signs[right_]}{ends()[1]}"]
    other = {"(": "[", "[": "(", ")": "]", "]": ")"}
    wrong = [f"{other[left]}{','.join(ends())}{right_}", f"{left}{','.join(ends())}{other[right_]}", f"{left}{','.join(written([low, high + Fraction(1, 10 ** 15)], draw))}{right_}",
             f"{left}{','.join(written([low - 1, high], draw))}{right_}", f"x{signs[left]}{ends()[1]}", f"\\{{{','.join(ends())}\\}}", f"{ends()[0]}{signs[other[left]]}x{signs[right_]}{ends()[1]}"]
    return Family("intervals", right, wrong)


def unions(draw):
    a, b, c, d = sorted(distinct(draw, 4))
    one, two = f"({fraction(a)},{fraction(b)}]", f"[{fraction(c)},{fraction(d)})"
    right = [f"{one}\\cup{two}", f"{two}\\cup{one}", f"x\\in{one}\\cup{two}", f"({fraction(a)}, {fraction(b)}] \\cup [{fraction(c)}, {fraction(d)})"]
    wrong = [one, two, f"{one}\\cap{two}", f"({fraction(a)},{fraction(d)})", f"({fraction(a)},{fraction(b)})\\cup{two}", f"{one}\\cup({fraction(c)},{fraction(d)})", f"{one}\\cup{two}\\cup[{fraction(d + 1)},{fraction(d + 2)}]"]
    return Family("unions", right, wrong)


def matrices(draw):
    rows, columns = draw.randint(1, 3), draw.randint(2, 3)
    values = [[Fraction(draw.randint(-9, 9), draw.choice([1, 1, 2])) for _ in range(columns)] for _ in range(rows)]

    def matrix(some, kind="pmatrix"):
        body = " \\\\ ".join(" & ".join(written(row, draw)) for row in some)
        return f"\\begin{{{kind}}} {body} \\end{{{kind}}}"

    changed = [list(row) for row in values]
    changed[-1][-1] += Fraction(1, draw.choice([1, 10 ** 6]))
    transposed = [list(column) for column in zip(*values)]
    right = [matrix(values) for _ in range(3)] + [matrix(values, "bmatrix")]
    wrong = [matrix(changed), matrix(values, "vmatrix"), matrix([row[:-1] for row in values]), matrix([*values, values[0]])]
    if transposed != values:
        wrong.append(matrix(transposed))
    return Family("matrices", right, wrong)


# -- equations --------------------------------------------------------------------------------------------------------------

def equations(draw):
    names = ["x", "y"]
    left = draw_polynomial(draw, names, 3, 2)
    left[(1, 0)] = Fraction(draw.choice([1, 2, 3, -2, 5]))
    left.pop((0, 0), None)
    value = Fraction(draw.randint(1, 30))
    factor = Fraction(draw.choice([-3, -2, -1, 2, 3, 5, Fraction(1, 2)]))
    scaled = {key: one * factor for key, one in left.items()}
    moved = add(left, {(0, 0): -value})
    right = [f"{show(left, names)}={fraction(value)}", f"{fraction(value)}={show(left, names, draw)}", f"{show(moved, names)}=0", f"{show(scaled, names, draw)}={fraction(value * factor)}", f"0={show(moved, names, draw)}"]
    wrong = [f"{show(left, names)}={fraction(value + 1)}", f"{show(perturbed(left, draw), names)}={fraction(value)}", f"{show(left, names)}={fraction(-value)}", f"{show(scaled, names)}={fraction(value * factor + 1)}",
             f"{show(left, names)}<{fraction(value)}", f"{show(left, names)}\\ne {fraction(value)}", f"{show(left, ['u', 'v'])}={fraction(value)}", show(left, names), fraction(value)]
    return Family("equations", right, wrong)


def assignments(draw):
    value = draw_rational(draw) or Fraction(7)  # 0 = 0x
    name = draw.choice("xntky")
    right = [f"{name}={fraction(value)}", fraction(value), f"{name} = {draw.choice(number_writings(value, draw))}"]
    other = "z" if name != "z" else "y"
    wrong = [f"{name}={fraction(one)}" for one in near(value, draw)[:3]] + [f"{name}\\ne {fraction(value)}", f"{name}>{fraction(value)}", f"{fraction(value)}{name}", f"{name}={fraction(value)}+{other}",
                                                                           f"{name}={fraction(value)},{fraction(value + 1)}"]
    return Family("assignments", right, wrong)


MAKERS = [rational, rational, rational, power, reciprocal_power, surds, surds, denested, roots, logarithms, bases_of_logarithms, exponentials, angles, angles, multiples_of_pi,
          polynomials, polynomials, rational_functions, identities, complex_numbers, tuples, sets, intervals, unions, matrices, equations, assignments]


def families(seed, count):
    draw = random.Random(seed)
    return [MAKERS[index % len(MAKERS)](draw) for index in range(count)]


# -- layout that says nothing -------------------------------------------------------------------------------------------------

def laid_out(text, draw):
    """The same answer with other layout."""
    kind = draw.randrange(9)
    if kind == 0:
        return text.replace("\\frac", draw.choice(["\\dfrac", "\\tfrac"]))
    if kind == 1:
        return "\\displaystyle " + text
    if kind == 2:
        return f" {text} "
    if kind == 3:
        return f"{{{text}}}"
    if kind == 4:
        return text + draw.choice([".", "\\,", "\\;", "\\quad", "~"])
    if kind == 5:
        return text.replace("+", " + ").replace("=", " = ")
    if kind == 6:
        return "\\," + text
    return text


FRAMES = ["Therefore \\boxed{%s}.", "$\\boxed{%s}$", "<think>\nhm\n</think>\n\\[\\boxed{%s}\\]", "First \\boxed{1}, but in the end $\\boxed{%s}$"]


def framed(text, draw):
    return draw.choice(FRAMES) % text
