"""Several engines: which one gets what, and what becomes of the samples of one that dies."""
import os
import signal
import socket
import threading

import pytest

from engines import CannedEngine, ScriptedEngine, ToyEngine
from harness import eventually
from material import codes, make_batch, make_group, rollouts, sampling

QUICK = {"engine.backoff_min": "5ms", "engine.backoff_max": "50ms"}
RIGHT = {"text": " 42", "ids": [4, 2, 1], "lp": [-0.1, -0.2, -0.3]}
NO_REPLY = {"raw": "{"}  # cannot be believed: the same is asked again, with another seed


@pytest.fixture
def two():
    made = [ScriptedEngine(), ScriptedEngine()]
    for one in made:
        one.rules(RIGHT)
    yield made
    for one in made:
        one.close()


def of(engine, **options):
    return engine.for_rolloutd + "".join(f"&{name}={value}" for name, value in options.items())


def wait_until_up(service):
    eventually(lambda: {one["state"] for one in service.get("/readyz").json["engines"]} == {"up"}, "all engines to be up")


def attempts(batch):
    return [rollout["attempts"] for rollout in rollouts(batch)]


# -- who gets what -----------------------------------------------------------------------------------------------------

def test_equal_prompts_go_to_one_engine_and_the_groups_to_all(start, two):
    service = start(*(of(one) for one in two))
    wait_until_up(service)
    groups = [make_group(f"t{index}", f"PROMPT-{index:02d}") for index in range(8)]
    for seed in (1, 2):  # the second batch finds them where the first left them
        batch = service.batch(make_batch(*groups, sampling=sampling(3), seed=seed))
        assert batch["summary"]["scored"] == 24
    shares = [[len(one.samples_for(f"PROMPT-{index:02d}")) for one in two] for index in range(8)]
    assert all(sorted(share) == [0, 6] for share in shares), shares
    assert {share.index(6) for share in shares} == {0, 1}


def test_a_batch_names_its_pool_and_a_name_that_no_engine_has_is_refused(start, two):
    service = start(of(two[0]), of(two[1], pool="judges"))
    for pool, engine in (("default", two[0]), ("judges", two[1]), (None, two[0])):
        before = len(engine.samples)
        batch = service.batch(make_batch(engine=pool))
        assert batch["summary"]["scored"] == 2 and len(engine.samples) == before + 2
    assert len(two[0].samples) == 4 and len(two[1].samples) == 2
    reply = service.post("/v1/batches", make_batch(engine="nobody"))
    assert reply.status == 400 and (reply.error["code"], reply.error["path"]) == ("invalid_field", "engine")
    assert "nobody" in reply.error["message"]


def test_a_pool_that_is_full_or_silent_holds_up_no_other(start, two):
    """The same for another run's batch: the pools have their own weights."""
    two[0].rules({"delay": 600})
    service = start(of(two[0], in_flight=1), of(two[1], pool="other"))
    slow = service.post("/v1/batches", make_batch(deadline="600s"), wait="0s").json["id"]
    eventually(lambda: two[0].open == 1, "the first pool to be full")
    for run in ("test", "another"):
        assert service.batch(make_batch(engine="other", run=run))["summary"]["scored"] == 2
    assert service.read(f"/v1/batches/{slow}", wait="0s")["state"] == "running"
    assert service.delete(f"/v1/batches/{slow}").status == 200


def test_batches_of_one_prompt_take_turns_whatever_their_size(start, engine):
    """Both want the same engine, which takes one request at a time: none of it until both are there."""
    gate, find_rule = threading.Event(), engine.module.rule_for
    engine.module.rule_for = lambda text: gate.wait(60) and find_rule(text)
    engine.rules(RIGHT)
    service = start(of(engine, in_flight=1))
    large = service.post("/v1/batches", make_batch(sampling=sampling(60), seed=1), wait="0s").json["id"]
    small = service.post("/v1/batches", make_batch(sampling=sampling(8), seed=2), wait="0s").json["id"]
    gate.set()
    assert [service.read(f"/v1/batches/{one}", wait="60s")["state"] for one in (large, small)] == ["complete"] * 2
    order = [entry["request_id"].startswith(small) for entry in engine.samples]
    assert len(order) == 68 and sum(order[:18]) == 8, order


# -- one that dies -------------------------------------------------------------------------------------------------------

def test_an_engine_that_is_killed_costs_its_own_samples_one_try_each(start, tmp_path):
    limit = 64
    engines = [CannedEngine(tmp_path, "--tokens", "8", "--text-bytes", "8", "--delay", "600") for _ in range(2)]
    try:
        service = start(*(of(one, in_flight=limit) for one in engines))
        groups = [make_group(f"t{index}", f"prompt {index}") for index in range(125)]
        batch = service.post("/v1/batches", make_batch(*groups, sampling=sampling(8), verifiers=[], deadline="300s"), wait="0s").json["id"]
        eventually(lambda: all(one.said["open"] == limit for one in engines), "both engines to be full")
        os.kill(engines[0].process.pid, signal.SIGKILL)
        engines[1].set_delay(0)
        done = service.read(f"/v1/batches/{batch}", wait="120s")
        assert done["state"] == "complete" and done["summary"]["scored"] == 1000
        assert engines[1].said["samples"] == 1000
        twice = attempts(done).count(2)  # until the third that was cut the engine may have been sent another two
        assert limit <= twice <= limit + 2 and attempts(done).count(1) == 1000 - twice
        assert {rollout["engine"] for rollout in rollouts(done)} == {"e2"}
        assert {rollout["resample"] for rollout in rollouts(done)} == {0}
    finally:
        for one in engines:
            one.close()


def test_a_sample_that_fails_on_one_engine_is_asked_of_another_with_the_same_seed(start, two):
    service = start(*(of(one) for one in two), settings=QUICK)
    wait_until_up(service)
    service.batch(make_batch(make_group("warm", "FIND THE HOME")))
    home = 0 if two[0].samples else 1
    two[home].rules({"status": 500, "json": {"error": "broken"}})
    two[1 - home].rules(RIGHT)
    batch = service.batch(make_batch(make_group("t", "FIND THE HOME"), sampling=sampling(2)))
    assert batch["summary"]["scored"] == 2 and set(attempts(batch)) == {2}
    seeds = [sorted(entry["body"]["seed"] for entry in one.samples) for one in two]
    assert seeds[0] == seeds[1] and len(set(seeds[0])) == 2
    assert sorted(rollout["seed_sent"] for rollout in rollouts(batch)) == seeds[0]


@pytest.mark.parametrize("count", [1, 4])
def test_the_same_batch_gives_the_same_tokens_on_any_number_of_engines(start, tmp_path, count):
    """The tokens of one engine alone are what the others must give, too."""
    engines = [ToyEngine(tmp_path) for _ in range(count)]
    try:
        alone = start(engines[0])
        together = start(*engines)
        asked = make_batch(*[make_group(f"t{index}", f"{index}+{index}=") for index in range(8)], sampling=sampling(4), seed=11)
        tokens = [[(rollout["sample_index"], rollout["completion_ids"], rollout["logprobs"]) for rollout in rollouts(service.batch(asked))]
                  for service in (alone, together)]
        assert tokens[0] == tokens[1] and len(tokens[0]) == 32
        if count > 1:
            assert len({rollout["engine"] for rollout in rollouts(together.batch(make_batch(*asked["groups"], sampling=sampling(4), seed=12)))}) > 1
    finally:
        for one in engines:
            one.close()


# -- none ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["", "#kind=vllm"])
@pytest.mark.parametrize("what", ["refuses", "hangs", "is no engine"])
def test_a_pool_that_is_down_is_waited_for_as_long_whatever_is_wrong_with_it(start, what, kind):
    """And whether its kind is known or has to be found out."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port, fillers = listener.getsockname()[1], []
        if what == "hangs":
            listener.listen(0)
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
        if what == "is no engine":
            listener.listen(64)
            threading.Thread(target=answer_503, args=(listener,), daemon=True).start()
        service = start(f"http://127.0.0.1:{port}{kind}", settings={**QUICK, "engine.down_timeout": "500ms"})
        batch = service.batch(make_batch(deadline="600s"))
        for filler in fillers:
            filler.close()
        assert batch["state"] == "complete"
        for rollout in rollouts(batch):
            assert rollout["failure"]["code"] in ("engine_unreachable", "engine_timeout", "engine_error", "engine_overloaded")
            assert rollout["failure"]["message"] and rollout["attempts"] == 0 and rollout["reward"] is None


def answer_503(listener):
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            client.recv(65536)
            client.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 7\r\nConnection: close\r\n\r\nLoading")


# -- pauses and repeats ---------------------------------------------------------------------------------------------------

LATER = {"status": 429, "headers": {"Retry-After": "3600"}, "json": {"error": "come back in an hour"}}


def test_an_engine_that_asks_for_an_hour_gets_nothing_while_another_works(start, two):
    two[0].rules(LATER)
    service = start(*(of(one) for one in two), settings={**QUICK, "engine.attempts": 2})
    wait_until_up(service)
    batch = service.batch(make_batch(*[make_group(f"t{index}", f"PROMPT-{index}") for index in range(32)]))
    assert batch["summary"]["scored"] == 64
    asked = len(two[0].samples)
    assert 0 < asked <= 64
    service.batch(make_batch(*[make_group(f"t{index}", f"PROMPT-{index}") for index in range(32)]))
    assert len(two[0].samples) == asked


def test_the_only_engine_is_asked_again_after_pause_max(start, engine):
    engine.rules({**LATER, "times": 1}, RIGHT)
    service = start(engine, settings={**QUICK, "engine.pause_max": "200ms"})
    batch = service.batch(make_batch(sampling=sampling(1), deadline="60s"))
    assert (batch["state"], attempts(batch)) == ("complete", [2]) and batch["summary"]["scored"] == 1


def test_repeats_are_limited_by_the_budget_of_the_batch(start, engine):
    """Ten to begin with and nothing earned: after that a failure is final, and says so."""
    engine.rules(NO_REPLY)
    service = start(engine, settings={**QUICK, "engine.retry_ratio": "0", "engine.attempts": 3})
    batch = service.batch(make_batch(sampling=sampling(64)))
    assert codes(batch["groups"][0]) == ["invalid_reply"] * 64
    assert len(engine.samples) == sum(attempts(batch)) == 64 + 10
    refused = [rollout for rollout in rollouts(batch) if "retry budget" in rollout["failure"]["message"]]
    assert len(refused) >= 54 and all(rollout["attempts"] < 3 for rollout in refused)
    assert b"rolloutd_engine_retries_refused_total %d" % len(refused) in service.get("/metrics").body


def test_a_limit_that_is_learned_falls_when_the_engine_is_overloaded(start, engine):
    engine.rules({"status": 429, "json": {"error": "full"}, "times": 1}, RIGHT)
    service = start(of(engine, in_flight="auto"), settings=QUICK)
    wait_until_up(service)
    before = service.get("/readyz").json["engines"][0]["in_flight_limit"]
    assert service.batch(make_batch(sampling=sampling(1)))["summary"]["scored"] == 1
    after = service.read("/readyz")["engines"][0]["in_flight_limit"]
    assert 1 <= after < before


def test_a_run_with_one_batch_after_the_other_does_not_keep_the_pool_for_itself(start, engine):
    engine.rules({**RIGHT, "hold": True})
    service = start(of(engine, in_flight=1))
    wait_until_up(service)

    def post(run):
        return service.post("/v1/batches", make_batch(run=run, sampling=sampling(2)), headers={"Prefer": "respond-async"}).json["id"]
    first = post("greedy")
    eventually(lambda: engine.open, "the first to have the pool")
    patient = post("patient")
    later = [post("greedy") for _ in range(3)]
    engine.release()
    ended = [service.settled(batch) for batch in (first, patient, *later)]
    assert [batch["state"] for batch in ended] == ["complete"] * 5
    order = [entry["request_id"].rsplit("-", 2)[0] for entry in engine.samples]
    assert order[:4] == [first, first, patient, patient] and sorted(order[4:]) == sorted(2 * later)
