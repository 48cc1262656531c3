#!/usr/bin/env python3
"""Rollouts of 10 KiB made durable for each second: the store's writer beside SQLite as a script would use it, in one run.

    tests/bench/durable.py [--build build] [--dir DIR] [--rollouts 16384] [--sync-ms 0,5] [--repeats 3]

rolloutd's side is BUILD/tests/bench/store (ninja -C BUILD tests/bench/store): the whole record of a rollout (a row with its indexes,
text, arrays, verdicts, counters), in commits of at most 256 operations. The peer is Python's sqlite3 with one table and one index:
a commit for each row, and one for 256. Both with synchronous=FULL, in turn, on the disk of --dir, and again with
tests/tools/slow_sync.c preloaded, so that each fsync takes so many milliseconds longer. Nothing is asserted.
"""
import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = """CREATE TABLE rollout (id INTEGER PRIMARY KEY, run TEXT NOT NULL, grp INTEGER NOT NULL, sample INTEGER NOT NULL,
 seed INTEGER NOT NULL, revision INTEGER NOT NULL, reward REAL, text TEXT NOT NULL, ids BLOB NOT NULL, logprobs BLOB NOT NULL,
 UNIQUE (run, grp, sample)) STRICT"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--dir", help="a folder on the disk to measure")
    parser.add_argument("--rollouts", type=int, default=16384)
    parser.add_argument("--sync-ms", default="0,5")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer", nargs=3, metavar=("FILE", "ROWS", "PER_COMMIT"), help=argparse.SUPPRESS)
    return parser.parse_args()


def insert_rows(path, rows, per_commit):
    draw = random.Random(7)
    ids, logprobs = draw.randbytes(2048), draw.randbytes(2048)
    text = "".join(draw.choice("abcdefghij klmno\n") for _ in range(6000))
    database = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", SCHEMA):
        database.execute(statement)
    began, cpu = time.perf_counter(), time.process_time()
    for first in range(0, rows, per_commit):
        database.execute("BEGIN IMMEDIATE")
        for row in range(first, first + per_commit):
            database.execute("INSERT INTO rollout (run, grp, sample, seed, revision, reward, text, ids, logprobs)"
                             " VALUES (?,?,?,?,?,?,?,?,?)", ("arith", row // 8, row % 8, row, 12, 1.0, text, ids, logprobs))
        database.execute("COMMIT")
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(json.dumps({"per_second": round(rows / wall), "cpu_us_per_rollout": round(cpu * 1e6 / rows, 1)}))


def measure(command, folder, environment):
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    return json.loads(subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True).stdout)


def main():
    options = arguments()
    if options.peer:
        insert_rows(options.peer[0], int(options.peer[1]), int(options.peer[2]))
        return
    folder = tempfile.mkdtemp(prefix="durable-", dir=options.dir)
    shim = tempfile.mkdtemp(prefix="durable-")
    library = os.path.join(shim, "slow_sync.so")
    source = os.path.join(HERE, "..", "tools", "slow_sync.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    myself = [sys.executable, os.path.abspath(__file__), "--peer", os.path.join(folder, "peer.db")]
    ways = {"rolloutd's store": [os.path.join(options.build, "tests", "bench", "store"), folder, str(options.rollouts)],
            "sqlite3, 256 rows a commit": [*myself, str(options.rollouts), "256"],
            "sqlite3, a commit for each row": [*myself, "512", "1"]}
    try:
        for milliseconds in map(int, options.sync_ms.split(",")):
            slow = {"LD_PRELOAD": library, "SLOW_SYNC_US": str(1000 * milliseconds)} if milliseconds else {}
            runs = {who: [] for who in ways}
            for _ in range(options.repeats):
                for who, command in ways.items():
                    runs[who].append(measure(command, folder, slow))
            for who, figures in runs.items():
                rates = [run["per_second"] for run in figures]
                print(json.dumps({"work": f"durable rollouts of 10 KiB, fsync +{milliseconds} ms", "who": who, "per_second": max(rates),
                                  "worst": min(rates), "cpu_us_per_rollout": min(run["cpu_us_per_rollout"] for run in figures),
                                  **({"per_commit": figures[0]["per_commit"]} if "per_commit" in figures[0] else {}),
                                  "load1": round(os.getloadavg()[0], 2)}), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(shim, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
