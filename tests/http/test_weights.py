"""Weight updates in steps: begin stops the dispatch of a run, commit or cancel resumes it, and a deadline ends a forgotten update."""
import contextlib
import sqlite3

import pytest

from engines import ScriptedEngine
from harness import eventually
from later import Later
from material import make_batch, make_group, rollouts, seed_of

ASYNC = {"Prefer": "respond-async"}


def step(service, name, run="test", **fields):
    return service.post(f"/v1/runs/{run}/policy/{name}", fields)


def declare(service, revision=1):
    assert service.put("/v1/runs/test/policy", {"revision": revision}).status == 200


def update_of(service, run="test"):
    """The newest update as GET /v1/pending has it, or None."""
    return next((item for item in service.read("/v1/pending")["updates"] if item["run"] == run), None)


def sampling_now(engine, count):
    eventually(lambda: engine.open == count, f"{count} samples to be in flight")


def begun(service, revision=2, mode="wait", **fields):
    """A begin that waits; returns once it is on record."""
    later = Later(step, service, "begin", revision=revision, mode=mode, **fields)
    eventually(lambda: (update_of(service) or {}).get("revision") == revision, "the update to be open")
    return later


def start_batch(service, engine, in_flight=2, **fields):
    """A batch whose samples the engine holds."""
    engine.rules({"hold": True})
    identity = service.post("/v1/batches", make_batch(policy_revision=1, **fields), ASYNC).json["id"]
    sampling_now(engine, in_flight)
    return identity


# -- the three modes ---------------------------------------------------------------------------------------------------------


def test_wait_answers_when_the_engines_are_drained_and_nothing_straddles(service, engine):
    identity = start_batch(service, engine)
    later = begun(service)
    assert update_of(service)["phase"] == "stopping" and update_of(service)["in_flight"] == 2
    engine.release()
    reply = later.result()
    assert (reply.status, reply.json["state"], reply.json["revision"], reply.json["mode"]) == (200, "open", 2, "wait")
    assert step(service, "commit", revision=2).json["state"] == "committed"
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (1, 1, False)
    assert service.read("/v1/runs/test")["policy_revision"] == 2


def test_nothing_is_dispatched_between_begin_and_commit(service, engine):
    declare(service)
    assert step(service, "begin", revision=2).status == 200
    identity = service.post("/v1/batches", make_batch(policy_revision=1), ASYNC).json["id"]
    item = eventually(lambda: service.read("/v1/pending")["items"], "the batch to be pending")[0]
    assert item["waits_for"] == "a weight update of its run, which is open" and engine.samples == []
    assert step(service, "commit").status == 200
    assert service.settled(identity)["state"] == "complete" and len(engine.samples) == 2


def test_wait_lets_a_group_that_was_begun_go_on_and_begins_no_other(start, engine):
    """A group is of one revision; only an abort may split it."""
    engine.for_rolloutd += "&in_flight=1"
    service = start(engine)
    engine.rules({"in": "FIRST", "hold": True})
    body = make_batch(make_group("a", prompt="FIRST"), make_group("b", prompt="SECOND"), policy_revision=1)
    identity = service.post("/v1/batches", body, ASYNC).json["id"]
    sampling_now(engine, 1)
    later = begun(service)
    engine.release()
    assert later.result().status == 200
    assert len(engine.samples) == 2 and engine.samples_for("SECOND") == []
    assert step(service, "commit").status == 200
    first, second = service.settled(identity)["groups"]
    assert {(r["policy_revision"], r["straddles"]) for r in first["rollouts"]} == {(1, False)}
    assert {(r["policy_revision"], r["revision_at_end"], r["straddles"]) for r in second["rollouts"]} == {(1, 2, True)}


def test_abort_takes_back_what_is_in_flight_and_samples_it_at_the_new_revision(service, engine):
    """The same rollouts with new seeds, because the revision is part of the seed (DESIGN 4)."""
    identity = start_batch(service, engine)
    reply = step(service, "begin", revision=2, mode="abort")
    assert reply.status == 200 and update_of(service)["in_flight"] == 0
    sampling_now(engine, 0)
    assert all(entry["aborted"] for entry in engine.samples)
    engine.rules()
    assert step(service, "commit").status == 200
    batch = service.settled(identity)
    for rollout in rollouts(batch):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (2, 2, False)
        assert rollout["seed"] == seed_of(batch["seed"], 2, batch["groups"][0]["task"], 0, rollout["sample_index"])
        assert rollout["attempts"] == 2


def test_an_abort_that_is_cancelled_asks_for_the_same_tokens_again(service, engine):
    identity = start_batch(service, engine)
    assert step(service, "begin", revision=2, mode="abort").status == 200
    before = {entry["body"]["seed"] for entry in engine.samples}
    sampling_now(engine, 0)
    engine.rules()
    assert step(service, "cancel").json["state"] == "cancelled"
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["straddles"]) == (1, False) and rollout["seed"] in before


def test_an_abort_costs_no_attempt(start, engine):
    service = start(engine, settings={"engine.attempts": 1})
    identity = start_batch(service, engine)
    for revision in (2, 3):
        assert step(service, "begin", revision=revision, mode="abort").status == 200
        sampling_now(engine, 0)
        engine.rules({"hold": True})
        assert step(service, "commit").status == 200
        sampling_now(engine, 2)
    engine.release()
    assert {(r["state"], r["attempts"], r["policy_revision"]) for r in rollouts(service.settled(identity))} == {("scored", 3, 3)}


def test_a_group_that_an_abort_splits_keeps_its_members_and_its_advantages(start, engine):
    """Finished samples stay at their revision; advantages are normalised over all members: [1, 0] gives [1, -1]."""
    engine.for_rolloutd += "&in_flight=1"
    service = start(engine)
    engine.rules({"times": 1, "text": "\\boxed{42}"}, {"hold": True})
    identity = service.post("/v1/batches", make_batch(policy_revision=1), ASYNC).json["id"]
    eventually(lambda: len(engine.samples) == 2 and service.read(f"/v1/batches/{identity}", wait="0s")["counts"]["done"] == 1, "the first member to be on record")
    assert step(service, "begin", revision=2, mode="abort").status == 200
    sampling_now(engine, 0)
    engine.rules({"text": "\\boxed{41}"})
    assert step(service, "commit").status == 200
    made = rollouts(service.settled(identity))
    assert [(r["policy_revision"], r["straddles"], r["reward"], r["advantage"]) for r in made] == [(1, False, 1.0, 1.0), (2, False, 0.0, -1.0)]


def test_straddle_answers_at_once_and_marks_what_is_in_flight(service, engine):
    identity = start_batch(service, engine)
    assert step(service, "begin", revision=2, mode="straddle").status == 200
    assert update_of(service)["in_flight"] == 2
    assert step(service, "commit").status == 200
    engine.release()
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (1, 2, True)


def test_a_sample_that_ends_during_a_straddling_update_is_marked_as_mixed(service, engine):
    identity = start_batch(service, engine)
    assert step(service, "begin", revision=2, mode="straddle").status == 200
    engine.release()
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (1, 2, True)
    assert step(service, "commit").status == 200


def test_the_default_mode_is_a_setting(start, engine):
    service = start(engine, settings={"policy.mode": "straddle"})
    start_batch(service, engine)
    assert step(service, "begin", revision=2).json["mode"] == "straddle"
    engine.release()


def test_another_run_goes_on(start, engine):
    engine.for_rolloutd += "&shared=true"
    service = start(engine)
    assert step(service, "begin", revision=2).status == 200
    assert service.batch(make_batch(run="other"))["state"] == "complete"


# -- orders that make no sense, or come twice -----------------------------------------------------------------------------------


def conflict(reply, code="state_conflict"):
    return (reply.status, reply.error["code"]) == (409, code)


def test_the_same_begin_again_is_the_same_update(service):
    first = step(service, "begin", revision=2, deadline="5m").json
    assert step(service, "begin", revision=2, deadline="9m").json == first


@pytest.mark.parametrize("fields", [{"revision": 3}, {"revision": 2, "mode": "abort"}, {"revision": 2, "rewind_to_step": 2}])
def test_another_begin_while_one_is_open_is_refused(service, fields):
    assert step(service, "begin", revision=2).status == 200
    assert conflict(step(service, "begin", **fields))


def test_a_begin_with_a_lower_revision_is_refused_and_opens_nothing(service):
    declare(service, 5)
    assert conflict(step(service, "begin", revision=4), "revision_conflict") and update_of(service) is None


def test_the_same_revision_may_be_loaded_again(service):
    declare(service, 5)
    assert step(service, "begin", revision=5).status == 200
    reply = step(service, "commit").json
    assert (reply["revision"], reply["previous_revision"], reply["incarnation"]) == (5, 5, 0)


@pytest.mark.parametrize("name", ["commit", "cancel"])
def test_an_end_without_a_begin_is_refused_and_makes_no_run(service, name):
    assert conflict(step(service, name))
    assert service.read("/v1/runs")["items"] == []


def test_a_commit_may_be_repeated_and_says_the_same(service):
    step(service, "begin", revision=2)
    first = step(service, "commit", revision=2)
    assert first.status == 200 and first.json["previous_revision"] is None
    declare(service, 9)
    assert step(service, "commit", revision=2).json == first.json


def test_a_commit_or_cancel_needs_no_body(service):
    for name in ("commit", "cancel"):
        step(service, "begin", revision=2)
        assert service.request("POST", f"/v1/runs/test/policy/{name}").status == 200


def test_one_end_excludes_the_other(service):
    step(service, "begin", revision=2)
    step(service, "commit")
    assert conflict(step(service, "cancel"))
    step(service, "begin", revision=3)
    step(service, "cancel")
    assert conflict(step(service, "commit"))
    assert service.read("/v1/runs/test")["policy_revision"] == 2


def test_an_end_of_another_update_is_refused(service):
    """Two clients: the second one's update is not the first one's."""
    step(service, "begin", revision=2)
    assert conflict(step(service, "commit", revision=3)) and conflict(step(service, "cancel", revision=3))
    assert update_of(service)["revision"] == 2


def test_a_commit_before_the_engines_are_drained_is_refused(service, engine):
    identity = start_batch(service, engine)
    later = begun(service)
    reply = step(service, "commit")
    assert conflict(reply) and "2 samples" in reply.error["message"]
    engine.release()
    assert later.result().status == 200 and step(service, "commit").status == 200
    service.settled(identity)


def test_a_begin_that_is_cancelled_while_it_waits_is_told_so(service, engine):
    identity = start_batch(service, engine)
    later = begun(service)
    assert step(service, "cancel").status == 200
    assert conflict(later.result())
    engine.release()
    assert {r["straddles"] for r in rollouts(service.settled(identity))} == {False}


def test_two_clients_may_wait_for_one_begin(service, engine):
    start_batch(service, engine)
    waiting = [begun(service), begun(service)]
    engine.release()
    assert [later.result().status for later in waiting] == [200, 200]


def test_a_declaration_while_an_update_is_open_is_refused(service):
    step(service, "begin", revision=2)
    assert conflict(service.put("/v1/runs/test/policy", {"revision": 3}))
    assert conflict(service.post("/v1/batches", make_batch(policy_revision=3)))
    step(service, "cancel")
    assert service.put("/v1/runs/test/policy", {"revision": 3}).status == 200


@pytest.mark.parametrize("name, body, path", [
    ("begin", {}, "revision"), ("begin", {"revision": -1}, "revision"), ("begin", {"revision": 2, "mode": "pause"}, "mode"),
    ("begin", {"revision": 2, "deadline": "0s"}, "deadline"), ("begin", {"revision": 2, "deadline": "48h"}, "deadline"),
    ("commit", {"mode": "wait"}, "mode"), ("cancel", {"revision": "2"}, "revision")])
def test_a_step_that_cannot_be_meant_is_refused(service, name, body, path):
    reply = step(service, name, **body)
    assert reply.status == 400 and reply.error["path"] == path


# -- who forgets, dies or goes away ----------------------------------------------------------------------------------------------


def test_an_update_that_nobody_commits_ends_by_its_deadline_with_a_warning(service, engine):
    declare(service)
    assert step(service, "begin", revision=2, deadline="1ms").status == 200
    assert service.batch(make_batch(policy_revision=1))["state"] == "complete"
    shown = eventually(lambda: service.read("/v1/runs")["items"][0]["update"]["state"] == "expired" and service.read("/v1/runs")["items"][0]["update"], "the end to be on record")
    assert shown["revision"] == 2 and "not committed" in shown["warning"]
    assert update_of(service)["state"] == "expired" and "not committed before its deadline" in service.log()
    assert conflict(step(service, "commit"))
    assert service.put("/v1/runs/test/policy", {"revision": 2}).status == 200
    assert update_of(service) is None


def test_a_begin_that_is_still_waiting_at_its_deadline_is_told_so(service, engine):
    identity = start_batch(service, engine)
    assert conflict(step(service, "begin", revision=2, deadline="1ms"))
    engine.release()
    assert service.settled(identity)["state"] == "complete"


def test_a_batch_ends_at_its_deadline_while_an_update_is_open(service, engine):
    declare(service)
    step(service, "begin", revision=2)
    batch = service.batch(make_batch(policy_revision=1, deadline="10ms"))
    assert batch["state"] == "expired" and {r["failure"]["code"] for r in rollouts(batch)} == {"deadline"}


def test_a_client_that_hangs_up_leaves_its_update_open(service, engine):
    identity = start_batch(service, engine)
    with service.wire() as wire:
        wire.send(b'POST /v1/runs/test/policy/begin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"revision":2}')
        eventually(lambda: update_of(service), "the update to be open")
    assert update_of(service)["phase"] == "stopping"
    engine.release()
    assert step(service, "begin", revision=2).status == 200
    assert step(service, "commit").status == 200
    service.settled(identity)


def test_an_open_update_survives_a_restart_and_nothing_is_dispatched(service, engine):
    identity = start_batch(service, engine)
    begun(service)
    service.kill()
    sampling_now(engine, 0)
    engine.rules()
    service.start()
    assert update_of(service)["phase"] == "quiet" and engine.samples == []
    assert step(service, "begin", revision=2).status == 200
    assert step(service, "commit").status == 200
    assert service.settled(identity)["state"] == "complete"


def test_an_update_whose_deadline_passed_while_the_service_was_down_ends(service, engine):
    declare(service)
    step(service, "begin", revision=2)
    service.kill()
    with contextlib.closing(sqlite3.connect(service.database)) as record, record:
        record.execute("UPDATE policy_updates SET deadline_us = begun_at_us")
    service.start()
    assert service.batch(make_batch(policy_revision=1))["state"] == "complete"
    eventually(lambda: service.read("/v1/runs/test")["update"]["state"] == "expired", "the end to be on record")


def test_a_commit_that_was_killed_before_its_answer_may_be_repeated(service):
    step(service, "begin", revision=2)
    first = step(service, "commit").json
    service.kill()
    service.start()
    assert step(service, "commit").json == first and service.read("/v1/runs/test")["policy_revision"] == 2


def test_members_that_an_abort_moved_stay_moved_after_a_restart(service, engine):
    identity = start_batch(service, engine)
    step(service, "begin", revision=2, mode="abort")
    sampling_now(engine, 0)
    engine.rules({"hold": True})
    step(service, "commit")
    sampling_now(engine, 2)
    seeds = {entry["body"]["seed"] for entry in engine.samples}
    service.kill()
    sampling_now(engine, 0)
    engine.rules()
    service.start()
    made = rollouts(service.settled(identity))
    assert {(r["policy_revision"], r["straddles"]) for r in made} == {(2, False)} and {r["seed"] for r in made} == seeds


def test_a_drain_during_an_update_lets_it_be_committed(start, engine):
    service = start(engine, settings={"drain_timeout": "60s"})
    declare(service)
    step(service, "begin", revision=2)
    identity = service.post("/v1/batches", make_batch(policy_revision=1), ASYNC).json["id"]
    service.process.terminate()
    eventually(lambda: service.get("/readyz").status == 503, "the service to drain")
    assert step(service, "begin", revision=3, run="other").status == 503
    assert step(service, "commit").status == 200
    assert service.wait_exit() == 0  # not before the batch is complete
    service.start()
    assert service.read(f"/v1/batches/{identity}")["state"] == "complete"


def test_a_begin_that_waits_is_answered_when_the_service_leaves(start, engine):
    service = start(engine, settings={"drain_timeout": "0s"})
    start_batch(service, engine)
    later = begun(service)
    service.process.terminate()
    assert later.result().status == 503
    assert service.wait_exit() == 0


# -- going back to a checkpoint ----------------------------------------------------------------------------------------------------


def test_a_rewind_in_steps_opens_the_next_incarnation(service, engine):
    declare(service, 100)
    assert conflict(step(service, "begin", revision=95), "revision_conflict")
    assert step(service, "begin", revision=95, rewind_to_step=95).json["incarnation"] == 0
    assert service.batch(make_batch(policy_revision=100, deadline="10ms"))["incarnation"] == 0
    assert step(service, "commit").json["incarnation"] == 1
    batch = service.batch(make_batch(policy_revision=95))
    assert batch["incarnation"] == 1 and service.read("/v1/runs/test")["policy_revision"] == 95


def test_rollouts_that_an_abort_moved_to_a_checkpoint_are_of_the_new_incarnation(service, engine):
    engine.rules({"hold": True})
    identity = service.post("/v1/batches", make_batch(policy_revision=100), ASYNC).json["id"]
    sampling_now(engine, 2)
    assert step(service, "begin", revision=95, rewind_to_step=95, mode="abort").status == 200
    sampling_now(engine, 0)
    engine.rules()
    assert step(service, "commit").json["incarnation"] == 1
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["straddles"]) == (95, False)
        assert service.read(f"/v1/rollouts/{rollout['id']}")["incarnation"] == 1


# -- what the engine itself says ---------------------------------------------------------------------------------------------------


GIVEN = {"task": "t1", "prompt_ids": [1, 411, 907, 23], "reference": "42"}


@pytest.fixture
def generating():
    """A vLLM that says which weights made which ids."""
    scripted = ScriptedEngine(kind="vllm_generate")
    yield scripted
    scripted.close()


def test_spans_of_an_engine_become_segments_and_the_rollout_straddles(start, generating):
    service = start(generating)
    generating.rules({"versions": [{"version": "step-1", "start": 0, "end": 2}, {"version": "step-2", "start": 2, "end": 3}]})
    for rollout in rollouts(service.batch(make_batch(GIVEN))):
        assert rollout["segments"] == [{"start": 0, "end": 2, "engine_revision": "step-1"}, {"start": 2, "end": 3, "engine_revision": "step-2"}]
        assert (rollout["engine_revision"], rollout["straddles"], rollout["revision_at_end"]) == ("step-2", True, 1)
        assert service.read(f"/v1/rollouts/{rollout['id']}")["segments"] == rollout["segments"]
    assert len(service.read("/v1/rollouts", straddles="true")["items"]) == 2


def test_one_version_is_the_engine_s_revision_and_no_segment(start, generating):
    service = start(generating)
    generating.rules({"versions": [{"version": "step-1", "start": 0, "end": 3}]})
    for rollout in rollouts(service.batch(make_batch(GIVEN))):
        assert (rollout["segments"], rollout["engine_revision"], rollout["straddles"]) == ([], "step-1", False)


def test_an_engine_gets_its_weights_between_begin_and_commit(start, toy):
    service = start(toy)
    groups = [make_group(f"t{i}", prompt=f"{i}+1=") for i in range(16)]
    identity = service.post("/v1/batches", make_batch(*groups, policy_revision=1), ASYNC).json["id"]
    assert step(service, "begin", revision=2).status == 200
    toy.post("/weights", {"revision": 2, "table": {}})
    assert step(service, "commit").status == 200
    batch = service.settled(identity)
    made = rollouts(batch)
    assert {r["state"] for r in made} == {"scored"}
    assert all(len({r["revision_at_end"] for r in group["rollouts"]}) == 1 for group in batch["groups"])
    assert all(r["straddles"] == (r["revision_at_end"] == 2) for r in made)
