"""How much: many samples, many clients, large bodies, and the memory that they take. No times are asserted.

ROLLOUTD_VOLUME is a factor for the sizes; tests/nightly/volume runs them four times as large."""
import contextlib
import json
import os
import re
import sqlite3
import threading
import time

import pytest

from engines import CannedEngine
from harness import eventually
from material import make_batch, make_group, rollouts, sampling
from test_metrics import metrics

SANITIZED = bool(os.environ.get("ROLLOUTD_SANITIZED"))
VOLUME = float(os.environ.get("ROLLOUTD_VOLUME", "0.125" if SANITIZED else "1"))
LOOSE = [{"name": "regex", "options": {"pattern": "^4"}}]
ASYNC = {"Prefer": "respond-async"}
# Memory that the service may take with any load: pages of the record cached by the writer (8 MiB) and by each worker (2 MiB).
CACHES = 8 + 2 * max(2, os.cpu_count()) << 20
UNDER_WAY = 48 << 20  # replies that are not parsed yet, frames for the verifiers: more on a busy machine


@pytest.fixture
def canned(tmp_path):
    made = []

    def make(*args):
        made.append(CannedEngine(tmp_path, *map(str, args)))
        return made[-1]
    yield make
    for engine in made:
        engine.close()


def scaled(count):
    return max(8, int(count * VOLUME))


def groups_of(count, **fields):
    return [make_group(f"t{index}", "1+1=", **fields) for index in range(count)]


def anonymous(service, name="RssAnon"):
    with open(f"/proc/{service.pid}/status", encoding="ascii") as file:
        return int(re.search(name + r":\s+(\d+)", file.read())[1]) << 10


class Peak:
    """The most memory that was seen while it was watched, and the most of the budget."""

    def __init__(self, service):
        self.service, self.before, self.bytes, self.budget = service, anonymous(service), 0, 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.stop.wait(0.02):
            self.bytes = max(self.bytes, anonymous(self.service))
            self.budget = max(self.budget, metrics(self.service)[0]["rolloutd_memory_used_bytes", ()])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    @property
    def over(self):
        return self.bytes - self.before


def test_a_thousand_slow_samples_of_one_batch_are_in_flight_together(start, canned):
    count = 1024
    engine = canned("--tokens", 16, "--text-bytes", 40, "--delay", 600)
    service = start(f"{engine.for_rolloutd}&in_flight=1024")
    identity = service.post("/v1/batches", make_batch(*groups_of(count // 8), verifiers=LOOSE, sampling=sampling(8), deadline="5m"), ASYNC).json["id"]
    eventually(lambda: engine.said["open"] == count, "all to be sampling")
    assert service.read("/v1/pending")["items"][0]["waiting"] == {"queued": 0, "sampling": count, "verifying": 0, "storing": 0}
    engine.set_delay(0)
    batch = service.settled(identity)
    assert batch["summary"]["scored"] == count and engine.said["samples"] == count


def test_two_hundred_clients_wait_for_what_they_asked_for(start, canned):
    engine = canned("--tokens", 8, "--text-bytes", 20, "--delay", 600)
    service = start(f"{engine.for_rolloutd}&in_flight=512")
    shared = service.post("/v1/batches", make_batch(make_group("shared"), verifiers=LOOSE, deadline="5m"), ASYNC).json["id"]
    wires = [service.wire() for _ in range(200)]
    for index, wire in enumerate(wires):
        if index % 2:
            wire.send(f"GET /v1/batches/{shared}?wait=4m HTTP/1.1\r\nHost: localhost\r\n\r\n")
            continue
        raw = json.dumps(make_batch(make_group(f"t{index}"), run=f"run-{index % 3}" if index % 4 else "test", verifiers=LOOSE, deadline="5m")).encode()
        wire.send(f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
    eventually(lambda: service.read("/v1/pending")["count"] == 101, "all batches to be accepted")
    engine.set_delay(0)
    for index, wire in enumerate(wires):
        reply = wire.reply()
        assert reply.status == 200 and reply.json["state"] == "complete", (index, reply)
        assert reply.json["groups"][0]["task"] == ("shared" if index % 2 else f"t{index}")
        wire.close()


def test_two_thousand_prompts_times_eight(start, canned):
    count = scaled(2000)
    service = start(canned("--tokens", 16, "--text-bytes", 40))
    batch = service.request("POST", "/v1/batches?arrays=base64", make_batch(*groups_of(count), verifiers=LOOSE, sampling=sampling(8), deadline="9m"), timeout=500).json
    assert batch["state"] == "complete" and batch["summary"]["scored"] == 8 * count
    assert len({rollout["id"] for rollout in rollouts(batch)}) == 8 * count and {len(group["rollouts"]) for group in batch["groups"]} == {8}


def test_a_small_batch_does_not_wait_behind_a_large_one(start, canned):
    engine = canned("--tokens", 16, "--text-bytes", 40, "--delay", "0.05")
    service = start(f"{engine.for_rolloutd}&in_flight=64")
    large = service.post("/v1/batches", make_batch(*groups_of(2000), verifiers=LOOSE, sampling=sampling(8), deadline="10m"), ASYNC).json["id"]
    eventually(lambda: engine.said["samples"] > 64, "the large one to be under way")
    small = service.batch(make_batch(make_group("small"), verifiers=LOOSE, sampling=sampling(8)))
    assert small["summary"]["scored"] == 8
    service.delete(f"/v1/batches/{large}")
    with contextlib.closing(sqlite3.connect(f"file:{service.database}?mode=ro", uri=True)) as database:
        (meanwhile,) = database.execute("SELECT count(*) FROM rollouts, batches WHERE batches.id = ? AND rollouts.created_at_us > batches.created_at_us AND rollouts.seq < "
                                        "(SELECT max(seq) FROM rollouts WHERE batch_seq = batches.seq)", (small["id"],)).fetchone()
    print(f"{meanwhile} rows meanwhile")
    assert meanwhile < 1000, "one of each in turn: what was in flight before, and about as many of the large one as of the small one"


def test_a_body_of_a_hundred_megabytes(start, canned):
    size = int(100e6 * min(1, VOLUME))
    service = start(canned("--tokens", 16, "--text-bytes", 40), settings={"body_limit": "128MiB"})
    body = json.dumps(make_batch(*[make_group(f"t{index}", "1+1= " * (size // 500)) for index in range(100)], verifiers=LOOSE, sampling=sampling(1), deadline="5m")).encode()
    with Peak(service) as peak:
        batch = service.batch(body, arrays="none")
    assert batch["summary"]["scored"] == 100 and len(body) >= size * 0.99
    print(f"body {len(body) >> 20} MiB, {peak.over >> 20} MiB over {peak.before >> 20}, budget {int(peak.budget) >> 20} MiB")
    assert SANITIZED or peak.over < 5 * len(body) + CACHES
    eventually(lambda: SANITIZED or anonymous(service) < peak.before + len(body) // 2 + CACHES, "the memory to be given back")
    with service.wire() as wire:
        wire.send(f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {129 << 20}\r\n\r\n")
        assert wire.reply().status == 413


def test_a_batch_of_4096_long_samples_takes_twice_its_packed_bytes(start, canned):
    """Ids, log-probabilities and text are what must be kept until it is on record. Beside that, the caches of the record."""
    count, tokens, text = scaled(4096), 1024, 4096
    service = start(canned("--tokens", tokens, "--text-bytes", text))
    service.batch(make_batch(verifiers=LOOSE, sampling=sampling(2, max_tokens=tokens)))
    packed = count * (8 * tokens + text)
    with Peak(service) as peak:
        identity = service.post("/v1/batches", make_batch(*groups_of(count // 8), verifiers=LOOSE, sampling=sampling(8, max_tokens=tokens), deadline="9m"), ASYNC).json["id"]
        eventually(lambda: service.read("/v1/pending")["count"] == 0, "it to end", 500)
        reply = service.request("GET", f"/v1/batches/{identity}?arrays=base64", timeout=280)
    assert reply.json["summary"]["scored"] == count // 8 * 8
    print(f"packed {packed >> 20} MiB, {peak.over >> 20} MiB over {peak.before >> 20}, budget {int(peak.budget) >> 20} MiB")
    assert SANITIZED or peak.over < 2 * packed + CACHES + UNDER_WAY


def test_samples_wait_for_the_memory_budget(start, canned):
    """A sample reserves what its reply may have at most, so that fewer are in flight where they may be long."""
    engine = canned("--tokens", 64, "--delay", 600)
    service = start(engine, settings={"memory_budget": "64MiB"})
    most = (64 << 20) // (200 * 16384)
    with Peak(service) as peak:
        identity = service.post("/v1/batches", make_batch(*groups_of(16), verifiers=LOOSE, sampling=sampling(8, max_tokens=16384), deadline="5m"), ASYNC).json["id"]
        eventually(lambda: engine.said["open"] > 4, "some to be sampling")
        engine.set_delay(0.05)
        batch = service.settled(identity)
    assert batch["summary"]["scored"] == 128 and 4 < engine.said["max_open"] <= most, engine.said
    assert 0 < peak.budget <= 64 << 20 and (SANITIZED or peak.over < (64 << 20) + CACHES)
