"""GET /v1/runs/{run}/changes: the changes within a run, each with its first batch."""
import json
import sqlite3

import pytest

from engines import ScriptedEngine
from harness import eventually
from material import make_batch, make_group, sampling
from test_manifest import RIGHT, frozen, score, tokens
from test_records import pages

GRPO = {"preset": "grpo"}


def changes(service, run, **query):
    return pages(service, f"/v1/runs/{run}/changes", **query)


def short(items):
    return [(item["batch"], item["key"], item["from"], item["to"]) for item in items]


def by_hand(service, *statements):
    """The record, changed while the service is down."""
    service.terminate()
    with sqlite3.connect(service.database) as file:
        for statement in statements:
            file.execute(*statement)
    service.start()


def test_a_run_with_constant_settings_has_no_change(plain):
    for _ in range(5):
        assert score(plain, "steady").status == 200
    assert changes(plain, "steady") == []


def test_each_key_that_changes_is_told_with_both_values_and_its_batch(plain):
    first = score(plain, "knobs", objective=GRPO, policy_revision=3).json
    second = score(plain, "knobs", objective={"preset": "grpo", "loss": {"eps_high": 0.28}}, verifiers=[{"name": "math", "weight": 0.5}], policy_revision=4).json
    third = score(plain, "knobs", objective=GRPO, verifiers=[{"name": "math"}, {"name": "exact", "heldout": True}], policy_revision=4).json
    found = changes(plain, "knobs")
    added = found[-1]
    assert short(found[:-1]) == [(second["id"], "objective.loss.eps_high", 0.2, 0.28), (second["id"], "verifiers.math.weight", 1, 0.5),
                                 (third["id"], "objective.loss.eps_high", 0.28, 0.2), (third["id"], "verifiers.math.weight", 0.5, 1)]
    assert (added["batch"], added["key"], added["from"], added["to"]["heldout"]) == (third["id"], "verifiers.exact", None, True)
    assert first["id"] not in {item["batch"] for item in found}
    assert [item["revision"] for item in found] == [4] * 5 and found[0]["at"] == plain.read(f"/v1/batches/{second['id']}")["created_at"]


def test_sampling_and_options_change_and_a_manifest_makes_no_difference(service, engine):
    engine.rules(RIGHT)
    frozen(service, "test", verifiers=[{"name": "math", "weight": 1}])
    service.batch(make_batch())
    second = service.batch(make_batch(sampling=sampling(2, temperature=0.5, stop=["x"])))
    assert short(changes(service, "test")) == [(second["id"], "sampling.temperature", 1, 0.5), (second["id"], "sampling.stop", [], ["x"])]
    own = service.batch(make_batch(make_group("a", sampling={"temperature": 0.1}), sampling=sampling(2, temperature=0.5, stop=["x"])))
    assert own["id"] not in {item["batch"] for item in changes(service, "test")}


def test_a_score_between_sampled_batches_changes_no_sampling(service, engine):
    engine.rules(RIGHT)
    service.batch(make_batch())
    assert score(service, "test").status == 200
    service.batch(make_batch())
    assert [item["key"] for item in changes(service, "test") if item["key"].startswith("sampling")] == []


def test_evaluations_are_compared_with_evaluations(plain):
    score(plain, "both")
    score(plain, "both", purpose="eval", verifiers=[{"name": "exact"}])
    score(plain, "both")
    odd = score(plain, "both", purpose="eval", verifiers=[{"name": "exact", "weight": 2}]).json
    assert changes(plain, "both") == []
    assert short(changes(plain, "both", purpose="eval")) == [(odd["id"], "verifiers.exact.weight", 1, 2)]


def test_another_model_and_version_of_the_engine_are_told_also_after_a_batch_without_samples(start):
    engine = ScriptedEngine()
    engine.rules(RIGHT)
    service = start(engine, settings={"engine.backoff_min": "10ms", "engine.backoff_max": "50ms", "engine.check_interval": "100ms"})
    try:
        service.batch(make_batch())
        assert score(service, "test").status == 200
        engine.serve("demo-2b", "0.31.0")
        eventually(lambda: any(item["model"] == "demo-2b" and item["state"] == "up" for item in service.read("/v1/engines")["items"]), "the other model")
        third = service.batch(make_batch())
        found = [item for item in short(changes(service, "test")) if item[1].startswith("engine_")]
        assert found == [(third["id"], "engine_model", "demo-1b", "demo-2b"), (third["id"], "engine_version", "0.30.1", "0.31.0")]
        paged = changes(service, "test", limit=1)
        assert paged == changes(service, "test")
    finally:
        engine.close()


def test_versions_are_those_of_the_verdicts_and_of_the_programs_that_judged(start):
    service = start()
    made = [score(service, "upgraded").json["id"] for _ in range(3)]
    version = service.read("/v1/rollouts", run="upgraded", fields="rolloutd_version")["items"][0]["rolloutd_version"]
    now = service.read("/v1/rollouts", run="upgraded", fields="verdicts")["items"][0]["verdicts"][0]["version"]
    old = ("UPDATE rollout_verdicts SET verdicts = replace(verdicts, ?, '\"version\":\"0.old\"') WHERE rollout_seq IN (SELECT r.seq FROM rollouts r JOIN batches b ON b.seq = r.batch_seq WHERE b.id = ?)",
           (f'"version":{json.dumps(now)}', made[0]))
    by_hand(service, old, ("INSERT INTO provenances (rolloutd_version) VALUES ('0.old')",),
            ("UPDATE batch_provenances SET provenance_seq = (SELECT max(seq) FROM provenances) WHERE batch_seq = (SELECT seq FROM batches WHERE id = ?)", (made[0],)))
    assert short(changes(service, "upgraded")) == [(made[1], "verifiers.math.version", "0.old", now), (made[1], "rolloutd_version", "0.old", version)]


def test_batches_that_know_no_provenance_have_no_change_of_it(start):
    service = start()
    for _ in range(3):
        score(service, "before")
    by_hand(service, ("DELETE FROM batch_provenances WHERE batch_seq < (SELECT max(seq) FROM batches)",))
    found = changes(service, "before")
    assert [(item["key"], item["from"]) for item in found] == [("rolloutd_version", None)]


def test_pages_of_any_size_show_the_same_changes_also_within_a_batch(plain):
    presets = ["grpo", "dapo", "dr_grpo", "grpo", "rloo", "rloo", "grpo"]
    for preset in presets:
        assert score(plain, "pages", objective={"preset": preset}).status == 200
    whole = changes(plain, "pages", limit=1000)
    assert len(whole) > 12 and len({item["batch"] for item in whole}) == 5
    for limit in (1, 2, 3, 7):
        assert changes(plain, "pages", limit=limit) == whole


def test_pages_are_stable_while_batches_are_made(plain):
    for preset in ("grpo", "dapo", "grpo"):
        score(plain, "growing", objective={"preset": preset})
    page = plain.read("/v1/runs/growing/changes", limit=2)
    before = changes(plain, "growing")
    score(plain, "growing", objective={"preset": "dr_grpo"})
    rest, cursor = [], page["next"]
    while cursor:
        more = plain.read("/v1/runs/growing/changes", limit=2, cursor=cursor)
        rest, cursor = rest + more["items"], more["next"]
    whole = changes(plain, "growing")
    assert page["items"] + rest == whole and whole[:len(before)] == before and len(whole) > len(before)


def test_a_long_run_is_looked_at_in_short_pages(start):
    """5,000 batches by hand: the page ends early, and the next pages reach the change at the end."""
    service = start()
    score(service, "long")
    odd = score(service, "long", objective={"preset": "grpo", "loss": {"eps_high": 0.28}}).json["id"]
    service.terminate()
    with sqlite3.connect(service.database) as file:
        for table, own in (("batches", {"seq": "-n", "id": "'b_made' || n"}), ("batch_contents", {"batch_seq": "-n"})):
            columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            values = {name: own.get(name, name) for name in columns}
            key = "seq" if table == "batches" else "batch_seq"
            file.execute(f"INSERT INTO {table} ({', '.join(columns)}) WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 5000)"
                         f" SELECT {', '.join(values.values())} FROM many, (SELECT * FROM {table} ORDER BY {key} LIMIT 1)")
        file.execute("PRAGMA foreign_keys = OFF")
        file.execute("UPDATE batches SET seq = seq + 100000")
        for table, column in (("batch_contents", "batch_seq"), ("groups", "batch_seq"), ("rollouts", "batch_seq"), ("requests", "batch_seq"), ("batch_provenances", "batch_seq")):
            file.execute(f"UPDATE {table} SET {column} = {column} + 100000")
        file.execute("UPDATE runs SET batches = 5002")
    service.start()
    count, found, cursor = 0, [], None
    while True:
        page = service.read("/v1/runs/long/changes", **({"cursor": cursor} if cursor else {}))
        count, found, cursor = count + 1, found + page["items"], page["next"]
        if not cursor:
            break
    assert count > 2
    assert [(item["batch"], item["key"]) for item in found if not item["key"].endswith("_version")] == [(odd, "objective.loss.eps_high")]


@pytest.mark.parametrize("query", [{"cursor": "x"}, {"cursor": "0.0"}, {"cursor": "1"}, {"cursor": "1.2.3"}, {"cursor": "-1.0"}, {"cursor": "999999999.0"}, {"cursor": "1" * 60},
                                   {"cursor": ""}, {"limit": 0}, {"purpose": "test"}, {"run": "x"}])
def test_unknown_parameters_and_values_are_refused(plain, query):
    score(plain, "asked")
    reply = plain.get("/v1/runs/asked/changes", **query)
    assert reply.status == 400 and reply.error["path"] in query


def test_a_cursor_of_another_run_is_none(plain):
    for run in ("one", "two"):
        for preset in ("grpo", "dapo"):
            score(plain, run, objective={"preset": preset})
    cursor = plain.read("/v1/runs/one/changes", limit=1)["next"]
    reply = plain.get("/v1/runs/two/changes", cursor=cursor)
    assert (reply.status, reply.error["path"]) == (400, "cursor")


def test_an_unknown_run_is_not_found_and_one_without_batches_is_empty(plain):
    assert plain.get("/v1/runs/nobody/changes").status == 404
    frozen(plain, "empty")
    assert plain.read("/v1/runs/empty/changes") == {"items": [], "next": None}


def test_tokens_do_not_matter(plain):
    score(plain, "same", tokens(2))
    score(plain, "same", tokens(7))
    assert changes(plain, "same") == []
