"""F25: each request that was refused or failed is one line of the log, by which it is found; batches and incidents name theirs."""
import json

import pytest

from harness import eventually
from material import make_batch, sampling
from test_incidents import ENDLESS, ENDLESS_TEXT

JSON_LOG = {"log.format": "json"}


def lines(service, **wanted):
    """Lines of the log that have these values; each line must be JSON."""
    found = [json.loads(line) for line in service.log().splitlines()]
    return [line for line in found if all(line.get(key) == value for key, value in wanted.items())]


@pytest.fixture(scope="module")
def logged(shared_factory):
    return shared_factory(settings=JSON_LOG)


REFUSALS = [
    ("GET", "/v1/nothing", None, {}, 404, "not_found", None), ("GET", "/v1/batches/b_none?wait=0s", None, {}, 404, "not_found", None),
    ("DELETE", "/healthz", None, {}, 405, "method_not_allowed", None), ("GET", "/v1/rollouts?colour=red", None, {}, 400, "unknown_field", "colour"),
    ("POST", "/v1/verify", b"{", {}, 400, "invalid_json", None), ("POST", "/v1/verify", {"oops": 1}, {}, 400, "unknown_field", "oops"),
    ("POST", "/v1/verify", b"x", {"Content-Type": "text/plain"}, 415, "unsupported_media_type", None),
    ("POST", "/v1/batches", make_batch(run=""), {}, 400, "invalid_field", "run"), ("POST", "/v1/batches", make_batch(), {}, 503, "no_engine", None),
    ("POST", "/v1/score", {}, {}, 400, "missing_field", None), ("POST", "/v1/objective", {}, {}, 400, None, None),
    ("PUT", "/v1/runs/r/policy", {"revision": -1}, {}, 400, "invalid_field", "revision"), ("GET", "/v1/runs/none", None, {}, 404, "not_found", None),
    ("GET", "/v1/rollouts/r_none", None, {}, 404, "not_found", None), ("GET", "/v1/groups/g_none", None, {}, 404, "not_found", None),
    ("DELETE", "/v1/engines/none", None, {}, 404, "not_found", None), ("GET", "/v1/runs", None, {"Host": "evil.example"}, 403, "forbidden", "Host"),
    ("POST", "/v1/verify", {}, {"Origin": "null"}, 403, "forbidden", "Origin"), ("GET", "/a%00b", None, {}, 400, "bad_request", None),
]


@pytest.mark.parametrize("method, path, body, headers, status, code, field", REFUSALS)
def test_a_refused_request_is_one_line_with_what_it_was(logged, method, path, body, headers, status, code, field):
    identity = f"find-me.{abs(hash((method, path, str(body), str(headers))))}"
    reply = logged.request(method, path, body, {**headers, "X-Request-Id": identity})
    assert reply.status == status
    line, = eventually(lambda: lines(logged, request_id=identity), "its line")
    assert (line["method"], line["path"], line["status"]) == (method, path.partition("?")[0], status)
    assert line["code"] == reply.error["code"] == (code or line["code"]) and line["message"] == reply.error["message"]
    assert line.get("field") == reply.error["path"] and (field is None or line["field"] == field)
    assert (line["level"], line["event"]) == (("warning", "request failed") if status >= 500 else ("info", "request refused"))


def test_a_request_that_the_library_never_saw_is_a_line_too(logged):
    with logged.wire() as wire:
        reply = wire.send("GET /v1/runs?a=b HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: head-fault\r\nX A: b\r\n\r\n").reply()
    line, = eventually(lambda: lines(logged, request_id="head-fault"), "its line")
    assert (line["method"], line["path"], line["status"], line["code"]) == ("GET", "/v1/runs", 400, "bad_request") and line["message"] == reply.error["message"]
    with logged.wire() as wire:
        identity = wire.send(b"\x16\x03\x01\x00").reply().headers["x-request-id"]
    line, = eventually(lambda: lines(logged, request_id=identity), "its line")
    assert line["status"] == 400 and "path" not in line and "method" not in line


def test_a_body_that_is_refused_under_way_is_a_line_too(start):
    service = start(settings={**JSON_LOG, "body_limit": "10KiB", "body_timeout": "1s"})
    head = "POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nX-Request-Id: "
    with service.wire() as large, service.wire() as slow, service.wire() as never:
        assert large.send(f"{head}large\r\n\r\n4000\r\n{'x' * 0x4000}\r\n").reply().status == 413
        assert slow.send(f"{head}slow\r\n\r\n4\r\n").reply().status == 408
        assert never.send("GET /healthz HTTP/1.1\r\nX-Request-Id: never").reply().status == 408
    assert [(line["request_id"], line["path"]) for line in lines(service, code="body_too_large", status=413)] == [("large", "/v1/verify")]
    assert ("slow", "/v1/verify") in [(line["request_id"], line.get("path")) for line in lines(service, code="body_timeout", status=408)]
    assert len(lines(service, code="body_timeout", status=408)) == 2


def test_a_request_that_went_well_is_no_line_at_level_info(logged):
    assert logged.request("GET", "/v1/runs", headers={"X-Request-Id": "all-is-well"}).status == 200
    logged.request("GET", "/v1/nothing", headers={"X-Request-Id": "behind-it"})
    eventually(lambda: lines(logged, request_id="behind-it"), "the line behind it")
    assert lines(logged, request_id="all-is-well") == []


def test_numbers_are_numbers_and_a_batch_names_the_request_that_began_it(start, engine):
    engine.rules({"text": "\\boxed{42}"})
    service = start(engine, settings=JSON_LOG)
    reply = service.post("/v1/batches", make_batch(), {"X-Request-Id": "began-it", "Idempotency-Key": "k"})
    again = service.post("/v1/batches", make_batch(), {"X-Request-Id": "came-later", "Idempotency-Key": "k"})
    assert again.json["id"] == reply.json["id"]
    created, = lines(service, event="batch created")
    ended, = lines(service, event="batch ended")
    assert created["batch"] == ended["batch"] == reply.json["id"] and created["request_id"] == ended["request_id"] == "began-it"
    totals = [rollout for group in reply.json["groups"] for rollout in group["rollouts"]]
    assert (ended["scored"], ended["rollouts"]) == (len(totals), len(totals)) and type(ended["scored"]) is int


def test_an_incident_names_the_request_that_brought_it(start_endless):
    service = start_endless(settings={**JSON_LOG, "verify_timeout": "1s"})
    item = {"id": "1", "completion": ENDLESS_TEXT, "reference": "x"}
    service.post("/v1/verify", {"verifiers": [ENDLESS], "items": [item]}, {"X-Request-Id": "verify-it"})
    group = {"task": "t", "prompt": "p", "reference": "x", "completions": [{"text": ENDLESS_TEXT}]}
    service.post("/v1/score", {"run": "r", "verifiers": [ENDLESS], "groups": [group], "deadline": "1m"}, {"X-Request-Id": "score-it"})
    assert [line["request_id"] for line in lines(service, event="a completion hung a verifier")] == ["verify-it", "score-it"]


def test_a_batch_that_is_resumed_names_the_request_that_began_it(start_endless, engine):
    engine.rules({"hold": True, "text": ENDLESS_TEXT})
    service = start_endless(engine, settings={**JSON_LOG, "verify_timeout": "1s"})
    body = make_batch(verifiers=[ENDLESS], sampling=sampling(1), deadline="5m")
    batch = service.post("/v1/batches", body, {"X-Request-Id": "began-it", "Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.samples, "the sample to be asked for")
    service.restart()
    engine.release()
    service.settled(batch)
    for event in ("batch created", "batch resumed", "a completion hung a verifier", "batch ended"):
        assert [line["request_id"] for line in lines(service, event=event)] == ["began-it"], event


def test_a_flood_of_refusals_is_cut_and_what_was_left_out_is_counted(start):
    service = start(settings=JSON_LOG)
    count = 3000
    with service.wire() as wire:
        for _ in range(count // 100):
            wire.send("GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            assert [wire.reply().status for _ in range(100)] == [404] * 100
    said = eventually(lambda: lines(service, event="lines of refused requests were left out"), "the count")
    eventually(lambda: sum(line["count"] for line in lines(service, event=said[0]["event"])) + len(lines(service, event="request refused")) == count, "all to be counted")
    assert 1000 <= len(lines(service, event="request refused")) < count


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_request_cannot_forge_a_line(start, form):
    service = start(settings={"log.format": form})
    paths = ["/v1/%0Aforged", "/v1/a\"b", "/v1/a=b", "/v1/\u00e9\u2028", "/v1/" + "x" * 2000]
    for path in paths:
        with service.wire() as wire:
            assert wire.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).reply().status == 404
    with service.wire() as wire:
        assert wire.send(b"GET /v1/\xff\xfe\xe2\x82 HTTP/1.1\r\nHost: localhost\r\n\r\n").reply().status == 400
    for identity in ("a b", "x\" level=error", "x" * 200):
        service.request("GET", "/v1/nothing", headers={"X-Request-Id": identity})
    with service.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nX-Request-Id: x\rforged\r\n\r\n").reply()
    said = [line for line in service.log().splitlines() if "request refused" in line]
    assert len(said) == len(paths) + 5 and not any(line.startswith("forged") or "\x1b" in line for line in service.log().splitlines())
    for line in said:
        assert len(line) < 1200 and line.encode("utf-8")
        if form == "json":
            assert json.loads(line)["event"] == "request refused"
        else:
            assert line.count(" request refused request_id=") == 1
