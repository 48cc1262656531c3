"""POST /v1/audits: every number is computed again here, from scores and weights alone, in fractions and decimals."""
import itertools
import random
import re
from decimal import Decimal, getcontext
from fractions import Fraction

import pytest

from harness import eventually
from material import close, make_batch, make_group, rollouts, sampling

getcontext().prec = 60


# -- by hand -----------------------------------------------------------------------------------------------------------------------

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
    """groups: [(task, [scores])]. What a row of the reply must say; `promoted` as places (group, completion)."""
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


# -- without a record --------------------------------------------------------------------------------------------------------------

FORMATTED = [("t1", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}, {"correct": 0, "format": 0}, {"correct": 1, "format": 1}]),
             ("t2", [{"correct": 0, "format": 1}, {"correct": 0, "format": 0}]),
             ("t1", [{"correct": 1, "format": None}, {"correct": None, "format": 1}, {"correct": 0, "format": 0.5}, {"correct": 1, "format": 0.25}])]


def inline(groups, weights, weights_swept, verifier="format", truth="correct", **more):
    return {"groups": [{"task": task, "completions": [{"id": str(index), "scores": scores} for index, scores in enumerate(members)]} for task, members in groups],
            "weights": weights, "sweep": {"verifier": verifier, "weights": weights_swept}, "truth": truth, **more}


def check_inline(service, groups, weights, swept, verifier="format", truth="correct", threshold=1, **more):
    got = audit(service, inline(groups, weights, swept, verifier, truth, threshold=threshold, **more))
    assert [one["weight"] for one in got["sweep"]] == swept
    for one in got["sweep"]:
        assert_row(one, row(groups, weights, verifier, one["weight"], truth, threshold), lambda group, index: ("id", str(index)))
    recorded = {**got["recorded"], "weight": weights.get(verifier, 0)}
    assert_row(recorded, row(groups, weights, verifier, weights.get(verifier, 0), truth, threshold), lambda group, index: ("id", str(index)))
    assert got["n"] == sum(len(members) for _, members in groups) and got["groups"] == len(groups) and got["divergence"] is None
    return got


@pytest.mark.parametrize("weights", [{"correct": 1}, {"correct": 1, "format": 0.2}, {"correct": 0.5, "format": -1}, {"format": 1}])
def test_each_number_is_what_scores_and_weights_give(plain, weights):
    check_inline(plain, FORMATTED, weights, [0, 0.2, 0.5, 1, 3, -2, 1e-9, 1e9])


def test_a_weight_of_3_pays_for_a_wrong_answer_and_a_weight_of_0_does_not(plain):
    groups = [("sum", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}])]
    got = check_inline(plain, groups, {"correct": 1}, [0, 3])
    assert [(one["promoted_wrong"], one["demoted_right"], one["rank_changes"], one["truth_mean"]) for one in got["sweep"]] == [(0, 0, 0, 0.5), (1, 1, 1, 0.5)]
    assert got["sweep"][1]["promoted"] == [{"id": "1", "task": "sum", "advantage": 1.0, "reward": 3.0, "scores": {"correct": 0.0, "format": 1.0}}]


def test_scores_at_random(plain):
    values = [None, 0, 0, 0.25, 0.5, 1, 1, 1]
    for seed in range(20):
        chance = random.Random(seed)
        groups = [(f"t{chance.randrange(4)}", [{name: chance.choice(values) for name in ("correct", "format", "length")} for _ in range(chance.randrange(1, 9))]) for _ in range(6)]
        groups.append(("all", [{"correct": 1, "format": 1, "length": 1}]))
        check_inline(plain, groups, {"correct": 1, "length": 0.5}, [0, 0.5, 2, -0.25], threshold=chance.choice([0.25, 0.5, 1]))


def test_a_missing_score_is_no_number(plain):
    """It makes the reward null where it counts, and nothing where its weight is 0."""
    groups = [("t", [{"correct": 1, "format": 1}, {"correct": 0}, {"correct": 0, "format": None}, {"format": 1}])]
    got = check_inline(plain, groups, {"correct": 1}, [0, 1])
    assert [one["scored"] for one in got["sweep"]] == [3, 1] and got["truth_scored"] == 3


def test_missing_scores_that_are_skipped(plain):
    got = audit(plain, inline([("t", [{"correct": 1, "format": None}, {"correct": None, "format": 1}, {"correct": None, "format": None}])], {"correct": 1}, [2],
                              objective={"preset": "grpo", "advantage": {"missing": "skip"}}))
    assert (got["sweep"][0]["scored"], got["sweep"][0]["reward_mean"]) == (2, 1.5)


def test_a_truth_that_nobody_has_is_null_everywhere(plain):
    got = check_inline(plain, [("a", [{"format": 1, "correct": None}, {"format": 0, "correct": None}]), ("b", [{"format": 1, "correct": None}])], {"format": 1}, [0, 2])
    for one in got["sweep"]:
        assert (one["truth_mean"], one["truth_se"], one["correlation"], one["promoted_wrong"], one["demoted_right"]) == (None, None, None, 0, 0)
    assert got["truth_scored"] == 0


def test_one_task_has_no_error_and_a_constant_no_correlation(plain):
    got = check_inline(plain, [("a", [{"format": 1, "correct": 1}, {"format": 1, "correct": 0}])], {"format": 1}, [0, 1])
    assert [(one["reward_se"], one["truth_se"], one["correlation"]) for one in got["sweep"]] == [(None, None, None)] * 2


def test_the_lists_are_cut_and_the_counts_are_not(plain):
    groups = [(f"t{index}", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}]) for index in range(150)]
    got = check_inline(plain, groups, {"correct": 1}, [3])
    assert got["sweep"][0]["promoted_wrong"] == 150 and len(got["sweep"][0]["promoted"]) == 100


def test_the_objective_decides_about_advantages(plain):
    groups = [("a", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}, {"correct": 0, "format": 0}])]
    body = inline(groups, {"correct": 1}, [3])
    rewards = [1, 3, 0]
    for objective, want in [({"preset": "rloo"}, 3 - (1 + 0) / 2), ({"preset": "dr_grpo"}, 3 - 4 / 3),
                            ({"preset": "grpo", "advantage": {"estimator": "reward"}}, 3),
                            ({"preset": "grpo", "shaping": [{"kind": "reward_clip", "lo": 0, "hi": 2}]}, (2 - 1) / (2 / 3) ** 0.5)]:
        got = audit(plain, {**body, "objective": objective})["sweep"][0]["promoted"]
        assert close(got[0]["advantage"], want) and got[0]["reward"] == rewards[1], objective


def test_shaping_by_length_reads_it(plain):
    body = inline([("a", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}])], {"correct": 1}, [1],
                  objective={"preset": "grpo", "shaping": [{"kind": "dapo_soft_overlong", "max_len": 10, "buffer": 4}]})
    refused(plain, 422, "objective_options", "groups[0].completions[0].length", body)
    body["groups"][0]["completions"][0]["length"] = 10
    body["groups"][0]["completions"][1]["length"] = 5
    got = audit(plain, body)["sweep"][0]
    assert (got["promoted_wrong"], got["promoted"][0]["advantage"], got["reward_mean"]) == (1, 1.0, 1.0)


def test_a_group_that_the_filter_drops_promotes_nobody(plain):
    body = inline([("a", [{"correct": 0, "format": 1}, {"correct": 0, "format": 0}])], {"correct": 1}, [1])
    assert audit(plain, body)["sweep"][0]["promoted_wrong"] == 1
    dropped = {"preset": "grpo", "filter": {"rule": "mean_interval", "lo": 0.6, "hi": 1}}
    assert audit(plain, {**body, "objective": dropped})["sweep"][0]["promoted_wrong"] == 0


def test_scores_by_name_are_normalised_one_by_one(plain):
    """gdpo: each score by itself in its group, the sum over the request."""
    groups = [("a", [{"correct": 1, "format": 0}, {"correct": 0, "format": 4}]), ("b", [{"correct": 1, "format": 1}, {"correct": 1, "format": 1}])]
    body = inline(groups, {"correct": 1}, [1, 0.5], objective={"preset": "grpo", "advantage": {"estimator": "gdpo", "eps_group": 0, "eps_batch": 0}})
    got = audit(plain, body)["sweep"]
    assert got[0]["promoted_wrong"] == 0 and got[1]["promoted_wrong"] == 0 and got[1]["demoted_right"] == 0


# -- refusals ----------------------------------------------------------------------------------------------------------------------

GOOD = inline([("t", [{"correct": 1, "format": 0}])], {"correct": 1}, [0, 1])
SWEEP = {"verifier": "format", "weights": [1]}


@pytest.mark.parametrize("code, path, change", [
    ("missing_field", "sweep", {"sweep": None}), ("missing_field", "truth", {"truth": None}), ("missing_field", "groups", {"groups": None}), ("missing_field", "weights", {"weights": None}),
    ("unknown_field", "sweeps", {"sweeps": 1}), ("invalid_field", "kind", {"kind": "other"}), ("invalid_field", "groups", {"groups": []}), ("invalid_field", "groups", {"groups": {}}),
    ("invalid_field", "groups[0].completions", {"groups": [{"task": "t", "completions": []}]}), ("missing_field", "groups[0].task", {"groups": [{"completions": []}]}),
    ("missing_field", "groups[0].completions[0].scores", {"groups": [{"task": "t", "completions": [{"id": "1"}]}]}),
    ("invalid_field", "groups[0].completions[0].scores.correct", {"groups": [{"task": "t", "completions": [{"scores": {"correct": "1", "format": 1}}]}]}),
    ("invalid_field", "groups[0].completions[1].id", {"groups": [{"task": "t", "completions": [{"id": "1", "scores": {"correct": 1, "format": 1}}] * 2}]}),
    ("invalid_field", "sweep.verifier", {"sweep": {**SWEEP, "verifier": "fromat"}}), ("invalid_field", "sweep.weights", {"sweep": {**SWEEP, "weights": []}}),
    ("invalid_field", "sweep.weights", {"sweep": {**SWEEP, "weights": [1] * 33}}), ("invalid_field", "sweep.weights[1]", {"sweep": {**SWEEP, "weights": [1, "1"]}}),
    ("invalid_field", "sweep.weights[1]", {"sweep": {**SWEEP, "weights": [1, 1e308]}}), ("invalid_field", "sweep.weights[0]", {"sweep": {**SWEEP, "weights": [None]}}),
    ("invalid_field", "sweep.weights[0]", {"sweep": {**SWEEP, "weights": [-1.1e9]}}), ("unknown_field", "sweep.weight", {"sweep": {**SWEEP, "weight": 1}}),
    ("invalid_field", "truth", {"truth": "corect"}), ("invalid_field", "truth", {"truth": "reward"}), ("invalid_field", "weights.corect", {"weights": {"corect": 1}}),
    ("invalid_field", "weights.correct", {"weights": {"correct": 2e9}}), ("invalid_field", "weights.correct", {"weights": {"correct": None}}),
    ("missing_field", "run", {"revision": 3}), ("missing_field", "run", {"batch": "b_1"}),
    ("invalid_field", "groups", {"run": "r", "revision": 1}), ("missing_field", "revision", {"run": "r", "groups": None, "weights": None}),
    ("invalid_field", "revision", {"run": "r", "revision": 1, "batch": "b_1", "groups": None, "weights": None}),
    ("invalid_field", "run", {"run": "no such/run", "revision": 1, "groups": None, "weights": None}), ("invalid_field", "threshold", {"threshold": "1"})])
def test_what_cannot_be_asked_is_refused_with_its_place(plain, code, path, change):
    refused(plain, 400, code, path, {name: value for name, value in {**GOOD, **change}.items() if value is not None})


@pytest.mark.parametrize("objective, path", [({"preset": "gropo"}, "objective.preset"), ({"advantage": {"estimator": "reinforce_plus_plus"}}, "objective.advantage.estimator"), ({"advantage": {"estimator": "opo"}}, "objective.advantage.estimator"),
                                             ({"advantage": {"estimator": "remax"}}, "objective.advantage.estimator"), ({"shaping": [{"kind": "repetition", "ngram": 2, "max_penalty": -1}]}, "objective.shaping"),
                                             ({"beta": 0.1, "kl": {"in": "reward"}}, "objective.kl.in")])
def test_an_objective_that_needs_tokens_is_refused(plain, objective, path):
    refused(plain, 422, "objective_options", path, {**GOOD, "objective": {"preset": "grpo", **objective}})


@pytest.mark.parametrize("body, code", [(b'{"sweep":{"verifier":"a","weights":[NaN]},"truth":"a"}', "invalid_json"), (b'{"sweep":{"verifier":"a","weights":[1e999]},"truth":"a"}', "invalid_field"),
                                        (b'{"truth":"a","truth":"b"}', "invalid_json"),
                                        (b'{"groups":[{"task":"t","completions":[{"scores":{"a":1,"a":0}}]}],"weights":{"a":1},"sweep":{"verifier":"a","weights":[1]},"truth":"a"}', "invalid_json"),
                                        (b"[]", "invalid_field"), (b"", "invalid_json")])
def test_what_is_no_json_or_no_number_is_refused(plain, body, code):
    reply = plain.post("/v1/audits", body)
    assert (reply.status, reply.error["code"]) == (400, code), reply


def test_rewards_beyond_double_are_refused_with_their_place(plain):
    refused(plain, 422, "non_finite", "groups[0].completions[1].scores", inline([("t", [{"correct": 1, "format": 1}, {"correct": 0, "format": 1e308}])], {"correct": 1}, [1, 1e9]))
    refused(plain, 422, "non_finite", "groups[0].completions[0].scores", inline([("t", [{"correct": 1e308, "format": 1e308}])], {"correct": 1e9, "format": -1e9}, [-1e9]))
    got = audit(plain, inline([("t", [{"correct": 1e308, "format": 1}, {"correct": 0, "format": 1}]), ("u", [{"correct": 1e308, "format": 1}, {"correct": 1e308, "format": 0}])], {"correct": 1}, [1]))
    assert got["sweep"][0]["reward_mean"] == 7.5e307 and close(got["sweep"][0]["correlation"], 1)


def test_too_many_completions_are_refused(plain):
    group = {"task": "t", "completions": [{"scores": {"a": 1}}] * 32768}
    body = {"groups": [group, group], "weights": {"a": 1}, "sweep": {"verifier": "a", "weights": [1]}, "truth": "a"}
    got = audit(plain, body)
    assert (got["n"], got["recorded"]["scored"], got["recorded"]["rank_changes"]) == (65536, 65536, 0)
    body["groups"] = [group, group, {"task": "u", "completions": [{"scores": {"a": 1}}]}]
    refused(plain, 422, "too_many_rollouts", "groups", body)


def test_too_many_names_are_refused(plain):
    body = inline([("t", [{**{f"s{index}": 1 for index in range(300)}, "correct": 1, "format": 1}])], {"correct": 1}, [1])
    refused(plain, 400, "invalid_field", "groups", body)


def test_too_many_scores_are_refused_however_small_the_body_is(plain):
    """256 weights that each of 20,000 completions lacks are five million missing scores."""
    names = {f"s{index}": 1 for index in range(255)}
    body = {"groups": [{"task": "t", "completions": [{"scores": {**names, "t": 1}}, *[{"scores": {}}] * 20000]}], "weights": names, "sweep": {"verifier": "s0", "weights": [1]}, "truth": "t"}
    refused(plain, 422, "too_many_rollouts", "groups", body)
    gdpo = {"preset": "grpo", "advantage": {"estimator": "gdpo"}}
    body = {**body, "objective": gdpo, "weights": {"s0": 1}}
    refused(plain, 422, "too_many_rollouts", "groups", body)
    body["groups"][0]["completions"] = body["groups"][0]["completions"][:100]
    assert audit(plain, body)["n"] == 100


@pytest.mark.parametrize("name, largest", [("task", 1024), ("id", 256), ("score", 64)])
def test_texts_have_a_largest_length_and_a_whole_list_of_them_is_json(plain, name, largest):
    def body(length, members):
        text = "\u0001" * length if name != "score" else "s" * length
        score = text if name == "score" else "style"
        completions = [{**({"id": text[:-3] + f"{index:03d}"} if name == "id" else {}), "scores": {score: index, "right": 0}} for index in range(members)]
        return {"groups": [{"task": text if name == "task" else "t", "completions": completions}], "weights": {score: 1}, "sweep": {"verifier": score, "weights": [2] * 32}, "truth": "right"}
    got = audit(plain, body(largest, 300))
    assert [len(one["promoted"]) for one in got["sweep"]] == [100] * 32 and got["sweep"][0]["promoted_wrong"] == 150
    reply = plain.post("/v1/audits", body(largest + 1, 4))
    assert (reply.status, reply.error["code"]) == (400, "invalid_field") and reply.error["path"].startswith("groups[0]")


def test_a_list_ends_when_it_is_a_mebibyte(plain):
    names = ["\u0001" * 60 + f"{index:04d}" for index in range(200)]
    scores = dict.fromkeys(names, 0)
    body = {"groups": [{"task": "t", "completions": [{"scores": {**scores, "style": index, "right": 0}} for index in range(80)]}], "weights": {"style": 1},
            "sweep": {"verifier": "style", "weights": [1, 2]}, "truth": "right"}
    for one in audit(plain, body)["sweep"]:
        assert one["promoted_wrong"] == 40 and 1 < len(one["promoted"]) < 40 and set(one["promoted"][0]["scores"]) == {*names, "style", "right"}


def test_texts_of_every_kind_come_back(plain):
    names = {"id": "a\u0000b", "task": "\u00e4\u0000\u2028\U0001f984"}
    body = {"groups": [{"task": names["task"], "completions": [{"id": names["id"], "scores": {"\u00e4 \"q\"": 1, "t": 0}}, {"scores": {"\u00e4 \"q\"": 0, "t": 1}}]}],
            "weights": {"\u00e4 \"q\"": 1}, "sweep": {"verifier": "\u00e4 \"q\"", "weights": [2]}, "truth": "t"}
    assert audit(plain, body)["sweep"][0]["promoted"] == [{"id": names["id"], "task": names["task"], "advantage": 1.0, "reward": 2.0, "scores": {"\u00e4 \"q\"": 1.0, "t": 0.0}}]


# -- from the record ---------------------------------------------------------------------------------------------------------------

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


def made_up(seed, tasks=4, members=5):
    chance = random.Random(seed)
    return [(f"t{task}", [{"correct": chance.randrange(2), "format": chance.choice([0, 0.5, 1]), "answer": chance.choice([0, 1, None])} for _ in range(members)]) for task in range(tasks)]


def check_record(service, body, groups, batch_of, weights=None, threshold=1):
    """batch_of: [(group of a batch's reply)] in the order of `groups`."""
    weights = weights or {"format": 0.2, "answer": 1}
    got = audit(service, body)
    for one in got["sweep"]:
        assert_row(one, row(groups, weights, body["sweep"]["verifier"], one["weight"], body["truth"], threshold), lambda group, index: ("rollout", batch_of[group]["rollouts"][index]["id"]))
    assert got["recorded"]["weight"] == weights.get(body["sweep"]["verifier"], 0)
    assert_row(got["recorded"], row(groups, weights, body["sweep"]["verifier"], got["recorded"]["weight"], body["truth"], threshold),
               lambda group, index: ("rollout", batch_of[group]["rollouts"][index]["id"]))
    assert got["notes"] == [] and (got["n"], got["groups"]) == (sum(len(members) for _, members in groups), len(groups))
    return got


SWEPT = {"sweep": {"verifier": "format", "weights": [0, 0.2, 1, 3]}, "truth": "correct"}


def test_an_audit_of_a_batch_and_of_a_revision(plain):
    first, second, other = made_up(1), made_up(2), made_up(3)
    one, two, later = score(plain, "audited", 4, first), score(plain, "audited", 4, second), score(plain, "audited", 5, other)
    check_record(plain, {"run": "audited", "batch": one["id"], **SWEPT}, first, one["groups"])
    check_record(plain, {"run": "audited", "revision": 4, **SWEPT}, first + second, one["groups"] + two["groups"])
    got = check_record(plain, {"run": "audited", "revision": 5, **SWEPT}, other, later["groups"])
    held = {rollout["id"]: rollout for rollout in rollouts(later)}
    for promoted in got["recorded"]["promoted"]:
        assert (promoted["advantage"], promoted["reward"]) == (held[promoted["rollout"]]["advantage"], held[promoted["rollout"]]["reward"])
    assert got["recorded"]["scored"] == later["summary"]["scored"] and close(got["recorded"]["reward_mean"], later["summary"]["reward_mean"])


def test_a_held_out_verifier_may_be_swept(plain):
    groups = made_up(4)
    batch = score(plain, "held", 1, groups)
    check_record(plain, {"run": "held", "batch": batch["id"], "sweep": {"verifier": "correct", "weights": [0, 1, -1]}, "truth": "correct"}, groups, batch["groups"])
    check_record(plain, {"run": "held", "batch": batch["id"], "sweep": {"verifier": "answer", "weights": [0, 2]}, "truth": "format", "threshold": 0.5}, groups, batch["groups"], threshold=0.5)


def test_the_objective_of_the_record_counts(plain):
    """Over the whole batch: one deviation for all groups."""
    groups = [("a", [{"correct": 0, "format": 1, "answer": 0}, {"correct": 1, "format": 0, "answer": 1}]), ("b", [{"correct": 0, "format": 1, "answer": 0}, {"correct": 0, "format": 0, "answer": 0}])]
    batch = score(plain, "scaled", 1, groups, objective={"preset": "grpo", "advantage": {"scale": "batch"}})
    got = audit(plain, {"run": "scaled", "revision": 1, "sweep": {"verifier": "format", "weights": [3]}, "truth": "correct"})
    deviation = ((3 - 1.75) ** 2 + (1 - 1.75) ** 2 + (3 - 1.75) ** 2 + 1.75**2) ** 0.5 / 2
    assert [close(one["advantage"], want / deviation) for one, want in zip(got["sweep"][0]["promoted"], (1, 1.5))] == [True, True]
    recorded = {rollout["id"]: rollout["advantage"] for rollout in rollouts(batch)}
    assert all(recorded[one["rollout"]] == one["advantage"] for one in got["recorded"]["promoted"]) and got["recorded"]["promoted_wrong"] == 1


@pytest.mark.parametrize("estimator", ["rloo", "maxrl", "grpo_passk", "opo", "gpg", "gdpo", "normalization", "reinforce_plus_plus_baseline_sequence", "ema_baseline"])
def test_recorded_weights_give_the_recorded_advantages(plain, estimator):
    groups = [(f"t{task}", [{"correct": 0, "format": (task + member) % 3 / 2, "answer": member % 2} for member in range(4)]) for task in range(3)]
    batch = score(plain, f"same-{estimator}", 1, groups, objective={"preset": "grpo", "advantage": {"estimator": estimator}})
    got = audit(plain, {"run": f"same-{estimator}", "revision": 1, **SWEPT})
    wanted = {rollout["id"]: (rollout["advantage"], rollout["reward"]) for rollout in rollouts(batch) if rollout["advantage"] is not None and rollout["advantage"] > 0}
    assert {one["rollout"]: (one["advantage"], one["reward"]) for one in got["recorded"]["promoted"]} == wanted and got["notes"] == []


TOKENS = [[5, 6, 7], [5, 5, 5, 5], [9], [1, 2, 1, 2, 1]]


@pytest.mark.parametrize("objective", [{"advantage": {"estimator": "reward_to_go"}}, {"advantage": {"estimator": "reinforce_plus_plus"}}, {"advantage": {"estimator": "reinforce_plus_plus_baseline"}},
                                       {"advantage": {"estimator": "opo"}}, {"shaping": [{"kind": "repetition", "ngram": 2, "max_penalty": -0.5}]},
                                       {"shaping": [{"kind": "linear_length_penalty", "w_in": 0.1, "w_out": 0.25, "w_turns": 0}]}, {"shaping": [{"kind": "stop_properly", "coef": 0.5}]}])
def test_recorded_weights_give_the_recorded_advantages_where_tokens_count(plain, objective):
    """The record has what an audit without one lacks."""
    run = "tokens-" + re.sub("[^a-z0-9.]+", "-", str(objective))[:100]
    completions = [{"text": str(index), "completion_ids": ids, "logprobs": [-1] * len(ids), "completion_mask": [1] + [0] * (len(ids) > 1) + [1] * max(0, len(ids) - 2),
                    "finish_reason": "length" if index == 1 else "stop", "rewards": {"correct": {"score": index % 2, "weight": 1}, "format": {"score": index / 4, "weight": 0.5}}}
                   for index, ids in enumerate(TOKENS)]
    reply = plain.post("/v1/score", {"run": run, "policy_revision": 1, "objective": {"preset": "grpo", **objective}, "groups": [{"task": task, "prompt_ids": [1, 2, 3], "completions": completions} for task in "ab"]})
    assert reply.status == 200, reply
    got = audit(plain, {"run": run, "revision": 1, "sweep": {"verifier": "format", "weights": [0]}, "truth": "correct", "threshold": 2})
    wanted = {rollout["id"]: (rollout["advantage"], rollout["reward"]) for rollout in rollouts(reply.json) if rollout["advantage"] > 0}
    assert wanted and {one["rollout"]: (one["advantage"], one["reward"]) for one in got["recorded"]["promoted"]} == wanted and got["notes"] == []


def test_a_failure_is_never_a_number(service, engine):
    """A sample that failed has no reward by any weight; a verdict that failed, by those that leave it out."""
    engine.rules({"in": "FAIL", "status": 400, "json": {"error": "no"}}, {"choices": [{"text": "\\boxed{42}"}, {"text": "no"}]})
    batch = service.batch(make_batch(make_group("good", "a"), make_group("bad", "FAIL"), make_group("broken", "b", "\\frac{1}{"), sampling=sampling(2),
                                     verifiers=[{"name": "math"}, {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}}, {"name": "exact", "heldout": True}]))
    got = audit(service, {"run": "test", "batch": batch["id"], "sweep": {"verifier": "math", "weights": [0, 1]}, "truth": "math"})
    assert (got["n"], got["groups"], got["recorded"]["scored"], got["truth_scored"]) == (6, 3, 2, 2)
    assert [one["scored"] for one in got["sweep"]] == [4, 2] and got["notes"] == []
    assert [one["promoted_wrong"] for one in got["sweep"]] == [0, 0]


def test_a_gate_shuts_the_reward(service, engine):
    engine.rules({"choices": [{"text": "\\boxed{42}"}, {"text": "The answer is 42"}, {"text": "\\boxed{1}"}, {"text": "no"}]})
    batch = service.batch(make_batch(make_group("t"), sampling=sampling(4), verifiers=[
        {"name": "math", "options": {"extract": "boxed"}}, {"name": "regex", "id": "boxed", "weight": 0, "gate": True, "options": {"pattern": "boxed"}},
        {"name": "regex", "id": "digits", "weight": 0.25, "options": {"pattern": "\\d"}}]))
    assert sorted(rollout["reward"] for rollout in rollouts(batch)) == [0, 0, 0.25, 1.25]
    got = audit(service, {"run": "test", "batch": batch["id"], "sweep": {"verifier": "digits", "weights": [0.25, 4]}, "truth": "math"})
    assert [one["reward_mean"] for one in (got["recorded"], *got["sweep"])] == [0.375, 0.375, 2.25] and got["notes"] == []


def test_only_training_counts_and_only_the_latest_incarnation(plain):
    old, new, other = made_up(5), made_up(6), made_up(7)
    score(plain, "rewound", 3, old)
    score(plain, "rewound", 3, other, purpose="eval")
    assert plain.put("/v1/runs/rewound/policy", {"revision": 2, "rewind_to_step": 2}).status == 200
    again = score(plain, "rewound", 3, new)
    check_record(plain, {"run": "rewound", "revision": 3, **SWEPT}, new, again["groups"])
    assert audit(plain, {"run": "rewound", "revision": 3, "incarnation": 0, **SWEPT})["n"] == 20
    refused(plain, 404, "not_found", "revision", {"run": "rewound", "revision": 2, **SWEPT})
    refused(plain, 404, "not_found", "revision", {"run": "rewound", "revision": 3, "incarnation": 7, **SWEPT})


def test_of_a_group_that_an_abort_split_each_revision_counts_its_own_members(start, engine):
    """Advantages are over the whole group: rewards 2 and 1 give 1 and -1, whichever of the two is counted."""
    engine.for_rolloutd += "&in_flight=1"
    service = start(engine)
    engine.rules({"times": 1, "text": "\\boxed{41}"}, {"hold": True})
    verifiers = [{"name": "math"}, {"name": "regex", "id": "style", "weight": 0.5, "options": {"pattern": "41"}}]
    identity = service.post("/v1/batches", make_batch(policy_revision=1, verifiers=verifiers, deadline="10m"), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: len(engine.samples) == 2 and service.read(f"/v1/batches/{identity}", wait="0s")["counts"]["done"] == 1, "the first member to be on record")
    assert service.post("/v1/runs/test/policy/begin", {"revision": 2, "mode": "abort"}).status == 200
    engine.rules({"text": "\\boxed{42}"})
    assert service.post("/v1/runs/test/policy/commit", {"revision": 2}).status == 200
    members = rollouts(service.settled(identity))
    assert [(one["policy_revision"], one["reward"]) for one in members] == [(1, 0.5), (2, 1.0)]
    for revision, promoted, demoted, mean_reward in ((1, 1, 0, 2.0), (2, 0, 1, 1.0)):
        got = audit(service, {"run": "test", "revision": revision, "sweep": {"verifier": "style", "weights": [2]}, "truth": "math"})
        one = got["sweep"][0]
        assert (got["n"], got["groups"], one["promoted_wrong"], one["demoted_right"], one["reward_mean"], one["rank_changes"]) == (1, 1, promoted, demoted, mean_reward, 0)
        assert [(row["rollout"], row["advantage"]) for row in one["promoted"]] == [(members[0]["id"], 1.0)] * promoted
    assert audit(service, {"run": "test", "batch": identity, "sweep": {"verifier": "style", "weights": [2]}, "truth": "math"})["sweep"][0]["rank_changes"] == 1


def test_what_is_not_on_record_is_not_found(plain):
    batch = score(plain, "here", 1, made_up(8))
    score(plain, "there", 1, made_up(9))
    refused(plain, 404, "not_found", "run", {"run": "nowhere", "revision": 1, **SWEPT})
    refused(plain, 404, "not_found", "revision", {"run": "here", "revision": 2, **SWEPT})
    refused(plain, 404, "not_found", "batch", {"run": "there", "batch": batch["id"], **SWEPT})
    refused(plain, 404, "not_found", "batch", {"run": "here", "batch": "b_nobody", **SWEPT})
    assert plain.put("/v1/runs/empty/policy", {"revision": 1}).status == 200
    refused(plain, 404, "not_found", "revision", {"run": "empty", "revision": 1, **SWEPT})
    refused(plain, 400, "invalid_field", "sweep.verifier", {"run": "here", "revision": 1, "sweep": {"verifier": "fromat", "weights": [1]}, "truth": "correct"})
    refused(plain, 400, "invalid_field", "truth", {"run": "here", "revision": 1, "sweep": {"verifier": "format", "weights": [1]}, "truth": "math"})


def test_groups_that_run_are_left_out_and_noted(service, engine):
    engine.rules({"in": "SLOW", "hold": True}, {"choices": [{"text": "\\boxed{42}"}, {"text": "no"}]})
    running = service.post("/v1/batches", make_batch(make_group("done", "a"), make_group("slow", "SLOW"), deadline="10m"), {"Prefer": "respond-async"}).json["id"]
    wait_for_a_group(service, running)
    got = audit(service, {"run": "test", "batch": running, "sweep": {"verifier": "math", "weights": [2]}, "truth": "math"})
    assert (got["n"], got["groups"], got["sweep"][0]["reward_mean"]) == (2, 1, 1.0) and "1 group" in got["notes"][0]
    assert service.delete(f"/v1/batches/{running}").status == 200


def wait_for_a_group(service, batch):
    eventually(lambda: any(group["state"] == "complete" for group in service.read(f"/v1/batches/{batch}/groups")["items"]), "the first group to close")


# -- divergence --------------------------------------------------------------------------------------------------------------------

def history(service, run, means):
    """means: [(rewards of each of 8 tasks, right tasks)], one revision each."""
    for revision, (rewards, right) in enumerate(means):
        score(service, run, revision, [(f"t{task}", [{"correct": int(task < right), "style": value}]) for task, value in enumerate(rewards)], {"style": 1})
    return audit(service, {"run": run, "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "correct"})["divergence"]


def level(value, spread=0.01):
    return [value - spread, value + spread] * 4


def test_the_revision_from_which_the_reward_rose_and_the_truth_fell(plain):
    rising = [(level(0.1), 2), (level(0.2), 4), (level(0.3), 6), (level(0.4), 5), (level(0.5), 4), (level(0.6), 2)]
    got = history(plain, "hacked", rising)
    assert got["revision"] == 2
    for name, values in (("reward", (level(0.3), level(0.5))), ("truth", ([1] * 6 + [0] * 2, [1] * 4 + [0] * 4))):
        for end, revision, given in (("from", 2, values[0]), ("to", 4, values[1])):
            exact = [Fraction(value) for value in given]
            want = {"revision": revision, "mean": float(mean(exact)), "se": float(clustered_se(exact, range(8)))}
            assert got[name][end]["revision"] == revision and all(close(got[name][end][field], want[field]) for field in ("mean", "se")), (name, end)


@pytest.mark.parametrize("name, means", [
    ("both-rise", [(level(0.1), 2), (level(0.2), 3), (level(0.3), 4)]), ("two-revisions", [(level(0.1), 4), (level(0.9), 1)]),
    ("within-errors", [(level(0.1, 0.5), 6), (level(0.2, 0.5), 5), (level(0.3, 0.5), 4)]), ("reward-falls", [(level(0.3), 6), (level(0.2), 5), (level(0.1), 4)]),
    ("a-dip", [(level(0.1), 6), (level(0.05), 5), (level(0.3), 4)]), ("truth-stays", [(level(0.1), 4), (level(0.2), 4), (level(0.3), 4)])])
def test_no_divergence_is_claimed(plain, name, means):
    assert history(plain, name, means) is None


def test_rounding_is_no_fall_of_the_truth(plain):
    """The truth's mean is 0.1 at each revision; as doubles the three means fall by an ulp."""
    truths = ([0, 0.1, 0.2] * 2, [0, 0.2] * 3, [0, 0, 0.3] * 2)
    assert float(sum(map(Fraction, truths[0]))) / 6 > 0.1 > float(sum(map(Fraction, truths[2]))) / 6
    for revision, values in enumerate(truths):
        score(plain, "rounded", revision, [(f"t{task}", [{"correct": 1, "style": revision + task / 100, "quality": value}]) for task, value in enumerate(values)], {"style": 1, "quality": 0})
    assert audit(plain, {"run": "rounded", "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "quality"})["divergence"] is None


def test_each_revision_may_have_tasks_of_its_own(plain):
    """The errors are over the tasks of the revision, whatever others the run has."""
    means = [([0.1, 0.3, 0.2], 3), ([1.1, 1.3, 1.2], 2), ([2.1, 2.5, 2.2], 1)]
    for revision, (rewards, right) in enumerate(means):
        tasks = [(f"r{revision}-{place % 2}", [{"correct": int(place < right), "style": value}]) for place, value in enumerate(rewards)]
        score(plain, "moving", revision, list(reversed(tasks)), {"style": 1})
    got = audit(plain, {"run": "moving", "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "correct"})["divergence"]
    for end, (rewards, _) in (("from", means[0]), ("to", means[2])):
        exact = [Fraction(value) for value in rewards]
        assert close(got["reward"][end]["mean"], float(mean(exact))) and close(got["reward"][end]["se"], float(clustered_se(exact, [0, 1, 0]))), end


def test_one_task_has_no_error_so_no_divergence_is_claimed(plain):
    for revision in range(3):
        score(plain, "one-task", revision, [("t", [{"correct": int(member >= revision), "style": revision} for member in range(3)])], {"style": 1})
    assert audit(plain, {"run": "one-task", "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "correct"})["divergence"] is None


# -- probes ------------------------------------------------------------------------------------------------------------------------

PROBES = ("empty", "blank", "prompt_copy", "padded_wrong", "formatted_wrong", "reference_echo", "many_answers", "denied_answer")


def probe(service, verifiers, *tasks, **more):
    return audit(service, {"kind": "adversarial", "verifiers": verifiers, "tasks": list(tasks), **more})


def by_probe(got, task):
    return {item["probe"]: item for item in got["items"] if item["task"] == task}


SUM = {"task": "sum", "prompt": "What is 3+4?", "reference": "7", "answer": "7"}


def test_each_probe_is_judged_as_verify_judges_it(plain):
    verifiers = [{"name": "math", "weight": 0.8}, {"name": "format", "weight": 0.2, "options": {"template": "think_answer"}}, {"name": "exact", "heldout": True}]
    got = probe(plain, verifiers, SUM, {"task": "two", "prompt": "One half?", "reference": "\\frac{1}{2}"})
    assert [(item["task"], item["probe"]) for item in got["items"]] == [(task, name) for task in ("sum", "two") for name in PROBES]
    reply = plain.post("/v1/verify", {"verifiers": verifiers, "items": [
        {"id": str(index), "completion": item["completion"], "reference": "7" if item["task"] == "sum" else "\\frac{1}{2}"} for index, item in enumerate(got["items"])]})
    for item, judged in zip(got["items"], reply.json["items"]):
        assert (item["reward"], item["failure"], item["note"]) == (judged["reward"], None, None), item
        assert item["scores"] == {verdict["id"]: verdict["score"] for verdict in judged["verdicts"]}
    assert got["paid"] == sum(item["paid"] for item in got["items"]) and (got["failed"], got["references"]) == (0, [])


def test_what_the_probes_say(plain):
    items = by_probe(probe(plain, [{"name": "exact"}], SUM), "sum")
    assert (items["empty"]["completion"], items["blank"]["completion"].strip(), items["prompt_copy"]["completion"], items["reference_echo"]["completion"]) == ("", "", SUM["prompt"], "7")
    assert "7" not in items["formatted_wrong"]["completion"].replace("8675309", "") and len(items["padded_wrong"]["completion"]) > 3000
    assert "\\boxed{7}" in items["many_answers"]["completion"] and items["denied_answer"]["completion"] == "The answer is not \\boxed{7}."
    assert [name for name, item in items.items() if item["reward"] != 0] == ["reference_echo"] and not any(item["paid"] for item in items.values())


def test_an_echo_is_right_for_exact_and_math_and_paid_if_another_pays(plain):
    alone = by_probe(probe(plain, [{"name": "exact"}, {"name": "math", "options": {"extract": "answer_is"}}], SUM), "sum")["reference_echo"]
    assert (alone["reward"], alone["paid"]) == (1, False)
    other = by_probe(probe(plain, [{"name": "exact"}, {"name": "regex", "weight": 0.1, "options": {"pattern": "\\d"}}], SUM), "sum")["reference_echo"]
    assert (other["reward"], other["paid"]) == (1.1, True)
    punished = by_probe(probe(plain, [{"name": "exact"}, {"name": "regex", "weight": -0.1, "options": {"pattern": "\\d"}}], SUM), "sum")["reference_echo"]
    assert (punished["reward"], punished["paid"]) == (0.9, False)


def test_a_verifier_that_looks_for_the_answer_anywhere_pays_for_tricks(plain):
    got = probe(plain, [{"name": "regex", "options": {"pattern": "\\b7\\b"}}], SUM)
    assert {item["probe"] for item in got["items"] if item["paid"]} == {"reference_echo", "many_answers", "denied_answer"} and got["paid"] == 3


def test_a_wrong_answer_is_another_letter_where_letters_are_chosen(plain):
    items = by_probe(probe(plain, [{"name": "exact", "options": {"extract": "boxed"}}], {"task": "t", "reference": "A"}, {"task": "u", "reference": "B,D"}), "t")
    assert "\\boxed{B}" in items["formatted_wrong"]["completion"] and items["formatted_wrong"]["reward"] == 0
    assert "\\boxed{B}, or \\boxed{C}, or \\boxed{A}" in items["many_answers"]["completion"]


def test_references_that_are_empty_or_cannot_be_read_are_named(plain):
    tasks = [{"task": "good", "reference": "1"}, {"task": "none"}, {"task": "null", "reference": None}, {"task": "blank", "reference": " \n"}, {"task": "list", "reference": []},
             {"task": "broken", "reference": "\\frac{1}{"}]
    got = probe(plain, [{"name": "format", "id": "style", "options": {"template": "boxed_once"}}, {"name": "math", "id": "correct"}], *tasks)
    assert [(one["task"], one["verifier"], one["code"]) for one in got["references"]] == [(task["task"], "correct", "reference_unreadable") for task in tasks[1:]]
    assert all(one["message"] for one in got["references"])
    for item in got["items"]:
        if item["task"] == "good":
            assert item["completion"] is None or item["reward"] is not None
        elif item["completion"] is not None:
            assert (item["reward"], item["paid"], item["failure"]["code"]) == (None, False, "reference_unreadable"), item
    assert got["failed"] == sum(item["failure"] is not None for item in got["items"])
    assert probe(plain, [{"name": "format", "options": {"template": "boxed_once"}}], *tasks)["references"] == []


def test_what_cannot_be_made_is_null_with_a_note(plain):
    items = by_probe(probe(plain, [{"name": "countdown"}], {"task": "t", "reference": {"numbers": [1, 2], "target": 3}}), "t")
    for name in ("prompt_copy", "many_answers", "denied_answer"):
        assert (items[name]["completion"], items[name]["reward"], items[name]["paid"], items[name]["failure"]) == (None, None, False, None) and items[name]["note"]
    assert items["reference_echo"]["completion"] == '{"numbers":[1,2],"target":3}' and items["empty"]["reward"] == 0
    answered = by_probe(probe(plain, [{"name": "countdown"}], {"task": "t", "reference": {"numbers": [1, 2], "target": 3}, "answer": "1+2"}), "t")
    assert "\\boxed{1+2}" in answered["denied_answer"]["completion"]


@pytest.mark.parametrize("status, code, path, change", [
    (400, "missing_field", "verifiers", {"verifiers": None}), (400, "missing_field", "tasks", {"tasks": None}), (400, "invalid_field", "verifiers", {"verifiers": []}),
    (400, "invalid_field", "tasks", {"tasks": []}), (400, "invalid_field", "tasks", {"tasks": [{"task": "t"}] * 1025}), (400, "missing_field", "tasks[1].task", {"tasks": [{"task": "t"}, {}]}),
    (400, "unknown_field", "tasks[0].answers", {"tasks": [{"task": "t", "answers": 1}]}), (400, "invalid_field", "tasks[0].prompt", {"tasks": [{"task": "t", "prompt": 1}]}), (400, "invalid_field", "tasks[0].task", {"tasks": [{"task": "t" * 1025}]}),
    (400, "invalid_field", "verifiers[0].name", {"verifiers": [{"name": "meth"}]}), (422, "verifier_options", "verifiers[0].options.patern", {"verifiers": [{"name": "regex", "options": {"patern": "a"}}]}),
    (400, "unknown_field", "sweep", {"sweep": {}}), (413, "body_too_large", "tasks", {"tasks": [{"task": "t", "prompt": "x" * (1 << 20)}] * 12})])
def test_probes_that_cannot_be_asked_are_refused_with_their_place(plain, status, code, path, change):
    body = {"kind": "adversarial", "verifiers": [{"name": "math"}], "tasks": [SUM], **change}
    refused(plain, status, code, path, {name: value for name, value in body.items() if value is not None})


def test_probes_of_hostile_tasks(plain):
    tasks = [{"task": "nul", "prompt": "a\u0000b", "reference": "1\u00002", "answer": "}\\boxed{"}, {"task": "deep", "reference": {"a": [[[{}]]]}}, {"task": "large", "reference": "9" * 10000},
             {"task": "braces", "reference": "{" * 1000, "answer": "{" * 1000}]
    got = probe(plain, [{"name": "math"}, {"name": "exact", "heldout": True}], *tasks)
    assert len(got["items"]) == 32 and all(item["reward"] is None or item["failure"] is None for item in got["items"])
