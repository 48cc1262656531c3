"""Requests for leases that wait: answered when enough groups are ready, at the end of their wait, or by nobody who has hung up."""
import json
import threading

import pytest

from harness import eventually
from later import Later
from leasing import RIGHT, ack, change, counts, ids_of, post, posted, take, taken, tasks_of, waiting
from material import make_batch, make_group

KEY = {"Idempotency-Key": "lease-1"}


def held_back(engine, *tasks):
    """An engine that keeps these tasks until it is told to let go."""
    engine.rules(*({"in": task, "hold": True, **RIGHT} for task in tasks), RIGHT)


def ask(service, headers=None, **fields):
    """A request that waits, and can hang up."""
    body = json.dumps({"wait": "1h", **fields})
    head = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    return service.wire().send(f"POST /v1/runs/test/leases HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{head}"
                               f"Content-Length: {len(body)}\r\n\r\n{body}")


def test_a_request_is_answered_as_soon_as_its_groups_are_ready(service, engine):
    held_back(engine, "second")
    post(service, "first", "second")
    eventually(lambda: counts(service).get("ready") == 1, "the first group to be ready")
    later = Later(take, service, groups=2, wait="1h")
    waiting(service, 1)
    assert counts(service) == {"ready": 1, "waiting": 1}, "a request that waits holds nothing"
    engine.release()
    assert sorted(tasks_of(later.result().json)) == ["first", "second"]
    waiting(service, 0)


def test_at_the_end_of_the_wait_it_gets_what_is_ready(service, engine):
    held_back(engine, "second")
    post(service, "first", "second")
    assert tasks_of(take(service, groups=2, wait="100ms").json) in ([], ["first"])
    eventually(lambda: sum(counts(service).get(state, 0) for state in ("ready", "leased")) == 1, "the first group to be ready")
    if counts(service).get("ready"):
        assert tasks_of(take(service, groups=2, wait="100ms").json) == ["first"]


def test_at_the_end_of_the_wait_exact_gets_nothing(service, engine):
    engine.rules(RIGHT)
    posted(service, "only")
    assert take(service, groups=2, exact=True, wait="100ms").json["lease"] is None
    assert counts(service) == {"ready": 1}


def test_groups_that_are_posted_later_are_waited_for(service, engine):
    engine.rules(RIGHT)
    service.put("/v1/runs/test/policy", {"revision": 1})
    later = Later(take, service, groups=3, wait="1h")
    waiting(service, 1)
    posted(service, "a", "b")
    waiting(service, 1)
    posted(service, "c")
    assert tasks_of(later.result().json) == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["release", "expire", "attach", "rewind"])
def test_groups_that_come_back_are_given_to_those_who_wait(service, engine, how):
    engine.rules(RIGHT)
    posted(service, "a", "b")
    lease = taken(service)["lease"]
    if how == "rewind":
        assert ack(service, lease, 5).status == 200
    later = Later(take, service, groups=2, wait="1h")
    waiting(service, 1)
    if how == "release":
        change(service, lease, "release")
    elif how == "expire":
        change(service, lease, "extend", lease="1ms")
    elif how == "attach":
        service.post("/v1/runs/test/attach", {"step": 0, "revision": 1})
    else:
        service.put("/v1/runs/test/policy", {"revision": 1, "rewind_to_step": 4})
    again = later.result().json
    assert tasks_of(again) == ["a", "b"] and [group["deliveries"] for group in again["groups"]] == [2, 2]


def test_a_client_that_hangs_up_while_it_waits_holds_nothing(service, engine):
    held_back(engine, "a")
    post(service, "a")
    with ask(service):
        waiting(service, 1)
    waiting(service, 0)
    engine.release()
    eventually(lambda: counts(service) == {"ready": 1}, "the group to be ready")
    assert tasks_of(taken(service)) == ["a"]


def test_a_client_that_hung_up_with_a_key_asks_again(service, engine):
    held_back(engine, "a")
    post(service, "a")
    with ask(service, KEY, groups=1):
        waiting(service, 1)
    waiting(service, 0)
    engine.release()
    body = {"wait": "1h", "groups": 1}
    assert tasks_of(service.post("/v1/runs/test/leases", body, KEY).json) == ["a"]


def test_two_requests_that_wait_share_nothing(service, engine):
    held_back(engine, "a", "b", "c", "d")
    post(service, "a", "b", "c", "d")
    ranks = [Later(take, service, groups=2, wait="1h") for _ in range(2)]
    waiting(service, 2)
    engine.release()
    assert sorted(tasks_of(ranks[0].result().json) + tasks_of(ranks[1].result().json)) == ["a", "b", "c", "d"]


def test_many_requests_that_wait_are_all_served(service, engine):
    tasks = [f"t{i}" for i in range(24)]
    held_back(engine, *tasks)
    post(service, *tasks)
    ranks = [Later(take, service, groups=1, wait="1h") for _ in tasks]
    waiting(service, len(tasks))
    engine.release()
    assert sorted(task for rank in ranks for task in tasks_of(rank.result().json)) == sorted(tasks)


def test_a_small_request_is_served_while_a_large_one_waits(service, engine):
    service.put("/v1/runs/test/policy", {"revision": 1})
    engine.rules(RIGHT)
    large = Later(take, service, groups=5, exact=True, wait="1h")
    waiting(service, 1)
    small = Later(take, service, groups=1, wait="1h")
    waiting(service, 2)
    posted(service, "a")
    assert tasks_of(small.result().json) == ["a"]
    posted(service, "b", "c", "d", "e", "f")
    assert tasks_of(large.result().json) == ["b", "c", "d", "e", "f"]


def test_requests_of_one_key_get_one_lease(service, engine):
    held_back(engine, "a", "b")
    post(service, "a", "b")
    twins = [Later(take, service, groups=1, wait="1h", headers=KEY) for _ in range(2)]
    waiting(service, 2)
    engine.release()
    first, second = (twin.result().json for twin in twins)
    assert first["lease"] == second["lease"] and ids_of(first) == ids_of(second)
    eventually(lambda: counts(service) == {"leased": 1, "ready": 1}, "the other group to be ready")


def test_the_same_key_is_the_same_lease_and_another_body_a_conflict(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", "b")
    first = take(service, groups=1, headers=KEY).json
    again = take(service, groups=1, headers=KEY).json
    assert again == first and counts(service) == {"leased": 1, "ready": 1}
    other = take(service, groups=2, headers=KEY)
    assert (other.status, other.error["code"]) == (409, "idempotency_conflict")
    ack(service, first["lease"])
    assert take(service, groups=1, headers=KEY).json["lease"] == first["lease"], "also when it has ended"


def test_nothing_is_not_remembered_under_a_key(service, engine):
    engine.rules(RIGHT)
    service.put("/v1/runs/test/policy", {"revision": 1})
    assert take(service, headers=KEY).json["lease"] is None
    posted(service, "a")
    assert tasks_of(take(service, headers=KEY).json) == ["a"]


def test_a_run_that_went_back_has_new_keys(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", "b")
    first = take(service, groups=1, headers=KEY).json
    service.put("/v1/runs/test/policy", {"revision": 1, "rewind_to_step": 0})
    assert take(service, groups=1, headers=KEY).json["lease"] != first["lease"]


def test_a_service_that_ends_lets_those_who_wait_go(service, engine):
    service.put("/v1/runs/test/policy", {"revision": 1})
    later = Later(take, service, groups=1, wait="1h")
    waiting(service, 1)
    assert service.terminate() == 0
    assert (later.result().status, later.result().error["code"]) == (503, "draining")


def test_an_ack_is_taken_while_the_service_drains(service, engine):
    held_back(engine, "slow")
    posted(service, "a")
    lease = taken(service)["lease"]
    service.settings["drain_timeout"] = "1h"
    service.restart()
    post(service, "slow")
    eventually(lambda: engine.open, "the slow sample to be in flight")
    ended = threading.Thread(target=service.terminate)
    ended.start()
    eventually(lambda: service.get("/readyz").status == 503, "the service to drain")
    assert ack(service, lease).status == 200
    assert take(service).error["code"] == "draining"
    engine.release()
    ended.join()


def test_a_group_of_a_batch_whose_rule_needs_the_whole_batch_is_ready_with_the_batch(service, engine):
    held_back(engine, "second")
    identity = post(service, "first", "second", objective={"preset": "grpo", "advantage": {"scale": "batch"}})
    later = Later(take, service, groups=2, wait="1h")
    waiting(service, 1)
    engine.release()
    lease = later.result().json
    assert sorted(tasks_of(lease)) == ["first", "second"]
    advantages = {rollout["id"]: rollout["advantage"] for group in service.settled(identity)["groups"] for rollout in group["rollouts"]}
    assert all(rollout["advantage"] == advantages[rollout["id"]] for group in lease["groups"] for rollout in group["rollouts"])


def test_a_stream_of_a_batch_for_leases_is_no_stream(service, engine):
    engine.rules(RIGHT)
    reply = service.post("/v1/batches", make_batch(make_group("a"), deliver="lease"), {"Accept": "application/x-ndjson"})
    assert reply.status == 202 and reply.json["state"] == "running"
