"""kill -9 at any moment: what was acknowledged is there once, what was missing is sampled again with the same seeds."""
import json
import os
import random
import sqlite3
import subprocess
import time

import pytest

from harness import eventually
from material import assert_sums_up, make_batch, make_group, rollouts, sampling, seed_of

TASKS, MEMBERS = 12, 4
MOMENTS = int(os.environ.get("ROLLOUTD_KILL_MOMENTS", "10"))


def toy_batch():
    """Replies come between 0.04 and 0.37 s."""
    groups = [make_group(f"{a}+{b}", f"<<delay={0.04 + 0.12 * a + 0.03 * b:.2f}>> {a}+{b}=", str(a + b)) for a in range(3) for b in range(4)]
    return make_batch(*groups, verifiers=[{"name": "exact", "options": {"strip": True}}], sampling=sampling(MEMBERS), deadline="2m")


def samples_of(batch):
    """The members that must not depend on the number of deaths of the service."""
    return {(group["task"], rollout["sample_index"]): (rollout["seed"], rollout["completion_ids"], rollout["logprobs"], rollout["text"], rollout["reward"],
                                                       rollout["advantage"]) for group in batch["groups"] for rollout in group["rollouts"]}


def finished(service, identity):
    """Rollouts that a client has seen in a terminal state: acknowledged."""
    try:
        groups = service.read(f"/v1/batches/{identity}/groups", limit=1000)["items"]
    except (OSError, AssertionError):
        return {}
    return {rollout["id"]: rollout for group in groups for rollout in group["rollouts"] if rollout["state"] != "pending"}


def check_database(path, acknowledged):
    """By plain SQLite, as an operator would, without the service."""
    shell = subprocess.run(["sqlite3", path, "PRAGMA integrity_check; PRAGMA foreign_key_check;"], capture_output=True, text=True, check=True)
    assert shell.stdout == "ok\n", shell.stdout
    database = sqlite3.connect(path)
    try:
        one = lambda query: database.execute(query).fetchone()[0]
        rows = dict(database.execute("SELECT id, reward FROM readable_rollouts"))
        assert one("SELECT count(*) FROM rollouts") == len(rows) == one("SELECT count(*) FROM (SELECT DISTINCT group_seq, sample_index FROM rollouts)")
        assert one("SELECT count(*) FROM rollouts WHERE failure_code IS NOT NULL AND reward IS NOT NULL") == 0
        assert one("SELECT count(*) FROM rollouts WHERE advantage IS NOT NULL AND reward IS NULL") == 0
    finally:
        database.close()
    for identity, rollout in acknowledged.items():
        assert rows[identity] == rollout["reward"], f"{identity} was told and is not on record"
    return len(rows)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The same batch on a service that nobody kills."""
    from engines import ToyEngine
    from harness import Rolloutd
    folder = tmp_path_factory.mktemp("undisturbed")
    engine = ToyEngine(folder)
    service = Rolloutd(folder / "service", [engine]).start()
    try:
        yield samples_of(service.batch(toy_batch()))
    finally:
        service.terminate()
        engine.close()


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_killed_service_finishes_its_batch(start, toy, undisturbed, moment):
    delay = random.Random(moment).uniform(0, 0.4)
    service = start(toy)
    raw = json.dumps(toy_batch()).encode()
    posted = service.post("/v1/batches", raw, {"Idempotency-Key": "once", "Prefer": "respond-async"})
    assert posted.status == 202
    identity, end, seen = posted.json["id"], time.monotonic() + delay, {}
    while time.monotonic() < end:
        seen.update(finished(service, identity))
    service.kill()
    service.no_orphans()
    stored = check_database(service.database, seen)

    service.start()
    again = service.post("/v1/batches", raw, {"Idempotency-Key": "once"})
    assert again.status == 200, again
    batch = again.json
    assert batch["id"] == identity and batch["state"] == "complete"
    assert len(rollouts(batch)) == TASKS * MEMBERS
    assert samples_of(batch) == undisturbed, f"after a kill with {stored} rows on record"
    for rollout in rollouts(batch):
        earlier = seen.get(rollout["id"])
        if earlier:
            for name in ("seed", "text", "completion_ids", "logprobs", "reward", "state"):
                assert rollout[name] == earlier[name], name
    assert_sums_up(batch)
    service.terminate()
    assert check_database(service.database, seen) == TASKS * MEMBERS


def test_kept_rollouts_are_not_sampled_again(start, engine):
    """Each member is asked for once, before or after the kill, except those in flight."""
    engine.rules({"in": "SLOW", "delay": 60, "times": 2}, {"text": "\\boxed{42}"})
    service = start(engine)
    raw = json.dumps(make_batch(make_group("quick", "QUICK"), make_group("slow", "SLOW"))).encode()
    identity = service.post("/v1/batches", raw, {"Idempotency-Key": "k", "Prefer": "respond-async"}).json["id"]
    eventually(lambda: len(finished(service, identity)) == 2, "the quick ones to be on record")
    service.restart()
    batch = service.settled(identity)
    assert batch["state"] == "complete" and all(rollout["reward"] == 1 for rollout in rollouts(batch))
    assert len(engine.samples_for("QUICK")) == 2
    slow = engine.samples_for("SLOW")
    assert len(slow) == 4 and sorted(entry["body"]["seed"] for entry in slow) == sorted(2 * [seed_of(7, 1, "slow", 0, index) for index in (0, 1)])


def test_a_deadline_that_passes_while_the_service_is_down_expires(start, engine):
    engine.rules({"delay": 60})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(deadline="1s"), {"Prefer": "respond-async"}).json["id"]
    service.kill()
    time.sleep(1.1)
    service.start()
    batch = service.settled(identity)
    assert batch["state"] == "expired" and all(rollout["reward"] is None for rollout in rollouts(batch))


def test_a_batch_of_a_client_that_never_comes_back_is_finished_or_cancelled(start, engine):
    """It was posted without a key and waited for: whoever waited is gone with the service."""
    engine.rules({"delay": 60, "times": 2}, {"text": "\\boxed{42}"})
    service = start(engine)
    raw = json.dumps(make_batch()).encode()
    wire = service.wire().send(f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n").send(raw)
    eventually(lambda: engine.open == 2, "both to be in flight")
    service.restart()
    wire.close()
    identity = service.read("/v1/batches")["items"][0]["id"]
    assert service.settled(identity)["state"] in ("complete", "cancelled")


def test_the_database_itself_refuses_a_reward_beside_a_failure(start, engine):
    """Promise 1, enforced by a constraint and not by good will."""
    engine.rules({"lp": None})
    service = start(engine)
    service.batch(make_batch())
    service.terminate()
    database = sqlite3.connect(service.database)
    try:
        columns = [row[1] for row in database.execute("PRAGMA table_info(rollouts)") if row[1] not in ("seq", "sample_index")]
        for number, column in enumerate(("reward", "advantage", "shaped_reward")):
            values = ", ".join("0.0" if name == column else name for name in columns)
            with pytest.raises(sqlite3.IntegrityError):
                database.execute(f"INSERT INTO rollouts (sample_index, {', '.join(columns)}) SELECT sample_index + {number + 100}, {values} FROM rollouts LIMIT 1")
        copy = ", ".join(columns)
        database.execute(f"INSERT INTO rollouts (sample_index, {copy}) SELECT sample_index + 200, {copy} FROM rollouts LIMIT 1")  # the copy itself is fine
        with pytest.raises(sqlite3.IntegrityError):
            database.execute("UPDATE rollouts SET reward = 0.0")
        with pytest.raises(sqlite3.IntegrityError):
            database.execute("UPDATE rollouts SET advantage = 0.0")
    finally:
        database.close()


def test_the_spawner_may_die_and_is_replaced(start):
    """Its death is not the service's."""
    service = start()
    item = {"verifiers": [{"name": "exact"}], "items": [{"id": "1", "completion": "a", "reference": "a"}]}
    assert service.post("/v1/verify", item).status == 200
    service.remember_family()
    for process in service.family:
        try:
            os.kill(process.pid, 9)
        except ProcessLookupError:
            pass
    eventually(lambda: service.alive() and service.post("/v1/verify", item).json["items"][0]["reward"] == 1, "verification to come back")


def undo_closing(database):
    """As if the service had died before it closed the batch."""
    connection = sqlite3.connect(database)
    connection.execute("UPDATE batches SET state = 'running', completed_at_us = NULL, total_tokens = NULL, total_sequences = NULL, total_groups = NULL")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("outcome", ["expired", "cancelled"])
def test_a_batch_that_was_cut_short_is_not_complete_after_a_crash(start, engine, outcome):
    """All its rows were on record, its end was not."""
    engine.rules({"delay": 60})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(deadline="300ms" if outcome == "expired" else "2m"), {"Prefer": "respond-async"}).json["id"]
    if outcome == "cancelled":
        service.delete(f"/v1/batches/{identity}")
    assert service.settled(identity)["state"] == outcome
    service.kill()
    undo_closing(service.database)
    service.start()
    assert service.settled(identity)["state"] == outcome


def test_a_cancellation_that_a_crash_interrupted_goes_on(start, engine):
    engine.rules({"delay": 60})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(deadline="2m"), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "both to be sampling")
    service.delete(f"/v1/batches/{identity}")
    service.kill()
    undo_closing(service.database)
    connection = sqlite3.connect(service.database)
    connection.execute("UPDATE groups SET state = 'running', closed_at_us = NULL, rewarded = NULL, zero_variance = NULL")
    connection.execute("DELETE FROM rollouts WHERE sample_index = 1")
    connection.execute("UPDATE batches SET cancelled = 1")
    connection.commit()
    connection.close()
    service.start()
    batch = service.settled(identity)
    assert batch["state"] == "cancelled" and [rollout["state"] for rollout in rollouts(batch)] == ["cancelled", "cancelled"]
    assert len(engine.samples) == 2, "nothing was sampled again"


def test_a_batch_whose_request_cannot_be_read_any_more_ends_at_its_deadline(start, engine):
    """Promise 2: everything accepted has a deadline and ends; until then a version that can read it may continue it."""
    engine.rules({"in": "SLOW", "delay": 60}, {"text": "\\boxed{42}"})
    service = start(engine)
    body = make_batch(make_group("quick", "QUICK"), make_group("slow", "SLOW"), deadline="6s")
    identity = service.post("/v1/batches", body, {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: len(finished(service, identity)) == 2, "the quick ones to be on record")
    service.kill()
    connection = sqlite3.connect(service.database)
    unreadable = json.dumps(body).replace("deadline", "deadlime").encode()
    connection.execute("UPDATE requests SET body = ?, codec = 'plain', body_bytes = NULL", (unreadable,))
    connection.commit()
    connection.close()
    service.start()
    assert service.read(f"/v1/batches/{identity}")["state"] == "running"
    batch = service.settled(identity)
    assert batch["state"] == "expired" and batch["loss"] is None and "could not be read" in batch["notes"][0]
    assert sorted(rollout["reward"] for rollout in rollouts(batch) if rollout["state"] == "scored") == [1, 1], "what finished is kept"
