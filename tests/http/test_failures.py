"""With any behaviour of an engine, a rollout ends scored or with a typed failure, and a failure is never a number."""
import json
import os
import socket
import threading
import time

import pytest

from harness import eventually
from material import (assert_failed_without_a_number, assert_sums_up, by_task, close, codes, group_advantages, make_batch, make_group,
                      rollouts, sampling)

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
WRONG = {"text": "\\boxed{41}", "ids": [11, 13, 2], "lp": [-0.5, -1.5, -0.125]}
LATE = {"deadline", "engine_timeout"}
FAST = {"engine.backoff_min": "10ms", "engine.backoff_max": "50ms"}

UNBELIEVABLE = [
    ({"lp": None}, "invalid_reply"), ({"ids": None}, "invalid_reply"), ({"lp": [-0.5]}, "invalid_reply"), ({"lp": [-0.1] * 4}, "invalid_reply"),
    ({"lp": [-0.5, None, -0.5]}, "non_finite_logprob"), ({"lp": [-0.5, -9999.0, -0.5]}, "non_finite_logprob"),
    ({"lp": [-0.5, 0.7, -0.5]}, "invalid_reply"), ({"ids": [1, -5, 2]}, "invalid_reply"), ({"ids": [1, 1.5, 2]}, "invalid_reply"),
    ({"ids": [1, 4294967296, 2]}, "invalid_reply"), ({"ids": "abc"}, "invalid_reply"), ({"extra": -1}, "invalid_reply"), ({"extra": 1}, "invalid_reply"),
    ({"finish": None}, "invalid_reply"), ({"finish": ""}, "invalid_reply"), ({"finish": 7}, "invalid_reply"), ({"finish": "aborted"}, "engine_error"),
    ({"raw": "{"}, "invalid_reply"), ({"raw": ""}, "invalid_reply"), ({"raw": "null"}, "invalid_reply"), ({"raw": "[]"}, "invalid_reply"),
    ({"raw": "<html>504</html>"}, "invalid_reply"), ({"raw": '{"choices": [NaN]}'}, "invalid_reply"), ({"raw": "[" * 50000}, "invalid_reply"),
    ({"json": {"choices": []}}, "invalid_reply"), ({"json": {"choices": None}}, "invalid_reply"), ({"json": {"choices": [None]}}, "invalid_reply"),
    ({"json": {"choices": [{}]}}, "invalid_reply"), ({"cut": 40}, "invalid_reply")]

REFUSED = [
    (400, {"error": {"message": "bad value", "code": 400}}, "engine_error", False), (401, {"error": {"message": "who are you"}}, "engine_error", False),
    (404, {"error": {"message": "The model `x` does not exist."}}, "engine_error", False), (500, {"error": {"message": "boom"}}, "engine_error", True),
    (429, {"error": {"message": "slow down"}}, "engine_overloaded", True), (503, {"error": {"message": "later"}}, "engine_overloaded", True)]


@pytest.fixture
def quick(start, engine):
    """Retries follow each other fast, so that a test of ten failures does not take a minute."""
    return start(engine, settings=FAST)


# -- one bad reply after another -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rule, code", UNBELIEVABLE, ids=lambda value: str(value)[:40])
def test_a_reply_that_cannot_be_believed(quick, engine, rule, code):
    engine.rules({"in": "BAD", **rule}, RIGHT)
    batch = quick.batch(make_batch(make_group("bad", "BAD"), make_group("good", "GOOD")))
    groups = by_task(batch)
    assert batch["state"] == "complete"
    for rollout in groups["bad"]["rollouts"]:
        if rollout["state"] == "scored":  # text without ids may be kept, but never trained on
            assert rule in ({"ids": None}, {"lp": None}) and rollout["trainable"] is False and rollout["contributions"] is None
        else:
            assert_failed_without_a_number(rollout)
            assert rollout["failure"]["code"] == code, rollout["failure"]
            assert rollout["failure"]["stage"] == "sample"
    assert [rollout["reward"] for rollout in groups["good"]["rollouts"]] == [1, 1]
    assert_sums_up(batch)


@pytest.mark.parametrize("status, body, code, retryable", REFUSED)
def test_an_engine_that_refuses(quick, engine, status, body, code, retryable):
    engine.rules({"status": status, "json": body})
    batch = quick.batch(make_batch(sampling=sampling(1), deadline="30s"))
    rollout = rollouts(batch)[0]
    assert_failed_without_a_number(rollout)
    assert rollout["failure"]["code"] == code and rollout["failure"]["retryable"] is retryable, rollout["failure"]
    assert body["error"]["message"] in rollout["failure"]["message"]
    attempts = len(engine.samples)
    assert rollout["failure"]["attempts"] == rollout["attempts"] == attempts
    assert attempts == 1 if not retryable else 1 < attempts <= 20
    assert batch["summary"]["failures"] == {code: 1} and batch["summary"]["reward_mean"] is None and batch["loss"] is None


@pytest.mark.parametrize("rule", [{"drop": True}, {"cut": 0}, {"status": 500, "raw": "boom"}, {"raw": ""}, {"lp": None}, {"cut": 200}])
def test_a_passing_failure_costs_one_attempt(quick, engine, rule):
    engine.rules({"times": 1, **rule}, RIGHT)
    rollout = rollouts(quick.batch(make_batch(sampling=sampling(1))))[0]
    assert rollout["state"] == "scored" and rollout["reward"] == 1
    assert rollout["attempts"] == 2 or rule == {"drop": True}  # curl itself repeats a request whose kept connection was closed without a byte
    first, second = (entry["body"].get("seed") for entry in engine.samples)
    assert second == rollout["seed_sent"]
    assert (first == second) == (rollout["resample"] == 0), "a transport retry asks for the same tokens"


def test_a_cut_stream_keeps_its_seed(quick, engine):
    """DESIGN section 4: resample rises only after a complete answer was refused."""
    engine.rules({"times": 1, "cut": 100}, RIGHT)
    rollout = rollouts(quick.batch(make_batch(sampling=sampling(1))))[0]
    assert rollout["resample"] == 0 and len({entry["body"]["seed"] for entry in engine.samples}) == 1


def test_an_engine_that_is_down(start):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    service = start(f"http://127.0.0.1:{port}#kind=vllm", settings=FAST)
    batch = service.batch(make_batch(deadline="5s"))
    for rollout in rollouts(batch):
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] in {"engine_unreachable"} | LATE and rollout["failure"]["retryable"] is True
    assert service.get("/healthz").status == 200 and service.post("/v1/verify", {
        "verifiers": [{"name": "exact"}], "items": [{"id": "1", "completion": "a", "reference": "a"}]}).status == 200


@pytest.mark.parametrize("rule", [{"stall": 0}, {"stall": 40}, {"delay": 60}])
def test_an_engine_that_hangs(service, engine, rule):
    """R70"""
    engine.rules({"in": "HANG", **rule}, RIGHT)
    batch = service.batch(make_batch(make_group("hang", "HANG"), make_group("ok"), deadline="4s"))
    assert batch["state"] == "expired"
    assert [rollout["reward"] for rollout in by_task(batch)["ok"]["rollouts"]] == [1, 1]
    for rollout in by_task(batch)["hang"]["rollouts"]:
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] in LATE


def test_the_time_of_one_rollout_ends_before_the_deadline_of_all(service, engine):
    engine.rules({"in": "HANG", "delay": 60}, RIGHT)
    batch = service.batch(make_batch(make_group("hang", "HANG"), make_group("ok"), deadline="5m", rollout_timeout="3s"))
    assert batch["state"] == "complete"
    assert set(codes(by_task(batch)["hang"])) == {"engine_timeout"}


def test_an_engine_that_accepts_and_never_reads(start):
    """R70, second half"""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        service = start(f"http://127.0.0.1:{listener.getsockname()[1]}#kind=vllm")
        batch = service.batch(make_batch(deadline="2s"))
    for rollout in rollouts(batch):
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] in LATE | {"engine_unreachable"}


def test_a_reply_of_garbage_bytes(start):
    """No HTTP at all."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        listener.settimeout(0.2)
        over = threading.Event()

        def babble():
            while not over.is_set():
                try:
                    peer, _ = listener.accept()
                except TimeoutError:
                    continue
                with peer:
                    peer.recv(65536)
                    peer.sendall(b"\x00\xff 220 ftp ready\r\n\r\n" * 10)
        thread = threading.Thread(target=babble)
        thread.start()
        try:
            service = start(f"http://127.0.0.1:{listener.getsockname()[1]}#kind=vllm", settings=FAST)
            batch = service.batch(make_batch(deadline="3s"))
        finally:
            over.set()
            thread.join()
    for rollout in rollouts(batch):
        assert_failed_without_a_number(rollout)


def test_a_reply_without_end_is_cut(start):
    """Every buffer has a maximum."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        listener.settimeout(0.2)
        over = threading.Event()

        def pour(peer):
            with peer:
                try:
                    peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while not over.is_set():
                        peer.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                except OSError:
                    pass

        def serve():
            while not over.is_set():
                try:
                    threading.Thread(target=pour, args=(listener.accept()[0],), daemon=True).start()
                except TimeoutError:
                    continue
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            service = start(f"http://127.0.0.1:{listener.getsockname()[1]}#kind=vllm", settings=FAST)
            batch = service.batch(make_batch(sampling=sampling(1), deadline="5s"))
        finally:
            over.set()
            thread.join()
    assert_failed_without_a_number(rollouts(batch)[0])
    assert rollouts(batch)[0]["failure"]["code"] in LATE | {"invalid_reply"}


# -- what failures do to the numbers of others ---------------------------------------------------------------------------------------

def test_a_group_that_lost_members_normalises_over_the_rest_and_says_so(quick, engine):
    """Two of five lost: the advantages are those of the three."""
    lost = {**RIGHT, "lp": [-0.5, None, -0.5]}
    engine.rules({"choices": [RIGHT, lost, WRONG]})
    batch = quick.batch(make_batch(sampling=sampling(6)))
    group = batch["groups"][0]
    rewards = [rollout["reward"] for rollout in group["rollouts"]]
    known = [reward for reward in rewards if reward is not None]
    assert known, "at least some members survived"
    assert close([rollout["advantage"] for rollout in group["rollouts"]], group_advantages(rewards))
    assert close(group["reward_mean"], sum(known) / len(known))
    for rollout in group["rollouts"]:
        if rollout["reward"] is None:
            assert_failed_without_a_number(rollout)
    assert batch["totals"] == {"tokens": 3 * len(known), "sequences": len(known), "groups": 1}
    assert_sums_up(batch)


def test_a_batch_in_which_nothing_came_back_has_no_loss(quick, engine):
    """R78: a loss of 0 would look like a perfect step."""
    engine.rules({"status": 500, "raw": "boom"})
    batch = quick.batch(make_batch())
    assert batch["state"] == "complete" and batch["loss"] is None
    assert (batch["summary"]["scored"], batch["summary"]["failed"], batch["summary"]["reward_mean"]) == (0, 2, None)
    assert batch["groups"][0]["reward_mean"] is None and batch["groups"][0]["zero_variance"] is not True


def test_a_reference_that_cannot_be_read_is_a_failure_of_the_verifier(service, engine):
    engine.rules(RIGHT)
    batch = service.batch(make_batch(make_group("broken", reference="\\frac{1}{"), make_group("whole")))
    for rollout in by_task(batch)["broken"]["rollouts"]:
        assert_failed_without_a_number(rollout)
        assert (rollout["failure"]["stage"], rollout["failure"]["code"]) == ("verify", "reference_unreadable")
        assert rollout["text"] == "\\boxed{42}" and rollout["completion_ids"] == [11, 12, 2], "what was sampled is kept"
    assert [rollout["reward"] for rollout in by_task(batch)["whole"]["rollouts"]] == [1, 1]


def test_missing_skip_sums_the_rest(service, engine):
    engine.rules(RIGHT)
    verifiers = [{"name": "math", "reference": "\\frac{1}{"}, {"name": "format", "weight": 0.25, "options": {"template": "boxed_once"}}]
    kept = rollouts(service.batch(make_batch(verifiers=verifiers, missing="skip")))
    lost = rollouts(service.batch(make_batch(verifiers=verifiers)))
    assert [rollout["reward"] for rollout in kept] == [0.25, 0.25] and [rollout["reward"] for rollout in lost] == [None, None]
    assert all(rollout["rewards"]["math"]["score"] is None for rollout in kept)


def test_an_empty_completion_is_a_failure_not_a_wrong_answer(quick, engine):
    """R17"""
    engine.rules({"in": "LONG", "text": "", "ids": [], "lp": [], "finish": "length"}, RIGHT)
    batch = quick.batch(make_batch(make_group("ok"), make_group("long", "LONG LONG LONG")))
    for rollout in by_task(batch)["long"]["rollouts"]:
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] in ("context_overflow", "empty_completion")
    assert batch["state"] == "complete" and batch["summary"]["failed"] == 2 and batch["summary"]["reward_mean"] == 1
    assert len(engine.samples_for("LONG")) <= 20


# -- the toy engine misbehaving ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("effect, expected", [
    ({"status": 500}, {"engine_error"}), ({"status": 429}, {"engine_overloaded"}), ({"close": 0.5}, {"invalid_reply", "engine_unreachable"}),
    ({"hang": True}, LATE), ({"stall": 0.5}, LATE), ({"logprobs": "nan"}, {"invalid_reply", "non_finite_logprob"}),
    ({"logprobs": "infinity"}, {"invalid_reply", "non_finite_logprob"}), ({"logprobs": "null"}, {"non_finite_logprob"}),
    ({"logprobs": "floor"}, {"non_finite_logprob"}), ({"logprobs": "positive"}, {"invalid_reply"}), ({"logprobs": "short"}, {"invalid_reply"}),
    ({"logprobs": "missing"}, {"invalid_reply"}), ({"ids": "wrong"}, {"invalid_reply"}), ({"ids": "short"}, {"invalid_reply"}),
    ({"ids": "missing"}, {"invalid_reply"}), ({"choices": -1}, {"invalid_reply"}), ({"choices": 1}, {"invalid_reply"}),
    ({"body": "half"}, {"invalid_reply"}), ({"body": "not_json"}, {"invalid_reply"}), ({"body": "empty"}, {"invalid_reply"})],
    ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_misbehaviour_of_the_toy_engine(start, toy, effect, expected):
    toy.post("/misbehave", {"rules": [{"in": "1+1=", **effect}]})
    service = start(toy, settings=FAST)
    batch = service.batch(make_batch(make_group("bad", "1+1=", "2"), make_group("good", "3+4=", "7"), verifiers=[{"name": "exact"}],
                                     sampling=sampling(3), deadline="8s"))
    for rollout in by_task(batch)["bad"]["rollouts"]:
        if rollout["state"] == "scored" and effect == {"ids": "missing"}:
            assert len(rollout["completion_ids"]) == len(rollout["logprobs"])  # the log-probabilities name their tokens
        elif rollout["state"] == "scored":
            assert effect == {"logprobs": "missing"} and rollout["trainable"] is False and rollout["contributions"] is None
        else:
            assert_failed_without_a_number(rollout)
            assert rollout["failure"]["code"] in expected | LATE, rollout["failure"]
    assert all(rollout["state"] == "scored" for rollout in by_task(batch)["good"]["rollouts"])
    assert_sums_up(batch)


def test_an_engine_that_answers_late_is_waited_for(start, toy):
    batch = start(toy).batch(make_batch(make_group("late", "<<delay=0.5>> 3+4=", "7"), make_group("slow", "<<slow=2000>> 3+4=", "7")))
    assert all(rollout["state"] == "scored" and rollout["attempts"] == 1 for rollout in rollouts(batch))


def test_retries_wait_as_long_as_they_were_told(service, engine):
    """R29: Retry-After is obeyed, and bounded by the deadline."""
    engine.rules({"times": 1, "status": 429, "headers": {"Retry-After": "1"}, "json": {"error": {"message": "rate limit"}}}, RIGHT)
    began = time.monotonic()
    rollout = rollouts(service.batch(make_batch(sampling=sampling(1))))[0]
    assert rollout["reward"] == 1 and rollout["attempts"] == 2 and time.monotonic() - began >= 1


# -- hang-ups ---------------------------------------------------------------------------------------------------------------------------

def test_clients_that_leave_free_everything(service, engine):
    """R72: descriptors, transfers, batches."""
    engine.rules({"delay": 60})
    before = len(os.listdir(f"/proc/{service.pid}/fd"))
    raw = json.dumps(make_batch(sampling=sampling(1))).encode()
    head = f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n".encode()
    wires = [service.wire().send(head + raw) for _ in range(60)]
    eventually(lambda: engine.open == 60, "all to be sampling")
    for wire in wires:
        wire.close()
    eventually(lambda: engine.open == 0, "the engine to be told")
    eventually(lambda: len(service.read("/v1/batches", state="cancelled", limit=1000)["items"]) == 60, "the batches to be cancelled")
    eventually(lambda: len(os.listdir(f"/proc/{service.pid}/fd")) <= before + 6, "descriptors to be closed")
    assert all(entry["aborted"] for entry in engine.samples)


# -- what an operator finds in the log ---------------------------------------------------------------------------------------

def test_the_log_says_which_rollout_an_engine_failed_and_under_which_request(start, engine):
    """The engine's own log knows the request by the id that was sent with it."""
    engine.rules({"in": "BAD", "lp": None}, RIGHT)
    service = start(engine, settings={**FAST, "log.level": "debug", "log.format": "json", "engine.attempts": "2"})
    batch = service.batch(make_batch(make_group("a", "GOOD"), make_group("b", "BAD"), sampling=sampling(1)))
    failed = by_task(batch)["b"]
    lines = [json.loads(line) for line in service.log().splitlines() if '"sample failed"' in line]
    assert len(lines) == 2 and {line["code"] for line in lines} == {"invalid_reply"}
    for line in lines:
        assert (line["batch"], line["group"], line["rollout"]) == (batch["id"], failed["id"], failed["rollouts"][0]["id"])
        assert line["engine"] == failed["rollouts"][0]["engine"]
    assert [line["request"] for line in lines] == [entry["request_id"] for entry in engine.samples_for("BAD")]
