"""Rewards of several verifiers: weights, gates, missing scores, held-out ones, and what the summary says of each verifier."""
import math

import pytest

from material import make_batch, make_group, rollouts, sampling
from test_verify import verify

R1 = [{"name": "math", "id": "accuracy", "options": {"extract": "answer_tag"}}, {"name": "format", "weight": 0.2, "options": {"template": "think_answer"}}]
WELL = "<think>\n6 times 7\n</think>\n<answer>\n{}\n</answer>"


def exact(name, right, **more):
    return {"name": "exact", "id": name, **({} if right is None else {"reference": "yes" if right else "no"}), **more}


@pytest.mark.parametrize("verifiers, missing, reward", [
    ([exact("a", True), exact("b", True, weight=-0.25)], "null", 0.75), ([exact("a", True, weight=0), exact("b", True, weight=0)], "null", 0),
    ([exact("a", False, gate=True), exact("b", True)], "null", 0), ([exact("a", True, gate=True, weight=0), exact("b", True, weight=3)], "null", 3),
    ([exact("a", False, gate=True, weight=0), exact("b", True, weight=-1)], "null", 0), ([exact("a", None, gate=True, weight=0), exact("b", True)], "null", None),
    ([exact("a", True), exact("b", None)], "null", None), ([exact("a", True), exact("b", None)], "skip", 1), ([exact("a", None), exact("b", None, weight=0)], "skip", None),
    ([exact("a", None), exact("b", True, weight=0)], "skip", None), ([exact("a", True, weight=0.5), exact("b", None, weight=0)], "null", 0.5),
    ([exact("a", False, gate=True), exact("b", None)], "null", None), ([exact("a", False, gate=True), exact("b", None)], "skip", 0),
    ([exact("a", True), exact("h", False, heldout=True)], "null", 1), ([exact("h", True, heldout=True)], "null", None)])
def test_the_reward_is_the_sum_that_gates_and_missing_scores_leave(plain, verifiers, missing, reward):
    found, = verify(plain, [{"id": "1", "completion": "yes"}], verifiers, missing=missing)
    assert found["reward"] == reward
    assert set(found["heldout"]) == {one["id"] for one in verifiers if one.get("heldout")} and not set(found["heldout"]) & set(found["rewards"])


def test_a_gate_without_a_score_holds_the_reward_back_also_where_missing_is_skip(plain):
    found, = verify(plain, [{"id": "1", "completion": "yes"}], [exact("a", None, gate=True), exact("b", True)], missing="skip")
    assert found["reward"] is None and found["failure"]["code"] == "reference_unreadable"


def test_the_pattern_of_r1_pays_accuracy_and_a_little_for_the_form(plain):
    texts = [WELL.format(42), WELL.format(41), "<answer>42</answer>", "42", WELL.format(42) * 2]
    found = verify(plain, [{"id": str(index), "completion": text, "reference": "42"} for index, text in enumerate(texts)], R1)
    assert [item["reward"] for item in found] == [1.2, 0.2, 1, 0, 1]


# -- the summary -------------------------------------------------------------------------------------------------------------------------

def counted(batch):
    """The figures that the summary must have, counted from the verdicts of the reply."""
    found = {}
    for rollout in rollouts(batch):
        for verdict in rollout["verdicts"] or []:
            found.setdefault(verdict["id"], []).append(verdict)
    return found


def assert_summary_is_that_of_the_verdicts(batch):
    summary, found = batch["summary"]["verifiers"], counted(batch)
    assert list(summary) == list(found)
    for name, verdicts in found.items():
        scores = [verdict["score"] for verdict in verdicts if verdict["score"] is not None]
        reasons = {}
        for verdict in verdicts:
            reasons[verdict["reason"]] = reasons.get(verdict["reason"], 0) + 1
        row = summary[name]
        assert (row["scored"], row["unscored"], row["reasons"]) == (len(scores), len(verdicts) - len(scores), reasons)
        mean = math.fsum(scores) / len(scores) if scores else None
        assert row["mean"] == (None if mean is None else pytest.approx(mean, abs=1e-15))
        spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)) if len(scores) > 1 else None
        assert row["std"] == (None if spread is None else pytest.approx(spread, abs=1e-15))


def test_the_summary_has_a_row_for_each_verifier_and_the_record_has_the_same(start, engine):
    service = start(engine)
    engine.rules({"times": 2, "text": "\\boxed{2}"}, {"times": 1, "text": "\\boxed{3}"}, {"times": 1, "status": 400}, {"text": "no"})
    verifiers = [{"name": "math"}, {"name": "exact", "id": "strict", "weight": 0.5, "reference": " "}, {"name": "regex", "id": "bo\"x\\", "heldout": True, "options": {"pattern": "boxed"}}]
    batch = service.batch(make_batch(make_group("t", "1+1=", "2"), make_group("u", "1+2=", "3"), verifiers=verifiers, sampling=sampling(4), missing="skip"))
    assert batch["summary"]["failed"] == 1
    assert_summary_is_that_of_the_verdicts(batch)
    row = batch["summary"]["verifiers"]["strict"]
    assert (row["mean"], row["std"], row["scored"], row["unscored"], row["reasons"]) == (None, None, 0, 7, {"reference_unreadable": 7})
    assert batch["summary"]["verifiers"]["bo\"x\\"]["mean"] == pytest.approx(3 / 7)
    assert service.read(f"/v1/batches/{batch['id']}")["summary"] == batch["summary"]
    assert next(row for row in service.read("/v1/batches")["items"] if row["id"] == batch["id"])["summary"] == batch["summary"]


@pytest.mark.parametrize("store", [True, False])
def test_equal_scores_have_no_spread_and_given_rewards_are_counted(start, store):
    service = start()
    completions = [{"text": "yes", "rewards": {"env": {"score": score, "weight": 1}}} for score in (0.1, 0.1, 0.1, None)]
    reply = service.post("/v1/score", {"run": "s", "store": store, "verifiers": [{"name": "exact"}], "deadline": "30s", "groups": [
        {"task": "t", "prompt": "p", "reference": "yes", "completions": completions}, {"task": "u", "prompt": "p", "reference": "no", "completions": completions[:1]}]})
    assert reply.status == 200, reply
    assert_summary_is_that_of_the_verdicts(reply.json)
    given = reply.json["summary"]["verifiers"]["env"]
    assert (given["mean"], given["std"], given["scored"], given["unscored"], given["reasons"]) == (0.1, 0, 4, 1, {"given": 4, "not_given": 1})


def test_a_batch_without_verifiers_has_an_empty_table(start, engine):
    service = start(engine)
    batch = service.batch(make_batch(make_group("t", "p", "2"), verifiers=[], sampling=sampling(2)))
    assert batch["summary"]["verifiers"] == {}
