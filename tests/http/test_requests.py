"""Requests that the service refuses, the words of each refusal, and that a refusal leaves nothing behind."""
import copy
import gzip
import json
import time

import pytest

from harness import http_request
from material import make_batch, make_group

ITEM = {"verifiers": [{"name": "exact"}], "items": [{"id": "1", "completion": "4", "reference": "4"}]}


def changed(path, value):
    """The ordinary batch with one place changed; path as in an error message."""
    body = copy.deepcopy(make_batch(make_group("t1"), make_group("t2")))
    place, *rest = [int(part) if part.isdigit() else part for part in path.replace("[", ".").replace("]", "").split(".")]
    target = body
    for part in rest:
        target, place = target[place] if not isinstance(target, dict) else target.setdefault(place, {}), part
    target[place] = value
    return body


# -- fields of a batch ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", ["eps_high", "sampling.temprature", "groups[1].refrence", "verifiers[0].wieght",
                                  "objective.eps_high", "objective.loss.epsilon", "groups[0].sampling.topp"])
def test_an_unknown_field_is_refused_with_its_path(service, engine, path):
    reply = service.post("/v1/batches", changed(path, 0.3))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "unknown_field", path)
    assert engine.samples == [] and service.read("/v1/batches")["items"] == []


@pytest.mark.parametrize("path, value", [
    ("run", 7), ("run", ""), ("run", "a/b"), ("run", "x" * 129), ("run", "a\u0000b"), ("policy_revision", -1), ("policy_revision", 1.5),
    ("policy_revision", "1"), ("sampling.n", 0), ("sampling.n", -1), ("sampling.n", "8"), ("sampling.n", 1.5), ("sampling.temperature", -1),
    ("sampling.temperature", "hot"), ("sampling.max_tokens", 0), ("sampling.max_tokens", True), ("sampling.top_p", 1.5), ("sampling", []),
    ("groups", {}), ("groups", []), ("groups[1]", "t"), ("groups[1].task", 7), ("groups[1].task", ""), ("groups[1].prompt", ["x"]),
    ("groups[0].prompt", None), ("verifiers", "math"), ("verifiers[0]", "math"), ("verifiers[0].weight", "1"), ("deadline", 10),
    ("deadline", "soon"), ("deadline", "-5s"), ("purpose", "test"), ("groups[0].draw", -1), ("metadata", "x"), ("deliver", "never"),
    ("objective", 3), ("objective.beta", "0")])
def test_a_wrong_type_or_range_is_refused_with_its_path(service, engine, path, value):
    reply = service.post("/v1/batches", changed(path, value))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", path), reply
    assert engine.samples == []


@pytest.mark.parametrize("name", ["run", "groups"])
def test_a_missing_field_is_refused_with_its_path(service, name):
    body = make_batch()
    del body[name]
    reply = service.post("/v1/batches", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "missing_field", name)


def test_a_group_without_a_prompt_or_with_two_is_refused(service):
    reply = service.post("/v1/batches", make_batch({"task": "t1", "reference": "1"}))
    assert (reply.status, reply.error["code"]) == (400, "missing_field") and reply.error["path"].startswith("groups[0]")
    reply = service.post("/v1/batches", make_batch(make_group("t1", prompt_ids=[1])))
    assert (reply.status, reply.error["code"]) == (400, "invalid_field") and reply.error["path"].startswith("groups[0]")


@pytest.mark.parametrize("ids", [[], [-1], [4294967296], [1.5], ["a"], [None]])
def test_token_ids_that_are_none_are_refused(service, ids):
    reply = service.post("/v1/batches", make_batch({"task": "t1", "prompt_ids": ids, "reference": "1"}))
    assert (reply.status, reply.error["code"]) == (400, "invalid_field")
    assert reply.error["path"].startswith("groups[0].prompt_ids")


def test_a_missing_reference_is_refused_before_anything_is_sampled(service, engine):
    body = make_batch(make_group("t1"), {"task": "t2", "prompt": "x"})
    reply = service.post("/v1/batches", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "missing_field", "groups[1].reference")
    assert engine.samples == []


def test_a_duplicate_task_is_refused_but_another_draw_is_not(service):
    """R82"""
    reply = service.post("/v1/batches", make_batch(make_group("t1", reference="1"), make_group("t1", reference="2")))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "duplicate_task", "groups[1].task")
    assert service.post("/v1/batches", make_batch(make_group("t1"), make_group("t1", draw=1))).status == 200


@pytest.mark.parametrize("verifiers, path", [
    ([{"name": ""}], "verifiers[0].name"), ([{"name": "gsm8k"}], "verifiers[0].name"), ([{"name": "math"}, {"name": 7}], "verifiers[1].name"),
    ([{"name": "math"}, {"name": "math"}], "verifiers[1].id"), ([{"name": "math", "id": ""}], "verifiers[0].id")])
def test_a_verifier_nobody_knows_is_refused(service, engine, verifiers, path):
    """R80"""
    reply = service.post("/v1/batches", make_batch(verifiers=verifiers))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", path), reply
    assert engine.samples == [] and service.read("/v1/batches")["items"] == []


def test_the_refusal_of_an_unknown_verifier_lists_the_known_ones(service):
    """R80"""
    message = service.post("/v1/batches", make_batch(verifiers=[{"name": "gsm8k"}])).error["message"]
    assert all(name in message for name in ("exact", "regex", "format", "math"))


def test_an_unknown_verifier_in_one_group_refuses_the_whole_batch(service, engine):
    """R80"""
    reply = service.post("/v1/batches", make_batch(make_group("t1"), make_group("t2", verifiers=[{"name": "nope"}])))
    assert (reply.status, reply.error["path"]) == (400, "groups[1].verifiers[0].name") and engine.samples == []


def test_a_held_out_verifier_with_a_weight_is_refused(service):
    reply = service.post("/v1/batches", make_batch(verifiers=[{"name": "math", "heldout": True, "weight": 1.0}]))
    assert (reply.status, reply.error["code"]) == (422, "verifier_options")


def test_strict_references_refuse_what_could_not_be_graded(service, engine):
    body = make_batch(make_group("t1"), make_group("t2", reference="\\frac{1}{"), strict_references=True)
    reply = service.post("/v1/batches", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "reference_unreadable", "groups[1].reference")
    assert engine.samples == []


def test_kl_in_the_reward_is_refused_in_a_batch(service):
    reply = service.post("/v1/batches", make_batch(objective={"preset": "grpo", "beta": 0.1, "kl": {"in": "reward"}}))
    assert (reply.status, reply.error["code"]) == (422, "objective_options")


def test_a_batch_without_an_engine_is_refused_and_everything_else_works(plain):
    reply = plain.post("/v1/batches", make_batch())
    assert (reply.status, reply.error["code"]) == (503, "no_engine")
    assert plain.post("/v1/verify", ITEM).json["items"][0]["reward"] == 1


def test_the_name_of_an_engine_pool_must_be_known(service):
    reply = service.post("/v1/batches", make_batch(engine="elsewhere"))
    assert (reply.status, reply.error["path"]) == (400, "engine") or reply.error["code"] == "no_engine"


# -- JSON ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("raw, line, column", [
    (b'{"items": [\n  {"id": }]}', 2, None), (b"", 1, None), (b'{"a":1}x', 1, None), (b"{", 1, None), (b"nonsense", 1, None),
    (b'{"a": NaN}', 1, None), (b'{"a":1,"a":2}', 1, None),
    (b'{"a":"\\ud83d"}', 1, None), (b'{"a":"\xff"}', 1, None), (b'{"a":"\xed\xa0\x80"}', 1, None), (b"[" * 100000, 1, None)])
def test_a_body_that_is_no_json_is_refused_with_line_and_column(plain, raw, line, column):
    """R28"""
    reply = plain.post("/v1/verify", raw)
    assert reply.status == 400, reply
    assert reply.error["code"] == "invalid_json", reply
    assert "line" in reply.error["message"] and "column" in reply.error["message"], reply.error


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9223372036854775808", "-9223372036854775809"])
def test_a_number_beyond_what_is_exact_is_refused_with_its_place(plain, number):
    reply = plain.post("/v1/verify", f'{{"verifiers": [{{"name": "exact", "weight": {number}}}], "items": []}}'.encode())
    assert reply.status == 400 and reply.error["code"] in ("invalid_json", "invalid_field")
    assert reply.error["path"] == "verifiers[0].weight" or "column" in reply.error["message"]


@pytest.mark.parametrize("raw", [b"[]", b"null", b"7", b'"text"'])
def test_a_body_that_is_no_object_is_refused(plain, raw):
    reply = plain.post("/v1/verify", raw)
    assert reply.status == 400 and reply.error["code"] in ("invalid_field", "invalid_json")


def test_line_and_column_stay_true_behind_long_arrays(plain):
    """Number arrays are lifted out before the text is parsed; that must not move the place of an error."""
    numbers = ",".join("-0.5" for _ in range(5000))
    raw = f'{{"sequences": [{{"group": "a", "reward": 1, "logprobs": [{numbers}]}},\n{{"group": oops}}]}}'.encode()
    reply = plain.post("/v1/objective", raw)
    assert reply.status == 400 and reply.error["code"] == "invalid_json"
    assert "line 2" in reply.error["message"], reply.error


def test_nul_is_legal_text(plain):
    """R28"""
    body = {"verifiers": [{"name": "exact"}], "items": [{"id": "a\u0000", "completion": "4\u00005", "reference": "4\u00005"},
                                                       {"id": "2", "completion": "4", "reference": "4\u00005"}]}
    first, second = plain.post("/v1/verify", body).json["items"]
    assert (first["id"], first["reward"], second["reward"]) == ("a\u0000", 1, 0)


def test_an_error_names_its_request(plain):
    reply = plain.post("/v1/verify", {"oops": 1}, {"X-Request-Id": "my-request.7"})
    assert reply.headers["x-request-id"] == reply.error["request_id"] == "my-request.7"
    assert set(reply.error) == {"code", "message", "path", "request_id"}
    odd = plain.get("/healthz").headers["x-request-id"]
    assert odd and odd != plain.get("/healthz").headers["x-request-id"]


def test_a_request_id_that_could_forge_a_log_line_is_replaced(plain):
    for identity in ("a b", "x" * 500, 'quo"te'):
        got = plain.request("GET", "/healthz", headers={"X-Request-Id": identity}).headers["x-request-id"]
        assert got != identity and '"' not in got and " " not in got


# -- paths, methods, types ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", ["/v1/nothing", "/v1", "/v1/batches/", "/v2/batches", "//v1/batches", "/v1/batches/a/b", "/../etc/passwd"])
def test_an_unknown_path_is_not_found(plain, path):
    reply = plain.get(path)
    assert reply.status == 404 and reply.error["code"] == "not_found"


def test_an_encoded_slash_is_part_of_the_name(plain):
    assert plain.get("/v1/batches/b_1%2Frequest").status == 404
    assert plain.get("/v1%2Fbatches").status == 404


@pytest.mark.parametrize("path, method", [("/v1/batches", "PUT"), ("/v1/verify", "GET"), ("/healthz", "POST"), ("/v1/rollouts", "DELETE")])
def test_another_method_is_refused_and_the_right_ones_named(plain, path, method):
    reply = plain.request(method, path, None)
    assert (reply.status, reply.error["code"]) == (405, "method_not_allowed") and reply.headers["allow"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "multipart/form-data"])
def test_a_body_of_another_type_is_415_and_says_what_curl_needs(plain, kind):
    reply = plain.post("/v1/verify", json.dumps(ITEM).encode(), {"Content-Type": kind})
    assert (reply.status, reply.error["code"]) == (415, "unsupported_media_type")
    assert "application/json" in reply.error["message"] and "--json" in reply.error["message"]


def test_json_with_a_charset_is_json(plain):
    assert plain.post("/v1/verify", ITEM, {"Content-Type": "Application/JSON; charset=UTF-8"}).status == 200


@pytest.mark.parametrize("coding", ["gzip", "zstd", "deflate", "br", "gzip, gzip"])
def test_compressed_bodies_are_not_offered(plain, coding):
    """R67"""
    body = gzip.compress(b" " * 1000000) if coding == "gzip" else b"garbage"
    reply = plain.post("/v1/verify", body, {"Content-Encoding": coding})
    assert (reply.status, reply.error["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize("query", ["colour=red", "limit=1&limit=2", "limit=x", "limit=-1", "limit=1001", "limit="])
def test_a_query_that_cannot_be_meant_is_refused(plain, query):
    reply = plain.get(f"/v1/rollouts?{query}")
    assert reply.status == 400 and reply.error["path"] == query.split("=")[0]


@pytest.mark.parametrize("query", ["task=%ff", "task=%00", "task=%zz", "task=%e2%82"])
def test_a_broken_escape_in_a_query_is_refused(plain, query):
    assert plain.get(f"/v1/rollouts?{query}").status == 400


# -- framing: what a proxy and we must never read differently -----------------------------------------------------------------

SMUGGLED = "GET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def refused_and_closed(service, text, accepted=(400,)):
    with service.wire() as wire:
        wire.send(text)
        reply = wire.reply()
        assert reply.status in accepted, reply
        wire.closed()
        assert b"HTTP/1.1" not in wire.held, f"a second reply: {wire.held!r}"


def test_length_and_chunks_together_are_refused_and_the_connection_closed(plain):
    refused_and_closed(plain, "POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 6\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED)


def test_two_lengths_are_refused_and_the_connection_closed(plain):
    refused_and_closed(plain, "POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
                              f"Content-Length: {2 + len(SMUGGLED)}\r\n\r\n{{}}" + SMUGGLED)


@pytest.mark.parametrize("coding", ["gzip, chunked", "chunked, chunked", "identity", "xchunked"])
def test_other_transfer_codings_are_refused(plain, coding):
    refused_and_closed(plain, f"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: {coding}\r\n\r\n")


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "18446744073709551616", "2 3", "+2"])
def test_a_length_that_is_none_is_refused(plain, length):
    refused_and_closed(plain, f"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{{}}", (400, 413))


@pytest.mark.parametrize("path", ["/healthz%00x", "/v1/batches/%00", "/v1/batches/b%00_1", "/v1/batches/%ff", "/v1/batches/%zz"])
def test_a_nul_or_broken_escape_in_a_path_is_refused(plain, path):
    with plain.wire() as wire:
        assert wire.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").reply().status == 400


def test_a_get_with_a_body_does_not_start_a_second_request(plain):
    with plain.wire() as wire:
        wire.send(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SMUGGLED)}\r\n\r\n{SMUGGLED}")
        first = wire.reply()
        assert first.status in (200, 400)
        if first.status == 400:
            wire.closed()
            assert b"HTTP/1.1" not in wire.held


def test_pipelined_requests_are_answered_in_order(plain):
    with plain.wire() as wire:
        wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert [wire.reply().status for _ in range(3)] == [200, 404, 200]


def test_a_body_in_chunks_is_read(plain):
    raw = json.dumps(ITEM).encode()
    with plain.wire() as wire:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(raw), 7):
            piece = raw[start:start + 7]
            wire.send(f"{len(piece):x}\r\n").send(piece).send("\r\n")
        assert wire.send("0\r\n\r\n").reply().json["items"][0]["reward"] == 1


def test_a_request_that_arrives_byte_by_byte_is_answered(plain):
    raw = json.dumps(ITEM)
    with plain.wire() as wire:
        for character in f"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n{raw}":
            wire.send(character)
        assert wire.reply().status == 200


# -- size and patience ---------------------------------------------------------------------------------------------------------

def test_a_body_too_large_is_refused_before_it_is_sent(plain):
    """R65"""
    with plain.wire() as wire:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\nExpect: 100-continue\r\n\r\n")
        reply = wire.reply()
        assert reply.status == 413 and reply.error["code"] == "body_too_large" and reply.headers["connection"].lower() == "close"
        wire.closed()


def test_a_small_body_with_an_expectation_is_told_to_continue(plain):
    """R65"""
    raw = json.dumps(ITEM)
    with plain.wire() as wire:
        wire.send(f"POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\nExpect: 100-continue\r\n\r\n")
        assert wire.reply().status == 100
        assert wire.send(raw).reply().status == 200


def test_an_unknown_expectation_is_answered(plain):
    """R65"""
    with plain.wire() as wire:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: something-else\r\n\r\n")
        assert wire.reply().status == 417


def test_chunks_beyond_the_limit_end_in_413(start):
    service = start(settings={"body_limit": "100KiB"})
    with service.wire() as wire:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(20):
                wire.send(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # an early reply may come with the connection's end
        assert wire.reply().status == 413
    assert service.get("/healthz").status == 200


def test_a_large_body_is_read_whole(plain):
    """Larger than a block, so that it moves while it grows."""
    completion = "x" * 5_000_000 + " \\boxed{42}"
    body = {"verifiers": [{"name": "regex", "options": {"pattern": "boxed"}}], "items": [{"id": "1", "completion": completion[-1000:]}] * 1}
    body["items"] += [{"id": str(index), "completion": "boxed " + "y" * 4000} for index in range(1500)]
    reply = plain.post("/v1/verify", body)
    assert reply.status == 200, reply
    assert len(reply.json["items"]) == 1501 and all(item["reward"] == 1 for item in reply.json["items"])


def test_a_body_that_never_ends_is_cut_by_its_own_deadline(start):
    """A byte now and then keeps a connection alive, not a request."""
    service = start(settings={"body_timeout": "1s"})
    with service.wire() as wire:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
        try:
            for _ in range(600):
                wire.send(" ")
                time.sleep(0.05)
            pytest.fail("30 s of drops were taken")
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert service.get("/healthz").status == 200


def test_a_silent_client_does_not_hold_others_up(plain):
    silent = [plain.wire() for _ in range(50)]
    for wire in silent:
        wire.send("POST /v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-")
    assert http_request(plain.url, "POST", "/v1/verify", ITEM).status == 200
    for wire in silent:
        wire.close()


def test_headers_beyond_reason_are_refused(plain):
    with plain.wire() as wire:
        try:
            wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + "a" * 2_000_000 + "\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            assert wire.reply().status in (400, 413, 431)
        except (EOFError, ConnectionResetError):
            pass
    assert plain.get("/healthz").status == 200
