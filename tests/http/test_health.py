"""The operator's view: values that move as they should, the part that is not ready and its reason, the reason why each batch waits."""
import os
import signal

from harness import descendants, eventually
from material import make_batch, make_group, sampling
from test_database import answers, launch
from test_disk import RIGHT, limit_files
from test_engines_api import closed_port
from test_metrics import metrics

ASYNC = {"Prefer": "respond-async"}


class Watch:
    """Sums of a metric over the labels that are not named."""

    def __init__(self, service):
        self.service = service

    def __call__(self, name, **labels):
        samples, _ = metrics(self.service)
        return sum(value for (sample, found), value in samples.items() if sample == f"rolloutd_{name}" and set(labels.items()) <= set(found))


def parts(service):
    return service.get("/readyz").json["parts"]


def waits(service):
    return [item["waits_for"] for item in service.read("/v1/pending")["items"]]


def text_workers(service):
    """The spawner's children. Its own pid comes first."""
    service.remember_family()
    pids = [process.pid for process in service.family if process.alive()]
    spawner = next(pid for pid in pids if any(parent_of(other) == pid for other in pids))
    return spawner, [pid for pid in pids if parent_of(pid) == spawner]


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


# -- metrics -----------------------------------------------------------------------------------------------------------------

def test_the_memory_of_batches_leaves_room_for_caches_and_kept_blocks(start):
    service = start(settings={"memory_budget": "64MiB", "workers": 2, "readers": 1})
    caches = (1 << 20) + (2 + 1) * (1 << 20) // 4  # the writer's, and a quarter for each worker and reader
    assert Watch(service)("memory_limit_bytes") == (64 << 20) - caches - (64 << 20) // 8


def test_gauges_follow_what_is_under_way(start, engine):
    engine.rules({"delay": 60})
    service = start(f"{engine.for_rolloutd}&in_flight=3")
    value = Watch(service)
    eventually(lambda: value("engines_up") == 1, "the engine to be probed")
    assert (value("samples_in_flight"), value("batches_running"), value("memory_used_bytes")) == (0, 0, 0)
    identity = service.post("/v1/batches", make_batch(sampling=sampling(8)), ASYNC).json["id"]
    eventually(lambda: engine.open == 3, "three to be sampling")
    assert (value("samples_in_flight"), value("samples_queued"), value("batches_running"), value("queue_depth", queue="batch")) == (3, 5, 1, 1)
    assert 0 < value("memory_used_bytes") < value("memory_limit_bytes") < 1 << 30
    assert value("text_workers_alive") >= 2 and value("connections") >= 1 and value("wal_bytes") > 0
    service.delete(f"/v1/batches/{identity}")
    assert (value("samples_in_flight"), value("samples_queued"), value("batches_running"), value("memory_used_bytes")) == (0, 0, 0, 0)
    assert value("rollouts_total", state="cancelled") == 8 and value("batches_total", state="cancelled") == 1


def test_histograms_count_what_happened(service, engine):
    value = Watch(service)
    commits, rows = value("commit_seconds_count"), value("commit_rows_sum")
    engine.rules({"in": "slow", "delay": 0.3, **RIGHT}, {"in": "bad", "status": 400, "json": {"error": {"message": "no"}}}, RIGHT)
    batch = service.batch(make_batch(make_group("s", "slow"), make_group("b", "bad"), make_group("g", "good"), sampling=sampling(4)))
    assert value("engine_request_seconds_count") == len(engine.samples) == 12
    assert value("engine_request_seconds_sum") >= 4 * 0.3
    assert value("engine_request_seconds_bucket", le="0.25") <= 8 and value("engine_request_seconds_bucket", le="+Inf") == 12
    assert value("verify_seconds_count") == 8 and value("verify_seconds_sum") > 0
    done = 1 + 12 + 3 + 1  # the batch is created, its rollouts, its groups' ends, its end
    assert value("commit_rows_sum") - rows == done and 4 <= value("commit_seconds_count") - commits <= done
    assert value("commit_rows_count") == value("commit_seconds_count") and value("commit_seconds_sum") > 0
    assert value("completion_tokens_total") == 8 * 3 and value("failures_total", code="engine_error") == 4
    assert value("failures_total") == 4 and batch["summary"]["failures"] == {"engine_error": 4}
    samples, _ = metrics(service)
    assert samples["rolloutd_http_request_seconds_count", ()] == sum(number for (name, _), number in samples.items() if name == "rolloutd_http_requests_total") > 5


def test_retries_refusals_and_undecided_verdicts_are_counted(start, engine):
    engine.rules({"lp": None, "times": 2}, {"in": "never", "delay": 60}, {**RIGHT, "text": "\\boxed{2^{3^{4^{5}}}}"})
    service = start(engine, settings={"batches_limit": 1, "engine.backoff_min": "10ms"})
    value = Watch(service)
    batch = service.batch(make_batch(make_group("t", reference="7"), sampling=sampling(2)))
    assert batch["summary"]["scored"] == 2 and value("engine_retries_total") == 2
    reasons = [verdict["reason"] for group in batch["groups"] for rollout in group["rollouts"] for verdict in service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"]]
    assert value("verdicts_undecided_total") == reasons.count("undecided") == 2, reasons
    assert service.post("/v1/batches", make_batch(make_group("n", "never")), ASYNC).status == 202
    for _ in range(3):
        assert service.post("/v1/batches", make_batch()).status == 429
    assert value("queue_refusals_total", queue="batch") == 3 == value("queue_refusals_total")


def test_text_workers_that_were_replaced_are_counted(service):
    value = Watch(service)
    eventually(lambda: value("text_workers_alive") >= 2 and len(text_workers(service)[1]) == value("text_workers_alive"), "all to be there")
    assert value("text_workers_replaced_total") == 0
    service.post("/v1/verify", {"verifiers": [{"name": "exact"}], "items": [{"completion": "a", "reference": "a"}] * 64})  # each has served: no pause before another
    os.kill(text_workers(service)[1][0], signal.SIGKILL)
    eventually(lambda: value("text_workers_replaced_total") == 1, "it to be replaced")


# -- /readyz -----------------------------------------------------------------------------------------------------------------

def test_an_engine_that_is_gone_is_named(start, toy):
    service = start(toy)
    value = Watch(service)
    eventually(lambda: service.get("/readyz").status == 200 and value("engines_up") == 1, "everything to be ready")
    assert set(parts(service).values()) == {"ready"}
    toy.close()
    service.post("/v1/batches", make_batch(deadline="1s"))
    reply = service.get("/readyz")
    assert reply.status == 503 and reply.json["parts"]["engines"] == "no engine answers"
    (shown,) = reply.json["engines"]
    assert shown["state"] == "down" and "cannot be reached" in shown["last_error"]
    assert {name: why for name, why in reply.json["parts"].items() if name != "engines"} == {"admission": "ready", "resume": "ready", "store": "ready", "verifiers": "ready"}
    assert value("engines_up") == 0


def test_without_a_text_worker_it_is_not_ready(start):
    service = start()
    eventually(lambda: service.get("/readyz").status == 200, "everything to be ready")
    spawner, workers = text_workers(service)
    os.kill(spawner, signal.SIGSTOP)  # so that no other is made
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: parts(service)["verifiers"] == "no text worker is alive", "it to be said")
    assert service.get("/readyz").status == 503
    os.kill(spawner, signal.SIGCONT)
    eventually(lambda: service.get("/readyz").status == 200, "others to be there")


def start_without_text_workers(start, slow_sync):
    """Stops the spawner while the database is being made, which comes before the first text worker. Gives the service and the spawner."""
    service = start.make()
    hanging, port = service.folder + "/hanging", closed_port()
    service.args += ["--listen", f"127.0.0.1:{port}"]
    service.env.update({"LD_PRELOAD": slow_sync, "SLOW_SYNC_FILE": hanging})
    open(hanging, "w", encoding="ascii").close()
    launch(service)
    service.url = f"http://127.0.0.1:{port}"
    eventually(lambda: os.path.exists(hanging + ".waits"), "the database to be made")
    (spawner,) = descendants(service.pid)
    os.kill(spawner.pid, signal.SIGSTOP)
    os.unlink(hanging)
    eventually(lambda: answers(service) and parts(service)["resume"] == "ready", "everything but the text workers")
    return service, spawner


def test_the_ready_file_waits_for_a_text_worker(start, slow_sync):
    service, spawner = start_without_text_workers(start, slow_sync)
    assert parts(service)["verifiers"] == "no text worker is alive" and not service.ready()
    os.kill(spawner.pid, signal.SIGCONT)
    eventually(service.ready, "the ready file")
    assert service.get("/readyz").status == 200
    assert "the service starts without" not in service.log()


def test_the_service_starts_without_text_workers(start, slow_sync):
    service, spawner = start_without_text_workers(start, slow_sync)
    eventually(service.ready, "the ready file")
    assert parts(service)["verifiers"] == "no text worker is alive" and "no text worker has started yet" in service.log()
    os.kill(spawner.pid, signal.SIGCONT)
    eventually(lambda: service.get("/readyz").status == 200, "them to be there after all")


def test_while_it_drains_it_is_not_ready(start, engine):
    engine.rules({"hold": True})
    service = start(engine, settings={"drain_timeout": "60s"})
    with service.wire() as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").reply()
        service.post("/v1/batches", make_batch(), ASYNC)
        service.remember_family()
        service.process.send_signal(signal.SIGTERM)
        ready = eventually(lambda: not_ready(wire), "the signal to arrive")
        assert ready.json["parts"]["admission"] == "the service is draining"
    engine.release()
    assert service.wait_exit() == 0


def not_ready(wire):
    reply = wire.send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").reply()
    return reply if reply.status == 503 else None


# -- /v1/pending -------------------------------------------------------------------------------------------------------------

def test_it_says_what_a_batch_waits_for_in_each_phase(start, engine):
    engine.rules({"in": "never", "delay": 60}, {"in": "later", "status": 429, "json": {}, "headers": {"Retry-After": "10"}},
                 {"in": "kept", "hold": True, **RIGHT}, RIGHT)
    service = start(engine)
    assert service.read("/v1/pending") == {"items": [], "count": 0, "updates": [], "slots": [], "verifier_incidents": [], "alarms": [], "calls": [],
                                            "delivery": dict.fromkeys(("waiting", "ready", "leased", "acked", "stale", "failed", "dropped"), 0),
                                            "lease_requests": 0, "reverifications": []}
    first = service.post("/v1/batches", make_batch(make_group("n", "never")), ASYNC).json["id"]
    eventually(lambda: engine.open == 2, "both to be sampling")
    assert waits(service) == ["the engines"]
    service.post("/v1/batches", make_batch(run="other"), ASYNC)
    assert sorted(waits(service)) == ["the engines", "the engines, which serve another run"]
    assert [item["waits_for"] for item in service.read("/v1/pending", run="other")["items"]] == ["the engines, which serve another run"]
    service.delete(f"/v1/batches/{first}")
    eventually(lambda: not waits(service), "the other to end")

    spawner, workers = text_workers(service)
    for pid in (spawner, *workers):
        os.kill(pid, signal.SIGSTOP)
    service.post("/v1/batches", make_batch(make_group("v")), ASYNC)
    eventually(lambda: waits(service) == ["the verifiers"], "the text workers to be asked")
    assert service.read("/v1/pending")["items"][0]["waiting"] == {"queued": 0, "sampling": 0, "verifying": 2, "storing": 0}
    for pid in (spawner, *workers):
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: not waits(service), "it to end")

    service.post("/v1/batches", make_batch(make_group("s", "kept")), ASYNC)
    eventually(lambda: engine.open == 2, "both to be sampling")
    limit_files(service, 4096)
    engine.release()
    eventually(lambda: waits(service) == ["the store, which cannot write"], "the disk to be full")
    limit_files(service, None)
    eventually(lambda: not waits(service), "it to end")

    service.post("/v1/batches", make_batch(make_group("l", "later"), sampling=sampling(1)), ASYNC)
    eventually(lambda: waits(service) == ["a pause before the next attempt"], "the engine to ask for one")


def test_a_sample_behind_the_engines_limit_waits_for_a_place(start, engine):
    engine.rules({"delay": 60})
    service = start(f"{engine.for_rolloutd}&in_flight=2")
    service.post("/v1/batches", make_batch(), ASYNC)
    eventually(lambda: engine.open == 2, "both to be sampling")
    service.post("/v1/batches", make_batch(seed=8), ASYNC)
    assert sorted(waits(service)) == ["an engine with a free place", "the engines"]
