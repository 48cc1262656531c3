"""Replies are on record, and can be found again."""
import threading
import time

import pytest

from harness import eventually
from material import make_batch, make_group, rollouts, sampling

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
WRONG = {"text": "\\boxed{41}", "ids": [11, 13, 2], "lp": [-0.5, -1.5, -0.125]}


def pages(service, path="/v1/rollouts", **query):
    """All items of a listing, page by page."""
    found, cursor = [], None
    while True:
        page = service.read(path, **query, **({"cursor": cursor} if cursor else {}))
        assert len(page["items"]) <= query.get("limit", 1000)
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            return found


def ids(items):
    return [item["id"] for item in items]


@pytest.fixture
def filled(service, engine):
    """Two runs, two revisions, right, wrong and lost rollouts."""
    engine.rules({"in": "RIGHT", **RIGHT}, {"in": "WRONG", **WRONG}, {"in": "LOST", "lp": None})
    groups = [make_group("right", "RIGHT"), make_group("wrong", "WRONG"), make_group("lost", "LOST")]
    service.made = [service.batch(make_batch(*groups, run=run, policy_revision=revision))
                    for run, revision in (("a", 1), ("a", 2), ("b", 1))]
    return service


# -- filters -----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("query, wanted", [
    ({}, 18), ({"run": "a"}, 12), ({"run": "a", "revision": 2}, 6), ({"task": "right"}, 6), ({"state": "failed"}, 6), ({"state": "scored"}, 12),
    ({"failure": "invalid_reply"}, 6), ({"reward_min": 1}, 6), ({"reward_max": 0}, 6), ({"reward_min": 0.5, "reward_max": 0.9}, 0),
    ({"run": "b", "task": "lost", "state": "failed"}, 2), ({"run": "nobody"}, 0), ({"reward_min": 0}, 12)])
def test_filters(filled, query, wanted):
    found = pages(filled, **query)
    assert len(found) == wanted and len(set(ids(found))) == wanted


def test_the_rollouts_of_one_batch(filled):
    batch = filled.made[0]
    assert sorted(ids(pages(filled, batch=batch["id"]))) == sorted(ids(rollouts(batch)))


def test_a_listing_shows_failures_as_failures(filled):
    for item in pages(filled, state="failed"):
        assert item["reward"] is None and item["advantage"] is None and item["failure"]["code"] == "invalid_reply"


def test_the_id_is_always_among_the_columns(filled):
    for fields in ("reward", "text", "completion_ids,logprobs"):
        items = filled.read("/v1/rollouts", fields=fields, limit=3)["items"]
        assert items and all(set(item) == {"id", *fields.split(",")} for item in items), items


def test_fields_pick_columns(filled):
    items = filled.read("/v1/rollouts", fields="id,reward", limit=3)["items"]
    assert len(items) == 3 and all(set(item) == {"id", "reward"} for item in items)
    reply = filled.get("/v1/rollouts", fields="id,colour")
    assert reply.status == 400 and reply.error["path"] == "fields"


def test_rows_of_lists_are_small_unless_fields_names_more(filled):
    row = filled.read("/v1/rollouts", limit=1, state="scored")["items"][0]
    alone = filled.read(f"/v1/rollouts/{row['id']}")
    large = {"text", "text_replaced", "verdicts", "reverified", "steps", "completion_ids", "logprobs", "completion_mask", "surrogates", "contributions"}
    assert set(alone) - set(row) == large and all(alone[name] == value for name, value in row.items())
    named = filled.read("/v1/rollouts", limit=1, state="scored", fields=",".join(sorted(large)))["items"][0]
    assert named == {name: alone[name] for name in {"id", *large}}
    assert not large & set(filled.read("/v1/rollouts", limit=1, state="scored", arrays="base64")["items"][0])


def test_batches_are_listed_with_their_summaries(filled, engine):
    rows = {row["id"]: row["summary"] for row in filled.read("/v1/batches")["items"]}
    assert rows == {batch["id"]: batch["summary"] for batch in filled.made}
    engine.rules({"delay": 30})
    identity = filled.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    (row,) = filled.read("/v1/batches", state="running")["items"]
    assert (row["id"], row["summary"]) == (identity, None)
    filled.delete(f"/v1/batches/{identity}")


def test_arrays_come_only_on_request(filled):
    plain_item = filled.read("/v1/rollouts", limit=1, state="scored")["items"][0]
    assert not {"completion_ids", "logprobs", "contributions"} & set(plain_item)
    item = filled.read("/v1/rollouts", limit=1, state="scored", fields="id,completion_ids,logprobs")["items"][0]
    assert len(item["completion_ids"]) == len(item["logprobs"]) == 3


@pytest.mark.parametrize("query, path, code", [
    ({"colour": "red"}, "colour", "unknown_field"), ({"revision": "x"}, "revision", "invalid_field"), ({"reward_min": "nan"}, "reward_min", "invalid_field"),
    ({"reward_min": "1e999"}, "reward_min", "invalid_field"), ({"state": "maybe"}, "state", "invalid_field"), ({"order": "up"}, "order", "invalid_field"),
    ({"limit": "9999999999999999999999"}, "limit", "invalid_field"), ({"cursor": "garbage"}, "cursor", "invalid_field")])
def test_a_parameter_that_cannot_be_meant_is_refused(filled, query, path, code):
    """A typo in a filter must not answer with everything."""
    reply = filled.get("/v1/rollouts", **query)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, code, path)


# -- one thing -----------------------------------------------------------------------------------------------------------------

def test_a_rollout_and_a_group_read_alone_are_those_of_the_batch(filled):
    for group in filled.made[0]["groups"]:
        alone = filled.read(f"/v1/groups/{group['id']}")
        assert alone["id"] == group["id"] and alone["rollouts"] == group["rollouts"]
        for rollout in group["rollouts"]:
            single = filled.read(f"/v1/rollouts/{rollout['id']}")
            assert {name: single[name] for name in rollout} == rollout


@pytest.mark.parametrize("path", ["/v1/rollouts/r_nobody", "/v1/groups/g_nobody", "/v1/rollouts/x", "/v1/groups/%F0%9F%92%A5", "/v1/rollouts/r_1-99999999999999"])
def test_a_record_that_nobody_made_is_not_found(filled, path):
    assert filled.get(path).status == 404


def test_runs_are_listed(filled):
    runs = {row["run"]: row for row in filled.read("/v1/runs")["items"]}
    assert set(runs) == {"a", "b"} and runs["a"]["policy_revision"] == 2


def test_text_with_nul_is_whole_also_after_a_restart(service, engine):
    """R53"""
    text = "a\u0000b needle \\boxed{42}"
    engine.rules({"text": text, "ids": [9], "lp": [-0.5]})
    batch = service.batch(make_batch(sampling=sampling(1)))
    rollout = rollouts(batch)[0]
    assert rollout["text"] == text and rollout["reward"] == 1
    service.terminate()
    service.start()
    assert service.read(f"/v1/rollouts/{rollout['id']}")["text"] == text


def test_hostile_names_are_only_names(service):
    task = "'; DROP TABLE rollouts; -- \u0000 \U0001f4a5"
    service.batch(make_batch(make_group(task)))
    assert len(pages(service, task="'; DROP TABLE rollouts; --")) == 0
    assert {group["task"] for group in service.read(f"/v1/batches/{service.read('/v1/batches')['items'][0]['id']}")["groups"]} == {task}


# -- pages ---------------------------------------------------------------------------------------------------------------------

def test_every_row_once_in_both_directions_while_rows_are_added(service):
    """R54"""
    batch = service.batch(make_batch(*[make_group(f"k{index}") for index in range(40)], run="rep", sampling=sampling(8)))
    wanted, stop = set(ids(rollouts(batch))), threading.Event()

    def add():
        while not stop.is_set():
            service.batch(make_batch(run="rep"))
            time.sleep(0.02)
    adder = threading.Thread(target=add)
    adder.start()
    try:
        seen = {order: ids(pages(service, run="rep", limit=7, order=order)) for order in ("asc", "desc")}
    finally:
        stop.set()
        adder.join()
    for order, found in seen.items():
        assert len(found) == len(set(found)), order
        assert wanted <= set(found)
    old = {order: [identity for identity in found if identity in wanted] for order, found in seen.items()}
    assert old["desc"] == old["asc"][::-1]


def test_a_cursor_belongs_to_its_query(filled):
    """R54: never page 1 again."""
    cursor = filled.read("/v1/rollouts", run="a", limit=2, order="asc")["next"]
    for query in ({"run": "a", "order": "desc"}, {"run": "b", "order": "asc"}, {"order": "asc"}, {"run": "a", "order": "asc", "task": "right"}):
        reply = filled.get("/v1/rollouts", limit=2, cursor=cursor, **query)
        assert (reply.status, reply.error["path"]) == (400, "cursor"), query
    assert len(filled.read("/v1/rollouts", run="a", limit=2, order="asc", cursor=cursor)["items"]) == 2


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text + "A", lambda text: text[::-1], lambda text: "", lambda text: "A" * 5000])
def test_a_cursor_that_was_tampered_with_is_refused(filled, change):
    cursor = filled.read("/v1/rollouts", limit=2)["next"]
    reply = filled.get("/v1/rollouts", limit=2, cursor=change(cursor))
    assert (reply.status, reply.error["path"]) == (400, "cursor")


def test_batches_and_runs_page_too(filled):
    assert len(set(ids(pages(filled, "/v1/batches", limit=1)))) == 3
    assert len(pages(filled, "/v1/runs")) == 2


# -- what is pending -------------------------------------------------------------------------------------------------------------

def test_pending_shows_what_waits_and_for_what(service, engine):
    engine.rules({"delay": 30})
    identity = service.post("/v1/batches", make_batch(run="slow"), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "the engine to be asked")
    items = service.read("/v1/pending")["items"]
    assert [item["batch"] for item in items] == [identity] * len(items) and items and items[0]["run"] == "slow"
    service.delete(f"/v1/batches/{identity}")
    eventually(lambda: service.read("/v1/pending")["items"] == [], "nothing to be pending")


def test_a_rollout_that_has_no_row_yet_is_pending(service, engine):
    engine.rules({"delay": 30})
    identity = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    group = service.read(f"/v1/batches/{identity}/groups")["items"][0]
    assert [rollout["state"] for rollout in group["rollouts"]] == ["pending", "pending"]
    assert all(rollout["reward"] is None for rollout in group["rollouts"])
    service.delete(f"/v1/batches/{identity}")
