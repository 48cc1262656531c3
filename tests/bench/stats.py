#!/usr/bin/env python3
"""Numbers over a large record: GET /v1/stats, task histories, flips and the report over a run that is made here, by roll-ups and by scans.

    tests/bench/stats.py [--binary build/rolloutd] [--rollouts 1000000] [--repeats 3] [--verify]

The record is one real batch, copied by SQL: groups of 8, 2,000 tasks, 200 revisions, three engines; its roll-ups are added up by SQL. Each
question is asked some times, one after the other; the best and the worst are printed in milliseconds, and the CPU time of the service, which
other loads do not stretch. --folder keeps the record for the next time. --verify runs verify-database, too. Nothing is asserted.
"""
import argparse
import contextlib
import http.client
import json
import os
import sqlite3
import subprocess
import tempfile
import time

from urllib.parse import urlsplit

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

MEMBERS, TASKS, REVISIONS, BATCHES = 8, 2000, 200, 1000
QUESTIONS = ("stats?run=r&by=revision", "stats?run=r&by=revision,purpose&limit=1000", "stats?run=r&by=task&limit=1000", "stats?run=r&by=incarnation",
             "stats?run=r&by=revision,task&limit=100", "flips?run=r&from=10&to=190", "stats?run=r&by=engine", "stats?run=r&by=engine&revision=100",
             "stats?run=r&by=verifier,reason&revision=100", "tasks/history?run=r&task=t7", "stats?run=r&by=failure&state=failed",
             "runs/r/report")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "rolloutd"))
    parser.add_argument("--rollouts", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="where the record is, or will be")
    parser.add_argument("--verify", action="store_true")
    return parser.parse_args()


def ask(address, path, body=None):
    connection = http.client.HTTPConnection(address.netloc)
    connection.request("POST" if body else "GET", f"/v1/{path}", body, {"Content-Type": "application/json"} if body else {})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    assert reply.status == 200, text
    return json.loads(text)


def template(address):
    ask(address, "score", json.dumps({"run": "r", "policy_revision": 0, "verifiers": [{"name": "exact"}, {"name": "exact", "id": "held", "heldout": True}],
                                      "groups": [{"task": "t0", "reference": "a", "completions": [{"text": "a", "engine": "e0"}] * MEMBERS}]}))


def copy(record, table, source, own):
    """INSERT … SELECT of a template row beside numbers: own values for these columns."""
    names = [row[1] for row in record.execute(f"PRAGMA table_info({table})")]
    record.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(own.get(name, 't.' + name) for name in names)} FROM {source}")


def fill(path, rollouts):
    groups, per_batch = rollouts // MEMBERS, rollouts // MEMBERS // BATCHES
    with contextlib.closing(sqlite3.connect(path)) as record:
        record.execute("PRAGMA synchronous = OFF")
        record.execute("CREATE TEMP TABLE numbers AS WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n", (rollouts,))
        record.execute(f"INSERT INTO tasks (task) SELECT 't' || i FROM numbers WHERE i BETWEEN 1 AND {TASKS - 1}")
        record.execute(f"INSERT INTO policy_revisions SELECT run_seq, 0, i, declared_at_us FROM policy_revisions, numbers WHERE revision = 0 AND i BETWEEN 1 AND {REVISIONS - 1}")
        revision = f"(i * {REVISIONS} / {BATCHES})"
        copy(record, "batches", f"batches t, numbers WHERE t.seq = 1 AND i BETWEEN 1 AND {BATCHES}",
             {"seq": "1 + i", "id": "printf('b_%s%06d', substr(t.id, 3, length(t.id) - 8), i)", "policy_revision": revision.replace("i *", "(i - 1) *"), "group_count": str(per_batch),
              "rollout_count": str(per_batch * MEMBERS), "scored": str(per_batch * MEMBERS), "idempotency_key": "NULL"})
        copy(record, "batch_contents", f"batch_contents t, numbers WHERE t.batch_seq = 1 AND i BETWEEN 1 AND {BATCHES}", {"batch_seq": "1 + i"})
        copy(record, "groups", f"groups t, numbers WHERE t.seq = 1 AND i < {groups}",
             {"seq": "2 + i", "batch_seq": f"2 + i / {per_batch}", "group_index": f"i % {per_batch}", "task_seq": f"1 + (i * 7) % {TASKS}", "reward_mean": "0.5", "reward_std": "0.5",
              "zero_variance": "i % 3 = 0"})
        copy(record, "group_contents", f"group_contents t, numbers WHERE t.group_seq = 1 AND i < {groups}", {"group_seq": "2 + i"})
        copy(record, "rollouts", f"(SELECT * FROM rollouts LIMIT 1) t, numbers WHERE i < {groups * MEMBERS}",
             {"seq": f"{MEMBERS} + 1 + i", "group_seq": f"2 + i / {MEMBERS}", "sample_index": f"i % {MEMBERS}", "batch_seq": f"2 + i / {MEMBERS} / {per_batch}",
              "task_seq": f"1 + (i / {MEMBERS} * 7) % {TASKS}", "policy_revision": f"(i / {MEMBERS} / {per_batch}) * {REVISIONS} / {BATCHES}", "reward": "(i * 31 % 100) / 64.0",
              "engine": "'e' || (i % 3)", "created_at_us": "t.created_at_us + i", "completion_tokens": "100 + i % 400", "trainable_tokens": "0", "advantage": "NULL", "shaped_reward": "NULL"})
        copy(record, "rollout_verdicts", f"(SELECT * FROM rollout_verdicts LIMIT 1) t, numbers WHERE i < {groups * MEMBERS}", {"rollout_seq": f"{MEMBERS} + 1 + i"})
        record.execute(f"UPDATE runs SET batches = batches + {BATCHES}, scored = scored + {groups * MEMBERS}, policy_revision = {REVISIONS - 1}")
        add_up(record)
        record.commit()
        record.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def service(binary, folder):
    ready = os.path.join(folder, "ready")
    with contextlib.suppress(OSError):
        os.unlink(ready)
    process = subprocess.Popen([binary, "--listen", "127.0.0.1:0", "--database", os.path.join(folder, "record.db"), "--ready-file", ready, "--set", "stats_budget=100000000"], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(ready):
            time.sleep(0.02)
        with open(ready, encoding="ascii") as file:
            yield urlsplit(file.read().strip()), process.pid
    finally:
        process.terminate()
        process.wait()


def cpu_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def add_up(record):
    record.execute("DELETE FROM rollups")
    names = [row[1] for row in record.execute("PRAGMA table_info(rollups)")]
    sums = {"n": "count(*)", "scored": "count(*)", "group_count": "count(DISTINCT group_seq)", "judged_groups": "count(DISTINCT group_seq)", "zero_variance_groups":
            "count(DISTINCT iif(g.zero_variance, group_seq, NULL))", "judged": "count(*)", "reward_sum": "total(reward)", "reward_lost": "0.0", "reward_min": "min(reward)", "reward_max": "max(reward)",
            "judged_tokens": "sum(completion_tokens)", "tokens": "sum(completion_tokens)", "tokens_max": "max(completion_tokens)", "decided": "count(*)", "solved": "count(*)",
            "engine_us": "sum(engine_us)", "ended": "count(revision_at_end)", "staleness": "coalesce(sum(revision_at_end - policy_revision), 0)", "straddles": "sum(straddles)",
            "duplicates": "sum(duplicate)"}
    keys = ("run_seq", "incarnation", "policy_revision", "purpose", "task_seq")
    columns = ", ".join(f"r.{name}" if name in keys else sums.get(name, "0") for name in names)
    record.execute("DELETE FROM rollup_scores")
    record.execute("DELETE FROM rollup_counts")
    record.execute(f"INSERT INTO rollup_scores SELECT {', '.join(keys)}, 'held', count(*), total(1) FROM rollouts GROUP BY {', '.join(keys)}")
    record.execute(f"INSERT INTO rollup_counts SELECT {', '.join(keys[:4])}, 'engine', engine, provenance_seq, count(*) FROM rollouts GROUP BY {', '.join(keys[:4])}, engine, provenance_seq")
    record.execute(f"INSERT INTO rollups ({', '.join(names)}) SELECT {columns} FROM rollouts r JOIN groups g ON g.seq = r.group_seq GROUP BY {', '.join('r.' + key for key in keys)}")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as own:
        folder = options.folder or own
        path = os.path.join(folder, "record.db")
        if not os.path.exists(path):
            with service(options.binary, folder) as (address, _):
                template(address)
            began = time.monotonic()
            fill(path, options.rollouts)
            print(f"record of {options.rollouts:,} rollouts, {os.path.getsize(path) / 2**20:.0f} MiB, made in {time.monotonic() - began:.0f} s")
        with service(options.binary, folder) as (address, pid):
            for question in QUESTIONS:
                times, before = [], cpu_ms(pid)
                for _ in range(options.repeats):
                    began = time.monotonic()
                    reply = ask(address, question)
                    items = len(reply["items"] if "items" in reply else reply["revisions"])
                    times.append(1000 * (time.monotonic() - began))
                print(f"{question:50} {items:5} items {min(times):9.1f} {max(times):9.1f} ms, CPU {(cpu_ms(pid) - before) / options.repeats:8.1f} ms", flush=True)
        if options.verify:
            began = time.monotonic()
            done = subprocess.run([options.binary, "verify-database", path], capture_output=True, text=True, check=False)
            print(f"verify-database: {done.returncode}, {time.monotonic() - began:.1f} s\n{done.stdout[-2000:]}{done.stderr[-500:]}")


if __name__ == "__main__":
    main()
