"""POST /v1/audits for its tests: requests, and each number computed from scores and weights alone, in fractions and decimals."""
import itertools
from decimal import Decimal, getcontext
from fractions import Fraction

from material import close

getcontext().prec = 60


def root(value):
    return Decimal(value.numerator).sqrt() / Decimal(value.denominator).sqrt() if value.numerator < 2**180 else (Decimal(value.numerator) / Decimal(value.denominator)).sqrt()


def number(value):
    return None if value is None else float(value)


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known, Fraction(0)) / len(known) if known else None


def clustered_se(values, tasks):
    known = [(value, task) for value, task in zip(values, tasks) if value is not None]
    if len({task for _, task in known}) < 2:
        return None
    middle = mean([value for value, _ in known])
    sums = {}
    for value, task in known:
        sums[task] = sums.get(task, Fraction(0)) + value - middle
    return root(sum(part * part for part in sums.values())) / len(known)


def pearson(left, right):
    pairs = [(a, b) for a, b in zip(left, right) if a is not None and b is not None]
    if len({a for a, _ in pairs}) < 2 or len({b for _, b in pairs}) < 2:
        return None
    x, y = mean([a for a, _ in pairs]), mean([b for _, b in pairs])
    top = sum((a - x) * (b - y) for a, b in pairs)
    square = top * top / (sum((a - x) ** 2 for a, _ in pairs) * sum((b - y) ** 2 for _, b in pairs))
    return root(square) * (1 if top >= 0 else -1)


def reward(scores, weights):
    """A score that is missing where it counts makes it None."""
    counted = {name: weight for name, weight in weights.items() if weight != 0}
    if any(scores.get(name) is None for name in counted) or all(scores.get(name) is None for name in weights):
        return None
    return sum((Fraction(weight) * Fraction(scores[name]) for name, weight in counted.items()), Fraction(0))


def advantages(rewards):
    known = [value for value in rewards if value is not None]
    if len(set(known)) < 2:
        return [None if value is None else Decimal(0) for value in rewards]
    middle = mean(known)
    deviation = root(sum((value - middle) ** 2 for value in known) / len(known))
    return [None if value is None else (Decimal((value - middle).numerator) / Decimal((value - middle).denominator)) / deviation for value in rewards]


def sign(left, right):
    return (left > right) - (left < right)


def row(groups, weights, verifier, weight, truth, threshold=1):
    """groups: [(task, [scores])]. The expected row of the reply; `promoted` as places (group, completion)."""
    changed = {**weights, verifier: weight}
    rewards, truths, tasks, promoted, demoted, changes = [], [], [], [], 0, 0
    for place, (task, members) in enumerate(groups):
        before, after = [[reward(scores, by) for scores in members] for by in (weights, changed)]
        for index, (scores, advantage) in enumerate(zip(members, advantages(after))):
            known = scores.get(truth) is not None and advantage is not None
            if known and scores[truth] < threshold and advantage > 0:
                promoted.append((place, index, advantage, after[index]))
            demoted += bool(known and scores[truth] >= threshold and advantage < 0)
        pairs = [(a, b) for a, b in itertools.combinations(range(len(members)), 2) if None not in (before[a], before[b], after[a], after[b])]
        changes += sum(sign(before[a], before[b]) != sign(after[a], after[b]) for a, b in pairs)
        rewards += after
        truths += [None if scores.get(truth) is None else Fraction(scores[truth]) for scores in members]
        tasks += [task] * len(members)
    return {"weight": weight, "scored": sum(value is not None for value in rewards), "reward_mean": number(mean(rewards)),
            "reward_se": number(clustered_se(rewards, tasks)), "truth_mean": number(mean(truths)), "truth_se": number(clustered_se(truths, tasks)),
            "correlation": number(pearson(rewards, truths)), "promoted_wrong": len(promoted), "demoted_right": demoted, "rank_changes": changes, "promoted": promoted}


NUMBERS = ("weight", "scored", "reward_mean", "reward_se", "truth_mean", "truth_se", "correlation", "promoted_wrong", "demoted_right", "rank_changes")


def assert_row(got, want, identify):
    for name in NUMBERS:
        assert close(got[name], want[name], absolute=1e-14), (name, got[name], want[name])
    assert len(got["promoted"]) == min(100, len(want["promoted"]))
    for listed, (group, index, advantage, value) in zip(got["promoted"], want["promoted"]):
        name, identity = identify(group, index)
        assert listed[name] == identity
        assert close(listed["advantage"], float(advantage)) and close(listed["reward"], float(value))


def audit(service, body):
    reply = service.post("/v1/audits", body)
    assert reply.status == 200, reply
    return reply.json


def refused(service, status, code, path, body):
    reply = service.post("/v1/audits", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path), reply
    assert reply.error["message"]


def inline(groups, weights, weights_swept, verifier="format", truth="correct", **more):
    return {"groups": [{"task": task, "completions": [{"id": str(index), "scores": scores} for index, scores in enumerate(members)]} for task, members in groups],
            "weights": weights, "sweep": {"verifier": verifier, "weights": weights_swept}, "truth": truth, **more}


def score(service, run, revision, groups, weights=None, **more):
    """groups: [(task, [scores])]: `correct` is held out, all others are rewards that come along. Gives the batch."""
    weights = weights or {"format": 0.2, "answer": 1}
    body = {"run": run, "policy_revision": revision, "verifiers": [{"name": "exact", "id": "correct", "heldout": True}],
            "groups": [{"task": task, "draw": draw, "reference": "yes", "completions": [
                {"text": "yes" if scores["correct"] else "no", "rewards": {name: {"score": value, "weight": weights[name]} for name, value in scores.items() if name != "correct"}}
                for scores in members]} for draw, (task, members) in enumerate(groups)], **more}
    reply = service.post("/v1/score", body)
    assert reply.status == 200, reply
    return reply.json
