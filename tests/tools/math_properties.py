"""Properties of the math verifier that hold for any answer: asked of a service in bulk, over families of writings (math_families.py).

Each check gives back what broke it. `post` sends items to /v1/verify and gives back its items."""
from collections import Counter, namedtuple

from math_families import framed, laid_out

PART = 2000
CUT = "…"  # ends what detail.read shows of a longer normal form
Pair = namedtuple("Pair", "kind reference answer equal")


def pairs_of(family, draw):
    """Each right writing as an answer to another one, each wrong one to one of the right, both ways round for half of them."""
    for answer in family.right:
        yield Pair(family.kind, draw.choice(family.right), laid_out(answer, draw), True)
    for answer in family.wrong:
        yield Pair(family.kind, draw.choice(family.right), laid_out(answer, draw), False)


def verify(post, pairs, draw=None):
    """The math verdict of each pair. With `draw` the answers stand in some text, else in a box alone."""
    found = []
    for start in range(0, len(pairs), PART):
        items = [{"id": str(at), "reference": pair.reference, "completion": framed(pair.answer, draw) if draw else f"\\boxed{{{pair.answer}}}"}
                 for at, pair in enumerate(pairs[start:start + PART])]
        found += [item["verdicts"][0] for item in post({"verifiers": [{"name": "math"}], "items": items})]
    return found


def is_paid(verdict):
    return verdict["score"] == 1


def truth(post, families, draw):
    """(paid wrong ones, refused right ones with their reason, how many right ones there were)"""
    pairs = [pair for family in families for pair in pairs_of(family, draw)]
    paid, refused = [], []
    for pair, verdict in zip(pairs, verify(post, pairs, draw), strict=True):
        if is_paid(verdict) and not pair.equal:
            paid.append((pair, verdict["reason"]))
        elif pair.equal and not is_paid(verdict):
            refused.append((pair, verdict["reason"] or (verdict["failure"] or {}).get("code")))
    return paid, refused, sum(pair.equal for pair in pairs)


SCALARS = {"rational", "power", "reciprocal power", "surd", "nested roots", "roots", "logarithms", "bases of logarithms", "exponentials", "angles",
           "multiples of pi", "polynomials", "rational functions", "functions of names", "complex", "factorials"}


def symmetry(post, families, draw):
    """Pairs of scalars of which one order is paid and the other is not."""
    there = [Pair(family.kind, draw.choice(family.right), draw.choice(family.right + family.wrong), None) for family in families if family.kind in SCALARS for _ in range(4)]
    back = [Pair(pair.kind, pair.answer, pair.reference, None) for pair in there]
    return [(pair, one["reason"], two["reason"]) for pair, one, two in zip(there, verify(post, there), verify(post, back), strict=True)
            if is_paid(one) != is_paid(two) and "failure" not in (one["verdict"], two["verdict"]) and not one["failure"] and not two["failure"]]


def transitivity(post, families, draw):
    """Triples of which a = b and b = c are paid, but a = c is said to be different."""
    triples = [draw.sample(family.right + family.wrong, 3) for family in families for _ in range(2) if len(family.right + family.wrong) > 2]
    triples += [draw.sample(family.right, 3) for family in families if len(family.right) > 2]
    said = [verify(post, [Pair("", one[left], one[right], None) for one in triples]) for left, right in ((0, 1), (1, 2), (0, 2))]
    return [(triple, third["reason"]) for triple, first, second, third in zip(triples, *said, strict=True)
            if is_paid(first) and is_paid(second) and not is_paid(third) and third["reason"] == "different"]


def normal_forms(post, families, draw):
    """(answers whose normal form is judged otherwise than they themselves, how many were read)"""
    pairs = [Pair(family.kind, draw.choice(family.right), answer, None) for family in families for answer in family.right + family.wrong]
    first = verify(post, pairs)
    read = [(pair, verdict) for pair, verdict in zip(pairs, first) if verdict["detail"] and verdict["detail"].get("read") and not verdict["detail"]["read"].endswith(CUT)]
    again = verify(post, [pair._replace(answer=verdict["detail"]["read"]) for pair, verdict in read])
    broken = [(pair, verdict["detail"]["read"], verdict["reason"], other["reason"]) for (pair, verdict), other in zip(read, again, strict=True)
              if is_paid(verdict) != is_paid(other)]
    return broken, len(read)


def report(refused, right):
    """Lines for a person: how much of what is true was not paid, by kind and reason."""
    shares = Counter((pair.kind, reason) for pair, reason in refused)
    lines = [f"{len(refused)} of {right} true ones refused ({100 * len(refused) / max(right, 1):.2f} %)"]
    return lines + [f"  {kind}, {reason}: {count}" for (kind, reason), count in shares.most_common()]
