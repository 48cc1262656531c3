"""Leases: ready groups are handed out once, acknowledged with the optimizer's step, and come back if they are not."""
import json
import threading

import pytest

from harness import eventually, http_request
from leasing import RIGHT, ack, change, counts, delivery, ids_of, post, posted, take, taken, tasks_of
from material import make_batch, make_group, rollouts
from tensors import unpack

TENSORS = {"Accept": "application/x-safetensors"}
LINES = {"Accept": "application/x-ndjson"}


def put(service, revision, **fields):
    reply = service.put("/v1/runs/test/policy", {"revision": revision, **fields})
    assert reply.status == 200, reply
    return reply.json


@pytest.fixture
def filled(service, engine):
    """A service with four ready groups."""
    engine.rules(RIGHT)
    posted(service, "a", "b", "c", "d")
    return service


# -- the reply ----------------------------------------------------------------------------------------------------------------


def test_a_batch_for_leases_is_answered_at_once_and_its_groups_wait(service, engine):
    engine.rules({"hold": True})
    reply = service.post("/v1/batches", make_batch(make_group("a"), make_group("b"), deliver="lease"))
    assert reply.status == 202 and reply.headers["location"] == f"/v1/batches/{reply.json['id']}"
    assert counts(service) == {"waiting": 2}
    assert take(service).json == {"lease": None, "expires_at": None, "policy_revision": 1, "totals": {"tokens": 0, "sequences": 0, "groups": 0}, "groups": []}
    engine.release()
    service.settled(reply.json["id"])
    assert counts(service) == {"ready": 2}


def test_a_lease_has_the_groups_as_a_batch_has_them(service, engine):
    engine.rules({"choices": [{**RIGHT}, {"text": "no", "ids": [7, 8, 9], "lp": [-1.0, -2.0, -3.0]}]})
    batch = posted(service, "a", "b")
    lease = taken(service)
    assert tasks_of(lease) == ["a", "b"] and lease["lease"].startswith("l_") and lease["state"] == "open"
    assert (lease["policy_revision"], lease["incarnation"], lease["delivered"], lease["held"]) == (1, 0, 2, 2)
    assert lease["totals"] == batch["totals"]
    for group, of_batch in zip(lease["groups"], batch["groups"]):
        assert (group.pop("staleness"), group.pop("deliveries")) == (0, 1)
        assert group.pop("delivery") == {"state": "leased", "lease": lease["lease"], "deliveries": 1, "optimizer_step": None, "staleness": 0}
        for rollout in of_batch["rollouts"]:
            assert rollout.pop("contributions") is not None  # their denominators are the batch's
        assert group == of_batch
    assert counts(service) == {"leased": 2}


def test_return_of_the_batch_chooses_the_arrays_of_a_lease(filled):
    posted(filled, "e", **{"return": ["completion_ids"]})
    lease = taken(filled)
    first, last = lease["groups"][0]["rollouts"][0], lease["groups"][-1]["rollouts"][0]
    assert {"completion_ids", "logprobs", "surrogates"} <= set(first) and "completion_ids" in last and "logprobs" not in last
    packed = filled.read(f"/v1/runs/test/leases/{lease['lease']}", arrays="base64")["groups"][0]["rollouts"][0]
    assert "logprobs_f32" in packed and "logprobs" not in packed
    none = filled.read(f"/v1/runs/test/leases/{lease['lease']}", arrays="none")["groups"][0]["rollouts"][0]
    assert not any(name.startswith("logprobs") and name != "logprobs_mode" for name in none)


def test_a_lease_as_lines_ends_with_the_lease(filled):
    reply = take(filled, headers=LINES)
    assert reply.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert [line["group"]["task"] for line in lines[:-1]] == ["a", "b", "c", "d"]
    whole = filled.read(f"/v1/runs/test/leases/{lines[-1]['lease']['lease']}")
    assert [line["group"] for line in lines[:-1]] == whole.pop("groups")
    assert lines[-1]["lease"] == whole
    empty = take(filled, headers=LINES)
    assert [json.loads(line)["lease"]["lease"] for line in empty.body.splitlines()] == [None]


def test_a_lease_as_tensors_has_what_the_json_has(filled):
    reply = take(filled, headers=TENSORS)
    assert reply.headers["content-type"] == "application/x-safetensors"
    metadata, tensors = unpack(reply.body)
    lease = json.loads(metadata["reply"])
    whole = filled.read(f"/v1/runs/test/leases/{lease['lease']}")
    members = rollouts(whole)
    assert tensors["completion_ids"] == [token for rollout in members for token in rollout["completion_ids"]]
    assert tensors["logprobs"] == [value for rollout in members for value in rollout["logprobs"]]
    assert tensors["cu_seqlens"] == [2 * i for i in range(len(members) + 1)] and "contributions" not in tensors
    assert [rollout["id"] for rollout in rollouts(lease)] == [rollout["id"] for rollout in members]
    metadata, tensors = unpack(take(filled, headers=TENSORS).body)
    assert json.loads(metadata["reply"])["lease"] is None and tensors["cu_seqlens"] == [0]


# -- who gets what ----------------------------------------------------------------------------------------------------------------


def test_the_oldest_revision_comes_first_then_the_oldest_group(service, engine):
    engine.rules(RIGHT)
    posted(service, "new", policy_revision=3)
    posted(service, "old", "old too", policy_revision=2)
    posted(service, "newest", policy_revision=3)
    assert tasks_of(taken(service, groups=3)) == ["old", "old too", "new"]
    assert tasks_of(taken(service)) == ["newest"]


def test_a_group_is_in_one_lease_at_a_time(filled):
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(http_request(filled.url, "POST", "/v1/runs/test/leases", {"wait": "0s"}))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {reply.status for reply in replies} == {200}
    assert sorted(task for reply in replies for task in tasks_of(reply.json)) == ["a", "b", "c", "d"]
    assert sum(reply.json["lease"] is None for reply in replies) == 4


def test_exact_is_all_or_nothing(filled):
    assert take(filled, groups=5, exact=True).json["lease"] is None
    assert len(taken(filled, groups=4, exact=True)["groups"]) == 4


def test_a_group_without_a_reward_is_failed_and_never_leased(service, engine):
    engine.rules({"in": "bad", "status": 400, "json": {"error": "no"}}, RIGHT)
    batch = posted(service, "good", "bad")
    assert counts(service) == {"ready": 1, "failed": 1}
    assert tasks_of(taken(service)) == ["good"]
    bad = next(group for group in batch["groups"] if group["task"] == "bad")
    assert delivery(service, bad["id"])["state"] == "failed"


def test_a_cancelled_batch_leaves_its_finished_groups_ready_and_the_others_failed(service, engine):
    engine.rules({"in": "slow", "hold": True}, RIGHT)
    identity = post(service, "quick", "slow")
    eventually(lambda: counts(service) == {"ready": 1, "waiting": 1}, "the quick group to be ready")
    assert service.delete(f"/v1/batches/{identity}").status == 200
    assert counts(service) == {"ready": 1, "failed": 1}
    assert tasks_of(taken(service)) == ["quick"]


def test_only_batches_for_leases_are_leased(service, engine):
    engine.rules(RIGHT)
    batch = service.batch(make_batch(make_group("replied")))
    service.batch(make_batch(make_group("evaluated"), purpose="eval"))
    assert take(service).json["lease"] is None and counts(service) == {}
    assert service.read(f"/v1/groups/{batch['groups'][0]['id']}")["delivery"] is None


def test_two_runs_do_not_share_groups(service, engine):
    engine.rules(RIGHT)
    posted(service, "mine")
    posted(service, "theirs", run="other")
    assert tasks_of(taken(service)) == ["mine"] and tasks_of(taken(service, run="other")) == ["theirs"]


# -- staleness ------------------------------------------------------------------------------------------------------------------------


def test_a_group_that_is_too_old_at_the_delivery_is_stale_and_counted(filled):
    put(filled, 3)
    posted(filled, "e", policy_revision=3)
    lease = taken(filled, max_staleness=1)
    assert tasks_of(lease) == ["e"] and lease["max_staleness"] == 1 and lease["policy_revision"] == 3
    assert counts(filled) == {"stale": 4, "leased": 1}
    assert take(filled).json["lease"] is None, "stale is final"


def test_without_a_bound_nothing_is_stale_and_each_group_says_how_old_it_is(filled):
    put(filled, 4)
    assert [group["staleness"] for group in taken(filled)["groups"]] == [3, 3, 3, 3]


def test_the_smaller_bound_counts(service, engine):
    engine.rules(RIGHT)
    posted(service, "strict", max_staleness=0)
    posted(service, "easy")
    put(service, 2)
    assert tasks_of(taken(service, max_staleness=1)) == ["easy"]
    assert counts(service) == {"stale": 1, "leased": 1}


def test_a_held_group_does_not_go_stale(filled):
    lease = taken(filled, max_staleness=0)
    put(filled, 9)
    assert ack(filled, lease["lease"]).status == 200 and counts(filled) == {"acked": 4}


# -- acknowledged --------------------------------------------------------------------------------------------------------------------


def test_an_acknowledged_group_never_comes_again(filled):
    lease = taken(filled)
    reply = ack(filled, lease["lease"], 40)
    assert (reply.status, reply.json["state"], reply.json["acked"], reply.json["held"]) == (200, "acked", 4, 0)
    assert counts(filled) == {"acked": 4} and take(filled).json["lease"] is None
    assert delivery(filled, ids_of(lease)[0]) == {"state": "acked", "lease": lease["lease"], "deliveries": 1, "optimizer_step": 40, "staleness": 0}


def test_the_same_ack_again_changes_nothing_and_the_first_step_stays(filled):
    lease = taken(filled)
    assert ack(filled, lease["lease"], 40).json["acked"] == 4
    again = ack(filled, lease["lease"], 41)
    assert (again.status, again.json["acked"]) == (200, 0)
    assert delivery(filled, ids_of(lease)[0])["optimizer_step"] == 40


def test_some_groups_may_be_acknowledged_and_the_rest_later(filled):
    lease = taken(filled)
    some = ids_of(lease)[:1]
    assert ack(filled, lease["lease"], 1, groups=some).json["held"] == 3
    assert counts(filled) == {"acked": 1, "leased": 3}
    assert ack(filled, lease["lease"], 2).json["acked"] == 3
    assert [delivery(filled, group)["optimizer_step"] for group in ids_of(lease)] == [1, 2, 2, 2]


def test_an_ack_of_a_group_that_the_lease_does_not_hold_acknowledges_nothing(filled):
    first, second = taken(filled, groups=2), taken(filled, groups=2)
    reply = ack(filled, first["lease"], 1, groups=[ids_of(first)[0], ids_of(second)[0]])
    assert (reply.status, reply.error["code"]) == (409, "state_conflict")
    assert reply.error["groups"] == [{"group": ids_of(second)[0], "state": "leased", "lease": second["lease"], "optimizer_step": None}]
    assert counts(filled) == {"leased": 4}


# -- given back -------------------------------------------------------------------------------------------------------------------------


def test_released_groups_are_ready_again_and_say_how_often_they_were_delivered(filled):
    lease = taken(filled)
    reply = change(filled, lease["lease"], "release")
    assert (reply.status, reply.json["released"], reply.json["state"]) == (200, 4, "released")
    again = taken(filled)
    assert ids_of(again) == ids_of(lease) and [group["deliveries"] for group in again["groups"]] == [2, 2, 2, 2]


def test_some_groups_may_be_released_and_the_others_are_acknowledged(filled):
    lease = taken(filled)
    assert change(filled, lease["lease"], "release", groups=ids_of(lease)[2:]).json["released"] == 2
    assert ack(filled, lease["lease"]).json["acked"] == 2
    assert counts(filled) == {"acked": 2, "ready": 2}


def test_releasing_what_is_not_held_does_nothing(filled):
    lease = taken(filled)
    assert ack(filled, lease["lease"]).status == 200
    reply = change(filled, lease["lease"], "release")
    assert (reply.status, reply.json["released"]) == (200, 0) and counts(filled) == {"acked": 4}


def test_an_expired_lease_gives_its_groups_back(filled):
    lease = taken(filled, lease="1ms")
    eventually(lambda: counts(filled) == {"ready": 4}, "the lease to expire")
    assert filled.read(f"/v1/runs/test/leases/{lease['lease']}")["state"] == "expired"
    assert ids_of(taken(filled)) == ids_of(lease)


def test_an_ack_after_the_end_says_what_became_of_each_group(filled):
    lease = taken(filled, lease="1ms")
    eventually(lambda: counts(filled) == {"ready": 4}, "the lease to expire")
    other = taken(filled, groups=2)
    assert ack(filled, other["lease"], 7, groups=ids_of(other)[:1]).status == 200
    reply = ack(filled, lease["lease"], 8)
    assert (reply.status, reply.error["code"]) == (409, "state_conflict") and "expired" in reply.error["message"]
    assert [(item["group"], item["state"], item["lease"], item["optimizer_step"]) for item in reply.error["groups"]] == [
        (ids_of(lease)[0], "acked", other["lease"], 7), (ids_of(lease)[1], "leased", other["lease"], None),
        (ids_of(lease)[2], "ready", None, None), (ids_of(lease)[3], "ready", None, None)]


def test_an_ack_is_repeated_also_after_the_time_of_the_lease(filled):
    lease = taken(filled, lease="10m")
    some = ids_of(lease)[:1]
    assert ack(filled, lease["lease"], 3, groups=some).json["acked"] == 1
    assert change(filled, lease["lease"], "extend", lease="1ms").status == 200
    eventually(lambda: counts(filled) == {"acked": 1, "ready": 3}, "the rest to come back")
    again = ack(filled, lease["lease"], 4, groups=some)
    assert (again.status, again.json["acked"]) == (200, 0)
    assert delivery(filled, some[0])["optimizer_step"] == 3


def test_extend_counts_from_now_and_a_dead_lease_is_not_extended(filled):
    lease = taken(filled, lease="10m")
    assert change(filled, lease["lease"], "extend", lease="1h").json["expires_at"] > lease["expires_at"]
    assert change(filled, lease["lease"], "extend", lease="1ms").status == 200
    eventually(lambda: counts(filled) == {"ready": 4}, "the lease to expire")
    reply = change(filled, lease["lease"], "extend", lease="1h")
    assert (reply.status, reply.error["code"], reply.error["path"]) == (409, "state_conflict", "lease")


# -- lists, and the trainer's start -------------------------------------------------------------------------------------------------


def test_open_leases_are_listed_and_each_is_shown_whatever_became_of_it(filled):
    first, second = taken(filled, groups=1), taken(filled, groups=2)
    items = filled.read("/v1/runs/test/leases")["items"]
    assert [(item["lease"], item["delivered"], item["held"]) for item in items] == [(first["lease"], 1, 1), (second["lease"], 2, 2)]
    ack(filled, first["lease"])
    assert [item["lease"] for item in filled.read("/v1/runs/test/leases")["items"]] == [second["lease"]]
    shown = filled.read(f"/v1/runs/test/leases/{first['lease']}")
    assert (shown["state"], shown["held"], ids_of(shown)) == ("acked", 0, ids_of(first))
    assert shown["groups"][0]["delivery"]["state"] == "acked"


def test_an_attach_shows_and_ends_open_leases(filled):
    lease = taken(filled, groups=3)
    reply = filled.post("/v1/runs/test/attach", {"step": 0, "revision": 1}).json
    assert [(item["lease"], item["state"], item["delivered"]) for item in reply["leases"]] == [(lease["lease"], "attached", 3)]
    assert counts(filled) == {"ready": 4}
    assert filled.post("/v1/runs/test/attach", {"step": 0, "revision": 1}).json["leases"] == []
    assert ack(filled, lease["lease"]).error["code"] == "state_conflict"


def test_a_rewind_brings_back_what_was_acknowledged_after_its_step(filled):
    first, second = taken(filled, groups=2), taken(filled, groups=2)
    ack(filled, first["lease"], 1)
    put(filled, 2)
    ack(filled, second["lease"], 2)
    put(filled, 1, rewind_to_step=1)
    assert counts(filled) == {"acked": 2, "ready": 2}
    assert ids_of(taken(filled)) == ids_of(second)


def test_states_are_in_pending_and_in_the_metrics(filled):
    ack(filled, taken(filled, groups=1)["lease"])
    taken(filled, groups=1)
    pending = filled.read("/v1/pending")
    assert {state: count for state, count in pending["delivery"].items() if count} == {"acked": 1, "leased": 1, "ready": 2}
    assert pending["lease_requests"] == 0
    assert filled.read("/v1/pending", run="other")["delivery"]["ready"] == 0
    eventually(lambda: 'rolloutd_groups{delivery="ready"} 2' in filled.get("/metrics").body.decode(), "the metrics to say so")
