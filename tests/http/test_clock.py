"""F10: the clock that ended a sample. A sample that is broken off before its engine had its usual time says nothing about the engine."""
import threading

import pytest

from engines import ScriptedEngine
from harness import eventually
from material import codes, make_batch, make_group, rollouts, sampling

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
QUICK = {"engine.backoff_min": "10ms", "engine.backoff_max": "50ms", "engine.check_interval": "100ms"}


def shown(service):
    return service.read("/v1/engines")["items"][0]


def in_state(service, state):
    return eventually(lambda: (item := shown(service))["state"] == state and item, f"e1 to be {state}")


@pytest.mark.parametrize("limit", [{"rollout_timeout": "50ms"}, {"deadline": "50ms"}])
def test_a_limit_below_what_the_engine_takes_is_not_held_against_it(start, engine, limit):
    """The example of the report: three such batches, and the engine was down."""
    engine.rules({"in": "HURRY", "delay": 0.6, **RIGHT}, RIGHT)
    service = start(engine, settings=QUICK)
    in_state(service, "up")
    for index in range(4):
        batch = service.batch(make_batch(make_group("t", "HURRY"), run=f"hurried{index}", **limit))
        assert set(codes(batch["groups"][0])) <= {"engine_timeout", "deadline"}, batch
        item = shown(service)
        assert (item["state"], item["failures"], item["last_error"], item["why"]) == ("up", {}, None, None)
    engine.rules({"delay": 0.6, **RIGHT})
    assert service.batch(make_batch(run="patient"))["summary"]["scored"] == 2


def test_other_runs_are_not_held_up_by_one_that_is_in_a_hurry(start, engine):
    engine.rules({"delay": 0.6, **RIGHT})
    service = start(engine, settings=QUICK)
    ids = [service.post("/v1/batches", make_batch(run="hurried", rollout_timeout="50ms", seed=seed), headers={"Prefer": "respond-async"}).json["id"]
           for seed in range(3)]
    batch = service.batch(make_batch(run="patient", sampling=sampling(4)))
    assert batch["summary"]["scored"] == 4 and {rollout["attempts"] for rollout in rollouts(batch)} == {1}
    for one in ids:
        assert service.read(f"/v1/batches/{one}", wait="20s")["summary"]["failures"] == {"engine_timeout": 2}
    item = shown(service)
    assert (item["state"], item["failures"], item["retries"]) == ("up", {}, 0)


def test_an_engine_that_hangs_beyond_its_usual_time_goes_down(start, engine):
    """Short samples tell how long a request takes: a second is enough, though a thousand tokens may be asked for."""
    engine.rules(RIGHT)
    service = start(engine, settings=QUICK)
    in_state(service, "up")
    assert service.batch(make_batch(run="a"))["summary"]["scored"] == 2
    engine.rules({"delay": 60})
    batch = service.batch(make_batch(run="a", sampling={"n": 4, "max_tokens": 1024}, rollout_timeout="1s"))
    assert batch["summary"]["failed"] == 4
    item = shown(service)
    assert item["state"] in ("down", "half_open") and item["failures"]["engine_timeout"] >= 3


class Outage:
    """An engine that goes, and comes back at the same port."""

    def __init__(self):
        self.engine = ScriptedEngine()

    def go(self):
        self.engine.server.shutdown()
        self.engine.server.server_close()

    def come_back(self):
        self.engine.server = self.engine.module.Server(("127.0.0.1", self.engine.port), self.engine.module.Handler)
        threading.Thread(target=self.engine.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.mark.parametrize("asks", ["true", "false"], ids=["trials by probes", "no probes that sample"])
def test_a_sample_without_time_after_an_outage_is_not_sent_and_decides_nothing(start, asks):
    outage = Outage()
    engine = outage.engine
    engine.rules({"in": "FIRST", "drop": True}, RIGHT)
    service = start(engine, settings={**QUICK, "engine.probe_samples": asks, "engine.attempts": "100"})
    try:
        in_state(service, "up")
        first = service.post("/v1/batches", make_batch(make_group("t", "FIRST"), run="a", deadline="60s", rollout_timeout="1s", sampling=sampling(4)),
                             headers={"Prefer": "respond-async"}).json["id"]
        eventually(lambda: len(engine.samples_for("FIRST")) >= 4, "all to be sent once")
        outage.go()
        in_state(service, "down")
        second = service.post("/v1/batches", make_batch(run="a", deadline="60s", sampling=sampling(4)), headers={"Prefer": "respond-async"}).json["id"]
        eventually(lambda: service.read(f"/v1/batches/{first}", wait="0s")["state"] == "complete", "the first to end by its own clock")
        engine.rules(RIGHT)
        outage.come_back()
        batch = service.read(f"/v1/batches/{second}", wait="30s")
        assert (batch["state"], batch["summary"]["scored"]) == ("complete", 4)
        assert not engine.samples_for("FIRST")
        for rollout in rollouts(service.read(f"/v1/batches/{first}")):
            assert rollout["failure"]["code"] in ("engine_timeout", "engine_unreachable"), rollout["failure"]
        item = shown(service)
        assert item["state"] == "up" and "engine_timeout" not in item["failures"]
    finally:
        outage.engine.close()


def test_a_sample_without_time_says_so(start):
    """The engine is away for longer than the rollouts' time."""
    outage = Outage()
    engine = outage.engine
    engine.rules({"drop": True})
    service = start(engine, settings={**QUICK, "engine.attempts": "100", "engine.backoff_min": "400ms", "engine.backoff_max": "400ms"})
    try:
        in_state(service, "up")
        posted = service.post("/v1/batches", make_batch(deadline="60s", rollout_timeout="2s"), headers={"Prefer": "respond-async"}).json["id"]
        eventually(lambda: len(engine.samples) >= 2, "both to be sent once")
        outage.go()
        failures = [rollout["failure"] for rollout in rollouts(service.read(f"/v1/batches/{posted}", wait="30s"))]
        assert all(failure["code"] in ("engine_timeout", "engine_unreachable") for failure in failures)
        assert any("rollout_timeout" in failure["message"] for failure in failures), failures
    finally:
        outage.engine.close()
