"""Dynamic sampling: groups without variance are dropped, and others drawn from the reserve in their place."""
import json
import shutil
import sqlite3
import subprocess

import pytest

from harness import BINARY, PATIENCE, eventually
from material import group_advantages, make_batch, make_group, rollouts
from test_curl_pages import blocks, printed

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
WRONG = {"text": "\\boxed{41}", "ids": [11, 13, 2], "lp": [-0.5, -0.25, -0.125]}


def task(name, kind, **fields):
    """kind: what the engine samples for it: `mixed`, `right`, `wrong`, `lost`, `one` (one of two is scored), `held`."""
    return make_group(name, f"<{name}> {kind}", **fields)


def script(engine, *groups, more=()):
    """A rule for each group, so that its members get their own choices whatever comes between them."""
    made = {"mixed": {"choices": [RIGHT, WRONG]}, "right": dict(RIGHT), "wrong": dict(WRONG), "lost": {"choices": [{**RIGHT, "lp": None}]},
            "one": {"choices": [RIGHT, {**WRONG, "lp": None}]}, "held": {**RIGHT, "hold": True}}
    engine.rules(*more, *({"in": f"<{group['task']}>", **made[group["prompt"].split()[1]]} for group in groups))


def post(service, engine, groups, reserve, refill=None, headers=None, **fields):
    script(engine, *groups, *reserve)
    body = make_batch(*groups, reserve=reserve, refill=refill, **{"run": "refill", "deadline": "5m", **fields})
    reply = service.post("/v1/batches", body, headers)
    assert reply.status in (200, 202), reply
    return reply.json


def refused(service, body, status, code, path):
    reply = service.post("/v1/batches", body)
    assert (reply.status, reply.json["error"]["code"], reply.json["error"]["path"]) == (status, code, path), reply


def tasks_of(service, ids):
    return sorted(service.read(f"/v1/groups/{identity}")["task"] for identity in ids)


def delivered(batch):
    return sorted(group["task"] for group in batch["groups"])


def check_delivered(batch):
    """Each group that is delivered has its own advantages, and the totals are of those."""
    for group in batch["groups"]:
        assert not group["dropped"]
        assert [one["advantage"] for one in group["rollouts"]] == pytest.approx(group_advantages([one["reward"] for one in group["rollouts"]]))
    scored = [one for one in rollouts(batch) if one["advantage"] is not None]
    assert batch["totals"]["sequences"] == len(scored)
    assert batch["totals"]["groups"] == len({one["group"] if "group" in one else one["id"][:-6] for one in scored})


def verify(service):
    done = subprocess.run([BINARY, "verify-database", service.database], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done


# --- refused ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("fields, status, code, path", [
    ({"reserve": {}}, 400, "invalid_field", "reserve"),
    ({"reserve": [1]}, 400, "invalid_field", "reserve[0]"),
    ({"reserve": [make_group("r1"), {"task": "r2"}]}, 400, "missing_field", "reserve[1].prompt"),
    ({"reserve": [{**make_group("r1"), "promt": "x"}]}, 400, "unknown_field", "reserve[0].promt"),
    ({"reserve": [make_group("r1", sampling={"n": 0})]}, 400, "invalid_field", "reserve[0].sampling.n"),
    ({"reserve": [make_group("t1")]}, 422, "duplicate_task", "reserve[0].task"),
    ({"reserve": [make_group("r1"), make_group("r1")]}, 422, "duplicate_task", "reserve[1].task"),
    ({"refill": []}, 400, "invalid_field", "refill"),
    ({"refill": {"metrics": "reward"}}, 400, "unknown_field", "refill.metrics"),
    ({"refill": {"metric": "exact"}}, 400, "invalid_field", "refill.metric"),
    ({"refill": {"metric": 1}}, 400, "invalid_field", "refill.metric"),
    ({"refill": {"max_extra_groups": -1}}, 400, "invalid_field", "refill.max_extra_groups"),
    ({"refill": {"max_extra_groups": 1.5}}, 400, "invalid_field", "refill.max_extra_groups"),
    ({"refill": {"rule": "none"}}, 400, "invalid_field", "refill.rule"),
    ({"refill": {"lo": 0}}, 400, "invalid_field", "refill.lo"),
    ({"refill": {"hi": 1}}, 400, "invalid_field", "refill.hi"),
    ({"refill": {"tol": 0}}, 400, "invalid_field", "refill.tol"),
    ({"refill": {"rule": "range", "tol": -1}}, 400, "invalid_field", "refill.tol"),
    ({"refill": {"rule": "mean_interval", "lo": 1, "hi": 1}}, 400, "invalid_field", "refill.lo"),
    ({"refill": {"exhausted": "wait"}}, 400, "invalid_field", "refill.exhausted"),
    ({"reserve": [make_group("r1")], "purpose": "eval"}, 409, "eval_group", "reserve"),
    ({"refill": {}, "purpose": "eval"}, 409, "eval_group", "refill"),
    ({"refill": {}, "verifiers": [{"name": "math", "heldout": True}]}, 400, "invalid_field", "refill.metric"),
    ({"refill": {"metric": "math"}, "reserve": [make_group("r1", verifiers=[{"name": "exact"}])]}, 400, "invalid_field", "refill.metric"),
])
def test_a_reserve_or_refill_that_cannot_be_meant_is_refused_with_its_place(service, fields, status, code, path):
    refused(service, make_batch(**fields), status, code, path)


def test_a_score_has_no_reserve(plain):
    for name in ("reserve", "refill"):
        reply = plain.post("/v1/score", {"run": "score", "groups": [{"task": "t", "completions": [{"text": "x"}]}], name: [] if name == "reserve" else {}})
        assert (reply.status, reply.json["error"]["code"], reply.json["error"]["path"]) == (400, "unknown_field", name)


# --- drawn and dropped --------------------------------------------------------------------------------------------

def test_groups_without_variance_are_replaced_in_the_order_of_the_reserve(service, engine):
    groups = [task("a", "mixed"), task("b", "right"), task("c", "wrong"), task("d", "mixed")]
    reserve = [task("r1", "wrong"), task("r2", "mixed"), task("r3", "mixed"), task("r4", "mixed")]
    batch = post(service, engine, groups, reserve, {"metric": "reward"})
    assert batch["state"] == "complete" and delivered(batch) == ["a", "d", "r2", "r3"]
    refill = batch["summary"]["refill"]
    assert refill["metric"] == "reward" and refill["left"] == 1
    assert [service.read(f"/v1/groups/{identity}")["task"] for identity in refill["drawn"]] == ["r1", "r2", "r3"]
    assert tasks_of(service, refill["dropped"]) == ["b", "c", "r1"]
    check_delivered(batch)
    assert batch["totals"]["groups"] == 4 and not engine.samples_for("<r4>")
    for identity in refill["dropped"]:
        group = service.read(f"/v1/groups/{identity}")
        assert group["dropped"] and group["zero_variance"] and all(one["advantage"] is None and one["reward"] is not None for one in group["rollouts"])
    assert batch["counts"]["groups"] == batch["summary"]["groups"] == 7 and batch["counts"]["scored"] == 14 and batch["summary"]["zero_variance_groups"] == 3
    listed = service.read(f"/v1/batches/{batch['id']}/groups")["items"]
    assert [(group["task"], group["drawn"]) for group in listed] == [("a", False), ("b", False), ("c", False), ("d", False), ("r1", True), ("r2", True), ("r3", True)]
    service.terminate()
    verify(service)


def test_draws_are_bounded_and_the_rest_is_short(service, engine):
    groups = [task("a", "right"), task("b", "right"), task("c", "mixed")]
    batch = post(service, engine, groups, [task("r1", "right"), task("r2", "mixed")], {"max_extra_groups": 1})
    assert batch["state"] == "complete" and delivered(batch) == ["c"] and batch["totals"]["groups"] == 1
    assert tasks_of(service, batch["summary"]["refill"]["drawn"]) == ["r1"] and tasks_of(service, batch["summary"]["refill"]["dropped"]) == ["a", "b", "r1"]
    assert not engine.samples_for("<r2>")


def test_without_a_reserve_left_groups_are_delivered_if_that_is_asked_for(service, engine):
    batch = post(service, engine, [task("a", "right"), task("b", "mixed")], [task("r1", "wrong")], {"exhausted": "deliver"})
    assert delivered(batch) == ["b", "r1"] and tasks_of(service, batch["summary"]["refill"]["dropped"]) == ["a"]
    check_delivered(batch)


def test_without_a_reserve_left_the_batch_ends_if_that_is_asked_for(service, engine):
    held = {"in": "<h>", **RIGHT, "hold": True}
    script(engine, task("a", "right"), more=[held])
    body = make_batch(task("a", "right"), make_group("h", "<h> held"), refill={"exhausted": "fail"}, deadline="5m")
    batch = service.post("/v1/batches", body).json
    assert batch["state"] == "cancelled" and tasks_of(service, batch["summary"]["refill"]["dropped"])[:1] == ["a"]
    assert all(one["state"] == "cancelled" for group in batch["groups"] for one in group["rollouts"])
    batch = post(service, engine, [task("x", "right")], [], {"exhausted": "fail"})
    assert batch["state"] == "cancelled" and batch["loss"] is None


def test_fewer_than_two_scored_members_are_no_variance(start, engine):
    service = start(engine, settings={"engine.attempts": "1"})
    batch = post(service, engine, [task("a", "one"), task("b", "lost"), task("c", "mixed")], [task("r1", "mixed"), task("r2", "mixed")], {})
    assert delivered(batch) == ["c", "r1", "r2"] and tasks_of(service, batch["summary"]["refill"]["dropped"]) == ["a", "b"]
    check_delivered(batch)


def test_the_raw_metric_decides_not_the_shaped_reward(service, engine):
    flat = {"shaping": [{"kind": "reward_clip", "lo": 5, "hi": 5}]}
    batch = post(service, engine, [task("a", "mixed"), task("b", "right")], [task("r1", "mixed")], {"metric": "reward"}, objective=flat)
    assert delivered(batch) == ["a", "r1"] and tasks_of(service, batch["summary"]["refill"]["dropped"]) == ["b"]


def test_the_score_of_a_verifier_may_decide(service, engine):
    verifiers = [{"name": "format", "options": {"template": "boxed_once"}}, {"name": "math", "heldout": True}]
    batch = post(service, engine, [task("a", "mixed"), task("b", "right")], [task("r1", "mixed")], {"metric": "math"}, verifiers=verifiers)
    assert batch["summary"]["refill"]["metric"] == "math" and delivered(batch) == ["a", "r1"]  # all rewards are 1
    assert {one["reward"] for one in rollouts(batch)} == {1}


@pytest.mark.parametrize("refill, kept", [
    ({"rule": "mean_interval", "lo": 0.4, "hi": 0.6}, ["m"]),
    ({"rule": "mean_interval", "lo": 0.9, "hi": 1.1}, ["r"]),
    ({"rule": "range", "tol": 0.5}, ["m"]),
    ({"rule": "range", "tol": 1}, []),
    ({"rule": "nonzero_variance"}, ["m"]),
])
def test_other_rules_are_those_of_the_filter(service, engine, refill, kept):
    batch = post(service, engine, [task("m", "mixed"), task("r", "right"), task("w", "wrong")], [], refill)
    assert delivered(batch) == kept


@pytest.mark.parametrize("advantage", [{"scale": "batch"}, {"estimator": "reinforce_plus_plus_baseline"}, {"estimator": "gdpo"}])
def test_a_rule_over_the_whole_batch_is_over_the_delivered_groups(service, engine, advantage):
    verifiers = [{"name": "math"}, {"name": "format", "weight": 0.5, "options": {"template": "boxed_once"}}]
    groups = [task("a", "mixed"), task("b", "right"), task("c", "wrong")]
    reserve = [task("r1", "wrong"), task("r2", "mixed"), task("r3", "mixed")]
    batch = post(service, engine, groups, reserve, {}, objective={"advantage": advantage}, verifiers=verifiers)
    assert batch["state"] == "complete" and delivered(batch) == ["a", "r2", "r3"]
    alone = post(service, engine, [task("a", "mixed"), task("r2", "mixed"), task("r3", "mixed")], [], None, objective={"advantage": advantage}, verifiers=verifiers, run="alone")
    by_reward = lambda found: sorted((one["reward"], one["advantage"]) for one in rollouts(found))
    assert by_reward(batch) == by_reward(alone) and batch["totals"] == alone["totals"] and batch["loss"] == pytest.approx(alone["loss"])
    service.terminate()
    verify(service)


def test_all_may_be_dropped(service, engine):
    for advantage in ({}, {"scale": "batch"}):
        batch = post(service, engine, [task("a", "right")], [task("r1", "wrong")], {}, objective={"advantage": advantage})
        assert batch["state"] == "complete" and batch["groups"] == [] and batch["totals"] == {"tokens": 0, "sequences": 0, "groups": 0}


def test_lines_are_of_delivered_groups(service, engine):
    groups, reserve = [task("a", "right"), task("b", "mixed")], [task("r1", "mixed")]
    script(engine, *groups, *reserve)
    body = make_batch(*groups, reserve=reserve, refill={}, deadline="5m")
    headers = {"Accept": "application/x-ndjson", "Idempotency-Key": "lines"}
    for _ in range(2):  # live, and rebuilt from the record
        lines = [json.loads(line) for line in service.post("/v1/batches", body, headers).body.splitlines()]
        assert sorted(line["group"]["task"] for line in lines[:-1]) == ["b", "r1"]
        assert tasks_of(service, lines[-1]["batch"]["summary"]["refill"]["dropped"]) == ["a"]


def test_a_repeated_request_gets_the_same_batch(service, engine):
    groups, reserve = [task("a", "right"), task("b", "mixed")], [task("r1", "mixed")]
    first = post(service, engine, groups, reserve, {}, {"Idempotency-Key": "again"})
    again = service.post("/v1/batches", make_batch(*groups, reserve=reserve, refill={}, run="refill", deadline="5m"), {"Idempotency-Key": "again"}).json
    assert first == again and len(engine.samples_for("<r1>")) == 2


# --- ends and restarts --------------------------------------------------------------------------------------------

def on_record(service, batch, name, count=2):
    eventually(lambda: len(service.read("/v1/rollouts", batch=batch["id"], task=name)["items"]) == count, f"{name} to be on record")


def test_a_deadline_ends_what_was_drawn_too(start, engine):
    """It passes while the service is down."""
    service = start(engine)
    batch = post(service, engine, [task("a", "right"), task("b", "mixed")], [task("r1", "held"), task("r2", "mixed")], {}, {"Prefer": "respond-async"})
    eventually(lambda: engine.samples_for("<r1>"), "the reserve to be drawn")
    on_record(service, batch, "b")
    service.kill()
    with sqlite3.connect(service.database) as link:
        link.execute("UPDATE batches SET deadline_us = created_at_us + 1")
    again = start(engine, database=service.database)
    done = again.read(f"/v1/batches/{batch['id']}", wait="60s")
    assert done["state"] == "expired" and tasks_of(again, done["summary"]["refill"]["drawn"]) == ["r1"]
    assert delivered(done) == ["b"] and not engine.samples_for("<r2>")  # r1 has no scored member
    again.terminate()
    verify(again)


def test_a_cancellation_ends_what_was_drawn_too(service, engine):
    batch = post(service, engine, [task("a", "right"), task("b", "mixed")], [task("r1", "held"), task("r2", "mixed")], {}, {"Prefer": "respond-async"})
    eventually(lambda: engine.samples_for("<r1>"), "the reserve to be drawn")
    on_record(service, batch, "b")
    assert service.delete(f"/v1/batches/{batch['id']}").status in (200, 202)
    batch = service.read(f"/v1/batches/{batch['id']}", wait="60s")
    assert batch["state"] == "cancelled" and delivered(batch) == ["b"] and not engine.samples_for("<r2>")


@pytest.mark.parametrize("advantage, metric", [({}, "reward"), ({"scale": "batch"}, "math")])
def test_a_batch_goes_on_with_its_draws_after_a_kill(start, engine, advantage, metric):
    """Killed while what was drawn is held at the engine: the drop and the draw are on record, together."""
    service = start(engine)
    groups = [task("a", "right"), task("b", "mixed"), task("c", "held")]
    reserve = [task("r1", "held"), task("r2", "mixed"), task("r3", "mixed")]
    batch = post(service, engine, groups, reserve, {"metric": metric}, {"Prefer": "respond-async"}, objective={"advantage": advantage})
    eventually(lambda: len(engine.samples_for("<r1>")) == 2 and len(engine.samples_for("<c>")) == 2, "the first draw to be sampled")
    on_record(service, batch, "b")
    service.kill()
    script(engine, *groups[:2], task("c", "wrong"), task("r1", "right"), *reserve[1:])
    again = start(engine, database=service.database)
    done = again.read(f"/v1/batches/{batch['id']}", wait="60s")
    assert done["state"] == "complete" and delivered(done) == ["b", "r2", "r3"]
    assert tasks_of(again, done["summary"]["refill"]["dropped"]) == ["a", "c", "r1"]
    assert [again.read(f"/v1/groups/{identity}")["task"] for identity in done["summary"]["refill"]["drawn"]] == ["r1", "r2", "r3"]
    if not advantage:
        check_delivered(done)
    again.terminate()
    verify(again)


def test_a_batch_that_fails_for_want_of_a_reserve_does_so_after_a_kill(start, engine):
    service = start(engine)
    batch = post(service, engine, [task("a", "right"), task("b", "held")], [task("r1", "held")], {"exhausted": "fail"}, {"Prefer": "respond-async"})
    eventually(lambda: len(engine.samples_for("<r1>")) == 2, "the reserve to be drawn")
    service.kill()
    script(engine, task("r1", "right"), more=[{"in": "<b>", **RIGHT, "hold": True}])
    again = start(engine, database=service.database)
    done = again.read(f"/v1/batches/{batch['id']}", wait="60s")
    assert done["state"] == "cancelled" and set(tasks_of(again, done["summary"]["refill"]["dropped"])) >= {"a", "r1"}
    again.terminate()
    verify(again)


def test_verify_database_finds_a_drop_against_the_rule(service, engine):
    batch = post(service, engine, [task("a", "mixed"), task("b", "right")], [], {})
    ids = [group["id"] for group in service.read(f"/v1/batches/{batch['id']}/groups")["items"]]
    service.terminate()
    verify(service)
    for change, said in (("dropped = NULL WHERE group_index = 1", f"delivered against the rule of its refill: {ids[1]}"),
                         ("dropped = 1 WHERE group_index = 0", "a dropped group has an advantage"),
                         ("drawn = 1 WHERE group_index = 0", "more groups from its reserve than dropped ones, or they do not come last")):
        with sqlite3.connect(service.database) as link:
            link.execute(f"UPDATE groups SET {change}")
        done = subprocess.run([BINARY, "verify-database", service.database], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode != 0 and said in done.stdout + done.stderr, (change, done)


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="there is no jq or no curl")
def test_the_page_prints_what_it_says(service, engine):
    four = {"text": "\\boxed{4}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
    engine.rules({"in": "2+2=", **four}, *({"in": prompt, "choices": [four, WRONG]} for prompt in ("1+3=", "3+1=", "5-1=")))
    (line, shown), = blocks("refill")
    assert printed(service, line) == [json.loads(row) for row in shown.splitlines()]


def test_a_dropped_group_is_never_leased_and_a_drawn_one_is(service, engine):
    groups, reserve = [task("a", "right"), task("b", "mixed")], [task("r1", "mixed")]
    batch = post(service, engine, groups, reserve, {}, deliver="lease", run="leased")
    lease = service.post("/v1/runs/leased/leases", {"groups": 2, "wait": "5m", "exact": True})
    assert lease.status == 200 and sorted(group["task"] for group in lease.json["groups"]) == ["b", "r1"], lease
    done = service.read(f"/v1/batches/{batch['id']}", wait="60s")
    dropped, = done["summary"]["refill"]["dropped"]
    assert service.read(f"/v1/groups/{dropped}")["delivery"]["state"] == "dropped"
    service.terminate()
    verify(service)
