"""SIGTERM: no new work, what runs may end, everything known is on disk, exit 0."""
import json
import signal
import threading

import pytest

from harness import eventually, http_request
from material import make_batch, rollouts

RIGHT = {"text": "\\boxed{42}"}


@pytest.fixture
def service(start, engine):
    return start(engine, settings={"drain_timeout": "60s"})


def drained(service):
    """SIGTERM, and wait until it is seen."""
    service.remember_family()
    service.process.send_signal(signal.SIGTERM)


def test_an_idle_service_ends_at_once(start):
    service = start()
    assert service.terminate() == 0
    service.no_orphans()


def test_a_running_batch_is_finished_and_its_waiter_answered(service, engine):
    engine.rules({"hold": True, **RIGHT})
    replies = []
    waiter = threading.Thread(target=lambda: replies.append(service.post("/v1/batches", make_batch())))
    waiter.start()
    eventually(lambda: engine.open == 2, "both to be in flight")
    drained(service)
    eventually(lambda: "draining" in service.log(), "it to drain")
    engine.release()
    waiter.join()
    assert service.wait_exit() == 0
    assert replies[0].status == 200 and replies[0].json["state"] == "complete"
    service.start()
    assert service.read(f"/v1/batches/{replies[0].json['id']}") == replies[0].json


def test_while_it_drains_new_work_is_refused_and_reading_goes_on(service, engine):
    engine.rules({"hold": True, **RIGHT})
    identity = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "both to be in flight")
    wires = [service.wire() for _ in range(3)]  # while draining nobody new may be let in
    drained(service)
    eventually(lambda: ask(wires[0], "GET", "/readyz").status == 503, "readyz to say 503")
    raw = json.dumps(make_batch())
    wires[1].send(f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n{raw}")
    refusal = wires[1].reply()
    assert (refusal.status, refusal.error["code"]) == (503, "draining") and int(refusal.headers["retry-after"]) > 0
    assert ask(wires[2], "GET", f"/v1/batches/{identity}?wait=0s").json["state"] == "running"
    engine.release()
    assert service.wait_exit() == 0
    service.start()
    assert service.settled(identity)["state"] == "complete"


def ask(wire, method, path):
    return wire.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").reply()


def test_a_batch_that_does_not_end_in_time_is_answered_202_and_resumed(start, engine):
    engine.rules({"delay": 60, "times": 2}, RIGHT)
    service = start(engine, settings={"drain_timeout": "500ms"})
    replies = []
    waiter = threading.Thread(target=lambda: replies.append(http_request(service.url, "POST", "/v1/batches", make_batch(), {"Idempotency-Key": "k"})))
    waiter.start()
    eventually(lambda: engine.open == 2, "both to be in flight")
    assert service.terminate() == 0
    waiter.join()
    assert replies[0].status == 202 and replies[0].json["id"]
    service.start()
    batch = service.settled(replies[0].json["id"])
    assert batch["state"] == "complete" and all(rollout["reward"] == 1 for rollout in rollouts(batch))


def test_a_hundred_waiters_do_not_keep_it_from_ending(start, engine):
    engine.rules({"delay": 60})
    service = start(engine, settings={"drain_timeout": "300ms"})
    identity = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    wires = [service.wire().send(f"GET /v1/batches/{identity}?wait=10m HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(100)]
    eventually(lambda: engine.open == 2, "both to be in flight")
    assert service.terminate() == 0
    for wire in wires:
        assert wire.reply().json["state"] == "running"


def test_a_second_sigterm_stops_at_once(service, engine):
    engine.rules({"delay": 60})
    identity = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "both to be in flight")
    drained(service)
    eventually(lambda: "drain" in service.log().lower(), "the drain to begin")
    service.process.send_signal(signal.SIGTERM)
    service.wait_exit()
    service.no_orphans()
    engine.rules(RIGHT)
    service.start()
    assert service.settled(identity)["state"] == "complete"


def test_silent_and_half_open_clients_do_not_keep_it_from_ending(start):
    service = start()
    silent = [service.wire() for _ in range(20)]
    for wire in silent[:10]:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    assert service.terminate() == 0
    for wire in silent:
        wire.close()
