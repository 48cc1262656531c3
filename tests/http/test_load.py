"""Many at once. No times are asserted, only that everybody is answered."""
import contextlib
import os
import selectors
import threading
import time

import pytest

from engines import ToyEngine
from harness import PATIENCE, eventually, http_request
from material import assert_sums_up, make_batch, make_group, rollouts, sampling, seed_of


@pytest.fixture
def paced_toy(tmp_path):
    """Takes 20 ms for a token, so that requests really are in flight together."""
    made = ToyEngine(tmp_path, "--pace", "0.02")
    yield made
    made.close()


@contextlib.contextmanager
def first_wave(toy, count):
    """The engine holds so many requests until all of them are there, however slow the service."""
    toy.post("/misbehave", {"rules": [{"hold": True, "times": count}]})

    def release():
        try:
            eventually(lambda: http_request(toy.url, "GET", "/_log").json["in_flight"] >= count, f"{count} requests in flight")
        finally:
            toy.post("/misbehave", {"rules": []})

    thread = threading.Thread(target=release)
    thread.start()
    yield
    thread.join()


def test_one_batch_of_500_prompts_times_8_with_256_in_flight(start, paced_toy):
    service, toy = start(paced_toy), paced_toy
    groups = [make_group(f"t{index}", f"{index % 10}+{index % 9}=", str(index % 10 + index % 9)) for index in range(500)]
    body = make_batch(*groups, verifiers=[{"name": "exact", "options": {"strip": True}}], sampling=sampling(8), deadline="5m")
    with first_wave(toy, 256):
        reply = service.request("POST", "/v1/batches", body, timeout=280)
    assert reply.status == 200, reply
    batch = reply.json
    assert batch["state"] == "complete" and batch["summary"]["rollouts"] == batch["summary"]["scored"] == 4000, batch["summary"]
    assert len({rollout["id"] for rollout in rollouts(batch)}) == 4000
    assert all(rollout["seed"] == seed_of(7, 1, group["task"], 0, rollout["sample_index"]) for group in batch["groups"] for rollout in group["rollouts"])
    assert_sums_up(batch)
    log = http_request(toy.url, "GET", "/_log").json
    assert log["completions"] == 4000 and log["max_in_flight"] in (256, 257), log  # one more: the request for the log
    assert service.read(f"/v1/batches/{batch['id']}/groups", limit=1)["next"]


@pytest.mark.parametrize("count", [127, 128, 129, 256, 384])
def test_clients_that_are_ready_at_the_very_same_moment_are_all_answered(start, count):
    """libmicrohttpd's own epoll loop hangs when exactly 128*k sockets are ready: ours must not.
    The service is stopped while the requests arrive, so that they are ready at once."""
    service = start()
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    wires = [service.wire() for _ in range(count)]
    for wire in wires:
        assert wire.send(request).reply().status == 200  # accepted, and idle
    os.kill(service.pid, 19)
    for wire in wires:
        wire.send(request)
    os.kill(service.pid, 18)
    with selectors.DefaultSelector() as ready:
        for wire in wires:
            ready.register(wire.socket, selectors.EVENT_READ)
        end = time.monotonic() + PATIENCE
        while ready.get_map() and time.monotonic() < end:
            for key, _ in ready.select(1):
                ready.unregister(key.fileobj)
        assert not ready.get_map(), f"{len(ready.get_map())} of {count} were not answered"
    for wire in wires:
        assert wire.reply().status == 200
        wire.close()


def test_probes_are_answered_while_batches_run(start, toy):
    """R74: one heavy client does not silence the service."""
    service, stop, statuses = start(toy), threading.Event(), []

    def probe():
        while not stop.is_set():
            statuses.append(service.get("/healthz").status)
    prober = threading.Thread(target=probe)
    prober.start()
    try:
        groups = [make_group(f"t{index}", f"{index % 10}+1=", "1") for index in range(50)]
        batch = service.batch(make_batch(*groups, verifiers=[{"name": "exact"}], sampling=sampling(8)))
    finally:
        stop.set()
        prober.join()
    assert batch["summary"]["scored"] == 400 and set(statuses) == {200}


def test_batches_of_many_clients_do_not_mix(start, toy):
    service, results = start(toy), {}

    def post(index):
        results[index] = service.batch(make_batch(make_group(f"task-{index}", f"{index % 10}+2=", "x"), run=f"run-{index}", seed=index,
                                                  verifiers=[{"name": "exact"}], sampling=sampling(4)))
    threads = [threading.Thread(target=post, args=(index,)) for index in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 24
    for index, batch in results.items():
        assert (batch["run"], batch["seed"], batch["groups"][0]["task"]) == (f"run-{index}", index, f"task-{index}")
        assert [rollout["seed"] for rollout in rollouts(batch)] == [seed_of(index, 1, f"task-{index}", 0, member) for member in range(4)]


def test_the_engine_limit_is_kept(start, paced_toy):
    service = start(f"{paced_toy.for_rolloutd}&in_flight=5")
    with first_wave(paced_toy, 5):
        batch = service.batch(make_batch(*[make_group(f"t{index}", "1+2=", "3") for index in range(10)], verifiers=[{"name": "exact"}], sampling=sampling(4)))
    assert batch["summary"]["scored"] == 40
    assert http_request(paced_toy.url, "GET", "/_log").json["max_in_flight"] in (5, 6)


def test_the_same_seeds_give_the_same_tokens_whatever_else_runs(start, toy):
    service = start(toy)
    body = make_batch(make_group("t", "3+4=", "7"), verifiers=[{"name": "exact"}], sampling=sampling(16))
    alone = [rollout["completion_ids"] for rollout in rollouts(service.batch(body))]
    noise = [threading.Thread(target=lambda: service.batch(make_batch(make_group("n", "1+1=", "2"), seed=99, verifiers=[{"name": "exact"}],
                                                                      sampling=sampling(32)))) for _ in range(6)]
    for thread in noise:
        thread.start()
    crowded = [rollout["completion_ids"] for rollout in rollouts(service.batch(body))]
    for thread in noise:
        thread.join()
    assert crowded == alone


def test_too_much_is_refused_not_queued_for_ever(start, engine):
    """Admission is bounded: 429 with Retry-After, and what was accepted still ends."""
    engine.rules({"hold": True, "text": "\\boxed{42}"})
    service = start(engine, settings={"batches_limit": 3})
    replies = [service.post("/v1/batches", make_batch(run="many"), {"Prefer": "respond-async"}) for _ in range(6)]
    statuses = [reply.status for reply in replies]
    assert statuses == [202] * 3 + [429] * 3, statuses
    assert replies[-1].error["code"] == "queue_full" and int(replies[-1].headers["retry-after"]) > 0
    engine.release()
    for reply in replies[:3]:
        assert service.settled(reply.json["id"])["state"] == "complete"
    assert eventually(lambda: service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).status == 202, "room again")
