"""The life of a batch, seen by a trainer."""
import json
import os
import signal
import threading

import pytest

from harness import descendants, eventually, http_request, process_fields
from material import (assert_sums_up, by_task, close, group_advantages, make_batch, make_group, rollouts, sampling, seed_of,
                      unpacked)
from test_metrics import metrics

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
WRONG = {"text": "\\boxed{41}", "ids": [11, 13, 14, 2], "lp": [-0.5, -1.5, -1.0, -0.125]}
SLOW = {"delay": 30}


def post_async(service, body, **headers):
    reply = service.post("/v1/batches", body, {"Prefer": "respond-async", **headers})
    assert reply.status == 202, reply
    return reply


# -- one batch --------------------------------------------------------------------------------------------------------

def test_a_batch_comes_back_with_everything_a_trainer_needs(service, engine):
    engine.rules({"choices": [RIGHT, WRONG]})
    batch = service.batch(make_batch(make_group("t1"), sampling=sampling(4)))

    assert (batch["state"], batch["run"], batch["policy_revision"], batch["seed"]) == ("complete", "test", 1, 7)
    assert batch["incarnation"] == 0 and batch["purpose"] == "train"
    group = batch["groups"][0]
    assert (group["task"], group["draw"], group["state"], group["zero_variance"]) == ("t1", 0, "complete", False)
    assert sorted(rollout["reward"] for rollout in group["rollouts"]) == [0, 0, 1, 1]
    for index, rollout in enumerate(group["rollouts"]):
        sent = RIGHT if rollout["reward"] == 1 else WRONG
        assert rollout["sample_index"] == index and rollout["state"] == "scored" and rollout["failure"] is None
        assert rollout["text"] == sent["text"] and rollout["finish_reason"] == "stop"
        assert rollout["completion_ids"] == sent["ids"] and rollout["logprobs"] == sent["lp"]
        assert rollout["completion_mask"] == [1] * len(sent["ids"]) and rollout["trainable"] is True
        assert rollout["rewards"] == {"math": {"score": rollout["reward"], "weight": 1.0}}
        assert rollout["advantage"] == (1.0 if rollout["reward"] == 1 else -1.0)
        assert rollout["surrogates"] == [rollout["advantage"]] * len(sent["ids"])
        assert close(rollout["contributions"], [-rollout["advantage"] / (len(sent["ids"]) * 4)] * len(sent["ids"]))
        assert rollout["policy_revision"] == rollout["revision_at_end"] == 1 and rollout["straddles"] is False
        assert rollout["resample"] == 0 and rollout["attempts"] == 1
    assert batch["totals"] == {"tokens": 14, "sequences": 4, "groups": 1}
    assert batch["summary"]["groups"] == 1 and batch["summary"]["rollouts"] == batch["summary"]["scored"] == 4
    assert batch["summary"]["completion_tokens"] == 14 and batch["summary"]["zero_variance_groups"] == 0
    assert batch["summary"]["reward_mean"] == 0.5 and close(group["reward_std"], 0.5)
    assert_sums_up(batch)


def test_reading_the_batch_later_gives_the_same_bytes_of_truth(service, engine):
    engine.rules({"choices": [RIGHT, WRONG]})
    batch = service.batch(make_batch(sampling=sampling(4)))
    assert service.read(f"/v1/batches/{batch['id']}") == batch
    service.terminate()
    service.start()
    assert service.read(f"/v1/batches/{batch['id']}") == batch


def test_the_objective_is_echoed_with_every_knob(service):
    objective = service.batch(make_batch(objective={"preset": "grpo", "epsilon": 0.3, "beta": 0.0}))["objective"]
    assert objective["loss"]["kind"] == "ppo_clip"
    assert (objective["loss"]["eps_low"], objective["loss"]["eps_high"]) == (0.3, 0.3)
    assert objective["aggregation"]["mode"] == "seq_mean_token_mean"
    assert objective["advantage"]["estimator"] == "grpo" and objective["advantage"]["ddof"] == 0
    assert objective["beta"] == 0


def test_token_mean_weighs_every_token_alike(service, engine):
    engine.rules({"choices": [RIGHT, WRONG]})
    batch = service.batch(make_batch(objective={"preset": "grpo", "aggregation": {"mode": "token_mean"}}))
    for rollout in rollouts(batch):
        assert close(rollout["contributions"], [-rollout["advantage"] / 7] * len(rollout["completion_ids"]))
    assert close(batch["loss"], -(3 - 4) / 7)


def test_advantages_never_cross_groups(service, engine):
    """R13: tasks with the same wording are still different tasks."""
    engine.rules({"text": "\\boxed{3}"})
    batch = service.batch(make_batch(make_group("fig-1", "Find x.", "3"), make_group("fig-2", "Find x.", "4")))
    assert len({group["id"] for group in batch["groups"]}) == 2
    assert [group["reward_mean"] for group in batch["groups"]] == [1, 0]
    assert [rollout["advantage"] for rollout in rollouts(batch)] == [0, 0, 0, 0]
    assert batch["summary"]["zero_variance_groups"] == 2 and batch["loss"] == 0


def test_a_group_of_one_has_advantage_0(service, engine):
    engine.rules(RIGHT)
    batch = service.batch(make_batch(sampling=sampling(1)))
    assert rollouts(batch)[0]["advantage"] == 0 and rollouts(batch)[0]["reward"] == 1


def test_weights_add_up_and_held_out_verifiers_only_report(service, engine):
    engine.rules({"text": "<think>\nsix sevens\n</think>\n<answer>\n42\n</answer>"})
    batch = service.batch(make_batch(verifiers=[
        {"name": "math", "weight": 1.0, "options": {"extract": "answer_tag"}},
        {"name": "format", "weight": 0.25, "options": {"template": "think_answer"}},
        {"name": "exact", "id": "strict", "heldout": True, "reference": "never"}]))
    for rollout in rollouts(batch):
        assert rollout["reward"] == 1.25
        assert set(rollout["rewards"]) == {"math", "format"} and rollout["rewards"]["format"] == {"score": 1.0, "weight": 0.25}
        assert rollout["heldout"]["strict"]["score"] == 0
    assert batch["summary"]["heldout"]["strict"]["mean"] == 0 and batch["summary"]["heldout"]["strict"]["scored"] == 2


def test_without_a_rewarding_verifier_there_is_no_reward_and_no_failure(service, engine):
    engine.rules(RIGHT)
    batch = service.batch(make_batch(verifiers=[{"name": "math", "heldout": True}]))
    for rollout in rollouts(batch):
        assert rollout["state"] == "scored" and rollout["failure"] is None
        assert rollout["reward"] is None and rollout["advantage"] is None
    assert batch["loss"] is None and batch["summary"]["heldout"]["math"]["mean"] == 1


def test_a_group_may_set_its_own_sampling_and_verifiers(service, engine):
    engine.rules({"text": "blue"})
    batch = service.batch(make_batch(
        make_group("own", reference="blue", sampling={"n": 3, "temperature": 0.5}, verifiers=[{"name": "exact"}]),
        make_group("plain", "PLAIN")))
    own, plain = by_task(batch)["own"], by_task(batch)["plain"]
    assert [rollout["reward"] for rollout in own["rollouts"]] == [1, 1, 1] and len(plain["rollouts"]) == 2
    asked = [entry["body"] for entry in engine.samples if "PLAIN" not in str(entry["body"])]
    assert {body["temperature"] for body in asked} == {0.5} and {body["max_tokens"] for body in asked} == {16}


# -- seeds ------------------------------------------------------------------------------------------------------------

def test_seeds_can_be_recomputed_in_one_line_of_any_language(service, engine):
    """R22: no seed ever passes through a double."""
    batch = service.batch(make_batch())
    assert [rollout["seed"] for rollout in rollouts(batch)] == [8795940449617632684, 6427942777649207205]
    assert {entry["body"]["seed"] for entry in engine.samples} == {8795940449617632684, 6427942777649207205}


@pytest.mark.parametrize("seed, expected", [
    (9007199254740993, [6557950233363098016, 546598784542304977]),
    (9223372036854775807, [8342038142710410297, 948605099819548079])])
def test_a_seed_of_63_bits_is_kept_to_the_last_bit(service, engine, seed, expected):
    """R22"""
    batch = service.batch(make_batch(seed=seed))
    assert batch["seed"] == seed and [rollout["seed"] for rollout in rollouts(batch)] == expected
    assert all(rollout["seed_sent"] == rollout["seed"] for rollout in rollouts(batch))
    assert sorted(entry["body"]["seed"] for entry in engine.samples) == sorted(expected)


@pytest.mark.parametrize("seed", [9223372036854775808, -1, 1.5, "7", True])
def test_a_seed_out_of_range_is_refused_before_anything_is_asked(service, engine, seed):
    """R22"""
    reply = service.post("/v1/batches", make_batch(seed=seed))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "seed")
    assert engine.samples == []


def test_a_drawn_seed_is_echoed_and_good_for_repeating(service):
    drawn = service.batch(make_batch(seed=None))
    again = service.batch(make_batch(seed=drawn["seed"]))
    assert 0 <= drawn["seed"] < 2 ** 63
    assert [rollout["seed"] for rollout in rollouts(again)] == [rollout["seed"] for rollout in rollouts(drawn)]


def test_draw_and_first_sample_index_move_the_seeds(service):
    batch = service.batch(make_batch(make_group("t1", draw=3, first_sample_index=5), make_group("t1", draw=4)))
    first, second = batch["groups"]
    assert [rollout["sample_index"] for rollout in first["rollouts"]] == [5, 6]
    assert [rollout["seed"] for rollout in first["rollouts"]] == [seed_of(7, 1, "t1", 3, 5), seed_of(7, 1, "t1", 3, 6)]
    assert [rollout["seed"] for rollout in second["rollouts"]] == [seed_of(7, 1, "t1", 4, 0), seed_of(7, 1, "t1", 4, 1)]


def test_the_default_token_limit_is_sent_and_echoed(service, engine):
    """R26: never the engine's own default."""
    batch = service.batch(make_batch(sampling={"n": 1, "temperature": 1.0}))
    assert batch["sampling"]["max_tokens"] == 1024 and batch["sampling"]["top_p"] == 1
    assert engine.samples[0]["body"]["max_tokens"] == 1024


def test_the_engine_never_sees_the_reference(service, engine):
    service.batch(make_batch(make_group("t1", reference="314159265")))
    assert "314159265" not in json.dumps(engine.requests)


# -- waiting ----------------------------------------------------------------------------------------------------------

def test_respond_async_answers_at_once_and_says_where_to_look(service):
    reply = post_async(service, make_batch())
    assert reply.headers["location"] == f"/v1/batches/{reply.json['id']}"
    batch = service.read(reply.headers["location"], wait="20s")
    assert batch["state"] == "complete" and len(rollouts(batch)) == 2


def test_a_post_whose_wait_ends_first_answers_202_with_the_id(service, engine):
    engine.rules({"hold": True})
    reply = service.post("/v1/batches", make_batch(), wait="50ms")
    assert reply.status == 202
    engine.release()
    assert service.settled(reply.json["id"])["state"] == "complete"


def test_a_running_batch_says_what_it_waits_for(service, engine):
    engine.rules(SLOW)
    identity = post_async(service, make_batch()).json["id"]
    eventually(lambda: engine.open == 2, "both samples to be asked for")
    batch = service.read(f"/v1/batches/{identity}", wait="10ms")
    assert batch["state"] == "running" and not batch.get("groups")
    assert batch["waiting"] == {"queued": 0, "sampling": 2, "verifying": 0, "storing": 0}
    service.delete(f"/v1/batches/{identity}")


def test_a_long_poll_answers_when_the_batch_is_done_not_when_the_wait_ends(service, engine):
    engine.rules({"delay": 0.3})
    identity = post_async(service, make_batch()).json["id"]
    assert service.read(f"/v1/batches/{identity}", wait="10m")["state"] == "complete"


def test_many_waiters_get_the_same_answer(service, engine):
    engine.rules({"delay": 0.5})
    identity = post_async(service, make_batch()).json["id"]
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(service.read(f"/v1/batches/{identity}", wait="20s"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 16 and all(answer == answers[0] for answer in answers) and answers[0]["state"] == "complete"


@pytest.mark.parametrize("wait", ["abc", "-1s", "1", ""])
def test_a_wait_that_is_no_duration_is_refused(service, wait):
    for reply in (service.get("/v1/batches/b_unknown", wait=wait), service.post("/v1/batches", make_batch(), wait=wait)):
        assert reply.status == 400 and (reply.error["code"], reply.error["path"]) == ("invalid_field", "wait")


def test_a_deadline_ends_the_batch_and_keeps_what_finished(service, engine):
    """R25"""
    engine.rules({"in": "SLOW", "delay": 60})
    batch = service.batch(make_batch(make_group("slow", "SLOW"), make_group("fast", "fast"), deadline="4s"))
    assert batch["state"] == "expired"
    groups = by_task(batch)
    assert [rollout["state"] for rollout in groups["fast"]["rollouts"]] == ["scored", "scored"]
    for rollout in groups["slow"]["rollouts"]:
        assert rollout["state"] == "failed" and rollout["failure"]["code"] in ("deadline", "engine_timeout")
        assert rollout["reward"] is None and rollout["advantage"] is None
    eventually(lambda: all(entry["aborted"] for entry in engine.samples_for("SLOW")), "the engine to be told")
    assert len(engine.samples_for("SLOW")) == 2
    assert service.read(f"/v1/batches/{batch['id']}") == batch


# -- groups and request ------------------------------------------------------------------------------------------------

def test_groups_can_be_paged(service):
    batch = service.batch(make_batch(*[make_group(f"t{index}") for index in range(5)]))
    pages, cursor = [], None
    while True:
        page = service.read(f"/v1/batches/{batch['id']}/groups", limit=2, **({"cursor": cursor} if cursor else {}))
        pages.append(page["items"])
        cursor = page["next"]
        if not cursor:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [group for page in pages for group in page] == batch["groups"]


def test_a_cursor_of_another_batch_or_garbage_is_refused(service):
    first, second = (service.batch(make_batch(*[make_group(f"t{index}") for index in range(3)], run=run)) for run in ("a", "b"))
    foreign = service.read(f"/v1/batches/{first['id']}/groups", limit=1)["next"]
    for cursor in (foreign, "garbage", "%00", "b_1"):
        reply = service.get(f"/v1/batches/{second['id']}/groups", cursor=cursor)
        assert reply.status == 400 and reply.error["path"] == "cursor", (cursor, reply)


def test_the_request_is_kept_as_it_was_posted(service):
    body = json.dumps(make_batch(metadata={"note": "été \u0000 \U0001f600"}), indent=3, ensure_ascii=False).encode() + b"\n  "
    identity = service.post("/v1/batches", body).json["id"]
    assert service.get(f"/v1/batches/{identity}/request").body == body


def test_a_batch_that_nobody_posted_is_not_found(service):
    for path in ("/v1/batches/b_00000000", "/v1/batches/x", "/v1/batches/b_00000000/groups", "/v1/batches/b_00000000/request"):
        assert service.get(path).status == 404, path
    assert service.delete("/v1/batches/b_00000000").status == 404


# -- cancelling --------------------------------------------------------------------------------------------------------

def test_delete_cancels_and_the_engine_is_told(service, engine):
    engine.rules({"in": "SLOW", "delay": 60})
    identity = post_async(service, make_batch(make_group("slow", "SLOW"), make_group("fast"))).json["id"]
    eventually(lambda: service.read(f"/v1/batches/{identity}/groups")["items"][1]["state"] == "complete" and engine.open == 2, "the fast group to be done")
    reply = service.delete(f"/v1/batches/{identity}")
    assert reply.status == 200 and reply.json["id"] == identity
    batch = service.settled(identity)
    assert batch["state"] == "cancelled"
    for rollout in by_task(batch)["slow"]["rollouts"]:
        assert rollout["state"] == "cancelled" and rollout["reward"] is None and rollout["advantage"] is None
    assert all(rollout["reward"] is not None for rollout in by_task(batch)["fast"]["rollouts"])
    eventually(lambda: all(entry["aborted"] for entry in engine.samples_for("SLOW")) and engine.open == 0, "the engine to be told")


def hang_up(service, body, head="", engine=None):
    """Posts, waits until the engine works on it, and closes the socket."""
    raw = json.dumps(body).encode()
    wire = service.wire()
    wire.send(f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}Content-Length: {len(raw)}\r\n\r\n").send(raw)
    eventually(lambda: engine.open > 0, "the engine to be asked")
    wire.close()
    return raw


def nobody_is_there(service):
    eventually(lambda: metrics(service)[0]["rolloutd_connections", ()] == 1, "the hang-up to be seen")  # one asks for the metrics


def test_the_hang_up_of_the_only_client_cancels_its_batch(service, engine):
    """R61, second half"""
    engine.rules(SLOW)
    hang_up(service, make_batch(), engine=engine)
    eventually(lambda: engine.open == 0, "the transfers to be closed")
    items = eventually(lambda: service.read("/v1/batches", state="cancelled")["items"], "the batch to be cancelled")
    assert len(items) == 1


def test_a_batch_with_a_key_survives_the_hang_up_and_the_retry_attaches(service, engine):
    """R61"""
    engine.rules({"hold": True})
    raw = hang_up(service, make_batch(), "Idempotency-Key: k-79\r\n", engine)
    nobody_is_there(service)
    engine.release()
    reply = service.post("/v1/batches", raw, {"Idempotency-Key": "k-79"})
    assert reply.status == 200 and reply.json["state"] == "complete"
    assert len(engine.samples) == 2 and not any(entry["aborted"] for entry in engine.samples)
    assert len(service.read("/v1/batches")["items"]) == 1


def test_a_batch_that_was_answered_202_survives_its_waiters(service, engine):
    engine.rules({"hold": True})
    identity = post_async(service, make_batch()).json["id"]
    wire = service.wire()
    wire.send(f"GET /v1/batches/{identity}?wait=20s HTTP/1.1\r\nHost: localhost\r\n\r\n").close()
    nobody_is_there(service)
    engine.release()
    assert service.settled(identity)["state"] == "complete"


# -- idempotency -------------------------------------------------------------------------------------------------------

def test_twenty_clients_with_one_key_make_one_batch(service, engine):
    """R55"""
    engine.rules({"delay": 1})
    raw, replies = json.dumps(make_batch(run="rep")).encode(), []

    def post():
        replies.append(http_request(service.url, "POST", "/v1/batches", raw, {"Idempotency-Key": "k-77"}))
    threads = [threading.Thread(target=post) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reply.status for reply in replies] == [200] * 20
    assert len({reply.json["id"] for reply in replies}) == 1 and all(reply.json == replies[0].json for reply in replies)
    assert len(service.read("/v1/batches", run="rep")["items"]) == 1 and len(engine.samples) == 2
    other = service.post("/v1/batches", raw + b" ", {"Idempotency-Key": "k-77"})
    assert (other.status, other.error["code"]) == (409, "idempotency_conflict")
    assert service.post("/v1/batches", raw, {"Idempotency-Key": "k-77"}).json == replies[0].json
    assert len(engine.samples) == 2


def test_a_refused_request_does_not_use_up_its_key(service):
    assert service.post("/v1/batches", make_batch(verifiers=[{"name": "nonsense"}]), {"Idempotency-Key": "again"}).status == 400
    assert service.post("/v1/batches", make_batch(), {"Idempotency-Key": "again"}).status == 200


def test_a_key_that_cannot_be_meant_is_refused(service):
    assert service.post("/v1/batches", make_batch(), {"Idempotency-Key": "x" * 4000}).status == 400


# -- how arrays come back -------------------------------------------------------------------------------------------------

def test_arrays_can_be_left_out(service, engine):
    engine.rules(RIGHT)
    batch = service.batch(make_batch(), arrays="none")
    for rollout in rollouts(batch):
        assert not {"completion_ids", "logprobs", "completion_mask", "surrogates", "contributions"} & set(rollout)
        assert rollout["text"] == "\\boxed{42}" and rollout["reward"] == 1


def test_arrays_can_be_packed(service, engine):
    engine.rules(RIGHT)
    packed = service.batch(make_batch(), arrays="base64")
    plain = service.read(f"/v1/batches/{packed['id']}")
    for small, full in zip(rollouts(packed), rollouts(plain)):
        assert unpacked("I", small["completion_ids_u32"]) == full["completion_ids"] == RIGHT["ids"]
        assert unpacked("f", small["logprobs_f32"]) == full["logprobs"] == RIGHT["lp"]
        assert "completion_ids" not in small and "logprobs" not in small


def test_an_unknown_way_to_return_arrays_is_refused(service):
    reply = service.post("/v1/batches", make_batch(), arrays="yaml")
    assert reply.status == 400 and (reply.error["code"], reply.error["path"]) == ("invalid_field", "arrays")


def test_return_picks_arrays(service, engine):
    engine.rules(RIGHT)
    batch = service.batch(make_batch(**{"return": ["completion_ids"]}))
    for rollout in rollouts(batch):
        assert rollout["completion_ids"] == RIGHT["ids"]
        assert not {"logprobs", "completion_mask", "surrogates", "contributions"} & set(rollout)
    reply = service.post("/v1/batches", make_batch(**{"return": ["nonsense"]}))
    assert reply.status == 400 and reply.error["path"] == "return[0]"


# -- prompts ----------------------------------------------------------------------------------------------------------------

def test_a_prompt_may_be_token_ids(service, engine):
    batch = service.batch(make_batch({"task": "ids", "prompt_ids": [5, 6, 7], "reference": "4"}))
    assert batch["groups"][0]["prompt_ids"] == [5, 6, 7]
    assert all(entry["body"]["prompt"] == [5, 6, 7] for entry in engine.samples)


def test_packed_token_ids_are_the_same_prompt(service, engine):
    service.batch(make_batch({"task": "ids", "prompt_ids_u32": "BQAAAAYAAAAHAAAA", "reference": "4"}))
    assert all(entry["body"]["prompt"] == [5, 6, 7] for entry in engine.samples)


def test_stop_strings_and_engine_options_reach_the_engine(service, engine):
    wanted = sampling(1, stop=["\n\n"], stop_token_ids=[2], top_k=50, engine_options={"ignore_eos": True})
    batch = service.batch(make_batch(sampling=wanted))
    asked = engine.samples[0]["body"]
    assert (asked["stop"], asked["stop_token_ids"], asked["top_k"], asked["ignore_eos"]) == (["\n\n"], [2], 50, True)
    assert batch["sampling"]["engine_options"] == {"ignore_eos": True}


# -- the bookkeeping of many -----------------------------------------------------------------------------------------------

def test_batches_are_listed_by_run_and_state(service):
    kept = [service.batch(make_batch(run=run))["id"] for run in ("a", "b", "a")]
    assert {item["id"] for item in service.read("/v1/batches", run="a")["items"]} == {kept[0], kept[2]}
    assert {item["id"] for item in service.read("/v1/batches", state="complete")["items"]} == set(kept)
    assert service.read("/v1/batches", state="running")["items"] == []
    reply = service.get("/v1/batches", colour="red")
    assert reply.status == 400 and (reply.error["code"], reply.error["path"]) == ("unknown_field", "colour")


def test_a_batch_of_mixed_luck_sums_up(service, engine):
    engine.rules({"in": "PROMPT-1", "lp": [-0.5, None, -0.5]}, {"in": "PROMPT-2", "choices": [RIGHT, WRONG, WRONG]}, RIGHT)
    batch = service.batch(make_batch(*[make_group(f"t{index}", f"PROMPT-{index}") for index in range(4)], sampling=sampling(3)))
    assert batch["summary"]["failed"] == 3 and batch["summary"]["scored"] == 9
    assert sum(batch["summary"]["failures"].values()) == 3
    rewards = [rollout["reward"] for rollout in by_task(batch)["t2"]["rollouts"]]
    assert close([rollout["advantage"] for rollout in by_task(batch)["t2"]["rollouts"]], group_advantages(rewards))
    assert by_task(batch)["t0"]["reward_mean"] == by_task(batch)["t3"]["reward_mean"] == 1 and by_task(batch)["t1"]["reward_mean"] is None
    assert_sums_up(batch)


def test_an_advantage_scaled_by_the_whole_batch_waits_for_its_last_group(service, engine):
    """Rewards 1 0 and 0 0: the population deviation of all four is sqrt(3)/4, the group's own mean is subtracted."""
    engine.rules({"in": "MIXED", "times": 1, **RIGHT}, WRONG)
    batch = service.batch(make_batch(make_group("mixed", "MIXED"), make_group("wrong"),
                                     objective={"preset": "grpo", "advantage": {"scale": "batch"}}))
    advantages = {task: sorted(rollout["advantage"] for rollout in group["rollouts"]) for task, group in by_task(batch).items()}
    assert close(advantages["mixed"], [-2 / 3 ** 0.5, 2 / 3 ** 0.5]) and advantages["wrong"] == [0.0, 0.0]


def test_a_batch_can_be_cancelled_while_its_answers_are_judged(start, engine):
    service = start(engine, settings={"text_workers": 1, "verify_timeout": "60s"})
    worker, = eventually(lambda: [process for process in descendants(service.pid) if int(process_fields(process.pid)[1]) != service.pid],
                         "the text worker")
    os.kill(worker.pid, signal.SIGSTOP)
    identity = post_async(service, make_batch()).json["id"]
    eventually(lambda: service.read(f"/v1/batches/{identity}", wait="0s")["waiting"]["verifying"] == 2, "both answers to be with the verifiers")
    assert service.delete(f"/v1/batches/{identity}").status == 200
    batch = service.settled(identity)
    assert batch["state"] == "cancelled" and {rollout["state"] for rollout in rollouts(batch)} == {"cancelled"}
    assert all(rollout["reward"] is None for rollout in rollouts(batch))
    assert service.batch(make_batch(run="next"))["state"] == "complete", "another worker judges what comes next"
