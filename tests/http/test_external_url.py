"""The verifier `external` by its URL: what the server says is paid, and whatever else it does is no number."""
import json
import re
import subprocess
import threading

import pytest

from harness import BINARY, PATIENCE, Rolloutd, StartFailed, eventually
from material import assert_failed_without_a_number, make_batch, make_group, rollouts, sampling
from reward_server import NobodyThere, RewardServer, answer

QUICK = {"engine.backoff_min": "5ms", "engine.backoff_max": "20ms", "engine.down_timeout": "1s", "engine.attempts": 3}


def settings(server, **more):
    return {"externals": json.dumps([{"name": "style", "url": server.url + "/score?table=a%20b", **more}]), **QUICK}


@pytest.fixture
def rewards():
    server = RewardServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def shared():
    server = RewardServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def asked(shared_factory, shared):
    """A service whose failures do not add up: each comes between sound answers."""
    return shared_factory(settings=settings(shared, timeout="2s"))


def judge(service, *completions, **item):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "external", "options": {"name": "style"}}],
                                        "items": [{"id": str(index), "completion": text, **item} for index, text in enumerate(completions)]})
    assert reply.status == 200, reply
    return [item["verdicts"][0] for item in reply.json["items"]]


def failure(verdict):
    assert (verdict["score"], verdict["verdict"]) == (None, "unscored"), verdict
    assert verdict["failure"]["message"], verdict
    return verdict["failure"]["code"]


@pytest.fixture(autouse=True)
def sound_again(request):
    """The shared server gives a score after each test, so that its breaker never opens."""
    yield
    if "asked" in request.fixturenames:
        eventually(lambda: judge(request.getfixturevalue("asked"), 'say {"score": 1}')[0]["score"] == 1, "a sound answer")


# -- what it is told, and what it says -------------------------------------------------------------------------------------------

def test_the_server_is_told_everything_and_its_words_are_the_verdict(asked, shared):
    verdict, = judge(asked, "tell é", prompt="2+2?", reference={"big": 2 ** 70, "list": [1, None]}, metadata={"level": 3})
    assert (verdict["score"], verdict["verdict"], verdict["reason"], verdict["failure"]) == (0.25, "scored", "told", None)
    assert verdict["detail"] == {"external": "style", "said": {"rest": "é"}}
    assert shared.asked[-1] == {"id": "0", "task": None, "prompt": "2+2?", "messages": None, "completion": "tell é", "completion_ids": None,
                                "reference": {"big": 2 ** 70, "list": [1, None]}, "metadata": {"level": 3}, "siblings": None}
    line, fields = shared.heads[-1]
    assert line == "POST /score?table=a%20b HTTP/1.1" and fields["content-type"] == "application/json" and ".external.0.1" in fields["x-request-id"]


def test_the_version_is_what_the_server_says_and_else_that_of_the_entry(asked):
    shown, = asked.read("/v1/verifiers")["externals"]
    told, said = judge(asked, "tell", 'say {"score": 1}')
    assert told["version"] == "tables-7" and said["version"] == shown["version"]
    assert re.fullmatch("sha256:[0-9a-f]{64}", shown["version"]) and shown["asked"] is True and shown["sandbox"] is None


@pytest.mark.parametrize("said, score, reason", [('{"score": 1}', 1, "scored"), ('{"score": -2.5, "failure": null}\n', -2.5, "scored"),
                                                 (' {"score": 1e-3, "reason": "dull", "detail": null, "version": null}', 0.001, "dull")])
def test_a_score_is_paid_as_it_is_said(asked, said, score, reason):
    verdict, = judge(asked, "say " + said)
    assert (verdict["score"], verdict["reason"], verdict["failure"]) == (score, reason, None)


@pytest.mark.parametrize("completion", ["say " + said for said in (
    "", "1", "null", '"1"', "[1]", "{}", '{"score": NaN}', '{"score": Infinity}', '{"score": 1e999}', '{"score": -1.1e100}', '{"score": "1"}', '{"score": true}', '{"score": null}', '{"score": 1',
    '{"score": 1} {"score": 1}', '{"score": 1, "score": 0}', '{"score": 1, "failure": "no"}', '{"score": 1, "scores": []}', '{"score": 1, "reason": "Not A Code"}',
    '{"score": 1, "detail": [1]}', '{"score": 1, "version": 7}', '{"score": 1, "version": "a b"}', '{"score": 1, "version": ""}', "<html>1</html>", "[" * 100000,
    '{"score": 1, "detail": {"long": "' + "x" * 20000 + '"}}', '\ufeff{"score": 1}')] + ["bytes", "huge", "endless", "half"])
def test_a_body_that_is_not_exactly_a_reply_is_a_failure(asked, completion):
    verdict, = judge(asked, completion)
    assert failure(verdict) == "external_invalid_reply", verdict


@pytest.mark.parametrize("said, message", [('{"failure": "the model is away"}', "the model is away"), ('{"score": null, "failure": {"code": "away", "message": "for lunch"}}', "away: for lunch")])
def test_a_failure_that_it_says_is_no_number(asked, said, message):
    verdict, = judge(asked, "say " + said)
    assert (failure(verdict), verdict["failure"]["message"]) == ("external_failed", message)


# -- bad ends -----------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("completion, code, calls", [
    ("status 400", "external_failed", 1), ("status 401", "external_failed", 1), ("status 404", "external_failed", 1), ("status 501", "external_failed", 1),
    ("status 500", "external_failed", 3), ("status 503", "external_overloaded", 3), ("status 429", "external_overloaded", 3), ("status 201", None, 1),
    ("redirect http://127.0.0.1:1/", "external_failed", 1), ("nonsense", "external_invalid_reply", 3), ("unended", "external_invalid_reply", 1), ("drop", "external_unreachable", 3)])
def test_a_bad_end_is_no_number_whatever_was_said(start, rewards, completion, code, calls):
    """Each has a server of its own: three failures in a row open the breaker."""
    service = start(settings=settings(rewards))
    verdict, = judge(service, completion)
    assert (failure(verdict) if code else verdict["score"]) == (code or 1), verdict
    assert len(rewards.asked) == calls


def test_calls_that_may_be_repeated_are_repeated(start, rewards):
    before = iter([answer("busy", 429, "Retry-After: 0"), answer("broken", 500), answer('{"score": 0.5}')])
    rewards.act = lambda asked: next(before)
    verdict, = judge(start(settings=settings(rewards)), "x")
    assert verdict["score"] == 0.5 and len(rewards.asked) == 3
    assert [fields["x-request-id"].rsplit(".", 1)[1] for _, fields in rewards.heads] == ["1", "2", "3"]


def test_a_server_that_hangs_is_left_at_the_timeout_of_the_verdict(start, rewards):
    service = start(settings=settings(rewards, timeout="300ms"))
    verdict, = judge(service, "hang")
    assert failure(verdict) == "verifier_timeout" and "300ms" in verdict["failure"]["message"] and verdict["failure"]["retryable"]
    assert judge(service, 'say {"score": 1}')[0]["score"] == 1


def test_the_timeout_bounds_all_repeats_together(start, rewards):
    rewards.act = lambda asked: RewardServer.HANG if len(rewards.asked) > 1 else answer("no", 500)
    verdict, = judge(start(settings=settings(rewards, timeout="500ms")), "x")
    assert failure(verdict) == "verifier_timeout" and "500" in verdict["failure"]["message"] and len(rewards.asked) == 2


def test_nobody_listens(start):
    gone = NobodyThere()
    verdicts = judge(start(settings=settings(gone)), *(str(index) for index in range(20)))
    assert {failure(verdict) for verdict in verdicts} == {"external_unreachable"}
    gone.close()


def test_a_server_that_comes_back_is_asked_again(start, rewards):
    service = start(settings=settings(rewards))
    rewards.act = lambda asked: None
    assert {failure(verdict) for verdict in judge(service, *"abcdefgh")} == {"external_unreachable"}
    rewards.act = lambda asked: answer('{"score": 1}')
    eventually(lambda: judge(service, "x")[0]["score"] == 1, "an answer after the breaker opened")
    assert [verdict["score"] for verdict in judge(service, *"abcdefgh")] == [1] * 8


def test_a_broken_item_spoils_no_other_and_no_other_verifier(asked):
    reply = asked.post("/v1/verify", {"verifiers": [{"name": "exact"}, {"name": "external", "options": {"name": "style"}}], "items": [
        {"id": "a", "completion": "status 400", "reference": "status 400"}, {"id": "b", "completion": 'say {"score": 0.5}', "reference": "x"}]})
    assert [[verdict["score"] for verdict in item["verdicts"]] for item in reply.json["items"]] == [[1, None], [0, 0.5]]


# -- limits --------------------------------------------------------------------------------------------------------------------------

def test_no_more_requests_at_once_than_the_entry_allows(start, rewards):
    barrier = threading.Barrier(4)

    def act(asked):
        barrier.wait()
        return answer('{"score": 1}')
    rewards.act = act
    service = start(settings=settings(rewards, in_flight=4))
    assert [verdict["score"] for verdict in judge(service, *"abcdefghijklmnopqrstuvwxyzabcdef")] == [1] * 32
    assert rewards.most_open == 4


def test_waiting_calls_and_calls_on_their_way_are_shown(start, rewards):
    service = start(settings=settings(rewards, in_flight=2, timeout="60s"))
    asker = threading.Thread(target=judge, args=(service, *["hang"] * 5))
    asker.start()
    pending = eventually(lambda: [calls for calls in service.read("/v1/pending")["calls"] if calls["in_flight"] == 2 and calls["waiting"] == 3], "two calls on their way")
    assert pending == [{"run": None, "engine": None, "external": "style", "waiting": 3, "in_flight": 2}]
    metrics = service.get("/metrics").body.decode()
    assert "rolloutd_verifier_calls_in_flight 2\n" in metrics and "rolloutd_verifier_calls_waiting 3\n" in metrics
    rewards.act = lambda asked: answer('{"score": 1}')
    rewards.released.set()
    asker.join()
    eventually(lambda: service.read("/v1/pending")["calls"] == [], "no call is left")


def test_a_client_that_hangs_up_takes_its_calls_back(start, rewards):
    service = start(settings=settings(rewards, in_flight=1, timeout="60s"))
    with service.wire() as wire:
        body = json.dumps({"verifiers": [{"name": "external", "options": {"name": "style"}}], "items": [{"completion": "hang"}, {"completion": "hang"}]})
        wire.send(f"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        eventually(lambda: len(rewards.asked) == 1, "the first call")
    eventually(lambda: service.read("/v1/pending")["calls"] == [], "the calls are taken back")
    assert judge(service, 'say {"score": 1}')[0]["score"] == 1


# -- batches ------------------------------------------------------------------------------------------------------------------------

def external_batch(*groups, **fields):
    return make_batch(*groups, verifiers=[{"name": "external", "options": {"name": "style"}}], **fields)


def test_a_batch_is_paid_by_it_and_keeps_what_it_said(start, toy, rewards):
    rewards.act = lambda asked: answer(json.dumps({"score": 1, "version": "v1", "detail": {key: value for key, value in asked.items() if key in ("id", "task", "prompt", "metadata")}}))
    service = start(toy, settings=settings(rewards))
    batch = service.batch(external_batch({**make_group("sum", "2+2=", "4"), "metadata": {"level": 1}}, sampling=sampling(4)))
    for rollout in rollouts(batch):
        verdict, = service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"]
        assert (rollout["reward"], verdict["version"]) == (1, "v1")
        assert verdict["detail"]["said"] == {"id": rollout["id"], "task": "sum", "prompt": "2+2=", "metadata": {"level": 1}}
    assert all(len(asked["completion_ids"]) > 0 for asked in rewards.asked)
    assert any(rollout["id"] in fields["x-request-id"] for rollout in rollouts(batch) for _, fields in rewards.heads)


def test_a_rollout_whose_call_fails_has_no_reward(start, toy, rewards):
    rewards.act = lambda asked: answer("no", 400)
    batch = start(toy, settings=settings(rewards)).batch(external_batch(make_group("sum"), sampling=sampling(2)))
    for rollout in rollouts(batch):
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] == "external_failed" and rollout["failure"]["stage"] == "verify"


def test_a_cancelled_batch_takes_its_calls_back(start, toy, rewards):
    rewards.act = lambda asked: RewardServer.HANG
    service = start(toy, settings=settings(rewards, timeout="60s"))
    batch = service.post("/v1/batches", external_batch(make_group("sum"), sampling=sampling(4)), wait="0s").json
    eventually(lambda: len(rewards.asked) == 4, "four calls")
    assert service.delete(f"/v1/batches/{batch['id']}").status == 200
    service.settled(batch["id"])
    assert service.read("/v1/pending")["calls"] == []


def test_a_deadline_of_the_batch_ends_calls_that_hang(start, toy, rewards):
    rewards.act = lambda asked: RewardServer.HANG
    service = start(toy, settings=settings(rewards, timeout="60s"))
    batch = service.batch(external_batch(make_group("sum"), sampling=sampling(2), deadline="1s"))
    assert all(rollout["reward"] is None for rollout in rollouts(batch)) and service.read("/v1/pending")["calls"] == []


def test_a_service_that_stops_waits_for_no_call(start, toy, rewards):
    rewards.act = lambda asked: RewardServer.HANG
    service = start(toy, settings={**settings(rewards, timeout="60s"), "drain_timeout": "100ms"})
    service.post("/v1/batches", external_batch(make_group("sum"), sampling=sampling(2)), wait="0s")
    eventually(lambda: len(rewards.asked) == 2, "two calls")
    assert service.terminate() == 0


def test_a_run_whose_calls_hang_holds_up_no_other_for_more_than_its_share(start, toy, rewards):
    rewards.act = lambda asked: RewardServer.HANG if asked["task"] == "slow" else answer('{"score": 1}')
    service = start(toy, settings={**settings(rewards, timeout="1s", in_flight=2), "engine.down_timeout": "300s"})
    slow = service.post("/v1/batches", external_batch(make_group("slow"), run="slow", sampling=sampling(512), deadline="600s"), wait="0s").json
    eventually(lambda: len(rewards.asked) >= 2, "the first calls")
    batch = service.batch(external_batch(make_group("quick"), run="quick", sampling=sampling(2), deadline="300s"))
    assert [rollout["reward"] for rollout in rollouts(batch)] == [1, 1]
    assert [share["run"] for share in service.read("/v1/pending", run="slow")["calls"]] == ["slow"]
    assert service.delete(f"/v1/batches/{slow['id']}").status == 200
    service.settled(slow["id"])


# -- the list -----------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("broken, message", [
    ({"url": "http://h:1", "command": ["/bin/true"]}, "not both"), ({"url": "ftp://h"}, "http://HOST:PORT/PATH"), ({"url": "http://user@h/"}, "http://HOST:PORT/PATH"),
    ({"url": "http://h:99999/"}, "http://HOST:PORT/PATH"), ({"url": "h:80/x"}, "http://HOST:PORT/PATH"), ({"url": "http://h/a b"}, "http://HOST:PORT/PATH"), ({"url": "http://h/#x"}, "http://HOST:PORT/PATH"),
    ({"url": "http://h/", "files": ["/etc/hostname"]}, "belongs to a command"), ({"url": "http://h/", "memory": "1GiB"}, "belongs to a command"), ({"url": "http://h/", "sandbox": "full"}, "belongs to a command"),
    ({"url": "http://h/", "in_flight": 0}, "1 to 65536"), ({"url": "http://h/", "timeout": "2 apples"}, "duration"), ({"url": "http://h/", "token_file": "/no/such/file"}, "No such file"),
    ({"command": ["/bin/true"], "in_flight": 4}, "belongs to a url"), ({"command": ["/bin/true"], "token_file": "/x"}, "belongs to a url")])
def test_a_wrong_entry_ends_the_start_with_a_line_that_says_why(tmp_path, broken, message):
    with pytest.raises(StartFailed) as failed:
        Rolloutd(tmp_path, settings={"externals": json.dumps([{"name": "a", **broken}])}).start()
    assert message in str(failed.value)


def test_a_key_is_sent_and_shown_nowhere(start, rewards, tmp_path):
    key = tmp_path / "key"
    key.write_text("s3cret-word\n")
    key.chmod(0o600)
    service = start(settings=settings(rewards, token_file=str(key)))
    assert judge(service, 'say {"score": 1}')[0]["score"] == 1
    assert rewards.heads[-1][1]["authorization"] == "Bearer s3cret-word"
    assert "s3cret-word" not in service.log() + service.get("/v1/verifiers").body.decode() + service.get("/v1/settings").body.decode()


def verify_command(tmp_path, *words, **entry):
    config = tmp_path / "rolloutd.yaml"
    config.write_text(json.dumps({"externals": [{"name": "style", **entry}], "engine": {"backoff_min": "5ms", "attempts": 2}}))
    done = subprocess.run([BINARY, "verify", "--config", str(config), "--verifier", "external", "--options", '{"name": "style"}', "--json", *words], capture_output=True, timeout=PATIENCE)
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.returncode


def test_the_command_asks_the_server_too(rewards, tmp_path):
    found, code = verify_command(tmp_path, "--completion", "tell it", "--prompt", "2+2?", url=rewards.url + "/x")
    assert (found["score"], found["version"], code) == (0.25, "tables-7", 0) and rewards.asked[-1]["prompt"] == "2+2?"
    found, code = verify_command(tmp_path, "--completion", "status 500", url=rewards.url)
    assert (failure(found), code, len(rewards.asked)) == ("external_failed", 3, 3) and "the server answered 500" in found["failure"]["message"]
    found, code = verify_command(tmp_path, "--completion", "hang", url=rewards.url, timeout="300ms")
    assert (failure(found), code) == ("verifier_timeout", 3)


def test_a_request_cannot_bring_a_url(asked):
    for options in ({"url": "http://127.0.0.1:1/"}, {"name": "style", "url": "http://127.0.0.1:1/"}):
        assert asked.post("/v1/verify", {"verifiers": [{"name": "external", "options": options}], "items": []}).status == 422
