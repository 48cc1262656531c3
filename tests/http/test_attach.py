"""A trainer that starts says where it stands (POST …/attach), or ends an update that its predecessor left open ("cancel_open")."""
import threading

import pytest

from harness import eventually, http_request
from material import make_batch, rollouts

ASYNC = {"Prefer": "respond-async"}


def attach(service, step, revision, run="test", headers=None):
    return service.post(f"/v1/runs/{run}/attach", {"step": step, "revision": revision}, headers)


def put(service, revision, run="test", **fields):
    return service.put(f"/v1/runs/{run}/policy", {"revision": revision, **fields})


def begin(service, revision=2, mode="straddle", **fields):
    reply = service.post("/v1/runs/test/policy/begin", {"revision": revision, "mode": mode, **fields})
    assert reply.status == 200, reply


def open_updates(service):
    return [update["revision"] for update in service.read("/v1/pending")["updates"] if update["state"] == "open"]


def standing(service, run="test"):
    detail = service.read(f"/v1/runs/{run}")
    return detail["incarnation"], detail["policy_revision"]


def test_the_first_start_of_a_trainer_makes_its_run(service):
    reply = attach(service, 0, 0, run="new")
    assert reply.status == 200
    assert reply.json == {"run": "new", "incarnation": 0, "policy_revision": 0, "previous_revision": None, "leases": [], "updates": []}
    assert standing(service, "new") == (0, 0)


def test_a_start_where_the_run_stands_changes_nothing(service):
    put(service, 10)
    batch = service.batch(make_batch(policy_revision=10))
    reply = attach(service, 10, 10).json
    assert (reply["incarnation"], reply["policy_revision"], reply["previous_revision"]) == (0, 10, 10)
    assert service.batch(make_batch(policy_revision=10))["incarnation"] == batch["incarnation"] == 0


def test_a_start_above_the_run_declares(service):
    put(service, 10)
    assert attach(service, 12, 12).json["policy_revision"] == 12 and standing(service) == (0, 12)


@pytest.mark.parametrize("restart", [False, True])
def test_a_start_below_the_run_opens_the_next_incarnation_once(service, restart):
    put(service, 10)
    first = attach(service, 5, 5).json
    assert (first["incarnation"], first["policy_revision"], first["previous_revision"]) == (1, 5, 10)
    if restart:
        service.restart()
    again = attach(service, 5, 5).json
    assert (again["incarnation"], again["policy_revision"]) == (1, 5)
    assert service.read("/v1/runs/test")["incarnations"][-1]["rewind_to_step"] == 5
    assert service.batch(make_batch(policy_revision=5))["incarnation"] == 1
    put(service, 6)
    assert attach(service, 5, 5).json["incarnation"] == 2, "it went on in between, so it went back again"


def test_the_step_is_the_checkpoint_s_whatever_the_revision_is(service):
    """A revision may be declared more often than an optimizer step is made, or less."""
    put(service, 100)
    assert attach(service, 7, 40).json["incarnation"] == 1
    assert service.read("/v1/runs/test")["incarnations"][-1]["rewind_to_step"] == 7


def test_a_start_ends_the_update_that_was_left_open(service, engine):
    put(service, 1)
    begin(service, 2, mode="abort")
    identity = service.post("/v1/batches", make_batch(policy_revision=1), ASYNC).json["id"]
    assert engine.samples == []
    reply = attach(service, 1, 1).json
    assert [(update["revision"], update["mode"], update["state"]) for update in reply["updates"]] == [(2, "abort", "cancelled")]
    assert open_updates(service) == [] and service.read("/v1/runs/test")["update"]["state"] == "cancelled"
    assert {rollout["policy_revision"] for rollout in rollouts(service.settled(identity))} == {1}
    assert attach(service, 1, 1).json["updates"] == []


@pytest.mark.parametrize("call", ["attach", "put"])
def test_a_start_ends_an_update_that_the_service_has_read_back(service, call):
    put(service, 1)
    begin(service, 2)
    service.restart()
    assert open_updates(service) == [2]
    reply = attach(service, 3, 3) if call == "attach" else put(service, 3, cancel_open=True)
    assert [update["state"] for update in reply.json["updates"]] == ["cancelled"]
    service.restart()
    assert open_updates(service) == [] and standing(service) == (0, 3)


def test_a_waiter_for_a_begin_is_told_that_it_was_cancelled(service, engine):
    engine.rules({"hold": True})
    identity = service.post("/v1/batches", make_batch(policy_revision=1), ASYNC).json["id"]
    eventually(lambda: engine.open == 2, "both samples to be in flight")
    replies = []
    body = {"revision": 2, "mode": "wait"}
    thread = threading.Thread(target=lambda: replies.append(http_request(service.url, "POST", "/v1/runs/test/policy/begin", body)))
    thread.start()
    eventually(lambda: open_updates(service) == [2], "the update to be open")
    assert attach(service, 1, 1).json["updates"][0]["revision"] == 2
    thread.join()
    assert (replies[0].status, replies[0].error["code"]) == (409, "state_conflict") and "cancelled" in replies[0].error["message"]
    engine.release()
    assert service.settled(identity)["state"] == "complete"


@pytest.mark.parametrize("restart", [False, True])
def test_a_start_with_a_key_is_answered_as_the_first_time(service, restart):
    put(service, 10)
    begin(service, 11)
    first = attach(service, 5, 5, headers={"Idempotency-Key": "start-1"}).json
    assert len(first["updates"]) == 1
    put(service, 6)
    if restart:
        service.restart()
    assert attach(service, 5, 5, headers={"Idempotency-Key": "start-1"}).json == first
    assert standing(service) == (1, 6)
    other = attach(service, 6, 6, headers={"Idempotency-Key": "start-1"})
    assert (other.status, other.error["code"]) == (409, "idempotency_conflict")


def test_sixteen_starts_at_once_open_one_incarnation(service):
    put(service, 10)
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(attach(service, 5, 5))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(reply.status, reply.json["incarnation"], reply.json["policy_revision"]) for reply in replies} == {(200, 1, 5)}


@pytest.mark.parametrize("body, code, path", [
    ({}, "missing_field", "step"), ({"step": 1}, "missing_field", "revision"), ({"step": 1, "revision": -1}, "invalid_field", "revision"),
    ({"step": "1", "revision": 1}, "invalid_field", "step"), ({"step": 1, "revision": 1, "rewind": 1}, "unknown_field", "rewind")])
def test_a_start_that_cannot_be_meant_is_refused(service, body, code, path):
    reply = service.post("/v1/runs/test/attach", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, code, path)


# -- "cancel_open" ------------------------------------------------------------------------------------------------------------

def test_a_declaration_cancels_an_open_update_only_if_it_says_so(service):
    put(service, 1)
    begin(service, 2)
    refused = put(service, 3)
    assert (refused.status, refused.error["code"]) == (409, "state_conflict")
    assert "revision 2" in refused.error["message"] and "cancel_open" in refused.error["message"]
    assert put(service, 3, cancel_open=False).status == 409
    reply = put(service, 3, cancel_open=True).json
    assert [(update["revision"], update["state"]) for update in reply["updates"]] == [(2, "cancelled")]
    assert open_updates(service) == [] and standing(service) == (0, 3)
    assert put(service, 4, cancel_open=True).json["updates"] == []


def test_a_declaration_that_is_refused_leaves_the_update_open(service):
    put(service, 5)
    begin(service, 6)
    refused = put(service, 4, cancel_open=True)
    assert (refused.status, refused.error["code"]) == (409, "revision_conflict")
    assert open_updates(service) == [6] and standing(service) == (0, 5)


def test_a_rewind_cancels_an_open_update(service, engine):
    put(service, 5)
    begin(service, 6)
    identity = service.post("/v1/batches", make_batch(policy_revision=5), ASYNC).json["id"]
    assert put(service, 4, rewind_to_step=4, cancel_open=True).json["incarnation"] == 1
    assert service.settled(identity)["state"] == "complete" and len(engine.samples) == 2
    committed = service.post("/v1/runs/test/policy/commit", {"revision": 6})
    assert committed.error["code"] == "state_conflict"
