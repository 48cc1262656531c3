"""DELETE /v1/runs/{run}: a dry run counts the rows; a deletion removes all of them, in slices, across kills and full disks."""
import itertools
import json
import os
import re
import shutil
import sqlite3
import threading

import pytest

from harness import ROOT, eventually
from material import make_batch, make_group, sampling
from test_curl_pages import printed, same, training
from test_disk import limit_files
from test_restart import check_database

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
# Shared by all runs: their rows stay while a row of any run points to them, or for good where they hold no text of a run.
SWEPT = {"tasks", "tags", "contents"}
OF_NO_RUN = {"tasksets", "taskset_splits", "taskset_tasks"}  # their references keep contents
LARGE = 1 if os.environ.get("ROLLOUTD_SANITIZED") else 6  # batches of a thousand rollouts


def score(service, run, tasks=2, members=4, revision=1, **fields):
    completions = [{"text": f"\\boxed{{{40 + index}}}", "completion_ids": [index, 2], "logprobs": [-0.5, -1.5]} for index in range(members)]
    reply = service.post("/v1/score", {"run": run, "policy_revision": revision, "verifiers": [{"name": "math"}], **fields,
                                       "groups": [{"task": f"{run}-{task}", "reference": "42", "completions": completions} for task in range(tasks)]})
    assert reply.status == 200, reply
    return reply.json


def gone(service, run):
    eventually(lambda: service.get(f"/v1/runs/{run}").status == 404, f"{run} to be gone")


def deleted(service, run, **query):
    reply = service.request("DELETE", f"/v1/runs/{run}", **query)
    assert reply.status == 202, reply
    return reply.json


# -- every table ---------------------------------------------------------------------------------------------------------------

class Schema:
    """The tables of a database, and which of them hold rows of a run."""

    def __init__(self, path):
        self.link = sqlite3.connect(path)
        self.link.execute("PRAGMA ignore_check_constraints = ON")
        self.tables = [name for name, in self.link.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        self.columns = {table: self.link.execute(f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table}')").fetchall() for table in self.tables}
        self.arrows = {}  # table -> {column: (parent, its column)}
        self.second = set()  # columns of keys of several, that do not stand first
        self.actions = {}
        for table in self.tables:
            for parent, own, other, action, place in self.link.execute(f"SELECT \"table\", \"from\", \"to\", on_delete, seq FROM pragma_foreign_key_list('{table}')"):
                self.second |= {(table, own)} if place else set()
                self.arrows.setdefault(table, {})[own] = (parent, other)
                self.actions[table, own] = action
        self.held = {"runs"}
        while more := {table for table in self.tables if table not in self.held and self.points_to(table, self.held)}:
            self.held |= more

    def points_to(self, table, others):
        return any(parent in others for parent, _ in self.arrows.get(table, {}).values()) or any(name == "run_seq" for name, *_ in self.columns[table])

    def in_order(self):
        """Each table behind those that it points to."""
        done = []
        while len(done) < len(self.tables):
            more = [table for table in self.tables if table not in done and all(parent in done or parent == table for parent, _ in self.arrows.get(table, {}).values())]
            assert more, "foreign keys in a ring"
            done += more
        return done

    def fill(self, number):
        """A row for one run in each table that holds rows of runs, and in those that they point to."""
        rows = {}
        for table in self.in_order():
            if table in OF_NO_RUN:
                continue
            row = {name: self.value(table, name, kind, needed or key, rows, number) for name, kind, needed, key in self.columns[table]}
            row = {name: value for name, value in row.items() if value is not None}
            cursor = self.link.execute(f"INSERT INTO \"{table}\" ({','.join(row)}) VALUES ({','.join('?' * len(row))})", list(row.values()))
            rows[table] = {"seq": cursor.lastrowid, **row}
        self.link.execute("UPDATE leases SET ended_at_us = 1")  # an open one would expire at the start
        self.link.commit()
        return rows

    def value(self, table, name, kind, needed, rows, number):
        parent = self.arrows.get(table, {}).get(name) or (("runs", "seq") if name == "run_seq" else None)
        if (table, name) == ("runs", "deletion_seq") or (parent and parent[0] in OF_NO_RUN):
            return None
        if parent and parent[0] != table:
            return rows[parent[0]][parent[1] or "seq"]
        if not needed or (name == "seq" and kind == "INTEGER"):
            return None
        return {"INTEGER": number, "TEXT": f"x{number}", "BLOB": bytes([number]) * 32, "REAL": 0.5}[kind]

    def contents(self):
        return {table: self.link.execute(f"SELECT * FROM \"{table}\"").fetchall() for table in self.tables}


@pytest.fixture
def schema(start):
    service = start()
    service.terminate()
    return Schema(service.database)


def test_every_table_goes_with_its_run_or_is_shared(schema):
    """A new table that holds rows of a run needs a column run_seq, or an arrow to batches; or arrows ON DELETE CASCADE."""
    for table in schema.held - {"runs", "batches", "groups", "rollouts"}:
        arrows = schema.arrows.get(table, {})
        direct = any(name == "run_seq" for name, *_ in schema.columns[table]) or any(parent in ("runs", "batches") for parent, _ in arrows.values())
        loose = {own for own, (parent, _) in arrows.items() if parent in schema.held and schema.actions[table, own] != "CASCADE"}
        covered = {own for own in loose if arrows[own][0] in ("runs", "batches")} if direct else set()
        inner = {own for own in loose - covered if arrows[own][0] in ("groups", "rollouts")}
        assert not inner, f"{table}.{inner}: rows of groups and rollouts go ON DELETE CASCADE"
        assert direct or not loose, f"{table} has no way to its run"


def test_every_number_of_a_row_is_a_foreign_key(schema):
    """Without the key, neither SQLite nor the deletion finds the referring rows."""
    for table in schema.tables:
        for name, *_ in schema.columns[table]:
            if name.endswith("_seq") and name != "run_seq":
                assert name in schema.arrows.get(table, {}), f"{table}.{name} is no foreign key"


def test_every_reference_to_a_row_of_a_run_has_an_index(schema):
    for table, arrows in schema.arrows.items():
        for own, (parent, _) in arrows.items():
            if parent in schema.held | SWEPT and (table, own) not in schema.second:
                plan = " ".join(row[3] for row in schema.link.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM \"{table}\" WHERE \"{own}\" = 1"))
                assert "SEARCH" in plan, f"{table}.{own}: {plan}"


def test_nothing_of_a_run_is_left_in_any_table_and_nothing_of_another_is_missing(start):
    """Each table with a row of two runs, made by the schema alone; then one run is deleted."""
    service = start()
    service.terminate()
    schema = Schema(service.database)
    kept = schema.fill(1)
    before = schema.contents()
    lost = schema.fill(2)
    for table in schema.held:
        assert len(schema.contents()[table]) > len(before[table]), table
    schema.link.close()
    service.start()
    deleted(service, lost["runs"]["name"])
    gone(service, lost["runs"]["name"])
    service.terminate()
    after = Schema(service.database).contents()
    shared = {parent for table in schema.held for parent, _ in schema.arrows.get(table, {}).values()} & SWEPT
    for table in schema.held | shared:
        assert after[table] == before[table], table
    assert kept["runs"]["name"] == "x1" and not Schema(service.database).link.execute("PRAGMA foreign_key_check").fetchall()


# -- the request -----------------------------------------------------------------------------------------------------------------

def test_a_dry_run_counts_the_rows_and_deletes_none(plain):
    score(plain, "dry", tasks=3, members=5)
    size = plain.request("DELETE", "/v1/runs/dry", dry_run="true")
    assert size.status == 200 and size.json["bytes"] > 3 * 5 * 100
    assert {name: size.json[name] for name in ("batches", "groups", "rollouts")} == {"batches": 1, "groups": 3, "rollouts": 15}
    assert len(plain.read("/v1/rollouts", run="dry")["items"]) == 15 and plain.read("/v1/runs/dry")["deletion"] is None


def test_a_deleted_run_is_gone_and_its_name_is_free(plain):
    made = score(plain, "once")
    rollout = made["groups"][0]["rollouts"][0]["id"]
    done = deleted(plain, "once", by="maria")
    assert (done["run"], done["batches"], done["groups"], done["rollouts"]) == ("once", 1, 2, 8)
    gone(plain, "once")
    for path in (f"/v1/batches/{made['id']}", f"/v1/rollouts/{rollout}", f"/v1/groups/{made['groups'][0]['id']}", f"/v1/batches/{made['id']}/request"):
        assert plain.get(path).status == 404, path
    assert plain.delete("/v1/runs/once").status == 404 and plain.read("/v1/rollouts", run="once")["items"] == []
    assert score(plain, "once", tasks=1)["policy_revision"] == 1
    assert plain.read("/v1/runs/once")["counts"]["batches"] == 1


def test_the_requester_time_and_size_of_a_deletion_are_on_record_and_in_the_log(plain):
    score(plain, "audited")
    reply = plain.request("DELETE", "/v1/runs/audited", headers={"X-Request-Id": "ticket-17"}, by="maria")
    gone(plain, "audited")
    item = next(item for item in plain.read("/v1/deletions")["items"] if item["run"] == "audited")
    assert (item["deletion"], item["reason"], item["by"], item["request_id"]) == (reply.json["deletion"], "request", "maria", "ticket-17")
    assert item["client"].startswith("127.0.0.1:") and item["requested_at"] <= item["ended_at"] and item["rollouts"] == 8
    line = next(line for line in plain.log().splitlines() if "run is deleted by request" in line and "run=audited" in line)
    assert all(word in line for word in ("by=maria", "client=127.0.0.1:", "request_id=ticket-17", "rollouts=8"))


def test_a_run_with_a_running_batch_or_an_open_update_is_not_deleted(service, engine):
    engine.rules({**RIGHT, "hold": True})
    identity = service.post("/v1/batches", make_batch(run="live"), {"Prefer": "respond-async"}).json["id"]
    reply = service.delete("/v1/runs/live")
    assert (reply.status, reply.error["code"], reply.error["path"]) == (409, "state_conflict", "run")
    engine.release()
    service.settled(identity)
    assert service.post("/v1/runs/live/policy/begin", {"revision": 2}).status == 200
    assert service.delete("/v1/runs/live").status == 409
    assert service.post("/v1/runs/live/policy/cancel", {}).status == 200
    deleted(service, "live")
    gone(service, "live")


def test_an_unknown_run_and_a_wrong_parameter_are_refused(plain):
    assert plain.delete("/v1/runs/nobody").status == 404 and plain.request("DELETE", "/v1/runs/nobody", dry_run="true").status == 404
    score(plain, "wrong")
    for query in ({"dry": "true"}, {"dry_run": "perhaps"}, {"by": "x" * 129}):
        assert plain.request("DELETE", "/v1/runs/wrong", **query).status == 400, query
    assert plain.read("/v1/runs/wrong")["counts"]["batches"] == 1


def test_the_list_of_deletions_has_pages(plain):
    for number in range(3):
        score(plain, f"page-{number}", tasks=1)
        deleted(plain, f"page-{number}")
        gone(plain, f"page-{number}")
    first = plain.read("/v1/deletions", limit=2)
    second = plain.read("/v1/deletions", limit=2, cursor=first["next"])
    names = [item["run"] for item in first["items"] + second["items"]]
    assert names[:3] == ["page-2", "page-1", "page-0"] and plain.get("/v1/deletions", cursor="x").status == 400


# -- in slices -------------------------------------------------------------------------------------------------------------------

def fill(service, run, batches=LARGE):
    for _ in range(batches):
        score(service, run, tasks=50, members=20)


class Held:
    """A service whose deletion of `large` stops after each slice: the test releases each sync of its disk."""

    def __init__(self, service, file):
        self.service, self.file = service, file
        service.kill()
        service.env["SLOW_SYNC_FILE"] = file
        service.start()
        self.stop()
        self.deletion = self.meanwhile(lambda: deleted(service, "large"))
        eventually(lambda: os.path.exists(self.file + ".waits"), "the first slice")

    def stop(self):
        with open(self.file, "w", encoding="ascii"):
            pass

    def go(self):
        os.unlink(self.file)

    def step(self):
        with open(self.file + ".step", "w", encoding="ascii"):
            pass
        eventually(lambda: not os.path.exists(self.file + ".step"), "a sync to pass")

    def meanwhile(self, call):
        """Lets syncs pass, one by one, until the call has returned."""
        result = []
        thread = threading.Thread(target=lambda: result.append(call()))
        thread.start()
        while thread.is_alive():
            if os.path.exists(self.file + ".waits"):
                os.unlink(self.file + ".waits")
                self.step()
            thread.join(0.01)
        return result[0]


@pytest.fixture
def held(start, slow_sync, tmp_path):
    service = start(env={"LD_PRELOAD": slow_sync})
    fill(service, "large")
    score(service, "stays")
    held = Held(service, str(tmp_path / "hang"))
    yield held
    if os.path.exists(held.file):
        held.go()


def test_readers_see_only_the_deletion_of_a_run_that_is_being_deleted(held):
    service = held.service
    assert service.read("/v1/runs/large")["deletion"] == held.deletion["deletion"] and held.deletion["rollouts"] == LARGE * 1000
    assert service.read("/v1/deletions")["items"][0]["ended_at"] is None
    assert service.read("/v1/rollouts", run="large")["items"] == [] and service.read("/v1/batches", run="large")["items"] == []
    assert {item["run"] for item in service.read("/v1/batches", limit=1000)["items"]} == {"stays"}
    assert len(service.read("/v1/rollouts", limit=1000)["items"]) == 8
    held.go()
    gone(service, "large")


def test_every_post_to_it_is_refused_meanwhile_and_a_second_delete_finds_the_first(held):
    service = held.service
    body = {"run": "large", "policy_revision": 5, "verifiers": [{"name": "math"}], "groups": [{"task": "t", "reference": "1", "completions": [{"text": "1"}]}]}
    for call in (lambda: service.put("/v1/runs/large/policy", {"revision": 5}), lambda: service.post("/v1/runs/large/policy/begin", {"revision": 5}),
                 lambda: service.post("/v1/runs/large/attach", {"step": 1, "revision": 5}), lambda: service.post("/v1/score", body)):
        reply = held.meanwhile(call)
        assert (reply.status, reply.error["code"], reply.error["path"]) == (409, "state_conflict", "run"), reply
    again = held.meanwhile(lambda: deleted(service, "large"))
    assert again["deletion"] == held.deletion["deletion"]
    assert held.meanwhile(lambda: service.put("/v1/runs/other/policy", {"revision": 5})).status == 200
    held.go()
    gone(service, "large")
    assert service.put("/v1/runs/large/policy", {"revision": 5}).status == 200


def test_a_deletion_continues_after_kill_9(held):
    service = held.service
    held.meanwhile(lambda: service.put("/v1/runs/other/policy", {"revision": 5}))
    service.kill()
    held.go()
    with sqlite3.connect(service.database) as link:
        left, = link.execute("SELECT count(*) FROM rollouts").fetchone()
    assert 8 < left < LARGE * 1000 + 8
    service.start()
    gone(service, "large")
    assert len(service.read("/v1/rollouts", limit=1000)["items"]) == 8
    service.terminate()
    check_database(service.database, {})
    with sqlite3.connect(service.database) as link:
        assert link.execute("SELECT count(*) FROM rollouts").fetchone() == (8,) and link.execute("SELECT count(*) FROM tasks").fetchone() == (2,)


def test_batches_of_others_run_beside_a_deletion(start, toy):
    service = start(toy)
    fill(service, "large")
    made, stop = [], threading.Event()

    def work():
        for turn in itertools.count():
            groups = [make_group(f"t{turn}-{index}", "3+4=", "7") for index in range(4)]
            made.append(service.batch(make_batch(*groups, run="busy", sampling=sampling(4), deadline="2m")))
            if stop.is_set():
                return

    worker = threading.Thread(target=work)
    worker.start()
    deleted(service, "large")
    gone(service, "large")
    stop.set()
    worker.join()
    assert all(batch["state"] == "complete" and batch["summary"]["failed"] == 0 for batch in made)
    assert service.read("/v1/runs/busy")["counts"]["rollouts"] == 16 * len(made)


def test_a_deletion_continues_when_a_full_disk_has_room_again(held):
    service = held.service
    limit_files(service, os.path.getsize(service.log_file) + 4096)
    held.go()
    eventually(lambda: "a deletion failed and is retried" in service.log(), "the disk to be full")
    assert service.read("/v1/runs/large")["deletion"] == held.deletion["deletion"]
    limit_files(service, None)
    gone(service, "large")
    assert score(service, "next")["state"] == "complete"


def test_the_pages_of_a_deleted_run_are_used_again(start):
    service = start()
    fill(service, "first")
    service.terminate()
    service.start()
    size = os.path.getsize(service.database)
    said = service.request("DELETE", "/v1/runs/first", dry_run="true").json["bytes"]
    deleted(service, "first")
    gone(service, "first")
    service.terminate()
    service.start()
    with sqlite3.connect(service.database) as link:
        free = link.execute("PRAGMA freelist_count").fetchone()[0] * link.execute("PRAGMA page_size").fetchone()[0]
    assert 0.7 * said < free < 1.4 * said, (said, free)
    fill(service, "second")
    service.terminate()
    assert os.path.getsize(service.database) <= size * 1.1


# -- without a request -------------------------------------------------------------------------------------------------------------

def test_an_idle_run_goes_by_retention_and_an_excepted_or_busy_one_stays(start, engine):
    engine.rules({**RIGHT, "hold": True})
    service = start(engine, settings={"retention.keep": "1s", "retention.except": "gold base-*"})
    identity = service.post("/v1/batches", make_batch(run="busy", deadline="10m"), {"Prefer": "respond-async"}).json["id"]
    for run in ("gold", "base-1", "base", "idle"):
        score(service, run)
    gone(service, "idle")
    gone(service, "base")
    assert {run["run"] for run in service.read("/v1/runs")["items"]} == {"busy", "gold", "base-1"}
    items = {item["run"]: item for item in service.read("/v1/deletions")["items"]}
    assert set(items) == {"idle", "base"}
    assert (items["idle"]["reason"], items["idle"]["by"], items["idle"]["client"]) == ("retention", None, None)
    assert (items["idle"]["batches"], items["idle"]["groups"], items["idle"]["rollouts"]) == (1, 2, 8)
    assert "run is deleted by retention" in service.log() and "setting=retention.keep" in service.log()
    engine.release()
    service.settled(identity)
    gone(service, "busy")


def test_the_run_that_was_idle_for_longest_goes_when_the_record_is_too_large(start):
    service = start(settings={"retention.max_bytes": "1260KiB", "retention.idle": "0s"})
    fill(service, "first", 1)
    fill(service, "second", 1)
    gone(service, "first")
    assert "setting=retention.max_bytes" in service.log()
    service.terminate()
    with sqlite3.connect(service.database) as link:
        assert link.execute("SELECT name FROM runs").fetchall() == [("second",)]


def test_a_record_that_is_too_large_is_logged_once_when_no_run_may_go(start):
    service = start(settings={"retention.max_bytes": "100KiB", "retention.idle": "60s"})
    fill(service, "young", 1)
    eventually(lambda: "no run may go" in service.log(), "the warning")
    assert service.read("/v1/runs/young")["counts"]["rollouts"] == 1000 and service.log().count("no run may go") == 1


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="there is no jq or no curl")
def test_each_line_prints_the_output_on_the_page(plain):
    training(plain)
    with open(os.path.join(ROOT, "docs", "keeping.md"), encoding="utf-8") as file:
        found = re.findall(r"^```sh\n(.*?)\n```\n(?:\n```\n(.*?)\n```$)?", file.read(), re.M | re.S)
    assert len(found) >= 4
    for line, shown in found:
        got = printed(plain, line)
        assert got, line
        if shown:
            want = [json.loads(row) for row in shown.splitlines()]
            assert len(got) == len(want) and all(same(*pair) for pair in zip(got, want)), (line, got)
