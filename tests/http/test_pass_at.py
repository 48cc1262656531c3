"""pass@k and maj@k of a batch and of a score, on paper."""
import math

import pytest

from material import close, make_batch, sampling
from material import make_group as make_sampled
from test_score import completion, make_group, make_score, refused, score

JUDGE = {"name": "exact", "id": "correct", "heldout": True, "options": {"extract": "last_number"}}


def answers(*texts):
    return [completion(text) for text in texts]


def three_groups():
    """One of four is right; all are; none is: the last two are draws of one task."""
    return [make_group("t1", "3", answers("3", "4", "4", "5")), make_group("t2", "3", answers("3", "3", "3", "3"), draw=0),
            make_group("t2", "3", answers("5", "6", "7", "8"), draw=1)]


def of(numbers, name):
    return [numbers[k][name] for k in sorted(numbers, key=int)]


@pytest.mark.parametrize("store", [True, False])
def test_draws_without_replacement_and_errors_by_task(plain, store):
    """Per group 1/4, 1/2, 1 of t1 at k = 1, 2, 4; then 1 and 0. Errors, t2 being one cluster: deviations -1/6 and 1/6 at k = 1, 1/3 and -1/3 at k = 4."""
    batch = score(plain, make_score(*three_groups(), verifiers=[{"name": "exact"}, JUDGE], pass_at=[1, 2, 4], pass_verifier="correct", store=store))
    passed, voted = batch["summary"]["pass_at_k"], batch["summary"]["maj_at_k"]
    assert close(of(passed, "mean"), [1.25 / 3, 1.5 / 3, 2 / 3])
    assert close(passed["1"]["se"], math.sqrt(2) / 18) and close(passed["4"]["se"], math.sqrt(2) / 9)
    assert of(passed, "groups") == [3, 3, 3] and of(passed, "tasks") == [2, 2, 2]
    assert close(of(voted, "mean"), [2 / 3, 2 / 3, 1 / 3]), "3 alone; 3 before 4; then 4 twice"


def test_the_record_says_the_same_as_the_reply(plain):
    batch = score(plain, make_score(*three_groups(), verifiers=[JUDGE], pass_at=[2], pass_verifier="correct"))
    assert plain.read(f"/v1/batches/{batch['id']}")["summary"] == batch["summary"]
    assert batch["summary"]["pass_at_k"]["2"]["mean"] == 0.5 and batch["summary"]["reward_mean"] is None


def test_without_a_name_the_first_held_out_verifier_decides(plain):
    later = {**JUDGE, "id": "later"}
    asked = make_score(*three_groups(), verifiers=[{"name": "regex", "options": {"pattern": "[3-8]"}}, JUDGE, later], pass_at=[1, 2])
    named = score(plain, {**asked, "pass_verifier": "correct"})["summary"]
    summary = score(plain, asked)["summary"]
    assert summary["pass_at_k"] == named["pass_at_k"] and summary["maj_at_k"] == named["maj_at_k"] and summary["reward_mean"] == 1


def test_without_a_verifier_the_reward_decides_and_nobody_votes(plain):
    batch = score(plain, make_score(*three_groups(), pass_at=[1]))
    assert close(batch["summary"]["pass_at_k"]["1"]["mean"], 1.25 / 3) and batch["summary"]["maj_at_k"] is None
    assert "pass_at_k" not in score(plain, make_score(*three_groups()))["summary"]


def test_a_threshold_says_what_is_right(plain):
    given = [completion("x", rewards={"env": {"score": value, "weight": 1}}) for value in (0.25, 0.5, 0.75, -1)]
    asked = make_score(make_group("t", None, given), verifiers=[], pass_at=[1], pass_verifier="env")
    assert score(plain, asked)["summary"]["pass_at_k"]["1"]["mean"] == 0, "from 1 on"
    assert score(plain, {**asked, "pass_threshold": 0.5})["summary"]["pass_at_k"]["1"]["mean"] == 0.5
    alone = score(plain, asked)["summary"]["pass_at_k"]["1"]
    assert alone["se"] is None and alone["tasks"] == 1, "one task has no spread"


def test_lost_members_are_not_wrong_ones(plain):
    lost = {"failure": {"code": "engine_timeout"}}
    batch = score(plain, make_score(make_group("t1", "3", [completion("3"), completion("4"), completion("5", **lost)]),
                                    make_group("t2", "3", answers("4", "4", "3")), pass_at=[1, 3]))
    passed = batch["summary"]["pass_at_k"]
    assert close(passed["1"]["mean"], (1 / 2 + 1 / 3) / 2) and (passed["3"]["mean"], passed["3"]["groups"]) == (1, 1)
    assert any("fewer judged members" in note for note in batch["notes"])


def test_a_sampled_batch_says_it_too(service, engine):
    engine.rules({"choices": [{"text": "\\boxed{42}", "ids": [1, 2], "lp": [-1, -1]}, {"text": "\\boxed{41}", "ids": [1, 3], "lp": [-1, -1]}]})
    batch = service.batch(make_batch(sampling=sampling(4), purpose="eval", pass_at=[1, 4], pass_verifier="math"))
    assert of(batch["summary"]["pass_at_k"], "mean") == [0.5, 1] and set(batch["summary"]["maj_at_k"]) == {"1", "4"}


@pytest.mark.parametrize("fields, status, code, path", [
    ({"pass_at": [5]}, 422, "objective_options", "pass_at[0]"), ({"pass_at": [1, 0]}, 400, "invalid_field", "pass_at[1]"),
    ({"pass_at": [1.5]}, 400, "invalid_field", "pass_at[0]"), ({"pass_at": [1] * 17}, 400, "invalid_field", "pass_at"),
    ({"pass_at": 1}, 400, "invalid_field", "pass_at"), ({"pass_at": [1], "pass_verifier": "other"}, 400, "invalid_field", "pass_verifier"),
    ({"pass_verifier": "exact"}, 400, "missing_field", "pass_at"), ({"pass_threshold": 1}, 400, "missing_field", "pass_at"),
    ({"pass_at": [9223372036854775807]}, 422, "objective_options", "pass_at[0]")])
def test_a_meaningless_field_is_refused_with_its_path(plain, service, fields, status, code, path):
    refused(plain, make_score(*three_groups(), **fields), status, code, path)
    reply = service.post("/v1/batches", make_batch(make_sampled("t"), sampling=sampling(4), verifiers=[{"name": "exact"}], **fields))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path), reply
