"""A record of every older schema, with rows, is brought to the newest by a start, and says the same as before."""
import glob
import os
import sqlite3
import subprocess

import pytest

from harness import BINARY, PATIENCE, ROOT
from test_deletion import score

FILES = sorted(glob.glob(os.path.join(ROOT, "schema", "migrations", "*.sql")))
APPLICATION_ID = 0x524F4C44
KEPT = "id,run,task,group,batch,state,reward,advantage,text,verdicts,seed,policy_revision,finish_reason,completion_tokens"


def columns(link, schema, table):
    return [name for name, in link.execute(f"SELECT name FROM pragma_table_info('{table}', '{schema}')")]


def undo_lean(link, requests):
    """Arrays that are on record once, and the requests without them, as they were before."""
    link.execute("INSERT INTO main.rollout_arrays SELECT r.seq, v.completion_ids, v.logprobs, v.completion_mask FROM newest.given_arrays v"
                 " JOIN newest.rollouts r ON r.group_seq = v.group_seq AND r.sample_index = v.sample_index")
    for batch, body in requests.items():
        link.execute("UPDATE main.requests SET body = ? WHERE batch_seq = (SELECT seq FROM newest.batches WHERE id = ?)", (body, batch))
    if "codec" in columns(link, "main", "requests"):
        link.execute("UPDATE main.requests SET codec = 'plain', body_bytes = NULL")


def make_older(newest, path, version, requests):
    """The first migrations alone, and of each table the rows and columns that there were."""
    with sqlite3.connect(path) as link:
        for file in FILES[:version]:
            with open(file, encoding="utf-8") as text:
                link.executescript(text.read())
        link.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        link.execute(f"PRAGMA user_version = {version}")
        link.execute("ATTACH ? AS newest", (newest,))
        tables = [name for name, in link.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        link.execute("DROP TRIGGER rollouts_start_without_advantage")
        for table in tables:
            there = [name for name in columns(link, "main", table) if name in columns(link, "newest", table)]
            link.execute(f"INSERT OR REPLACE INTO main.\"{table}\" ({','.join(there)}) SELECT {','.join(there)} FROM newest.\"{table}\"")
        if "given_arrays" not in tables:
            undo_lean(link, requests)
        trigger, = link.execute("SELECT sql FROM newest.sqlite_schema WHERE name = 'rollouts_start_without_advantage'").fetchone()
        link.execute(trigger)
        link.commit()
    link.close()


def said(service):
    rows = service.read("/v1/rollouts", limit=1000, fields=KEPT)["items"]
    runs = [{"run": run["run"], "incarnation": run["incarnation"], "policy_revision": run["policy_revision"],
             **{name: run["counts"][name] for name in ("batches", "rollouts", "scored", "failed", "cancelled")}} for run in service.read("/v1/runs")["items"]]
    requests = {batch["id"]: service.get(f"/v1/batches/{batch['id']}/request").body for batch in service.read("/v1/batches")["items"]}
    arrays = {row["id"]: service.read(f"/v1/rollouts/{row['id']}", fields="completion_ids,logprobs") for row in rows}
    return rows, runs, requests, arrays


@pytest.fixture(scope="module")
def newest(shared_factory):
    """A record with two runs, a weight update and a rewind; and its replies."""
    service = shared_factory()
    score(service, "first", revision=1)
    score(service, "second", tasks=3, revision=1)
    assert service.post("/v1/runs/first/policy/begin", {"revision": 2}).status == 200
    assert service.post("/v1/runs/first/policy/commit", {}).status == 200
    score(service, "first", revision=2)
    assert service.put("/v1/runs/second/policy", {"revision": 0, "rewind_to_step": 0}).status == 200
    what = said(service)
    assert len(what[0]) == 28
    service.terminate()
    return service.database, what


@pytest.mark.parametrize("version", range(1, len(FILES)))
def test_an_older_record_is_brought_up_and_says_the_same(start, tmp_path, newest, version):
    path = str(tmp_path / "older.db")
    make_older(newest[0], path, version, newest[1][2])
    service = start(database=path)
    assert said(service) == newest[1]
    assert score(service, "first", revision=3)["state"] == "complete"
    assert service.request("DELETE", "/v1/runs/second", dry_run="true").json["rollouts"] == 12
    service.terminate()
    done = subprocess.run([BINARY, "verify-database", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0 and f"schema version {len(FILES)}" in done.stdout, done.stdout
