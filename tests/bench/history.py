#!/usr/bin/env python3
"""First pages of GET /v1/rollouts on a large record of rollouts of 32 tokens.

    tests/bench/history.py [--binary build/rolloutd] [--rows 1000000] [--requests 200] [--folder FOLDER]

The record is multiplied by SQL from one scored batch: 1000 rollouts a batch, 10 batches a revision. For each question: p50, p99 and the
largest of one page of 100 rows, one after the other on one connection, and the service's processor time of a page (to 10 ms of all
pages together), in milliseconds. Questions without an index end with the
scan budget: their page is short, and `rows` says what it holds. Nothing is asserted.
"""
import argparse
import contextlib
import http.client
import json
import os
import random
import sqlite3
import statistics
import subprocess
import tempfile
import time
from urllib.parse import urlencode, urlsplit

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GROUPS, MEMBERS, TOKENS, BATCHES_A_REVISION = 125, 8, 32, 10
# Columns that differ from the template's, by table: k counts the copies from 1, t is the template's row.
OWN = {
    "batches": {"seq": "t.seq + k", "id": "substr(t.id, 1, 20) || printf('%08d', k)", "policy_revision": f"k / {BATCHES_A_REVISION}", "idempotency_key": "NULL"},
    "batch_contents": {"batch_seq": "t.batch_seq + k"},
    "requests": {"batch_seq": "t.batch_seq + k"},
    "groups": {"seq": "t.seq + k * :groups", "batch_seq": "t.batch_seq + k"},
    "group_contents": {"group_seq": "t.group_seq + k * :groups"},
    "rollouts": {"seq": "t.seq + k * :rollouts", "batch_seq": "t.batch_seq + k", "group_seq": "t.group_seq + k * :groups", "policy_revision": f"k / {BATCHES_A_REVISION}",
                 "created_at_us": "t.created_at_us + k * 1000000"},
    "rollout_texts": {"rollout_seq": "t.rollout_seq + k * :rollouts"},
    "rollout_verdicts": {"rollout_seq": "t.rollout_seq + k * :rollouts"},
    "rollout_arrays": {"rollout_seq": "t.rollout_seq + k * :rollouts"},
}
QUESTIONS = [
    ("run", {"run": "large"}), ("run, newest first", {"run": "large", "order": "desc"}), ("everything", {}), ("revision", {"run": "large", "revision": "R"}),
    ("task", {"task": "t7"}), ("task, newest first", {"task": "t7", "order": "desc"}), ("batch", {"batch": "B"}), ("failure", {"failure": "engine_error"}),
    ("state=failed", {"state": "failed"}), ("duplicate", {"run": "large", "duplicate": "true"}),
    *[(f"by {name}, {order}", {"run": "large", "revision": "R", "order_by": name, "order": order}) for name in ("reward", "advantage", "tokens") for order in ("asc", "desc")],
    ("with texts and verdicts", {"run": "large", "revision": "R", "fields": "text,verdicts"}),
]
SCANS = [("reward_min that nothing has", {"run": "large", "reward_min": "2"}), ("reason that nothing has", {"run": "large", "reason": "nothing"}),
         ("text that nothing has", {"run": "large", "text": "nowhere"}), ("engine_revision that nothing has", {"engine_revision": "none"})]

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "rolloutd"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--folder", help="where the record is made; it needs about 1.5 kB a row")
    return parser.parse_args()

class Connection:
    def __init__(self, pid, http_connection):
        self.pid, self.http = pid, http_connection

    def processor_ms(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            return sum(int(ticks) for ticks in file.read().rpartition(")")[2].split()[11:13]) * 1000 / os.sysconf("SC_CLK_TCK")

    def ask(self, method, path, body=None):
        self.http.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        reply = self.http.getresponse()
        content = reply.read()
        assert reply.status == 200, content
        return json.loads(content)


def template():
    dice = random.Random(1)

    def completion(repeats):
        right = dice.random() < 0.4
        ids = [1] * TOKENS if repeats else [dice.randrange(50_000) for _ in range(TOKENS)]
        failure = {"failure": {"stage": "sample", "code": "engine_error", "message": "no", "retryable": False, "attempts": 1}} if dice.random() < 0.01 else {}
        return {"text": "so it is " * 10 + ("y" if right else "n"), "completion_ids": ids, "logprobs": [-0.5] * TOKENS, "finish_reason": "stop", **failure}
    groups = [{"task": f"t{index}", "prompt": "p", "reference": "so it is " * 10 + "y", "completions": [completion(index % 50 == 0 and member > 5) for member in range(MEMBERS)]}
              for index in range(GROUPS)]
    return {"run": "large", "policy_revision": 0, "verifiers": [{"name": "exact"}], "groups": groups}

@contextlib.contextmanager
def service(binary, folder):
    ready = os.path.join(folder, "ready")
    with contextlib.suppress(OSError):
        os.unlink(ready)
    process = subprocess.Popen([binary, "--listen", "127.0.0.1:0", "--database", os.path.join(folder, "record.db"), "--ready-file", ready], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(ready):
            assert process.poll() is None, "rolloutd has ended"
            time.sleep(0.02)
        with open(ready, encoding="ascii") as file:
            url = urlsplit(file.read().strip())
        yield Connection(process.pid, http.client.HTTPConnection(url.hostname, url.port, timeout=600))
    finally:
        process.terminate()
        process.wait()

def multiply(database, copies):
    numbers = {"groups": GROUPS, "rollouts": GROUPS * MEMBERS, "copies": copies}
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as record:
        record.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
        triggers = record.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            record.execute(f"DROP TRIGGER {name}")
        for table, own in OWN.items():
            names = [row[1] for row in record.execute(f"PRAGMA table_info({table})")]
            columns = ", ".join(own.get(name, f"t.{name}") for name in names)

            record.execute(f"CREATE TEMP TABLE template AS SELECT * FROM main.{table}")
            record.execute(f"WITH RECURSIVE copies (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM copies WHERE k < :copies) "
                           f"INSERT INTO main.{table} SELECT {columns} FROM copies CROSS JOIN template t", numbers)
            record.execute("DROP TABLE template")
        record.execute("UPDATE runs SET (batches, scored, failed, cancelled) = (SELECT count(*), sum(b.scored), sum(b.failed), sum(b.cancelled) FROM batches b)")
        for _, sql in triggers:
            record.execute(sql)

def measure(connection, query, requests):
    times, rows, before = [], 0, connection.processor_ms()
    for _ in range(requests):
        begin = time.perf_counter()
        rows = len(connection.ask("GET", f"/v1/rollouts?{urlencode({'limit': 100, **query})}")["items"])
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    return rows, statistics.median(times), times[int(len(times) * 0.99)], times[-1], (connection.processor_ms() - before) / requests

def report(connection, questions, requests, names):
    for name, query in questions:
        query = {key: names.get(value, value) for key, value in query.items()}
        rows, *times = measure(connection, query, requests)
        print(f"{name:34}{rows:6}" + "".join(f"{value:10.2f}" for value in times[:-1]) + f"{times[-1]:11.2f}", flush=True)

def main():
    options = arguments()
    copies = options.rows // (GROUPS * MEMBERS) - 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        database = os.path.join(folder, "record.db")
        with service(options.binary, folder) as connection:
            identity = connection.ask("POST", "/v1/score", json.dumps(template()))["id"]
        begin = time.monotonic()
        multiply(database, copies)
        print(f"{options.rows} rollouts, {os.path.getsize(database) / 1e6:.0f} MB, made in {time.monotonic() - begin:.0f} s")
        with service(options.binary, folder) as connection:
            names = {"R": str(copies // BATCHES_A_REVISION // 2), "B": identity[:20] + f"{copies // 2:08d}"}
            print(f"{'question':34}{'rows':>6}{'p50':>10}{'p99':>10}{'largest':>10}{'processor':>11}")
            report(connection, QUESTIONS, options.requests, names)
            report(connection, SCANS, max(3, options.requests // 20), names)

if __name__ == "__main__":
    main()
