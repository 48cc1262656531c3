"""The record of objective calls: every sum is recomputed here from the arrays, in plain Python."""
import math
import os
import random
import sqlite3

import pytest

from material import f32

MIGRATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema", "migrations")
MEANS = ("kl", "kl_policy", "kl_engine", "entropy", "logprob_gap")
GRPO = {"preset": "grpo", "beta": 0.1, "loss": {"eps_low": 0.1, "eps_high": 0.15}}


def numbers(source, n):
    return [f32(-2 * source.random() - 0.2) for _ in range(n)]


def score(service, run, revision, engines, seed, lengths=(3, 5)):
    """One group of each engine. The rollouts, each with what came in: engine, revision, lb, mask."""
    source = random.Random(seed)
    groups = []
    for engine in engines:
        completions = []
        for n in lengths:
            mask = [1] + [int(source.random() < 0.7) for _ in range(n - 1)]
            completions.append({"text": "a" if len(completions) % 2 else "b", "completion_ids": list(range(n)), "logprobs": numbers(source, n),
                                "completion_mask": mask, **({"engine": engine} if engine else {})})
        groups.append({"task": f"t-{engine}", "reference": "a", "completions": completions})
    reply = service.post("/v1/score", {"run": run, "policy_revision": revision, "verifiers": [{"name": "exact"}], "objective": GRPO, "groups": groups})
    assert reply.status == 200, reply
    made = []
    for group, asked in zip(reply.json["groups"], groups):
        for rollout, completion in zip(group["rollouts"], asked["completions"]):
            made.append({"rollout": rollout["id"], "revision": revision, "engine": completion.get("engine"), "lb": completion["logprobs"],
                         "mask": completion["completion_mask"]})
    return made


def train(source, made, old=True, ref=True):
    """The arrays of a trainer for these rollouts."""
    for one in made:
        one.update(lp=numbers(source, len(one["lb"])), lo=numbers(source, len(one["lb"])) if old else None,
                   lr=numbers(source, len(one["lb"])) if ref else None)
    return made


def call(service, made, objective=None, **more):
    rows = [{"rollout": one["rollout"], "logprobs": one["lp"], **({"old_logprobs": one["lo"]} if one["lo"] else {}),
             **({"ref_logprobs": one["lr"]} if one["lr"] else {})} for one in made]
    reply = service.post("/v1/objective", {"objective": objective or GRPO, "sequences": rows, **more})
    assert reply.status == 200, reply
    return reply.json


def listed(service, run, query=""):
    reply = service.get(f"/v1/runs/{run}/objective{query}")
    assert reply.status == 200, reply
    return reply.json["items"]


def k3(x):
    return math.expm1(x) - x


def expected(made, reply, low=0.1, high=0.15):
    """The items of one part, by (revision, engine)."""
    rows = {row["rollout"]: row for row in reply["sequences"]}
    items = {}
    for one in made:
        item = items.setdefault((one["revision"], one["engine"]), {"sequences": 0, "trainable_tokens": 0, "clip_low": 0, "clip_high": 0, "loss": 0,
                                                                   "sums": {name: [] for name in MEANS}})
        row = rows[one["rollout"]]
        item["sequences"] += 1
        item["loss"] += row["loss"]
        for t, live in enumerate(one["mask"]):
            if not live:
                continue
            item["trainable_tokens"] += 1
            lp, lb = one["lp"][t], one["lb"][t]
            lo = one["lo"][t] if one["lo"] else lb
            policy = one["lo"][t] if one["lo"] else lp
            ratio = math.exp(lp - lo)
            item["clip_high"] += row["advantage"] > 0 and ratio > 1 + high
            item["clip_low"] += row["advantage"] < 0 and ratio < 1 - low
            if one["lr"]:
                item["sums"]["kl"].append(k3(one["lr"][t] - lp))
            item["sums"]["kl_policy"].append(k3(lp - lo))
            item["sums"]["kl_engine"].append(k3(policy - lb))
            item["sums"]["entropy"].append(-lb)
            item["sums"]["logprob_gap"].append(abs(policy - lb))
    return items


def assert_items(items, wanted):
    assert {(item["revision"], item["engine"]) for item in items} == set(wanted) and len(items) == len(wanted)
    for item in items:
        want = wanted[item["revision"], item["engine"]]
        assert {name: item[name] for name in ("sequences", "trainable_tokens", "clip_low", "clip_high")} == \
            {name: want[name] for name in ("sequences", "trainable_tokens", "clip_low", "clip_high")}
        assert math.isclose(item["loss"], want["loss"], rel_tol=1e-12, abs_tol=1e-15)
        assert set(item["sums"]) == set(MEANS)
        for name, values in want["sums"].items():
            found = item["sums"][name]
            assert found["tokens"] == len(values), (name, found)
            if values:
                assert math.isclose(found["sum"], math.fsum(values), rel_tol=1e-11), (name, found)
            else:
                assert found["sum"] is None


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("ref", [True, False])
def test_every_sum_is_that_of_the_arrays_by_revision_and_engine(plain, old, ref):
    run = f"sums-{old}-{ref}"
    made = score(plain, run, 3, ["e1", "e2", None], 1) + score(plain, run, 4, ["e1"], 2, (300, 2))
    random.Random(3).shuffle(made)
    train(random.Random(4), made, old, ref)
    objective = GRPO if ref else {**GRPO, "beta": 0}
    reply = call(plain, made, objective, optimizer_step=7, ppo_epoch=1, part=2)
    items = listed(plain, run)
    assert_items(items, expected(made, reply))
    for item in items:
        assert (item["incarnation"], item["optimizer_step"], item["ppo_epoch"], item["part"], item["sample_incarnation"]) == (0, 7, 1, 2, 0)
        assert item["kl_estimator"] == "k3" and item["recorded_at"].endswith("Z")
    assert math.isclose(math.fsum(item["loss"] for item in items), reply["loss"], rel_tol=1e-12, abs_tol=1e-15)
    assert sum(item["trainable_tokens"] for item in items) == reply["metrics"]["trainable_tokens"]
    clipped = sum(item["clip_low"] + item["clip_high"] for item in items)
    assert math.isclose(clipped / reply["metrics"]["trainable_tokens"], reply["metrics"]["clip_fraction"], rel_tol=1e-12)


@pytest.mark.parametrize("objective", [
    {**GRPO, "beta": 0}, {**GRPO, "kl": {"in": "reward"}, "beta": 0}, {**GRPO, "loss": {"log_clamp": 0.01, "eps_low": 0.1, "eps_high": 0.15}},
    {**GRPO, "loss": {"anchor": "rollout", "eps_low": 0.1, "eps_high": 0.15}}])
def test_the_sums_are_the_arrays_whatever_the_loss_does_with_them(plain, objective):
    """No KL in the loss, clamped logarithms, a ratio against the engine: the measures stay what they are called."""
    run = f"loss-{objective['beta']}-{objective.get('kl')}-{objective['loss']}".translate(str.maketrans("", "", "{}':, "))
    made = train(random.Random(4), score(plain, run, 3, ["e1", "e2"], 1))
    reply = call(plain, made, objective, optimizer_step=1)
    wanted = expected(made, reply)
    items = listed(plain, run)
    for item in items:  # which side a bound acts on is the loss's, so it is taken from the reply
        wanted[item["revision"], item["engine"]].update(clip_low=item["clip_low"], clip_high=item["clip_high"])
    assert_items(items, wanted)


def test_the_same_part_again_replaces_and_other_parts_add(plain):
    made = train(random.Random(5), score(plain, "parts", 1, ["e1"], 1) + score(plain, "parts", 1, ["e2"], 2))
    call(plain, made, optimizer_step=1, part=0)
    assert len(listed(plain, "parts")) == 2
    first = call(plain, made[:2], optimizer_step=1, part=0)
    assert_items(listed(plain, "parts"), expected(made[:2], first))
    second = call(plain, made[2:], optimizer_step=1, part=1)
    items = listed(plain, "parts", "?optimizer_step=1&ppo_epoch=0")
    assert [item["part"] for item in items] == [0, 1]
    assert_items(items[1:], expected(made[2:], second))
    again = listed(plain, "parts")
    call(plain, made[2:], optimizer_step=1, part=1)
    assert [{**item, "recorded_at": None} for item in listed(plain, "parts")] == [{**item, "recorded_at": None} for item in again]


def test_a_call_that_is_not_to_be_kept_is_not_kept(plain):
    made = train(random.Random(5), score(plain, "unkept", 1, ["e1"], 1))
    call(plain, made, optimizer_step=1, store=False)
    call(plain, made)
    rows = [{"rollout": one["rollout"], "logprobs": one["lp"], "ref_logprobs": one["lr"]} for one in made]
    assert plain.post("/v1/objective?explain=0,0", {"sequences": rows, "optimizer_step": 1}).status == 200
    assert plain.post("/v1/objective", {"sequences": [{**row, "logprobs": [0.5] * len(row["logprobs"])} for row in rows], "optimizer_step": 1}).status == 400
    assert listed(plain, "unkept") == []


def test_the_list_is_paged_and_filtered(plain):
    made = train(random.Random(5), score(plain, "pages", 1, ["e1", "e2"], 1))
    for step in range(3):
        for epoch in range(2):
            call(plain, made, optimizer_step=step, ppo_epoch=epoch)
    every = listed(plain, "pages", "?limit=1000")
    assert len(every) == 12
    for query, wanted in (("optimizer_step=1", [item for item in every if item["optimizer_step"] == 1]), ("", every),
                          ("ppo_epoch=1", [item for item in every if item["ppo_epoch"] == 1]),
                          ("optimizer_step=2&ppo_epoch=0", [item for item in every if (item["optimizer_step"], item["ppo_epoch"]) == (2, 0)]),
                          ("optimizer_step=9", [])):
        found, cursor = [], ""
        while cursor is not None:
            page = plain.get(f"/v1/runs/pages/objective?{query}&limit=1{cursor}").json
            found += page["items"]
            cursor = page["next"] and f"&cursor={page['next']}"
        assert found == wanted, query


@pytest.mark.parametrize("query, status, path", [("?optimizer_step=x", 400, "optimizer_step"), ("?optimizer_step=-1", 400, "optimizer_step"),
                                                 ("?ppo_epoch=1.5", 400, "ppo_epoch"), ("?step=1", 400, "step"), ("?limit=0", 400, "limit"),
                                                 ("?cursor=abc", 400, "cursor")])
def test_a_query_that_cannot_be_meant_is_refused(plain, query, status, path):
    score(plain, "queries", 1, ["e1"], 1)
    reply = plain.get(f"/v1/runs/queries/objective{query}")
    assert (reply.status, reply.error["path"]) == (status, path)


def test_a_run_nobody_knows_is_not_found(plain):
    reply = plain.get("/v1/runs/nobody/objective")
    assert (reply.status, reply.error["code"], reply.error["path"]) == (404, "not_found", "run")


def test_a_part_that_trains_nothing_is_kept_as_nothing(plain):
    reply = plain.post("/v1/score", {"run": "nothing", "groups": [{"task": "t", "completions": [
        {"text": "a", "completion_ids": [1, 2], "logprobs": [-1, -2], "engine": "e1"}]}]})
    rollout = reply.json["groups"][0]["rollouts"][0]["id"]
    assert plain.post("/v1/objective", {"objective": GRPO, "sequences": [{"rollout": rollout, "logprobs": [-1, -2]}], "optimizer_step": 1}).status == 200
    item, = listed(plain, "nothing")
    assert (item["sequences"], item["trainable_tokens"], item["loss"]) == (0, 0, None)
    assert item["sums"] == {name: {"sum": None, "tokens": 0} for name in MEANS}


def test_a_sum_beyond_double_is_null_and_over_no_tokens(plain):
    reply = plain.post("/v1/score", {"run": "beyond", "verifiers": [{"name": "exact"}], "objective": {"preset": "grpo"}, "groups": [
        {"task": "t", "reference": "a", "completions": [{"text": text, "completion_ids": [1], "logprobs": [-1], "engine": "e1"} for text in "ab"]}]})
    right = reply.json["groups"][0]["rollouts"][0]["id"]
    reply = plain.post("/v1/objective", {"sequences": [{"rollout": right, "logprobs": [-1], "old_logprobs": [-801]}], "optimizer_step": 1})
    assert reply.status == 200, reply
    item, = listed(plain, "beyond")
    assert item["sums"]["kl_policy"] == {"sum": None, "tokens": 0}
    assert item["sums"]["logprob_gap"] == {"sum": 800.0, "tokens": 1} and item["trainable_tokens"] == 1


def test_answered_calls_are_on_disk_and_another_incarnation_is_apart(start):
    service = start()
    made = train(random.Random(5), score(service, "kill", 1, ["e1"], 1))
    call(service, made, optimizer_step=5)
    before = listed(service, "kill")
    service.kill()
    service.start()
    assert listed(service, "kill") == before
    assert service.put("/v1/runs/kill/policy", {"revision": 0, "rewind_to_step": 2}).status == 200
    call(service, made, optimizer_step=5)
    items = listed(service, "kill", "?optimizer_step=5")
    assert items[0] == before[0] and [(item["incarnation"], item["sample_incarnation"]) for item in items] == [(0, 0), (1, 0)]


def as_it_was(service, path):
    """A database of version 5 with the runs and the kept calls of this one."""
    with sqlite3.connect(path) as database:
        for migration in sorted(os.listdir(MIGRATIONS))[:5]:
            with open(os.path.join(MIGRATIONS, migration), encoding="utf-8") as file:
                database.executescript(file.read())
        database.execute("ATTACH ? AS made", (service.database,))
        for table in ("runs", "run_incarnations", "objective_calls"):
            columns = ", ".join(row[1] for row in database.execute(f"PRAGMA main.table_info({table})"))
            database.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM made.{table}")
        database.commit()
        database.execute("DETACH made")
        database.executescript("PRAGMA application_id = 0x524F4C44; PRAGMA user_version = 5")
    database.close()
    return path


def test_parts_on_record_from_before_are_listed_without_revision_and_engine(start, tmp_path):
    service = start()
    made = train(random.Random(5), score(service, "before", 1, ["e1", "e2"], 1))
    kept = call(service, made, optimizer_step=5, part=3)
    clamped = {**GRPO, "loss": {"log_clamp": 1}}
    call(service, made, clamped, optimizer_step=6)
    wanted = expected(made, kept)
    old = start(database=as_it_was(service, tmp_path / "old.db"))
    item, later = listed(old, "before")
    assert (item["revision"], item["engine"], item["sample_incarnation"]) == (None, None, None)
    assert (item["optimizer_step"], item["part"], item["kl_estimator"], item["loss"]) == (5, 3, "k3", kept["loss"])
    for name in ("sequences", "trainable_tokens", "clip_low", "clip_high"):
        assert item[name] == sum(one[name] for one in wanted.values())
    for name in ("kl", "kl_policy"):
        values = [value for one in wanted.values() for value in one["sums"][name]]
        assert item["sums"][name]["tokens"] == len(values) and math.isclose(item["sums"][name]["sum"], math.fsum(values), rel_tol=1e-11)
    for name in ("kl_engine", "entropy", "logprob_gap"):
        assert item["sums"][name] == {"sum": None, "tokens": 0}
    assert later["sums"]["kl_policy"] == {"sum": None, "tokens": 0}  # of clamped logarithms
