"""Roll-ups: their numbers equal those of the rollouts, across cancellations, kills, aborts and rewinds."""
import os
import random
import shutil
import sqlite3
import subprocess

from harness import BINARY, eventually
from material import make_batch, make_group, sampling
from test_stats import check, post_scores, random_run, rewind, rows_of, survivors

BY = (("revision",), ("task",), ("purpose", "revision"), ("incarnation", "revision", "task"), ("incarnation",), ())


def verify(service):
    return subprocess.run([BINARY, "verify-database", service.database], capture_output=True, text=True, timeout=120, check=False)


def check_all(service, run):
    both = rows_of(service, run=run)
    for by in BY:
        rows = both if "purpose" in by else [row for row in both if row["purpose"] == "train"]
        check(service, rows if "incarnation" in by else survivors(rows), by, run=run)


def count(service, table):
    database = sqlite3.connect(service.database)
    try:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    finally:
        database.close()


def test_numbers_and_the_record_agree_after_cancels_kills_and_rewinds(start, engine):
    """Samples are held back, batches cancelled, the service killed, the run rewound: in between, every cell is counted again from the rows."""
    service, source = start(engine), random.Random(4)
    engine.rules({"in": "HELD", "hold": True}, {"in": "BAD", "text": "", "ids": [], "lp": [], "finish": "length"}, {"in": "CUT", "text": "\\boxed{4}", "finish": "length"}, {"text": "\\boxed{42}"})
    assert service.put("/v1/runs/rough/policy", {"revision": 0}).status == 200
    for round_number in range(4):
        made = []
        for _ in range(3):
            groups = [make_group(f"t{task}", source.choice(("HELD", "BAD", "CUT", "fine", "fine"))) for task in source.sample(range(4), 3)]
            body = make_batch(*groups, run="rough", policy_revision=None, sampling=sampling(2), purpose=source.choice(("train", "train", "eval")))
            reply = service.post("/v1/batches", body, {"Prefer": "respond-async"})
            assert reply.status == 202, reply
            made.append(reply.json["id"])
        post_scores(service, source, "rough", None, [0, 1])
        eventually(lambda: len(rows_of(service, run="rough")) >= 8 * (round_number + 1), "scores are on record")
        assert service.delete(f"/v1/batches/{made[0]}").status in (200, 202)
        if round_number == 1:
            service.kill()
            service.start()
        engine.release()
        for identity in made:
            service.settled(identity)
        check_all(service, "rough")
        if round_number == 2:
            rewind(service, "rough", 1, 1)
        else:
            revision = service.read("/v1/runs/rough")["policy_revision"] + 1
            assert service.put("/v1/runs/rough/policy", {"revision": revision}).status == 200
    check_all(service, "rough")
    assert count(service, "rollups") > 4
    done = verify(service)
    assert done.returncode == 0, done


def test_a_group_of_two_revisions_counts_once_where_they_are_one_cell(service, engine):
    """Mode abort: a sample in flight continues at the new revision, beside a sibling of the old one."""
    engine.rules({"times": 1, "text": "\\boxed{42}"}, {"times": 1, "hold": True}, {"text": "\\boxed{41}"})
    assert service.put("/v1/runs/split/policy", {"revision": 1}).status == 200
    body = make_batch(make_group("one"), run="split", policy_revision=1, sampling=sampling(2))
    made = service.post("/v1/batches", body, {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: len(rows_of(service, run="split")) == 1, "one member is on record")
    assert service.post("/v1/runs/split/policy/begin", {"revision": 2, "mode": "abort"}).status == 200
    assert service.post("/v1/runs/split/policy/commit", {}).status == 200
    engine.release()
    service.settled(made)
    assert {row["policy_revision"] for row in rows_of(service, run="split")} == {1, 2}
    check_all(service, "split")
    assert count(service, "rollup_groups") == 2
    assert verify(service).returncode == 0


def test_verify_database_finds_a_roll_up_that_is_wrong(start):
    service = start()
    random_run(service, random.Random(6), "checked", 2)
    assert service.terminate() == 0 and verify(service).returncode == 0
    for change in ("UPDATE rollups SET scored = scored + 1", "UPDATE rollups SET reward_sum = reward_sum + 1 WHERE judged > 0", "DELETE FROM rollups WHERE policy_revision = 1",
                   "UPDATE rollups SET group_count = 0", "UPDATE rollups SET solved = solved + 1", "UPDATE rollups SET staleness = staleness + 1",
                   "UPDATE rollup_scores SET scored = scored + 1", "UPDATE rollup_scores SET score_sum = score_sum + 1 WHERE scored > 0", "UPDATE rollup_counts SET n = n + 1",
                   "INSERT INTO rollup_groups SELECT run_seq, (SELECT min(seq) FROM groups), incarnation, policy_revision FROM rollups LIMIT 1"):
        copy = f"{service.database}.changed"
        shutil.copy(service.database, copy)
        database = sqlite3.connect(copy)
        database.execute(change)
        database.commit()
        database.close()
        done = subprocess.run([BINARY, "verify-database", copy], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode != 0 and "checked" in done.stdout + done.stderr, (change, done)
        os.unlink(copy)


def test_a_run_from_before_there_were_roll_ups_is_scanned(start):
    """As a migration leaves it: batches up to the start are in none, later ones of the same run are."""
    service, source = start(), random.Random(7)
    random_run(service, source, "old", 2)
    random_run(service, source, "other", 2)
    assert service.terminate() == 0
    database = sqlite3.connect(service.database)
    for table in ("rollups", "rollup_groups", "rollup_scores", "rollup_counts"):
        database.execute(f"DELETE FROM {table}")
    database.execute("UPDATE rollup_start SET last_batch = (SELECT max(seq) FROM batches)")
    database.commit()
    database.close()
    service.start()
    post_scores(service, source, "old", 2, [0, 1])
    random_run(service, source, "new", 2)
    for run in ("old", "other", "new"):
        check_all(service, run)
    assert verify(service).returncode == 0


def test_a_staleness_beyond_int64_is_stored_as_the_largest_int64(start, engine):
    """The weights change while a group is sampled, and revisions are nanoseconds from then on."""
    engine.rules({"text": "\\boxed{42}", "hold": True})
    service = start(engine)
    made = service.post("/v1/batches", make_batch(make_group("t"), run="far", policy_revision=0, sampling=sampling(3)), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 3, "the samples to be asked for")
    assert service.put("/v1/runs/far/policy", {"revision": 4 * 10**18}).status == 200
    engine.release()
    service.settled(made)
    assert service.terminate() == 0
    database = sqlite3.connect(service.database)
    try:
        assert database.execute("SELECT n, ended, staleness FROM rollups").fetchall() == [(3, 3, 2**63 - 1)]
    finally:
        database.close()
    done = verify(service)
    assert done.returncode == 0, done


def test_each_member_may_name_another_engine_by_any_text(start):
    service = start()
    names = [f"e{index % 90}" for index in range(120)] + ["", "with a \u0000 and more", "with a \u0000 and less", "with a \u0000 and less"]
    completions = [{"text": "\\boxed{42}", "engine": name} for name in names]
    for _ in range(2):
        reply = service.post("/v1/score", {"run": "named", "verifiers": [{"name": "math"}], "groups": [{"task": "t", "reference": "42", "completions": completions}]})
        assert reply.status == 200, reply
    assert service.terminate() == 0
    database = sqlite3.connect(service.database)
    try:
        kept = dict(database.execute("SELECT name, n FROM rollup_counts WHERE kind = 'engine'"))
    finally:
        database.close()
    assert kept == {name: 2 * names.count(name) for name in names}
    done = verify(service)
    assert done.returncode == 0, done
