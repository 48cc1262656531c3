"""The toy engine keeps what it promises: real sampling, honest seeds, vLLM's shapes, and misbehaviour on demand."""
import asyncio
import json
import math
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from toy_process import ToyEngine  # makes deploy/demo importable
import toy_policy
from toy_policy import EOS, FIRST_BYTE, POSITIONS, VOCABULARY_SIZE, WORDS


def only(choices):
    assert len(choices) == 1
    return choices[0]


def uniform_rows():
    return [[0.0] * FIRST_BYTE for _ in range(POSITIONS)]


def rows_that_say(*tokens):
    """Rows under which this completion is as good as certain."""
    return [[50.0 * (token == wanted) for token in range(FIRST_BYTE)] for wanted in (*tokens, *[EOS] * POSITIONS)[:POSITIONS]]


def eventually(check):
    end = time.monotonic() + 60
    while not check():
        assert time.monotonic() < end
        time.sleep(0.02)


# -- sampling ---------------------------------------------------------------------------------------

def test_ids_log_probabilities_and_text_of_a_completion_belong_together(engine):
    for seed in range(50):
        choice = only(engine.complete(seed=seed))
        ids = choice["token_ids"]
        logprobs = choice["logprobs"]
        assert len(logprobs["token_logprobs"]) == len(ids) > 0
        assert logprobs["tokens"] == [f"token_id:{token}" for token in ids]
        assert all(math.isfinite(value) and value <= 0 for value in logprobs["token_logprobs"])
        assert choice["text"] == toy_policy.detokenize(ids)
        assert (ids[-1] == EOS) == (choice["finish_reason"] == "stop")
        assert choice["prompt_token_ids"] == toy_policy.tokenize("3+4=")


def test_probabilities_of_the_whole_vocabulary_add_up_to_one_at_every_position(engine):
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": [[0.1 * token * (row + 1) for token in range(FIRST_BYTE)] for row in range(POSITIONS)]}})
    choice = only(engine.complete(logprobs=FIRST_BYTE, max_tokens=8, ignore_eos=True))
    assert len(choice["logprobs"]["top_logprobs"]) == 8
    for top, value, name in zip(*(choice["logprobs"][key] for key in ("top_logprobs", "token_logprobs", "tokens"))):
        assert len(top) == FIRST_BYTE
        assert math.fsum(math.exp(each) for each in top.values()) == pytest.approx(1, abs=1e-12)
        assert top[name] == value


def test_log_probability_is_the_logit_minus_the_log_of_the_sum(engine):
    logits = [math.log(token + 1) for token in range(FIRST_BYTE)]  # probabilities 1/136 … 16/136
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": [logits] * POSITIONS}})
    choice = only(engine.complete())
    for token, value in zip(choice["token_ids"], choice["logprobs"]["token_logprobs"]):
        assert value == pytest.approx(math.log((token + 1) / 136), abs=1e-12)


def test_tokens_are_drawn_as_often_as_their_probability_says(engine):
    draws = 8000
    counts = [0] * FIRST_BYTE
    for start in range(0, draws, 1000):
        for choice in engine.complete(n=1000, seed=1_000_000 + start, max_tokens=1):
            counts[choice["token_ids"][0]] += 1
    expected = [math.exp(value) * draws for value in toy_policy.log_softmax(toy_policy.PRIOR[0])]
    chi_squared = sum((count - mean) ** 2 / mean for count, mean in zip(counts, expected))
    assert chi_squared < 37.7  # 15 degrees of freedom, p = 0.001


def test_same_seed_gives_the_same_tokens_whatever_else_runs(engine):
    alone = {seed: only(engine.complete(seed=seed)) for seed in range(20)}
    noise_ends = threading.Event()

    def noise(number):
        while not noise_ends.is_set():
            engine.complete("9+9=", seed=None, n=number + 1)

    with ThreadPoolExecutor(8) as pool:
        for number in range(4):
            pool.submit(noise, number)
        try:
            for _ in range(3):
                assert {seed: only(engine.complete(seed=seed)) for seed in range(20)} == alone
        finally:
            noise_ends.set()


def test_same_seed_gives_the_same_tokens_in_another_process(engine, tmp_path):
    other = ToyEngine(tmp_path)
    try:
        assert other.complete(n=8) == engine.complete(n=8)
    finally:
        other.close()


def test_sample_i_of_n_is_the_sample_of_seed_plus_i(engine):
    together = [choice["token_ids"] for choice in engine.complete(n=6, seed=1 << 40)]
    alone = [only(engine.complete(seed=(1 << 40) + i))["token_ids"] for i in range(6)]
    assert together == alone
    assert len(set(map(tuple, together))) > 1


def test_seeds_of_63_bits_are_kept_apart(engine):
    top = (1 << 63) - 1
    completions = {tuple(only(engine.complete(seed=top - i, min_tokens=12))["token_ids"]) for i in range(4)}
    completions |= {tuple(only(engine.complete(seed=(top - i) & 0x7FFFFFFF, min_tokens=12))["token_ids"]) for i in range(1)}
    assert len(completions) == 5


def test_without_a_seed_completions_differ(engine):
    assert len({tuple(only(engine.complete(seed=None, min_tokens=16))["token_ids"]) for _ in range(8)}) > 1


def test_log_probabilities_stay_those_of_temperature_one(engine):
    by_token = {}
    for fields in ({}, {"temperature": 0.5}, {"temperature": 2}, {"top_k": 3}, {"top_p": 0.7}, {"min_p": 0.1}, {"temperature": 0}):
        choice = only(engine.complete(max_tokens=1, **fields))
        by_token.setdefault(choice["token_ids"][0], set()).add(choice["logprobs"]["token_logprobs"][0])
    assert all(len(values) == 1 for values in by_token.values())


def test_filters_keep_what_they_say(engine):
    row = [math.log(p) for p in [0.4, 0.3, 0.2, *[0.1 / 13] * 13]]
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": [row] * POSITIONS}})

    def seen(**fields):
        return {choice["token_ids"][0] for choice in engine.complete(n=300, max_tokens=1, **fields)}
    assert seen(top_k=2) == {0, 1}
    assert seen(top_p=0.5) == {0, 1}
    assert seen(min_p=0.4) == {0, 1, 2}
    assert seen(allowed_token_ids=[5, 6]) == {5, 6}
    assert only(engine.complete(temperature=0))["token_ids"] == [0]


# -- where a completion ends ------------------------------------------------------------------------

def test_the_end_of_sequence_id_is_part_of_the_ids_and_not_of_the_text(engine):
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": rows_that_say(1, 10, 2)}})
    choice = only(engine.complete())
    assert (choice["token_ids"], choice["text"]) == ([1, 10, 2, EOS], "\\boxed{7}")
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", None)


def test_max_tokens_ends_with_length(engine):
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": rows_that_say(1, 10, 2)}})
    choice = only(engine.complete(max_tokens=2))
    assert (choice["token_ids"], choice["finish_reason"], choice["stop_reason"]) == ([1, 10], "length", None)


def test_a_stop_string_cuts_the_text_and_keeps_the_ids(engine):
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": rows_that_say(1, 10, 2)}})
    cut = only(engine.complete(stop=["xed{7", "nothing"]))
    assert (cut["text"], cut["token_ids"], cut["stop_reason"]) == ("\\bo", [1, 10], "xed{7")
    kept = only(engine.complete(stop="xed{7", include_stop_str_in_output=True))
    assert kept["text"] == "\\boxed{7"


def test_a_stop_id_ends_the_completion_and_is_named(engine):
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": rows_that_say(1, 10, 2)}})
    choice = only(engine.complete(stop_token_ids=[10]))
    assert (choice["token_ids"], choice["text"], choice["stop_reason"]) == ([1, 10], "\\boxed{", 10)


def test_min_tokens_and_ignore_eos_go_on(engine):
    engine.ask("POST", "/weights", {"revision": 1, "rows": {"3+4=": rows_that_say(EOS)}})
    assert only(engine.complete())["token_ids"] == [EOS]
    assert len(only(engine.complete(min_tokens=5, max_tokens=6))["token_ids"]) == 6
    assert only(engine.complete(ignore_eos=True, max_tokens=4))["token_ids"] == [EOS] * 4


# -- vLLM's shapes ----------------------------------------------------------------------------------

def test_probes_answer_as_vllm_does(engine):
    assert engine.request("GET", "/health")[::2] == (200, b"")
    assert set(engine.ask("GET", "/version")) == {"version"}
    model = only(engine.ask("GET", "/v1/models")["data"])
    assert (model["id"], model["max_model_len"]) == ("toy-table", 4096)
    assert engine.request("GET", "/nope")[0] == 404
    assert engine.request("GET", "/v1/completions")[0] == 405


@pytest.mark.parametrize("text", ["3+4=", "\\boxed{12}", "so = so", "Grüße \U0001f600 \x00 \\box", ""])
def test_tokenize_and_detokenize_give_the_text_back(engine, text):
    tokens = engine.ask("POST", "/tokenize", {"model": "toy-table", "prompt": text})
    assert tokens["count"] == len(tokens["tokens"]) and tokens["max_model_len"] == 4096
    assert engine.ask("POST", "/detokenize", {"tokens": tokens["tokens"]}) == {"prompt": text}


def test_a_prompt_as_text_and_as_ids_is_the_same_prompt(engine):
    assert engine.complete("3+4=") == engine.complete(toy_policy.tokenize("3+4="))


def test_several_prompts_are_answered_in_order(engine):
    choices = engine.complete(["1+1=", "2+2="], n=2)
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    assert choices[2]["prompt_token_ids"] == toy_policy.tokenize("2+2=")


def test_ids_and_log_probabilities_come_only_when_asked_for(engine):
    choice = only(engine.complete(return_token_ids=False, logprobs=None))
    assert choice["token_ids"] is choice["prompt_token_ids"] is choice["logprobs"] is None


@pytest.mark.parametrize("fields, status, param, words", [
    ({"model": "other"}, 404, "model", "does not exist"),
    ({"n": 0}, 400, None, "n must be at least 1"),
    ({"n": 2, "temperature": 0}, 400, None, "greedy"),
    ({"temperature": 3}, 400, "temperature", "temperature must be in [0, 2]"),
    ({"temperature": "hot"}, 400, "body.temperature", "number"),
    ({"top_p": 0}, 400, "top_p", "top_p must be in (0, 1]"),
    ({"max_tokens": 0}, 400, "max_tokens", "max_tokens must be at least 1"),
    ({"logprobs": 21}, 400, "logprobs", "greater than max allowed: 20"),
    ({"prompt": [1] * 4097}, 400, "input_tokens", "maximum context length is 4096 tokens"),
    ({"prompt": [1] * 4096}, 400, "max_tokens", "got 0"),
    ({"prompt": [VOCABULARY_SIZE]}, 400, None, f"Token id {VOCABULARY_SIZE} is out of vocabulary"),
    ({"prompt": [-5]}, 400, None, "greater than or equal to 0"),
    ({"prompt": None}, 400, "body.prompt", "prompt"),
    ({"seed": "x"}, 400, "body.seed", "int"),
    ({"stop": [1]}, 400, "body.stop", "list"),
])
def test_a_request_that_cannot_be_served_is_refused_in_vllms_shape(engine, fields, status, param, words):
    got, error = engine.refused(**fields)
    assert (got, error["code"], error["param"]) == (status, status, param)
    assert words in error["message"] and error["type"]


def test_a_completion_that_does_not_fit_behind_the_prompt_is_cut_off(engine):
    choice = only(engine.complete([5] * 4095, max_tokens=100, ignore_eos=True))
    assert (len(choice["token_ids"]), choice["finish_reason"]) == (1, "length")


@pytest.mark.parametrize("body, kind", [(b"{", "application/json"), (b"[" * 100000, "application/json"), (b"[]", "application/json"), (b"{}", "text/plain")])
def test_a_body_that_is_no_json_object_is_400(engine, body, kind):
    status, _, data = engine.request("POST", "/v1/completions", body, {"Content-Type": kind})
    assert status == 400 and json.loads(data)["error"]["code"] == 400


# -- weights ----------------------------------------------------------------------------------------

def test_new_weights_change_what_is_said_and_the_revision_is_visible(engine):
    assert engine.ask("POST", "/weights", {"revision": 13, "table": {"3+4=": rows_that_say(1, 10, 2)}}) == {"revision": 13}
    assert only(engine.complete())["text"] == "\\boxed{7}"
    assert engine.ask("GET", "/weight_info") == {"weight_version": "13"}
    status, headers, _ = engine.request("POST", "/v1/completions", {"prompt": "3+4="})
    assert headers["x-weight-version"] == "13"
    weights = engine.ask("GET", "/weights")
    assert weights["revision"] == 13 and list(weights["table"]) == ["3+4="] and weights["words"] == list(WORDS)


def test_weights_survive_the_wire_exactly(engine):
    rows = [[math.log(token + 1) / 3 for token in range(FIRST_BYTE)]] * POSITIONS
    engine.ask("POST", "/weights", {"revision": 1, "table": {"3+4=": rows}})
    assert engine.ask("GET", "/weights")["table"]["3+4="] == rows


def test_deltas_are_added_and_rows_replace_only_theirs(engine):
    engine.ask("POST", "/weights", {"revision": 1, "table": {"a": uniform_rows(), "b": uniform_rows()}})
    delta = [[float(token == 3) for token in range(FIRST_BYTE)]] * POSITIONS
    engine.ask("POST", "/weights", {"revision": 2, "deltas": {"a": delta}})
    engine.ask("POST", "/weights", {"revision": 3, "rows": {"c": delta}})
    table = engine.ask("GET", "/weights")["table"]
    assert table == {"a": delta, "b": uniform_rows(), "c": delta}


@pytest.mark.parametrize("body", [
    {"revision": 2}, {"table": {}}, {"revision": -1, "table": {}}, {"revision": 2, "table": {}, "rows": {}},
    {"revision": 2, "table": {"a": [[0.0]]}}, {"revision": 2, "rows": {"a": "x"}}, {"revision": 2, "table": []},
])
def test_weights_of_a_wrong_shape_change_nothing(engine, body):
    before = engine.ask("GET", "/weights")
    assert engine.request("POST", "/weights", body)[0] == 400
    assert engine.ask("GET", "/weights") == before


# -- misbehaviour -----------------------------------------------------------------------------------

def rules(engine, *each, seed=0):
    return engine.ask("POST", "/misbehave", {"rules": list(each), "seed": seed})


@pytest.mark.parametrize("status, rule", [(429, {"status": 429, "retry_after": 3}), (500, {"status": 500}), (503, {"status": 503, "message": "asleep"})])
def test_told_to_fail_it_answers_with_that_status(engine, status, rule):
    rules(engine, rule)
    got, headers, data = engine.request("POST", "/v1/completions", {"prompt": "3+4="})
    assert got == status and json.loads(data)["error"]["code"] == status
    assert headers.get("retry-after") == ("3" if "retry_after" in rule else None)
    assert "message" not in rule or json.loads(data)["error"]["message"] == "asleep"


@pytest.mark.parametrize("how, is_spoiled", [
    ("nan", math.isnan), ("infinity", lambda value: value == -math.inf), ("null", lambda value: value is None),
    ("floor", lambda value: value == -9999.0), ("positive", lambda value: value > 0)])
def test_told_to_spoil_log_probabilities_it_spoils_the_last_one(engine, how, is_spoiled):
    rules(engine, {"logprobs": how})
    assert is_spoiled(only(engine.complete())["logprobs"]["token_logprobs"][-1])


def test_told_to_part_ids_from_log_probabilities_it_does(engine):
    good = only(engine.complete())["token_ids"]
    for effect, check in (
            ({"logprobs": "short"}, lambda c: len(c["logprobs"]["token_logprobs"]) == len(good) - 1 and c["token_ids"] == good),
            ({"logprobs": "missing"}, lambda c: c["logprobs"] is None and c["token_ids"] == good),
            ({"ids": "short"}, lambda c: c["token_ids"] == good[:-1] and len(c["logprobs"]["token_logprobs"]) == len(good)),
            ({"ids": "missing"}, lambda c: c["token_ids"] is None),
            ({"ids": "out_of_vocabulary"}, lambda c: c["token_ids"][-1] == VOCABULARY_SIZE),
            ({"ids": "wrong"}, lambda c: f"token_id:{c['token_ids'][-1]}" != c["logprobs"]["tokens"][-1])):
        rules(engine, effect)
        assert check(only(engine.complete())), effect


@pytest.mark.parametrize("extra, count", [(-1, 3), (2, 6), (-9, 0)])
def test_told_to_give_another_number_of_choices_it_does(engine, extra, count):
    rules(engine, {"choices": extra})
    assert len(engine.complete(n=4)) == count


def test_told_to_spoil_the_body_it_sends_something_that_is_not_json(engine):
    for how in ("half", "not_json", "empty"):
        rules(engine, {"body": how})
        status, headers, data = engine.request("POST", "/v1/completions", {"prompt": "3+4="})
        assert status == 200 and len(data) == int(headers["content-length"])
        with pytest.raises(ValueError):
            json.loads(data)


def raw_reply(engine, seconds=60, after=60):
    """All bytes until the engine closes, or until nothing came for `seconds`, or for `after` once something came; and whether it closed."""
    body = json.dumps({"prompt": "3+4=", "seed": 7}).encode()
    with socket.create_connection(engine.address, seconds) as link:
        link.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        data = b""
        try:
            while more := link.recv(65536):
                data += more
                link.settimeout(after)
        except TimeoutError:
            return data, False
        return data, True


def test_told_to_close_it_closes_half_way_or_before_the_first_byte(engine):
    rules(engine, {"close": 0.5})
    data, closed = raw_reply(engine)
    head, _, body = data.partition(b"\r\n\r\n")
    assert closed and 0 < len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    rules(engine, {"close": 0})
    assert raw_reply(engine) == (b"", True)


def test_told_to_hang_or_stall_it_keeps_the_connection_and_says_no_more(engine):
    rules(engine, {"hang": True})
    assert raw_reply(engine, 0.3) == (b"", False)
    rules(engine, {"stall": 0.5})
    data, closed = raw_reply(engine, after=0.3)
    assert data and not closed


def test_told_to_hold_it_answers_when_it_gets_other_rules(engine):
    rules(engine, {"hold": True, "times": 2})
    with ThreadPoolExecutor(2) as pool:
        held = [pool.submit(engine.complete, seed=seed) for seed in (1, 2)]
        eventually(lambda: engine.log()["in_flight"] == 2)
        engine.complete(seed=3)  # beyond `times`
        assert not any(one.done() for one in held)
        rules(engine)
        assert all(only(one.result())["token_ids"] for one in held)


def test_told_to_be_late_or_slow_it_takes_its_time(engine):
    rules(engine, {"delay": 0.3})
    begin = time.monotonic()
    engine.complete()
    assert time.monotonic() - begin >= 0.3
    rules(engine, {"slow": 4000})
    begin = time.monotonic()
    status, _, data = engine.request("POST", "/v1/completions", {"prompt": "3+4=", "seed": 7})
    assert status == 200 and json.loads(data) and time.monotonic() - begin >= len(data) / 4000 * 0.8


def test_a_rule_is_used_as_often_as_it_says_and_only_where_it_fits(engine):
    rules(engine, {"in": "9+", "skip": 1, "times": 2, "status": 500})

    def status(prompt):
        return engine.request("POST", "/v1/completions", {"prompt": prompt})[0]
    assert [status("9+0=") for _ in range(5)] == [200, 500, 500, 200, 200]
    assert status("3+4=") == 200
    assert only(engine.ask("GET", "/misbehave")["rules"])["hits"] == 2


def test_a_rule_with_a_probability_hits_that_part_and_repeats_with_its_seed(engine):
    def run():
        rules(engine, {"probability": 0.3, "status": 500}, seed=5)
        return [engine.request("POST", "/v1/completions", {"prompt": "3+4="})[0] for _ in range(200)]
    first = run()
    assert 35 <= first.count(500) <= 85
    assert run() == first


def test_a_prompt_can_ask_for_misbehaviour(engine):
    assert engine.request("POST", "/v1/completions", {"prompt": "<<status=503>> 3+4="})[0] == 503
    assert math.isnan(only(engine.complete("<<logprobs=nan delay=0.01>>3+4="))["logprobs"]["token_logprobs"][-1])
    assert engine.complete("<<choices>>3+4=") == []


def test_a_rule_that_cannot_be_understood_is_refused(engine):
    for rule in ({"explode": 1}, {"status": 200}, {"logprobs": "odd"}, {"times": -1}, "x"):
        assert engine.request("POST", "/misbehave", {"rules": [rule]})[0] == 400
    assert engine.request("POST", "/v1/completions", {"prompt": "<<explode>>"})[0] == 400


# -- connections ------------------------------------------------------------------------------------

async def one_of_many(address, number, gate):
    body = json.dumps({"prompt": "3+4=", "seed": number, "max_tokens": 16, "logprobs": 0, "return_token_ids": True}).encode()
    reader, writer = await asyncio.open_connection(*address)
    await gate.wait()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    data = await reader.readexactly(length)
    writer.close()
    return head.split(b" ")[1], json.loads(data)["choices"][0]["token_ids"]


async def many(address, count):
    gate = asyncio.Event()
    waiting = [asyncio.create_task(one_of_many(address, number, gate)) for number in range(count)]
    await asyncio.sleep(0.5)
    gate.set()
    return await asyncio.gather(*waiting)


def test_1024_requests_at_once_are_carried_and_each_gets_its_own_tokens(engine):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        rules(engine, {"delay": 8})  # all must have come by then
        replies = asyncio.run(many(engine.address, 1024))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert engine.log()["max_in_flight"] >= 1024
    rules(engine)
    for number, (status, ids) in enumerate(replies):
        assert status == b"200"
        if number % 16 == 0:
            assert ids == only(engine.complete(seed=number))["token_ids"]


def test_a_client_that_hangs_up_aborts_its_request(engine):
    rules(engine, {"hang": True})
    links = [socket.create_connection(engine.address) for _ in range(3)]
    body = b'{"prompt":"3+4="}'
    for link in links:
        link.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    eventually(lambda: engine.log()["in_flight"] == 3)
    assert engine.log()["aborted"] == 0
    for link in links[:2]:
        link.close()
    eventually(lambda: engine.log()["aborted"] == 2)
    assert engine.log()["in_flight"] == 1
    links[2].close()
    eventually(lambda: engine.log()["in_flight"] == 0)


def exchange(engine, data, pieces=1):
    """Sends bytes (in so many pieces), says goodbye with the last request, gives all that comes back."""
    with socket.create_connection(engine.address, 20) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        step = max(1, len(data) // pieces)
        for start in range(0, len(data), step):
            link.sendall(data[start:start + step])
        reply = b""
        while more := link.recv(65536):
            reply += more
        return reply


def post(path, body, *headers):
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize("pieces", [1, 40])
def test_pipelined_requests_are_answered_in_order_even_if_the_first_is_late(engine, pieces):
    rules(engine, {"in": "1+1=", "delay": 0.3})
    late, next_one = (json.dumps({"prompt": prompt, "request_id": name}).encode() for prompt, name in (("1+1=", "first"), ("2+2=", "second")))
    reply = exchange(engine, post("/v1/completions", late) + post("/v1/completions", next_one) + b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", pieces)
    assert reply.count(b"HTTP/1.1 200 OK") == 3
    assert 0 < reply.index(b"cmpl-first") < reply.index(b"cmpl-second")


def test_a_client_that_waits_for_a_go_ahead_gets_one(engine):
    head, body = post("/detokenize", b'{"tokens":[3]}', "Expect: 100-continue", "Connection: close").split(b"\r\n\r\n")
    with socket.create_connection(engine.address, 20) as link:
        link.sendall(head + b"\r\n\r\n")
        assert link.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        link.sendall(body)
        assert link.recv(4096).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("data, status", [
    (b"hello\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nBad Name : x\r\n\r\n", 400),
    (b"POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    (b"POST /v1/completions HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    (b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
    (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    (b"GET /health HTTP/1.1\r\nX: " + b"x" * 70000, 431)])
def test_a_request_that_is_not_http_is_refused_and_the_connection_closed(engine, data, status):
    assert exchange(engine, data).startswith(b"HTTP/1.1 %d " % status)


def test_the_log_counts_and_keeps_the_bodies(engine):
    engine.complete(seed=41)
    engine.refused(n=0)
    log = engine.log()
    assert (log["completions"], log["misbehaved"], log["in_flight"]) == (2, 0, 0)
    assert [body.get("seed") for body in engine.ask("GET", "/_log/requests")["requests"]] == [41, None]


def test_a_pace_holds_replies_back_by_the_token(tmp_path):
    engine = ToyEngine(tmp_path, "--pace", "0.05")
    try:
        begin = time.monotonic()
        engine.complete(max_tokens=6, ignore_eos=True)
        assert time.monotonic() - begin >= 0.3
    finally:
        engine.close()
