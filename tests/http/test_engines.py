"""Several engines, engines that are slow to come, deadlines to the millisecond."""
import socket
import time

import pytest

from engines import ScriptedEngine
from harness import eventually
from material import codes, make_batch, make_group, rollouts, sampling

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
FAST = {"engine.backoff_min": "10ms", "engine.backoff_max": "50ms"}


@pytest.fixture
def other_engine():
    scripted = ScriptedEngine()
    yield scripted
    scripted.close()


@pytest.mark.parametrize("rule", [{"status": 500, "raw": "boom"}, {"raw": "<html>hello</html>"}, {"lp": [-0.5, None, -0.5]}, {"drop": True},
                                  {"status": 302, "raw": "", "headers": {"Location": "http://127.0.0.1:1/"}}, {"status": 401, "raw": "{}"},
                                  {"status": 404, "json": {"error": {"message": "The model `x` does not exist."}}}], ids=str)
def test_an_engine_that_only_refuses_does_not_get_the_work_of_a_sound_one(start, engine, other_engine, rule):
    """It answers at once, so it is always the idle one."""
    engine.rules(rule)
    other_engine.rules({**RIGHT, "delay": 0.02})
    service = start(engine, other_engine, settings=FAST)
    batch = service.batch(make_batch(*[make_group(f"t{index}") for index in range(20)], sampling=sampling(30)))
    assert batch["summary"]["scored"] == 600, batch["summary"]["failures"]
    assert len(other_engine.samples) == 600 and len(engine.samples) < 300
    assert sum(rollout["attempts"] for rollout in rollouts(batch)) == len(engine.samples) + 600 or rule == {"drop": True}


def test_an_engine_that_was_spared_comes_back(start, engine, other_engine):
    engine.rules({"raw": "<html>hello</html>"})
    other_engine.rules({**RIGHT, "delay": 0.02})
    service = start(engine, other_engine, settings=FAST)
    eventually(lambda: [item["state"] for item in service.read("/v1/engines")["items"]] == ["up", "up"], "both to be up")
    assert service.batch(make_batch(sampling=sampling(40)))["summary"]["scored"] == 40
    engine.rules({**RIGHT, "delay": 0.02})

    def shares():
        service.batch(make_batch(sampling=sampling(40)))
        return len(engine.samples) > 15
    eventually(shares, "both to share the work")


def test_a_refusal_by_two_engines_is_final(start, engine, other_engine):
    for one in (engine, other_engine):
        one.rules({"status": 400, "json": {"error": {"message": "bad value", "code": 400}}})
    rollout = rollouts(start(engine, other_engine, settings=FAST).batch(make_batch(sampling=sampling(1))))[0]
    assert rollout["failure"]["code"] == "engine_error" and rollout["failure"]["retryable"] is False
    assert (rollout["attempts"], len(engine.samples), len(other_engine.samples)) == (2, 1, 1)


def test_a_deadline_is_a_deadline_and_not_the_engines_timeout(service, engine):
    """Both pass in the same millisecond."""
    engine.rules({"delay": 60})
    for index in range(8):
        batch = service.batch(make_batch(deadline=f"{150 + index}ms"))
        assert (batch["state"], codes(batch["groups"][0])) == ("expired", ["deadline", "deadline"])


def test_a_rollout_is_not_given_up_while_a_probe_is_under_way(start):
    """The engine is known to be down; whether it still is, the probe will tell."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        service = start(f"http://127.0.0.1:{port}#kind=vllm")
        eventually(lambda: b"cannot be reached" in service.get("/readyz").body, "the first probe to fail")
        listener.listen(64)  # it accepts now, and says nothing: probes take their time
        listener.settimeout(30)
        probe = listener.accept()
        began = time.monotonic()
        batch = service.post("/v1/batches", make_batch(deadline="10s"), wait="1s").json
        assert batch["state"] == "running" and time.monotonic() - began >= 1
        probe[0].close()
