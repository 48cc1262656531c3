"""Revisions: stamped at dispatch and at the end, never mixed silently, never going back without saying so."""
import pytest

from harness import eventually
from material import make_batch, make_group, rollouts


def put(service, revision, run="test", **fields):
    return service.put(f"/v1/runs/{run}/policy", {"revision": revision, **fields})


def test_a_batch_without_a_revision_takes_the_current_one(service):
    assert put(service, 5).status == 200
    batch = service.batch(make_batch(policy_revision=None))
    assert batch["policy_revision"] == 5 and all(rollout["policy_revision"] == 5 for rollout in rollouts(batch))


def test_a_batch_with_a_higher_revision_declares_it(service):
    service.batch(make_batch(policy_revision=9))
    assert {row["run"]: row["policy_revision"] for row in service.read("/v1/runs")["items"]} == {"test": 9}
    assert put(service, 8).error["code"] == "revision_conflict"


def test_a_batch_with_a_lower_revision_is_stamped_with_it(service):
    put(service, 9)
    assert all(rollout["policy_revision"] == 7 for rollout in rollouts(service.batch(make_batch(policy_revision=7))))


def test_a_batch_too_stale_for_its_own_rule_is_refused(service):
    put(service, 9)
    reply = service.post("/v1/batches", make_batch(policy_revision=7, max_staleness=1))
    assert (reply.status, reply.error["code"]) == (409, "revision_conflict")
    assert service.post("/v1/batches", make_batch(policy_revision=8, max_staleness=1)).status == 200


def test_a_refused_revision_names_the_numbers_that_were_compared(service):
    """F26"""
    put(service, 90)
    messages = [service.post("/v1/batches", make_batch(policy_revision=71, max_staleness=4)).error["message"],
                put(service, 71).error["message"],
                service.post("/v1/runs/test/policy/begin", {"revision": 71}).error["message"]]
    assert all("71" in message and "90" in message for message in messages), messages
    assert "max_staleness allows 4" in messages[0] and "19 behind" in messages[0]
    assert service.post("/v1/runs/test/policy/begin", {"revision": 91, "mode": "straddle"}).status == 200
    message = service.post("/v1/batches", make_batch(policy_revision=92)).error["message"]
    assert "92" in message and "90" in message and "weight update" in message


def test_revisions_rise_within_an_incarnation(service):
    assert put(service, 3).status == 200
    reply = put(service, 2)
    assert (reply.status, reply.error["code"]) == (409, "revision_conflict")
    assert put(service, 4).status == 200


def test_going_back_to_a_checkpoint_opens_the_next_incarnation(service):
    put(service, 100)
    first = service.batch(make_batch(policy_revision=100))
    assert put(service, 95, rewind_to_step=95).status == 200
    second = service.batch(make_batch(policy_revision=95))
    assert (first["incarnation"], second["incarnation"]) == (0, 1)
    service.terminate()
    service.start()
    assert service.batch(make_batch(policy_revision=96))["incarnation"] == 1


def test_a_rollout_in_flight_at_an_update_straddles(service, engine):
    """Promise 7"""
    engine.rules({"hold": True})
    identity = service.post("/v1/batches", make_batch(policy_revision=1), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "both samples to be in flight")
    assert put(service, 2).status == 200
    engine.release()
    batch = service.settled(identity)
    for rollout in rollouts(batch):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (1, 2, True)
    for rollout in rollouts(service.batch(make_batch(policy_revision=2))):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (2, 2, False)


def test_an_evaluation_of_the_current_weights_says_what_was_sampled_after_an_update(start, engine):
    """One that names older weights means them: its engines have them, whatever the run is at."""
    engine.rules({"in": "held", "hold": True}, {})
    service = start(f"{engine.for_rolloutd}&in_flight=1")
    put(service, 5)
    held = make_batch(make_group("t", "held"), policy_revision=5, purpose="eval")
    identity = service.post("/v1/batches", held, {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 1, "one sample to be in flight and the other to wait")
    put(service, 6)
    engine.release()
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (5, 6, True)
    for rollout in rollouts(service.batch(make_batch(policy_revision=5, purpose="eval"))):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (5, 5, False)


@pytest.mark.parametrize("body, path", [({}, "revision"), ({"revision": -1}, "revision"), ({"revision": "3"}, "revision"), ({"revision": 3, "mode": "wait"}, "mode")])
def test_an_update_that_cannot_be_meant_is_refused(service, body, path):
    reply = service.put("/v1/runs/test/policy", body)
    assert reply.status == 400 and reply.error["path"] == path


def test_a_run_has_a_sane_name(service):
    assert put(service, 1, run="a%2Fb").status in (400, 404)
    assert put(service, 1, run="x" * 200).status in (400, 404)


def test_a_rollout_in_flight_at_a_rewind_straddles_also_at_the_same_number(service, engine):
    """The checkpoint has other weights than the last revision of that number."""
    engine.rules({"hold": True})
    put(service, 100)
    identity = service.post("/v1/batches", make_batch(policy_revision=100), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "both samples to be in flight")
    assert put(service, 100, rewind_to_step=50).json["incarnation"] == 1
    engine.release()
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (100, 100, True)
