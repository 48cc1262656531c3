"""POST /v1/audits of batches and revisions on record."""
import random
import re

import pytest

from audit_by_hand import assert_row, audit, refused, row, score
from harness import eventually
from material import close, make_batch, make_group, rollouts, sampling


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


def test_a_batch_and_a_revision_give_the_numbers_computed_by_hand(plain):
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


def test_the_recorded_objective_is_used(plain):
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
    """Members that only an audit of the record has."""
    run = "tokens-" + re.sub("[^a-z0-9.]+", "-", str(objective))[:100]
    completions = [{"text": str(index), "completion_ids": ids, "logprobs": [-1] * len(ids), "completion_mask": [1] + [0] * (len(ids) > 1) + [1] * max(0, len(ids) - 2),
                    "finish_reason": "length" if index == 1 else "stop", "rewards": {"correct": {"score": index % 2, "weight": 1}, "format": {"score": index / 4, "weight": 0.5}}}
                   for index, ids in enumerate(TOKENS)]
    reply = plain.post("/v1/score", {"run": run, "policy_revision": 1, "objective": {"preset": "grpo", **objective}, "groups": [{"task": task, "prompt_ids": [1, 2, 3], "completions": completions} for task in "ab"]})
    assert reply.status == 200, reply
    got = audit(plain, {"run": run, "revision": 1, "sweep": {"verifier": "format", "weights": [0]}, "truth": "correct", "threshold": 2})
    wanted = {rollout["id"]: (rollout["advantage"], rollout["reward"]) for rollout in rollouts(reply.json) if rollout["advantage"] > 0}
    assert wanted and {one["rollout"]: (one["advantage"], one["reward"]) for one in got["recorded"]["promoted"]} == wanted and got["notes"] == []


def test_a_failed_rollout_has_no_reward_by_any_weight(service, engine):
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


def test_each_revision_counts_its_own_members_of_a_group_that_an_abort_split(start, engine):
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


def test_a_run_revision_or_batch_that_is_not_on_record_is_not_found(plain):
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


def test_running_groups_are_left_out_with_a_note(service, engine):
    engine.rules({"in": "SLOW", "hold": True}, {"choices": [{"text": "\\boxed{42}"}, {"text": "no"}]})
    running = service.post("/v1/batches", make_batch(make_group("done", "a"), make_group("slow", "SLOW"), deadline="10m"), {"Prefer": "respond-async"}).json["id"]
    wait_for_a_group(service, running)
    got = audit(service, {"run": "test", "batch": running, "sweep": {"verifier": "math", "weights": [2]}, "truth": "math"})
    assert (got["n"], got["groups"], got["sweep"][0]["reward_mean"]) == (2, 1, 1.0) and "1 group" in got["notes"][0]
    assert service.delete(f"/v1/batches/{running}").status == 200


def wait_for_a_group(service, batch):
    eventually(lambda: any(group["state"] == "complete" for group in service.read(f"/v1/batches/{batch}/groups")["items"]), "the first group to close")
