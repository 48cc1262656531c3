#!/usr/bin/env python3
"""How long a start takes on a large record, and how much it reads: after a clean stop and after kill -9, from the page cache and without it.

    tests/bench/start.py --gigabytes 10 --folder build        # makes a file of that size there, and deletes it afterwards
"""
import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEXT_BYTES = 10_000
ROWS = """
WITH RECURSIVE i (k) AS (SELECT {first} UNION ALL SELECT k + 1 FROM i WHERE k + 1 < {last})
INSERT INTO rollouts (group_seq, sample_index, batch_seq, run_seq, task_seq, incarnation, purpose, created_at_us, state, reward, policy_revision, straddles, resample,
    attempts, seed, trainable, logprobs_mode, completion_tokens, trainable_tokens, queued_us, engine_us, verify_us)
SELECT g.seq, 1000 + k, g.batch_seq, b.run_seq, g.task_seq, 0, 'train', 1, 'scored', 1.0, 1, 0, 0, 1, k, 1, 'raw', 0, 0, 0, 0, 0
FROM i, (SELECT * FROM groups LIMIT 1) g JOIN batches b ON b.seq = g.batch_seq;
INSERT INTO rollout_texts (rollout_seq, text, text_replaced)
SELECT seq, hex(zeroblob({half})), 0 FROM rollouts WHERE sample_index >= 1000 + {first};
"""
SCORE = {"run": "bench", "policy_revision": 1, "verifiers": [{"name": "math"}],
         "groups": [{"task": "t", "prompt": "6*7", "reference": "42", "completions": [{"text": "\\boxed{42}"}, {"text": "\\boxed{41}"}]}]}


class Service:
    def __init__(self, binary, folder):
        self.folder, self.database, self.ready = folder, os.path.join(folder, "rolloutd.db"), os.path.join(folder, "ready")
        self.command = [binary, "--listen", "127.0.0.1:0", "--database", self.database, "--ready-file", self.ready]

    def start(self):
        """Seconds until it was ready, and the bytes that it had read by then."""
        if os.path.exists(self.ready):
            os.unlink(self.ready)
        begun = time.monotonic()
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        while not os.path.exists(self.ready):
            assert self.process.poll() is None, "it did not start"
            time.sleep(0.001)
        seconds = time.monotonic() - begun
        with open(f"/proc/{self.process.pid}/io", encoding="ascii") as file:
            read = int(file.readline().split()[1])
        return seconds, read

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait()

    def score(self):
        with open(self.ready, encoding="ascii") as file:
            request = urllib.request.Request(file.read().strip() + "/v1/score", json.dumps(SCORE).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request).read()


def fill(path, size_bytes):
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")
    first, step = 0, 50_000
    while os.path.getsize(path) < size_bytes:
        connection.executescript(ROWS.format(first=first, last=first + step, half=TEXT_BYTES // 2))
        first += step
    connection.close()
    return first


def forget(path):
    """Out of the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(service, how, rounds):
    for cold in (False, True):
        found = []
        for _ in range(rounds):
            service.start()
            for _ in range(100):
                service.score()
            service.end(how)
            log = service.database + "-wal"
            log_bytes = os.path.getsize(log) if os.path.exists(log) else 0
            if cold:
                forget(service.database)
            found.append((*service.start(), log_bytes))
            service.end(signal.SIGTERM)
        seconds, read, log_bytes = (sorted(column)[len(found) // 2] for column in zip(*found))
        print(f"{'clean stop' if how == signal.SIGTERM else 'kill -9':12}{'cold' if cold else 'cached':8}ready {seconds * 1000:8.1f} ms   read {read / 2**20:7.2f} MiB"
              f"   log {log_bytes / 2**20:6.2f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "rolloutd"))
    parser.add_argument("--folder", default=None)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    size_bytes = int(options.gigabytes * 2**30)
    folder = tempfile.mkdtemp(prefix="rolloutd-start-", dir=options.folder)
    try:
        if shutil.disk_usage(folder).free < 1.5 * size_bytes:
            sys.exit(f"{folder} has no room for {1.5 * options.gigabytes} GiB")
        service = Service(os.path.abspath(options.binary), folder)
        service.start()
        service.score()
        service.end(signal.SIGTERM)
        rows = fill(service.database, size_bytes)
        print(f"{os.path.getsize(service.database) / 2**30:.2f} GiB, {rows} rollouts")
        measure(service, signal.SIGTERM, options.rounds)
        measure(service, signal.SIGKILL, options.rounds)
    finally:
        shutil.rmtree(folder)


main()
