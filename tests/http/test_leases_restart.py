"""Leases over the end of the service, or of the trainer: nothing is lost, and nothing is handed out twice without saying so."""
import sqlite3

import pytest

from harness import eventually
from later import Later
from leasing import RIGHT, ack, change, counts, delivery, ids_of, post, posted, take, taken, tasks_of, waiting
from material import rollouts, seed_of

KEY = {"Idempotency-Key": "lease-1"}


def test_a_lease_outlives_the_service(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", "b", "c")
    lease = taken(service, groups=2)
    service.restart()
    assert counts(service) == {"leased": 2, "ready": 1}
    assert tasks_of(taken(service)) == ["c"]
    assert ack(service, lease["lease"], 3).json["acked"] == 2
    service.restart()
    assert ack(service, lease["lease"], 4).json["acked"] == 0
    assert delivery(service, ids_of(lease)[0])["optimizer_step"] == 3


def test_a_key_finds_its_lease_after_a_restart(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", "b")
    first = take(service, groups=1, headers=KEY).json
    service.restart()
    assert take(service, groups=1, headers=KEY).json == first


def test_a_lease_that_ran_out_while_the_service_was_down_is_expired_at_its_start(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", "b")
    lease = taken(service, headers=KEY, groups=2, lease="10m")
    service.kill()
    with sqlite3.connect(service.database) as database:
        assert database.execute("UPDATE leases SET expires_at_us = expires_at_us - 3600000000").rowcount == 1
    database.close()
    service.start()
    eventually(lambda: counts(service) == {"ready": 2}, "the lease to be expired")
    assert take(service, headers=KEY, groups=2, lease="10m").json["lease"] == lease["lease"], "past its expiry, too"
    assert ids_of(taken(service)) == ids_of(lease)
    reply = ack(service, lease["lease"])
    assert (reply.status, {item["state"] for item in reply.error["groups"]}) == (409, {"leased"})


def test_a_batch_for_leases_goes_on_without_a_client(service, engine):
    engine.rules({"in": "slow", "hold": True, **RIGHT}, RIGHT)
    identity = post(service, "quick", "slow")
    eventually(lambda: counts(service) == {"ready": 1, "waiting": 1}, "the quick group to be ready")
    service.kill()
    engine.release()
    service.start()
    batch = service.settled(identity)
    assert batch["state"] == "complete" and counts(service) == {"ready": 2}
    for group in batch["groups"]:
        for rollout in group["rollouts"]:
            assert rollout["seed"] == seed_of(7, 1, group["task"], 0, rollout["sample_index"])
    assert len(engine.samples_for("quick")) == 2, "what is on record is not sampled again"


def test_those_who_wait_after_a_restart_are_served_by_batches_of_before(service, engine):
    engine.rules({"in": "slow", "hold": True, **RIGHT}, RIGHT)
    post(service, "slow")
    eventually(lambda: engine.open == 2, "both samples to be in flight")
    service.restart()
    later = Later(take, service, groups=1, wait="1h")
    waiting(service, 1)
    engine.release()
    assert tasks_of(later.result().json) == ["slow"]


@pytest.mark.parametrize("restart", [False, True])
def test_the_revision_is_that_of_the_dispatch_where_the_batch_names_none(start, engine, restart):
    """Prompts are posted ahead of the weights that answer them."""
    engine.rules({"in": "first", "hold": True, **RIGHT}, {"in": "second", "hold": True, **RIGHT})
    service = start(f"{engine.for_rolloutd}&in_flight=1")
    service.put("/v1/runs/test/policy", {"revision": 5})
    identity = post(service, "first", "second", policy_revision=None, sampling={"n": 1, "max_tokens": 16})
    eventually(lambda: engine.open == 1, "the first sample to be in flight")
    service.put("/v1/runs/test/policy", {"revision": 6})
    if restart:
        service.restart()
        eventually(lambda: engine.open == 1, "the first sample to be in flight again")
    engine.release()
    groups = service.settled(identity)["groups"]
    assert [group["rollouts"][0]["policy_revision"] for group in groups] == ([6, 6] if restart else [5, 6])
    lease = taken(service)
    assert [group["staleness"] for group in lease["groups"]] == ([0, 0] if restart else [1, 0])


@pytest.mark.parametrize("moment", ["taken", "acked"])
def test_a_service_that_is_killed_between_lease_and_ack_loses_nothing(service, engine, moment):
    engine.rules(RIGHT)
    tasks = [f"t{i}" for i in range(8)]
    batch = posted(service, *tasks)
    lease = taken(service, groups=4)
    if moment == "acked":
        assert ack(service, lease["lease"], 1).status == 200
    service.restart()
    rest = taken(service)
    assert not set(ids_of(rest)) & set(ids_of(lease))
    for one in (lease, rest):
        assert ack(service, one["lease"], 1).status == 200
    assert counts(service) == {"acked": 8}
    assert {group["id"] for group in batch["groups"]} == set(ids_of(lease)) | set(ids_of(rest))
    assert len(rollouts(batch)) == 16


def test_a_trainer_that_was_killed_attaches_and_gets_its_groups_again(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", "b", "c")
    acked, lost = taken(service, groups=1), taken(service, groups=2)
    ack(service, acked["lease"], 1)
    reply = service.post("/v1/runs/test/attach", {"step": 1, "revision": 1}).json
    assert [lease["lease"] for lease in reply["leases"]] == [lost["lease"]] and reply["incarnation"] == 0
    again = taken(service)
    assert ids_of(again) == ids_of(lost) and [group["deliveries"] for group in again["groups"]] == [2, 2]
    assert change(service, lost["lease"], "extend").error["code"] == "state_conflict"
