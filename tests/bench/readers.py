#!/usr/bin/env python3
"""A verify of one item beside clients that scan the record with a filter that nothing fits, and beside large requests.

    tests/bench/readers.py [--binary build/rolloutd] [--before OTHER] [--rows 30000] [--clients 16] [--seconds 5]

Each situation is measured for each binary in one run: p50, p99 and the largest of POST /v1/verify, one after the other on one
connection, in milliseconds. Nothing is asserted.
"""
import argparse
import contextlib
import http.client
import json
import os
import sqlite3
import statistics
import subprocess
import tempfile
import threading
import time
from urllib.parse import urlsplit

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SMALL = json.dumps({"verifiers": [{"name": "exact"}], "items": [{"completion": "a", "reference": "a"}]})
LARGE = json.dumps({"verifiers": [{"name": "exact"}], "items": [{"completion": "a" * 200, "reference": "b"}] * 20000})
SCORE = json.dumps({"run": "large", "policy_revision": 1, "verifiers": [{"name": "exact"}],
                    "groups": [{"task": f"t{index}", "prompt": "p", "reference": "y", "completions": [{"text": "z" * 100}] * 16} for index in range(1000)]})
OBJECTIVE = json.dumps({"sequences": [{"group": str(index // 8), "reward": index % 2, "logprobs": [-0.5] * 4000} for index in range(64)]})
KEYS = json.dumps({"verifiers": [{"name": "exact"}], "items": [{"completion": "a", "reference": {f"k{index}": 1 for index in range(300_000)}}]})


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "rolloutd"))
    parser.add_argument("--before", help="a binary to compare with")
    parser.add_argument("--rows", type=int, default=30000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5)
    return parser.parse_args()


def multiply_rows(database, count):
    with contextlib.closing(sqlite3.connect(database)) as record:
        names = [row[1] for row in record.execute("PRAGMA table_info(rollouts)")]
        own = {"seq": "NULL", "sample_index": "1000 + number", "advantage": "NULL", "shaped_reward": "NULL"}
        record.execute(f"WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < {count}) "
                       f"INSERT INTO rollouts SELECT {', '.join(own.get(name, name) for name in names)} FROM (SELECT * FROM rollouts LIMIT 1), numbers")
        record.commit()


@contextlib.contextmanager
def service(binary, folder):
    ready = os.path.join(folder, "ready")
    with contextlib.suppress(OSError):
        os.unlink(ready)
    process = subprocess.Popen([binary, "--listen", "127.0.0.1:0", "--database", os.path.join(folder, "record.db"), "--ready-file", ready], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(ready):
            time.sleep(0.02)
        with open(ready, encoding="ascii") as file:
            yield urlsplit(file.read().strip())
    finally:
        process.terminate()
        process.wait()


def ask(link, method, path, body=None):
    link.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    answer = link.getresponse()
    data = answer.read()
    if path == "/v1/verify" and answer.status != 200:
        raise SystemExit(f"{answer.status} {data!r}")
    return data


def repeat(url, stop, method, path, body):
    link = http.client.HTTPConnection(url.hostname, url.port)
    while not stop.is_set():
        ask(link, method, path, body)


def measure(url, seconds, clients, call):
    stop = threading.Event()
    others = [threading.Thread(target=repeat, args=(url, stop, *call)) for _ in range(clients)]
    for other in others:
        other.start()
    time.sleep(0.5)
    link, times, end = http.client.HTTPConnection(url.hostname, url.port), [], time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 20:
        began = time.perf_counter()
        ask(link, "POST", "/v1/verify", SMALL)
        times.append((time.perf_counter() - began) * 1000)
    stop.set()
    for other in others:
        other.join()
    return times


def main():
    chosen = arguments()
    situations = [("alone", 0, None), (f"{chosen.clients} that scan", chosen.clients, ("GET", "/v1/rollouts?reward_min=2", None)),
                  ("4 verifies of 20,000 items", 4, ("POST", "/v1/verify", LARGE)), ("2 scores of 16,000", 2, ("POST", "/v1/score?arrays=none", SCORE)),
                  ("4 objectives of 256,000 tokens", 4, ("POST", "/v1/objective", OBJECTIVE)), ("4 bodies with an object of 300,000 names", 4, ("POST", "/v1/verify", KEYS))]
    print(f"load {os.getloadavg()[0]:.0f}\n| beside | binary | p50 | p99 | max | verifies |\n|---|---|---|---|---|---|")
    for name, binary in [("before", chosen.before), ("now", chosen.binary)]:
        if not binary:
            continue
        with tempfile.TemporaryDirectory() as folder:
            with service(binary, folder) as url:
                ask(http.client.HTTPConnection(url.hostname, url.port), "POST", "/v1/score", json.dumps({**json.loads(SCORE), "groups": json.loads(SCORE)["groups"][:1]}))
            multiply_rows(os.path.join(folder, "record.db"), chosen.rows)
            with service(binary, folder) as url:
                for what, clients, call in situations:
                    times = sorted(measure(url, chosen.seconds, clients, call))
                    print(f"| {what} | {name} | {statistics.median(times):.1f} | {times[int(len(times) * 0.99)]:.0f} | {times[-1]:.0f} | {len(times)} |", flush=True)


if __name__ == "__main__":
    main()
