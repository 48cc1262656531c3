"""POST /v1/score: the trainer's own completions."""
import json
import math

import pytest

from harness import eventually
from material import assert_sums_up, close, packed, rollouts


def completion(text, ids=(1,), lp=None, **more):
    return {"text": text, "completion_ids": list(ids), "logprobs": [-1.0] * len(ids) if lp is None else lp,
            "finish_reason": "stop", **more}


def make_score(*groups, **more):
    return {"run": "score", "policy_revision": 1, "verifiers": [{"name": "exact"}], "objective": {"preset": "grpo"},
            "groups": list(groups), **more}


def make_group(task="t", reference="3", completions=None, **more):
    return {"task": task, "prompt": "Find x.", "reference": reference,
            "completions": completions or [completion("3"), completion("4", [2])], **more}


def score(service, body, headers=None, query=""):
    reply = service.post("/v1/score" + query, body, headers)
    assert reply.status == 200, reply
    return reply.json


def refused(service, body, status, code, path):
    reply = service.post("/v1/score", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path), reply
    return reply.error


# -- what comes back --------------------------------------------------------------------------------------------------

def test_tasks_of_the_same_wording_are_groups_of_their_own(plain):
    """R13"""
    batch = score(plain, make_score(make_group("fig-1", "3"), make_group("fig-2", "4"), make_group("fig-3", "5")))
    assert [[rollout["advantage"] for rollout in group["rollouts"]] for group in batch["groups"]] == [[1, -1], [-1, 1], [0, 0]]
    assert len({group["id"] for group in batch["groups"]}) == 3
    assert batch["summary"]["zero_variance_groups"] == 1
    assert (batch["state"], batch["policy_revision"], batch["run"]) == ("complete", 1, "score")
    assert_sums_up(batch)


def test_the_reply_has_what_was_sent_and_what_came_of_it(plain):
    batch = score(plain, make_score(make_group(completions=[
        completion("3", [11, 12, 2], [-0.5, -0.25, -0.125], seed=9007199254740993, engine="mine"),
        completion("4", [13, 2], [-1.5, -0.125], finish_reason="length")])))
    first, second = rollouts(batch)
    assert (first["text"], first["completion_ids"], first["logprobs"]) == ("3", [11, 12, 2], [-0.5, -0.25, -0.125])
    assert first["completion_mask"] == [1, 1, 1] and first["trainable"] is True and first["state"] == "scored"
    assert first["rewards"] == {"exact": {"score": 1.0, "weight": 1.0}} and first["verdicts"][0]["verdict"] == "correct"
    assert (first["seed"], first["seed_sent"], first["seed_honoured"], first["engine"]) == (9007199254740993, 9007199254740993, None, "mine")
    assert (second["seed_sent"], second["engine"], second["finish_reason"]) == (None, None, "length")
    assert first["attempts"] == 0 and first["policy_revision"] == 1 and first["straddles"] is False
    assert first["surrogates"] == [1.0] * 3 and close(first["contributions"], [-1 / 6] * 3)
    assert batch["totals"] == {"tokens": 5, "sequences": 2, "groups": 1} and batch["summary"]["completion_tokens"] == 5


def test_it_is_on_record_like_a_batch(plain):
    body = make_score(make_group())
    batch = score(plain, body)
    assert plain.read(f"/v1/batches/{batch['id']}") == batch
    assert plain.read(f"/v1/batches/{batch['id']}/request") == body
    rollout = plain.read(f"/v1/rollouts/{rollouts(batch)[0]['id']}")
    assert rollout["task"] == "t" and rollout["reward"] == 1


def test_a_stored_rollout_can_be_given_to_the_objective(plain):
    batch = score(plain, make_score(make_group(completions=[completion("3", [1, 2], [-1, -2]), completion("4", [3], [-1])])))
    reply = plain.post("/v1/objective", {"sequences": [
        {"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in rollouts(batch)]})
    assert reply.status == 200 and close(reply.json["loss"], batch["loss"])


def test_it_needs_no_engine_but_a_batch_does(plain):
    score(plain, make_score(make_group()))
    assert plain.post("/v1/batches", {"run": "r", "groups": [{"task": "t", "prompt": "x"}]}).status == 503


def test_masked_tokens_may_have_null_for_a_log_probability(plain):
    batch = score(plain, make_score(make_group(completions=[
        completion("3", [1, 2, 3], [-1, None, -2], completion_mask=[1, 0, 1]), completion("4")])))
    first = rollouts(batch)[0]
    assert first["logprobs"] == [-1, 0, -2] and first["completion_mask"] == [1, 0, 1]
    assert first["surrogates"] == [1, 0, 1] and batch["totals"]["tokens"] == 3
    assert_sums_up(batch)


def test_packed_arrays_are_taken_too(plain):
    plainly = score(plain, make_score(make_group(completions=[completion("3", [1, 2], [-1, -0.5]), completion("4")])))
    one = {"text": "3", "finish_reason": "stop", "completion_ids_u32": packed("I", [1, 2]), "logprobs_f32": packed("f", [-1, -0.5])}
    batch = score(plain, make_score(make_group(completions=[one, completion("4")])))
    assert [(r["completion_ids"], r["logprobs"], r["contributions"]) for r in rollouts(batch)] == \
        [(r["completion_ids"], r["logprobs"], r["contributions"]) for r in rollouts(plainly)]


def test_a_text_alone_is_judged_but_part_of_no_loss(plain):
    batch = score(plain, make_score(make_group(completions=[{"text": "3"}, completion("4")])))
    first = rollouts(batch)[0]
    assert (first["reward"], first["advantage"], first["trainable"], first["contributions"]) == (1, 1, False, None)
    assert batch["totals"] == {"tokens": 1, "sequences": 1, "groups": 1}


def test_of_messages_the_last_one_of_the_model_is_judged(plain):
    talk = [{"role": "assistant", "content": "4"}, {"role": "user", "content": "Sure?"}, {"role": "assistant", "content": "3"},
            {"role": "tool", "content": "4"}]
    batch = score(plain, make_score(make_group(completions=[{"messages": talk, "completion_ids": [1], "logprobs": [-1]}])))
    assert rollouts(batch)[0]["reward"] == 1 and rollouts(batch)[0]["text"] == "3"


# -- rewards and failures of one's own --------------------------------------------------------------------------------

def test_given_rewards_are_kept_as_verdicts_and_add_up_with_the_verifiers(plain):
    batch = score(plain, make_score(make_group(completions=[
        completion("3", rewards={"env": {"score": 0.5, "weight": 2.0}}), completion("4", rewards={"env": {"score": 0.25, "weight": 2.0}})])))
    first, second = rollouts(batch)
    assert (first["reward"], second["reward"]) == (2.0, 0.5)
    assert first["rewards"] == {"exact": {"score": 1.0, "weight": 1.0}, "env": {"score": 0.5, "weight": 2.0}}
    verdict = first["verdicts"][1]
    assert (verdict["id"], verdict["name"], verdict["verdict"], verdict["score"]) == ("env", "given", "scored", 0.5)
    assert [first["advantage"], second["advantage"]] == [1, -1]


def test_given_rewards_alone_need_neither_text_nor_verifiers(plain):
    batch = score(plain, make_score(verifiers=[], *[make_group(completions=[
        {"completion_ids": [1], "logprobs": [-1], "rewards": {"env": {"score": value}}} for value in (0, 1, 1)])]))
    assert [rollout["reward"] for rollout in rollouts(batch)] == [0, 1, 1]
    expected = [(value - 2 / 3) / math.sqrt(2 / 9) for value in (0, 1, 1)]
    assert close([rollout["advantage"] for rollout in rollouts(batch)], expected)


def test_a_reward_that_is_null_makes_the_reward_null_and_no_zero(plain):
    batch = score(plain, make_score(make_group(completions=[
        completion("3", rewards={"env": {"score": None}}), completion("3", rewards={"env": {"score": 1}}),
        completion("4", rewards={"env": {"score": 1}})])))
    first = rollouts(batch)[0]
    assert (first["state"], first["reward"], first["advantage"]) == ("failed", None, None)
    assert (first["failure"]["stage"], first["failure"]["code"]) == ("verify", "not_given")
    assert [rollout["advantage"] for rollout in rollouts(batch)[1:]] == [1, -1]


def test_missing_skip_sums_the_rest(plain):
    batch = score(plain, make_score(missing="skip", *[make_group(completions=[
        completion("3", rewards={"env": {"score": None}}), completion("4", rewards={"env": {"score": 0.5}})])]))
    assert [rollout["reward"] for rollout in rollouts(batch)] == [1, 0.5]


def test_a_given_failure_is_a_failed_rollout_and_no_number(plain):
    lost = {"failure": {"stage": "sample", "code": "engine_timeout", "message": "gone", "retryable": True, "attempts": 3}}
    batch = score(plain, make_score(make_group(completions=[completion("3"), lost, completion("4")])))
    failed = rollouts(batch)[1]
    assert failed["state"] == "failed" and failed["reward"] is None and failed["advantage"] is None
    assert failed["failure"] == lost["failure"]
    assert batch["groups"][0]["reward_mean"] == 0.5 and batch["summary"]["failures"] == {"engine_timeout": 1}
    assert batch["summary"]["scored"] == 2 and batch["summary"]["failed"] == 1


def test_a_completion_that_no_worker_reads_is_a_failed_rollout(plain):
    """A frame for a worker is JSON of 8 MiB at most; a control character takes six bytes of it."""
    batch = score(plain, make_score(make_group(completions=[completion("3"), completion("\x01" * ((8 << 20) // 6))])), query="?arrays=none")
    whole, failed = rollouts(batch)
    assert whole["reward"] == 1 and failed["state"] == "failed" and failed["reward"] is None
    assert failed["failure"]["code"] == "verifier_input_too_large" and failed["failure"]["stage"] == "verify"


# -- refusals ---------------------------------------------------------------------------------------------------------

PLACE = "groups[0].completions[1]"


@pytest.mark.parametrize("broken, status, code, path", [
    ({"completion_ids": [], "logprobs": []}, 422, "empty_completion", ".completion_ids"),
    ({"text": ""}, 422, "empty_completion", ".text"),
    ({"completion_ids": [1, 2], "logprobs": [-1]}, 422, "length_mismatch", ".logprobs"),
    ({"completion_ids": [1], "logprobs": [-1], "completion_mask": [1, 0]}, 422, "length_mismatch", ".completion_mask"),
    ({"completion_ids": [1, 2], "logprobs": [-1, None]}, 422, "non_finite", ".logprobs[1]"),
    ({"completion_ids": [1], "logprobs": [-1e39]}, 422, "non_finite", ".logprobs[0]"),
    ({"completion_ids": [1], "logprobs": [-1], "completion_mask": [2]}, 400, "invalid_field", ".completion_mask[0]"),
    ({"completion_ids": [-1], "logprobs": [-1]}, 400, "invalid_field", ".completion_ids[0]"),
    ({"completion_ids": [1]}, 400, "missing_field", ".logprobs"),
    ({"logprobs": [-1]}, 400, "missing_field", ".completion_ids"),
    ({"text": None}, 400, "missing_field", ".text"),
    ({"finish_reason": "done"}, 400, "invalid_field", ".finish_reason"),
    ({"logprob": [-1]}, 400, "unknown_field", ".logprob"),
    ({"rewards": {"env": {"weight": 1}}}, 400, "missing_field", ".rewards.env"),
    ({"rewards": {"exact": {"score": 1}}}, 400, "invalid_field", ".rewards.exact"),
    ({"rewards": {"a\nb": {"score": 1}}}, 400, "invalid_field", ".rewards.a\nb"),
    ({"rewards": {"env": {"score": "1"}}}, 400, "invalid_field", ".rewards.env.score"),
    ({"failure": {"code": "x"}, "rewards": {"env": {"score": 1}}}, 400, "invalid_field", ".rewards"),
    ({"failure": {"code": "No Code"}}, 400, "invalid_field", ".failure.code"),
    ({"failure": {"message": "x"}}, 400, "missing_field", ".failure.code"),
])
def test_a_completion_that_cannot_be_meant_is_refused_with_its_path(plain, broken, status, code, path):
    refused(plain, make_score(make_group(completions=[completion("3"), {"text": "4", **broken}])), status, code, PLACE + path)


@pytest.mark.parametrize("change, status, code, path", [
    ({"sampling": {"n": 2}}, 400, "unknown_field", "sampling"),
    ({"groups": []}, 400, "invalid_field", "groups"),
    ({"groups": [make_group(), make_group()]}, 422, "duplicate_task", "groups[1].task"),
    ({"groups": [{"task": "t", "reference": "3"}]}, 400, "missing_field", "groups[0].completions"),
    ({"groups": [make_group(completions=[1])]}, 400, "invalid_field", "groups[0].completions[0]"),
    ({"groups": [{**make_group(), "completions": []}]}, 400, "invalid_field", "groups[0].completions"),
    ({"groups": [make_group(reference=None)]}, 400, "missing_field", "groups[0].reference"),
    ({"objective": {"preset": "grpo", "eps_high": 1}}, 400, "unknown_field", "objective.eps_high"),
    ({"run": "a b"}, 400, "invalid_field", "run"),
    ({"return": ["nothing"]}, 400, "invalid_field", "return[0]"),
])
def test_a_score_that_cannot_be_meant_is_refused_with_its_path(plain, change, status, code, path):
    refused(plain, {**make_score(make_group()), **change}, status, code, path)


def test_a_batch_takes_no_completions(plain):
    reply = plain.post("/v1/batches", {"run": "r", "groups": [make_group()]})
    assert (reply.status, reply.error["path"]) == (400, "groups[0].completions")


# -- idempotency, store, return -----------------------------------------------------------------------------------------

def test_the_same_key_answers_with_the_same_score(plain):
    key = {"Idempotency-Key": "score-1"}
    first, again = (score(plain, make_score(make_group("keyed")), key) for _ in range(2))
    assert first == again
    assert plain.post("/v1/score", make_score(make_group("other")), key).status == 409


def test_store_false_answers_the_same_and_leaves_no_trace(start):
    service = start()
    body = make_score(make_group(completions=[
        completion("3", [1, 2], [-1, None], completion_mask=[1, 0], rewards={"env": {"score": 0.5}}),
        {"failure": {"code": "engine_timeout"}}, completion("4", rewards={"env": {"score": None}}), completion("5")]), run="ghost")
    unstored = score(service, {**body, "store": False})
    assert service.read("/v1/runs")["items"] == [] and service.read("/v1/rollouts")["items"] == []
    assert service.get(f"/v1/batches/{unstored['id']}").status == 404
    stored = score(service, body)
    for batch in (stored, unstored):
        for name in ("id", "created_at", "deadline_at", "completed_at", "request_sha256"):
            del batch[name]
        settings = batch["provenance"].pop("settings_sha256s")  # names rows of the record
        assert len(settings) == (batch is stored)
        for group in batch["groups"]:
            del group["id"]
        for rollout in rollouts(batch):
            del rollout["id"], rollout["timing"]
            for verdict in rollout["verdicts"]:
                del verdict["duration_us"]
    assert unstored == stored


def test_store_false_honours_arrays_and_return(plain):
    body = make_score(make_group(), store=False, **{"return": ["contributions"]})
    first = rollouts(score(plain, body))[0]
    assert "contributions" in first and "logprobs" not in first
    assert "contributions" not in rollouts(score(plain, body, query="?arrays=none"))[0]


def test_store_false_cannot_be_waited_for_in_parts(plain):
    reply = plain.post("/v1/score?wait=1s", make_score(make_group(), store=False))
    assert (reply.status, reply.error["path"]) == (400, "wait")
    reply = plain.post("/v1/score", make_score(make_group(), store=False), {"Accept": "application/x-ndjson"})
    assert reply.status == 406


def test_a_higher_revision_is_declared_by_a_score(plain):
    score(plain, make_score(make_group(), run="rising", policy_revision=7))
    assert plain.read("/v1/runs/rising")["policy_revision"] == 7
    del (body := make_score(make_group(), run="rising"))["policy_revision"]
    assert score(plain, body)["policy_revision"] == 7
    assert score(plain, {**body, "store": False})["policy_revision"] == 7


def test_groups_can_be_streamed(plain):
    reply = plain.post("/v1/score", make_score(make_group("a"), make_group("b")), {"Accept": "application/x-ndjson"})
    lines = [line for line in reply.body.decode().splitlines() if line]
    assert reply.status == 200 and len(lines) == 3 and lines[-1].startswith('{"batch"')


def test_a_client_that_hangs_up_leaves_nothing_running(plain):
    body = json.dumps(make_score(*[make_group(f"t{i}") for i in range(200)], store=False)).encode()
    with plain.wire() as wire:
        wire.send(b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    eventually(lambda: not plain.read("/v1/pending")["items"], "the end of what nobody waits for")


# -- many, long, interrupted ----------------------------------------------------------------------------------------------

def test_more_completions_than_places_are_all_judged(start):
    service = start(settings={"verify_queue": 8})
    batch = score(service, make_score(*[make_group(f"t{i}", completions=[completion("3"), completion("4")] * 16) for i in range(20)]))
    assert batch["summary"]["scored"] == 640 and batch["summary"]["reward_mean"] == 0.5


def test_a_score_does_not_wait_for_engines_that_are_down(start):
    """The engine's address is closed: the batch before it retries for as long as it may."""
    service = start("http://127.0.0.1:9#kind=vllm&model=m")
    body = {"run": "stuck", "groups": [{"task": "t", "prompt": "x"}], "sampling": {"n": 4}}
    waiting = service.post("/v1/batches", body, {"Prefer": "respond-async"})
    assert waiting.status == 202
    assert score(service, make_score(make_group(), run="other"))["summary"]["scored"] == 2
    service.delete(f"/v1/batches/{waiting.json['id']}")


def test_a_score_that_was_interrupted_is_finished_at_the_next_start(start):
    service = start()
    body = make_score(*[make_group(f"t{i}", completions=[
        completion("3", rewards={"env": {"score": 0.5}}), completion("4", rewards={"env": {"score": 0.5}})] * 100) for i in range(20)])
    reply = service.post("/v1/score", body, {"Prefer": "respond-async"})
    assert reply.status == 202
    service.kill()
    service.start()
    name = f"/v1/batches/{reply.json['id']}"
    batch = eventually(lambda: (found := service.read(name + "?wait=5s"))["state"] == "complete" and found, "the end of the score")
    assert batch["summary"]["scored"] == 4000 and batch["summary"]["reward_mean"] == 1.0
    assert all(rollout["advantage"] == (1 if rollout["text"] == "3" else -1) for rollout in rollouts(batch))
