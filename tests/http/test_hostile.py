"""Clients that leave, stall, flood or ask for too much: the others are served, and everything is given back."""
import json
import os
import re
import signal
import threading
import time

import pytest

from harness import eventually, http_request
from material import make_batch, make_group, rollouts, sampling
from test_metrics import metrics

RIGHT = {"text": "\\boxed{42}"}
VERIFY = json.dumps({"verifiers": [{"name": "exact"}], "items": [{"id": "1", "completion": "4", "reference": "4"}]}).encode()


def post(body, path="/v1/verify", head=""):
    """The bytes of a POST."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw


def descriptors(service):
    return len(os.listdir(f"/proc/{service.pid}/fd"))


# -- leaving -------------------------------------------------------------------------------------------------------------

def test_a_part_of_a_request_that_comes_together_with_the_end_is_not_kept(start):
    """The library reads the part and waits for the next edge, which has been: the connection would stay until connection_timeout."""
    service = start(settings={"connection_timeout": "1h", "body_timeout": "1h"})
    whole = post(VERIFY)
    with service.wire() as wire:
        assert wire.send(whole).reply().status == 200
    before = descriptors(service)
    os.kill(service.pid, signal.SIGSTOP)
    for cut in range(1, len(whole), 5):
        service.wire().send(whole[:cut]).close()
    os.kill(service.pid, signal.SIGCONT)
    eventually(lambda: descriptors(service) <= before + 6, "the connections to be closed")


def test_a_client_that_only_ends_its_own_direction_gets_what_is_answered_at_once(plain):
    with plain.wire() as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20).socket.shutdown(1)
        assert [wire.reply().status for _ in range(20)] == [200] * 20


def test_headers_that_the_library_cannot_take_leave_nothing_behind(start):
    """Whether something is left is said by the leak sanitizer when the service ends."""
    service = start()
    with service.wire() as wire:
        wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nCookie: " + "a=b; " * 5000 + "\r\n\r\n").closed()
    assert service.get("/healthz").status == 200


def test_hang_ups_in_the_middle_of_a_verification_free_the_workers(start):
    service = start()
    body = {"verifiers": [{"name": "exact"}], "items": [{"completion": "4", "reference": "4"}] * 5000}
    for _ in range(6):
        wire = service.wire().send(post(body))
        eventually(lambda: service.get("/healthz").status == 200, "an answer")
        wire.close()
    assert http_request(service.url, "POST", "/v1/verify", VERIFY).json["items"][0]["reward"] == 1


# -- asking for too much --------------------------------------------------------------------------------------------------

def test_a_sample_that_may_be_larger_than_the_memory_budget_is_sent_alone(start, engine):
    """Its own batch holds some of the budget already: it must not wait for that, nor hold up the others until its deadline."""
    engine.rules(RIGHT)
    service = start(engine, settings={"memory_budget": "1MiB"})
    batch = service.batch(make_batch(make_group("a"), make_group("b"), sampling=sampling(2, max_tokens=1000000), deadline="10s"))
    assert batch["state"] == "complete" and [rollout["reward"] for rollout in rollouts(batch)] == [1] * 4


def test_batches_that_come_at_once_keep_the_limit_too(start, engine):
    engine.rules({"hold": True, **RIGHT})
    service = start(engine, settings={"batches_limit": 3})
    wires = [service.wire() for _ in range(12)]
    os.kill(service.pid, signal.SIGSTOP)
    for wire in wires:
        wire.send(post(make_batch(), "/v1/batches", "Prefer: respond-async\r\n"))
    os.kill(service.pid, signal.SIGCONT)
    assert sorted(wire.reply().status for wire in wires) == [202] * 3 + [429] * 9
    engine.release()
    assert eventually(lambda: service.post("/v1/batches", make_batch()).status == 200, "room again")


def test_bodies_together_keep_within_the_memory_budget(start):
    service = start(settings={"memory_budget": "2MiB"})
    large = post(VERIFY + b" " * 1500000)
    with service.wire() as first, service.wire() as second:
        first.send(large[:-1000])
        eventually(lambda: metrics(service)[0]["rolloutd_memory_used_bytes", ()] > 1400000, "it to have arrived")
        try:
            second.send(large)
        except (BrokenPipeError, ConnectionResetError):
            pass
        refusal = second.reply()
        assert (refusal.status, refusal.error["code"], refusal.headers["retry-after"]) == (429, "queue_full", "1")
        assert first.send(large[-1000:]).reply().status == 200
    with service.wire() as third:
        assert third.send(large).reply().status == 200


def anonymous_bytes(service):
    with open(f"/proc/{service.pid}/status", encoding="ascii") as file:
        return int(re.search(r"RssAnon:\s+(\d+)", file.read())[1]) << 10


@pytest.mark.parametrize("value", ["{}", "[]", '""', '{"":{"":0}}'])
def test_two_bytes_that_cost_two_hundred_are_counted_as_what_they_cost(start, value):
    """A limit on bodies is none on memory: 90 MB of such values would be 6 GB."""
    service = start(settings={"memory_budget": "64MiB"})
    before = anonymous_bytes(service)
    count = 1_500_000 if os.environ.get("ROLLOUTD_SANITIZED") else 2_500_000
    body = b'{"run":[' + b",".join([value.encode()] * count) + b"]}"
    for path in ("/v1/batches", "/v1/score", "/v1/verify", "/v1/objective"):
        reply = service.post(path, body)
        assert (reply.status, reply.error["code"]) == (413, "body_too_large") and "memory_budget" in reply.error["message"], (path, reply)
    with open(f"/proc/{service.pid}/status", encoding="ascii") as file:
        peak = int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) << 10
    if not os.environ.get("ROLLOUTD_SANITIZED"):
        assert peak < before + (64 << 20) + 3 * len(body) + (32 << 20)
        eventually(lambda: anonymous_bytes(service) < before + (16 << 20), "the memory to be given back")
    assert http_request(service.url, "POST", "/v1/verify", VERIFY).status == 200


def test_a_body_that_fits_alone_may_be_refused_beside_others(start):
    """Each tree takes more than half of the budget: of two that are read at once one is sent away, or both, and comes again."""
    service = start(settings={"memory_budget": "64MiB", "workers": 4})
    body = post(b'{"run":[' + b",".join([b"{}"] * 150_000) + b"]}", "/v1/batches")
    statuses = []
    for _ in range(20):
        with service.wire() as first, service.wire() as second:
            os.kill(service.pid, signal.SIGSTOP)
            threads = [threading.Thread(target=wire.send, args=(body,)) for wire in (first, second)]
            for thread in threads:
                thread.start()
            os.kill(service.pid, signal.SIGCONT)
            replies = [wire.reply() for wire in (first, second)]
            for thread in threads:
                thread.join()
        statuses += [reply.status for reply in replies]
        assert set(statuses) <= {400, 429}, replies
        if 429 in statuses:
            refusal = next(reply for reply in replies if reply.status == 429)
            assert refusal.error["code"] == "queue_full" and refusal.headers["retry-after"] == "1"
            break
    assert 429 in statuses and service.request("POST", "/v1/batches", body.split(b"\r\n\r\n", 1)[1]).status == 400


# -- coming slowly ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("beginning", [b"G", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "], ids=["letter", "line", "header"])
def test_headers_must_arrive_within_body_timeout(start, beginning):
    """A byte now and then keeps the library's own time limit from passing."""
    service = start(settings={"body_timeout": "1s", "connection_timeout": "1h"})
    with service.wire() as wire, service.wire() as idle:
        assert idle.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").reply().status == 200
        wire.send(beginning)
        refused, end = False, time.monotonic() + 30
        while not refused and time.monotonic() < end:
            time.sleep(0.1)
            try:
                wire.send(b"a")
            except OSError:
                refused = True
        reply = wire.reply()
        assert refused and (reply.status, reply.error["code"], reply.headers["connection"]) == (408, "body_timeout", "close")
        assert idle.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").reply().status == 200, "who only waits is left alone"
    assert service.get("/healthz").status == 200


def test_a_head_that_comes_slowly_is_no_idle_connection(start):
    """A client that was idle for as long is sent away meanwhile."""
    service = start(settings={"body_timeout": "1h", "connection_timeout": "1s"})
    with service.wire() as wire, service.wire() as idle:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: local")
        idle.closed()
        assert wire.send(b"host\r\n\r\n").reply().status == 200
        wire.closed()  # idle now


def test_a_request_whose_headers_came_in_time_may_take_its_time(start, engine):
    engine.rules({"delay": 6, **RIGHT})
    service = start(engine, settings={"body_timeout": "5s"})
    with service.wire() as wire:
        request = post(make_batch(), "/v1/batches")
        wire.send(request[:40])
        time.sleep(0.2)
        assert wire.send(request[40:]).reply().status == 200


# -- coming again ----------------------------------------------------------------------------------------------------------

def test_a_repeated_request_finds_its_batch_even_in_a_full_service(start, engine):
    engine.rules({"hold": True, **RIGHT})
    service = start(engine, settings={"batches_limit": 2})
    first = service.post("/v1/batches", make_batch(), {"Idempotency-Key": "a", "Prefer": "respond-async"})
    other = service.post("/v1/batches", make_batch(run="other"), {"Idempotency-Key": "b", "Prefer": "respond-async"})
    assert (first.status, other.status, service.post("/v1/batches", make_batch(run="third")).status) == (202, 202, 429)
    assert service.post("/v1/batches", make_batch(run="third"), {"Idempotency-Key": "c"}).status == 429
    assert service.post("/v1/batches", make_batch(seed=8), {"Idempotency-Key": "a"}).status == 409
    engine.release()
    again = service.post("/v1/batches", make_batch(), {"Idempotency-Key": "a"})
    assert again.status == 200 and again.json["id"] == first.json["id"] and len(engine.samples) <= 4


def test_a_hang_up_of_a_repeated_request_leaves_nothing_behind(start, engine):
    """The lookup of the key is long over when the reply is streamed and its reader hangs up: the address sanitizer sees whether it is told."""
    engine.rules({"text": "x" * 200000})
    service = start(engine)
    body, key = make_batch(*[make_group(f"t{index}") for index in range(8)], verifiers=[{"name": "exact"}], sampling=sampling(4), deadline="5m"), "Idempotency-Key: k\r\n"
    first = service.post("/v1/batches", body, {"Idempotency-Key": "k"})
    assert first.status == 200 and len(first.body) > 6_000_000, "more than the sockets hold"
    with service.wire() as other:
        assert other.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").reply().status == 200  # it has been accepted, and counts
        before = descriptors(service)
        for _ in range(2):
            with service.wire() as wire:
                assert wire.send(post(body, "/v1/batches", key)).until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        eventually(lambda: descriptors(service) <= before, "the connections to be closed")
        assert other.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").reply().status == 200


# -- shutting down ---------------------------------------------------------------------------------------------------------

def test_readers_that_never_stop_do_not_keep_it_from_ending(start, engine):
    """There is always somebody whose request a worker has: only sending away those who come later ends that."""
    engine.rules(RIGHT)
    service, answers = start(engine), []
    service.batch(make_batch(sampling=sampling(64)))

    def read(wire):
        try:
            while True:
                answers.append(wire.reply().status)
        except (OSError, EOFError):
            wire.close()
    wires = [service.wire() for _ in range(8)]
    readers = [threading.Thread(target=read, args=(wire,)) for wire in wires]
    for wire, reader in zip(wires, readers):
        wire.send(b"GET /v1/rollouts?limit=64 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
        reader.start()
    assert service.terminate() == 0
    for reader in readers:
        reader.join()
    assert answers.count(200) < 4000 and set(answers) <= {200, 503}


def test_a_request_that_starts_to_wait_during_shutdown_is_refused(start, engine):
    engine.rules({"delay": 60})
    service = start(engine, settings={"drain_timeout": "200ms"})
    identity = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    with service.wire() as stalled, service.wire() as waiter, service.wire() as late:
        stalled.send(b"GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)  # more than the sockets hold: it keeps the service
        waiter.send(f"GET /v1/batches/{identity}?wait=10m HTTP/1.1\r\nHost: localhost\r\n\r\n")
        service.remember_family()
        service.process.send_signal(signal.SIGTERM)
        assert waiter.reply().json["state"] == "running"  # from now on it is leaving
        refusal = late.send(f"GET /v1/batches/{identity}?wait=10m HTTP/1.1\r\nHost: localhost\r\n\r\n").reply()
        assert (refusal.status, refusal.error["code"], refusal.headers["connection"]) == (503, "draining", "close")
        assert service.wait_exit() == 0
