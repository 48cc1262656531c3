"""Requests about leases that cannot be meant, each refused with the path of its field."""
import json

import pytest

from harness import eventually
from leasing import RIGHT, ack, change, counts, ids_of, post, posted, take, taken
from material import make_batch, make_group, sampling
from tensors import unpack
from test_readers import post as request_for, silent

LEASE = "/v1/runs/test/leases"
TENSORS = {"Accept": "application/x-safetensors"}
LONG = {"text": "\\boxed{42}", "ids": [5] * 2999 + [2], "lp": [-0.5] * 3000}


@pytest.mark.parametrize("body, code, path", [
    ({"groups": 0}, "invalid_field", "groups"), ({"groups": "64"}, "invalid_field", "groups"), ({"groups": 1.5}, "invalid_field", "groups"),
    ({"max_staleness": -1}, "invalid_field", "max_staleness"), ({"lease": "0s"}, "invalid_field", "lease"), ({"lease": 30}, "invalid_field", "lease"),
    ({"lease": "9000h"}, "invalid_field", "lease"), ({"wait": "soon"}, "invalid_field", "wait"), ({"wait": "25h"}, "invalid_field", "wait"),
    ({"exact": 1}, "invalid_field", "exact"), ({"group": 1}, "unknown_field", "group"), ([], "invalid_field", None)])
def test_a_request_for_a_lease_that_cannot_be_meant(plain, body, code, path):
    reply = plain.post(LEASE, body)
    assert (reply.status, reply.error["code"]) == (400, code)
    assert path is None or reply.error["path"] == path


@pytest.mark.parametrize("what, body, path", [
    ("ack", {}, "optimizer_step"), ("ack", {"optimizer_step": -1}, "optimizer_step"), ("ack", {"optimizer_step": "1"}, "optimizer_step"),
    ("ack", {"optimizer_step": 1, "groups": []}, "groups"), ("ack", {"optimizer_step": 1, "groups": ["g_1", 2]}, "groups[1]"),
    ("ack", {"optimizer_step": 1, "groups": "g_1"}, "groups"), ("ack", {"optimizer_step": 1, "step": 1}, "step"),
    ("release", {"groups": []}, "groups"), ("release", {"groups": [None]}, "groups[0]"), ("release", {"optimizer_step": 1}, "optimizer_step"),
    ("extend", {"lease": "0s"}, "lease"), ("extend", {"lease": 5}, "lease"), ("extend", {"groups": ["g_1"]}, "groups")])
def test_a_change_of_a_lease_that_cannot_be_meant(plain, what, body, path):
    reply = plain.post(f"{LEASE}/l_nobody/{what}", body)
    assert reply.status == 400 and reply.error["path"] == path, reply


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"groups": 1, "groups": 2}', b"[" * 100000, b'{"wait": "0s"'])
def test_a_body_that_is_no_json(plain, body):
    reply = plain.post(LEASE, body)
    assert reply.status == 400, reply


def test_an_ack_without_a_body_names_what_is_missing(plain):
    reply = plain.post(f"{LEASE}/l_nobody/ack", b"")
    assert reply.status == 400, reply


def test_a_run_that_is_not_there(plain):
    for reply in (plain.post(LEASE, {"wait": "0s"}), plain.post(LEASE, {"wait": "1h"}), plain.get(LEASE)):
        assert (reply.status, reply.error["code"], reply.error["path"]) == (404, "not_found", "run")
    assert plain.post("/v1/runs/a%20b/leases", {"wait": "0s"}).error["path"] == "run"


@pytest.mark.parametrize("name", ["l_nobody", "b_x", "l_" + "0" * 300, "l_01jdwx3m8k9q2v5r7t0a1b2c3d"])
def test_a_lease_that_is_not_there(service, engine, name):
    engine.rules(RIGHT)
    posted(service, "a")
    for what, body in (("extend", {}), ("release", {}), ("ack", {"optimizer_step": 1})):
        reply = service.post(f"{LEASE}/{name}/{what}", body)
        assert (reply.status, reply.error["code"], reply.error["path"]) == (404, "not_found", "lease"), (what, reply)
    assert service.get(f"{LEASE}/{name}").status == 404
    assert counts(service) == {"ready": 1}


def test_a_lease_of_another_run_is_none_of_this_one(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", run="other")
    posted(service, "b")
    lease = taken(service, run="other")["lease"]
    assert ack(service, lease).error["code"] == "not_found" and change(service, lease, "release").status == 404
    assert service.get(f"{LEASE}/{lease}").status == 404
    assert counts(service, "other") == {"leased": 1}


@pytest.mark.parametrize("stranger", ["g_nobody", "", "\x00", "g_01jdwx3m8k9q2v5r7t0a1b2c3d-00000", "é" * 200], ids=["short", "empty", "nul", "well-formed", "long"])
def test_an_ack_of_a_group_that_is_not_there_acknowledges_nothing(service, engine, stranger):
    engine.rules(RIGHT)
    posted(service, "a")
    lease = taken(service)
    reply = ack(service, lease["lease"], 1, groups=[ids_of(lease)[0], stranger])
    assert (reply.status, reply.error["code"]) == (409, "state_conflict")
    assert [(item["state"], item["lease"]) for item in reply.error["groups"]] == [(None, None)]
    assert counts(service) == {"leased": 1}
    assert change(service, lease["lease"], "release", groups=[stranger]).json["released"] == 0


def test_a_group_that_is_named_twice_is_acknowledged_once(service, engine):
    engine.rules(RIGHT)
    posted(service, "a", "b")
    lease = taken(service)
    assert ack(service, lease["lease"], 1, groups=[ids_of(lease)[0]] * 3).json["acked"] == 1
    assert change(service, lease["lease"], "release", groups=[ids_of(lease)[1]] * 2).json["released"] == 1


@pytest.mark.parametrize("fields", [{}, {"verifiers": []}])
def test_an_evaluation_is_never_leased(service, fields):
    reply = service.post("/v1/batches", make_batch(purpose="eval", deliver="lease", **fields))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (409, "eval_group", "deliver")


def test_a_score_is_not_for_leases(plain):
    reply = plain.post("/v1/score", {"run": "test", "deliver": "lease", "groups": []})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "unknown_field", "deliver")


# -- how many groups may be on their way ----------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(start, engine):
    engine.rules(RIGHT)
    return start(engine, settings={"ready_limit": "3"})


def test_a_batch_that_never_fits_is_refused_for_good(narrow):
    reply = narrow.post("/v1/batches", make_batch(*[make_group(f"t{i}") for i in range(4)], deliver="lease"))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "groups")
    assert narrow.batch(make_batch(*[make_group(f"t{i}") for i in range(4)]))["state"] == "complete", "others are not counted"


def test_beyond_the_limit_a_batch_is_to_come_again(narrow):
    posted(narrow, "a", "b")
    reply = narrow.post("/v1/batches", make_batch(make_group("c"), make_group("d"), deliver="lease"))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (429, "queue_full", "groups") and reply.headers["retry-after"]
    assert "test" in reply.error["message"] and " 2 groups" in reply.error["message"] and "(3)" in reply.error["message"]
    posted(narrow, "c")
    lease = taken(narrow)
    assert narrow.post("/v1/batches", make_batch(make_group("d"), deliver="lease")).status == 429, "leased groups count"
    ack(narrow, lease["lease"])
    assert len(posted(narrow, "d", "e", "f")["groups"]) == 3


def test_the_limit_is_each_run_s(narrow):
    posted(narrow, "a", "b", "c")
    assert post(narrow, "a", "b", "c", run="other")


def test_a_key_that_is_on_record_is_answered_at_the_limit(narrow):
    key = {"Idempotency-Key": "batch-1"}
    first = post(narrow, "a", "b", "c", headers=key)
    narrow.settled(first)
    again = narrow.post("/v1/batches", make_batch(*[make_group(task, task) for task in "abc"], deliver="lease"), key)
    assert (again.status, again.json["id"]) == (200, first)


def test_a_batch_of_before_goes_on_where_the_limit_is_lower_now(start, engine):
    engine.rules({"hold": True, **RIGHT})
    service = start(engine)
    identity = post(service, "a", "b", "c")
    eventually(lambda: engine.open, "a sample to be in flight")
    service.kill()
    service.settings["ready_limit"] = "1"
    engine.release()
    service.start()
    assert service.settled(identity)["state"] == "complete" and counts(service) == {"ready": 3}


def test_every_number_of_the_report_is_the_same_in_each_place(service, engine):
    """A failure stays one on its way to the trainer: no place makes a number of it."""
    engine.rules({"in": "P1", "status": 500, "raw": "boom"}, {"text": "\\boxed{5}", "ids": [5, 2], "lp": [-0.5, -0.25]})
    objective = {"preset": "grpo", "shaping": [{"kind": "linear_map", "source": [0, 1], "target": [-1, 1]}]}
    batch = posted(service, "P0", "P1", objective=objective)
    assert counts(service) == {"ready": 1, "failed": 1}
    shown = [rollout for group in batch["groups"] for rollout in group["rollouts"]]
    for rollout in shown:
        want = (None, None) if rollout["state"] == "failed" else (0.0, -1.0)
        alone = service.read(f"/v1/rollouts/{rollout['id']}")
        listed = next(row for row in service.read("/v1/rollouts", run="test")["items"] if row["id"] == rollout["id"])
        for place in (rollout, alone, listed):
            assert (place["reward"], place["shaped_reward"]) == want
    exported = [json.loads(line) for line in service.get("/v1/export", run="test").body.splitlines()]
    rows = {row["id"]: (row["reward"], row["shaped_reward"]) for row in exported if "id" in row}
    assert rows == {rollout["id"]: (rollout["reward"], rollout["shaped_reward"]) for rollout in shown}
    lease = taken(service)
    assert [rollout["shaped_reward"] for rollout in lease["groups"][0]["rollouts"]] == [-1.0, -1.0]
    assert take(service).json["lease"] is None


# -- a lease is taken, and its reply does not go out ----------------------------------------------------------------------------------


def with_long_groups(start, engine, **settings):
    engine.rules(LONG)
    service = start(engine, settings=settings)
    for task in "abcd":
        posted(service, task, sampling={**sampling(8), "max_tokens": 3000}, deadline="5m")
    return service


def test_a_lease_that_is_too_large_as_tensors_is_held_and_its_refusal_says_where_it_is(start, engine):
    service = with_long_groups(start, engine, memory_budget="1MiB")
    reply = take(service, headers=TENSORS)
    assert (reply.status, reply.error["code"]) == (500, "internal_error")
    lease, = service.read(LEASE)["items"]
    assert lease["held"] == 4 and f"/leases/{lease['lease']} " in reply.error["message"], reply
    assert len(service.read(f"{LEASE}/{lease['lease']}")["groups"]) == 4
    shares = [service.request("GET", f"{LEASE}/{lease['lease']}", headers=TENSORS, rank=rank, ranks=4) for rank in range(4)]
    assert [unpack(share.body)[1]["cu_seqlens"][-1] for share in shares] == [24000] * 4


def test_a_lease_without_room_for_its_reply_is_held_and_its_refusal_says_where_it_is(start, engine):
    service = with_long_groups(start, engine, memory_budget="2MiB")
    objective = {"sequences": [{"group": "a", "reward": index % 2, "logprobs": [-0.5] * 20_000} for index in range(4)]}
    with silent(service, 1, request_for("/v1/objective", objective)):
        reply = take(service, headers=TENSORS)
        assert (reply.status, reply.error["code"]) == (429, "queue_full")
        lease, = service.read(LEASE)["items"]
        assert reply.error["message"].endswith(f"GET /v1/runs/{{run}}/leases/{lease['lease']}"), reply
    assert ack(service, lease["lease"]).json["acked"] == 4
