"""F18: an Idempotency-Key counts within its run, its incarnation and its route; what a policy step's key made, within its run."""
import json
import sqlite3
import threading

import pytest

from harness import eventually, http_request
from material import make_batch

KEY = {"Idempotency-Key": "k"}


def score_of(run="test", revision=1, **fields):
    return {"run": run, "policy_revision": revision, "groups": [{"task": "t", "completions": [{"text": "x"}]}], **fields}


def score(service, body=None, key="k"):
    reply = service.post("/v1/score", body or score_of(), {"Idempotency-Key": key})
    assert reply.status == 200, reply
    return reply.json


def put_back(service, run="test", revision=1, step=1):
    reply = service.put(f"/v1/runs/{run}/policy", {"revision": revision, "rewind_to_step": step})
    assert reply.status == 200, reply


def step_back(service, run="test", revision=1, step=1):
    assert service.post(f"/v1/runs/{run}/policy/begin", {"revision": revision, "rewind_to_step": step, "mode": "straddle"}).status == 200
    assert service.post(f"/v1/runs/{run}/policy/commit", {}).status == 200


def attach_back(service, run="test", revision=1, step=1):
    """Below the run's revision, which is raised first."""
    assert service.put(f"/v1/runs/{run}/policy", {"revision": revision + 1}).status == 200
    assert service.post(f"/v1/runs/{run}/attach", {"revision": revision, "step": step}).status == 200


def no_restart(service):
    pass


def terminate(service):
    assert service.terminate() == 0
    service.start()


def kill(service):
    service.restart()


RESTARTS = [no_restart, terminate, kill]


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize("go_back", [put_back, step_back, attach_back])
def test_a_key_makes_a_new_score_after_a_rewind(service, go_back, restart):
    first = score(service)
    restart(service)
    assert score(service)["id"] == first["id"]
    go_back(service)
    restart(service)
    second = score(service)
    assert second["id"] != first["id"] and (first["incarnation"], second["incarnation"]) == (0, 1)
    restart(service)
    assert score(service)["id"] == second["id"]
    assert [row["id"] for row in service.read("/v1/batches", run="test", order="asc")["items"]] == [first["id"], second["id"]]


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize("go_back", [put_back, step_back])
def test_a_key_makes_a_new_batch_after_a_rewind(service, engine, go_back, restart):
    body = make_batch()
    first = service.post("/v1/batches", body, KEY).json
    go_back(service)
    restart(service)
    second = service.post("/v1/batches", body, KEY).json
    assert second["id"] != first["id"] and (first["incarnation"], second["incarnation"]) == (0, 1)
    assert service.post("/v1/batches", body, KEY).json == second
    assert len(engine.samples) == 4


def test_a_key_of_a_running_batch_makes_a_new_one_after_a_rewind(service, engine):
    engine.rules({"hold": True})
    identity = service.post("/v1/batches", make_batch(), {**KEY, "Prefer": "respond-async"}).json["id"]
    put_back(service)
    other = service.post("/v1/batches", make_batch(), {**KEY, "Prefer": "respond-async"}).json
    assert other["id"] != identity and other["incarnation"] == 1
    engine.release()
    assert {service.settled(name)["incarnation"] for name in (identity, other["id"])} == {0, 1}


def test_a_key_in_a_new_incarnation_may_have_another_body_and_within_it_not(service):
    score(service)
    put_back(service)
    score(service, score_of(metadata={"other": True}))
    refused = service.post("/v1/score", score_of(), KEY)
    assert (refused.status, refused.error["code"], refused.error["path"]) == (409, "idempotency_conflict", "Idempotency-Key")


def test_two_runs_may_use_one_key(service):
    one, other = score(service, score_of("one")), score(service, score_of("other"))
    assert one["id"] != other["id"] and (one["run"], other["run"]) == ("one", "other")
    put_back(service, "one")
    assert score(service, score_of("other"))["id"] == other["id"], "another run's rewind is none of its business"
    assert score(service, score_of("one"))["incarnation"] == 1


def test_a_batch_and_a_score_may_use_one_key(service):
    batch = service.post("/v1/batches", make_batch(), KEY)
    assert batch.status == 200 and score(service)["id"] != batch.json["id"]
    assert service.post("/v1/batches", make_batch(), KEY).json == batch.json


def test_a_rewind_that_opens_no_incarnation_leaves_the_keys_alone(service):
    """The same rewind again, because its answer was lost."""
    score(service)
    put_back(service)
    second = score(service)
    put_back(service)
    assert score(service)["id"] == second["id"]


# -- the keys of policy steps -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("restart", RESTARTS)
def test_a_rewind_with_a_key_may_be_sent_again_whatever_came_after_it(service, restart):
    assert service.put("/v1/runs/test/policy", {"revision": 9}).status == 200
    body = {"revision": 5, "rewind_to_step": 5}
    first = service.put("/v1/runs/test/policy", body, KEY)
    assert (first.status, first.json["incarnation"], first.json["previous_revision"]) == (200, 1, 9)
    made = score(service, score_of(revision=6))
    restart(service)
    assert service.put("/v1/runs/test/policy", body, KEY).json == first.json
    assert service.read("/v1/runs/test")["policy_revision"] == 6 and service.read("/v1/runs/test")["incarnation"] == 1
    assert score(service, score_of(revision=6))["id"] == made["id"]
    other = service.put("/v1/runs/test/policy", {"revision": 6, "rewind_to_step": 5}, KEY)
    assert (other.status, other.error["code"]) == (409, "idempotency_conflict")
    assert service.put("/v1/runs/test/policy", body).json["incarnation"] == 2, "without a key it is meant"


def test_a_repeated_declaration_does_not_take_a_live_run_back(service, engine):
    assert service.put("/v1/runs/test/policy", {"revision": 1}, KEY).status == 200
    engine.rules({"hold": True})
    identity = service.post("/v1/batches", make_batch(policy_revision=2), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "both samples to be in flight")
    assert service.put("/v1/runs/test/policy", {"revision": 1}, KEY).json["revision"] == 1
    engine.release()
    assert {rollout["revision_at_end"] for rollout in service.settled(identity)["groups"][0]["rollouts"]} == {2}


@pytest.mark.parametrize("restart", RESTARTS)
def test_steps_with_keys_may_be_sent_again_after_the_next_ones(service, restart):
    """A begin whose retry comes after the commit must not open another update."""
    begin = {"revision": 2, "rewind_to_step": 0, "mode": "straddle"}
    score(service)
    assert service.post("/v1/runs/test/policy/begin", begin, {"Idempotency-Key": "b"}).json["state"] == "open"
    restart(service)
    assert service.post("/v1/runs/test/policy/begin", begin, {"Idempotency-Key": "b"}).json["state"] == "open"
    committed = service.post("/v1/runs/test/policy/commit", {"revision": 2}, {"Idempotency-Key": "c"}).json
    assert (committed["state"], committed["incarnation"]) == ("committed", 1)
    restart(service)
    assert service.post("/v1/runs/test/policy/begin", begin, {"Idempotency-Key": "b"}).json["state"] == "committed"
    assert service.read("/v1/pending")["updates"] == []
    assert service.post("/v1/runs/test/policy/begin", {"revision": 3, "mode": "straddle"}, {"Idempotency-Key": "b2"}).status == 200
    assert service.post("/v1/runs/test/policy/commit", {"revision": 2}, {"Idempotency-Key": "c"}).json == committed
    assert [update["revision"] for update in service.read("/v1/pending")["updates"]] == [3], "the next one is still open"
    other = service.post("/v1/runs/test/policy/commit", {}, {"Idempotency-Key": "c"})
    assert (other.status, other.error["code"]) == (409, "idempotency_conflict")


def test_a_step_that_was_taken_without_the_key_belongs_to_the_key_all_the_same(service):
    path = "/v1/runs/test/policy/"
    assert service.post(path + "begin", {"revision": 2, "mode": "straddle"}).status == 200
    assert service.post(path + "begin", {"revision": 2, "mode": "straddle"}, KEY).json["state"] == "open"
    assert service.post(path + "cancel", {}).json["state"] == "cancelled"
    assert service.post(path + "cancel", {}, KEY).json["state"] == "cancelled"
    assert service.post(path + "begin", {"revision": 3, "mode": "straddle"}).status == 200
    assert service.post(path + "cancel", {}, KEY).json["revision"] == 2
    again = service.post(path + "begin", {"revision": 2, "mode": "straddle"}, KEY)
    assert (again.status, again.error["code"]) == (409, "state_conflict") and "was cancelled" in again.error["message"]
    assert [update["revision"] for update in service.read("/v1/pending")["updates"]] == [3]


# -- at once, full, old --------------------------------------------------------------------------------------------------------

def test_posts_of_one_key_around_a_rewind_make_one_batch_for_each_incarnation(service):
    raw, replies = json.dumps(score_of()).encode(), []
    score(service)

    def post():
        replies.append(http_request(service.url, "POST", "/v1/score", raw, KEY))
    threads = [threading.Thread(target=post) for _ in range(16)]
    for thread in threads[:8]:
        thread.start()
    back = threading.Thread(target=put_back, args=(service,))
    back.start()
    for thread in threads[8:]:
        thread.start()
    for thread in [*threads, back]:
        thread.join()
    assert [reply.status for reply in replies] == [200] * 16
    last = score(service)
    by_incarnation = {}
    for reply in [*(reply.json for reply in replies), last]:
        by_incarnation.setdefault(reply["incarnation"], set()).add(reply["id"])
    assert all(len(ids) == 1 for ids in by_incarnation.values()) and last["incarnation"] == 1
    assert len(service.read("/v1/batches", run="test")["items"]) == 2


def test_a_known_key_needs_no_room_and_a_new_incarnation_does(start, engine):
    """A full service finds batches that are on record, but only those of this incarnation."""
    service = start(engine, settings={"batches_limit": "1"})
    done = service.post("/v1/batches", make_batch(run="full"), KEY).json
    engine.rules({"hold": True})
    assert service.post("/v1/batches", make_batch(run="other"), {"Prefer": "respond-async"}).status == 202
    assert service.post("/v1/batches", make_batch(run="full"), KEY).json == done
    put_back(service, "full")
    assert service.post("/v1/batches", make_batch(run="full"), KEY).error["code"] == "queue_full"
    engine.release()


def as_before_the_table(database):
    """The key where services before the table of keys have put it."""
    with sqlite3.connect(database) as base:
        base.execute("UPDATE batches SET idempotency_key = (SELECT key FROM idempotency_keys k WHERE k.batch_seq = batches.seq)")
        base.execute("DELETE FROM idempotency_keys")


def test_keys_of_before_the_table_are_found_in_their_run_and_incarnation(service):
    first = score(service)
    assert service.terminate() == 0
    as_before_the_table(service.database)
    service.start()
    assert score(service)["id"] == first["id"]
    refused = service.post("/v1/score", score_of(metadata={}), KEY)
    assert (refused.status, refused.error["code"]) == (409, "idempotency_conflict")
    assert score(service, score_of("other"))["run"] == "other"
    put_back(service)
    assert score(service)["incarnation"] == 1


def test_a_key_goes_with_what_it_made(service):
    identity = score(service)["id"]
    assert service.terminate() == 0
    with sqlite3.connect(service.database) as base:
        base.execute("PRAGMA foreign_keys = ON")
        base.execute("DELETE FROM rollouts")
        base.execute("DELETE FROM batches")
        assert base.execute("SELECT count(*) FROM idempotency_keys").fetchone() == (0,)
    service.start()
    assert score(service)["id"] != identity


def test_a_batch_with_a_key_outlives_a_kill_and_is_found_by_it(start, engine):
    engine.rules({"hold": True})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(), {**KEY, "Prefer": "respond-async"}).json["id"]
    service.restart()
    engine.release()
    assert service.post("/v1/batches", make_batch(), KEY).json["id"] == identity


# -- between the reading of a request and its commit ------------------------------------------------------------------------------

def rewound_while_it_is_read(service, body):
    """Posts under a key that a worker finds on record, while a rewind of the run waits for its commit; gives the reply."""
    threads, replies = [], []

    def go(call, *args):
        threads.append(threading.Thread(target=lambda: replies.append(call(*args))))
        threads[-1].start()
    go(service.put, "/v1/runs/full/policy", {"revision": 1, "rewind_to_step": 1})
    eventually(lambda: 'rolloutd_queue_depth{queue="row"} 1' in service.get("/metrics").body.decode(), "the rewind to wait for its commit")
    reply = service.post("/v1/batches", body, KEY)
    for thread in threads:
        thread.join()
    assert [(other.status, other.json["incarnation"]) for other in replies] == [(200, 1)]
    return reply


def test_a_rewind_between_the_reading_of_a_key_and_its_commit_makes_a_new_batch(start, engine):
    """The incarnation is decided in the transaction, not by what a worker read."""
    service = start(engine, settings={"commit_delay": "400ms"})
    body = make_batch(run="full")
    first = service.post("/v1/batches", body, KEY).json
    second = rewound_while_it_is_read(service, body).json
    assert second["id"] != first["id"] and (first["incarnation"], second["incarnation"]) == (0, 1)
    assert second["state"] == "complete" and len(engine.samples) == 4


def test_such_a_batch_is_admitted_like_any_other(start, engine):
    service = start(engine, settings={"commit_delay": "400ms", "batches_limit": "1"})
    body = make_batch(run="full")
    service.post("/v1/batches", body, KEY)
    engine.rules({"hold": True})
    assert service.post("/v1/batches", make_batch(run="other"), {"Prefer": "respond-async"}).status == 202
    refused = rewound_while_it_is_read(service, body)
    assert (refused.status, refused.error["code"]) == (429, "queue_full")
    engine.release()
