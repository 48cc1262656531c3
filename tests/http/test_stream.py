"""Batches as NDJSON: a line for each group when it is closed, a last line for the batch."""
import json

from harness import eventually
from material import by_task, make_batch, make_group, sampling
from test_metrics import metrics

NDJSON = {"Accept": "application/x-ndjson"}


def lines_of(reply):
    assert reply.status == 200 and reply.headers["content-type"] == "application/x-ndjson", reply
    assert reply.body.endswith(b"\n")
    return [json.loads(line) for line in reply.body.splitlines()]


def open_stream(service, body, headers=""):
    """The request is sent; the reply's lines come out of chunks(wire)."""
    raw = json.dumps(body)
    wire = service.wire()
    wire.send(f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/x-ndjson\r\n"
              f"{headers}Content-Length: {len(raw)}\r\n\r\n{raw}")
    head = wire.until(b"\r\n\r\n").decode()
    assert head.startswith("HTTP/1.1 200") and "chunked" in head.lower(), head
    return wire


def next_chunk(wire):
    size = int(wire.until(b"\r\n"), 16)
    while len(wire.held) < size + 2:
        assert wire.more(), "cut inside a chunk"
    data, wire.held = wire.held[:size], wire.held[size + 2:]
    return data


def test_each_group_is_a_line_and_the_last_line_is_the_batch(service, engine):
    engine.rules({"in": "right", "text": "\\boxed{42}", "ids": [5, 2], "lp": [-0.5, -0.25]})
    body = make_batch(make_group("a", "right"), make_group("b", "wrong"))
    lines = lines_of(service.post("/v1/batches", body, NDJSON))
    assert [list(line) for line in lines] == [["group"], ["group"], ["batch"]]
    groups = {line["group"]["task"]: line["group"] for line in lines[:2]}
    assert [rollout["reward"] for rollout in groups["a"]["rollouts"]] == [1, 1]
    batch = lines[2]["batch"]
    assert batch["state"] == "complete" and "groups" not in batch and batch["totals"]["groups"] == 2
    for group in groups.values():
        for rollout in group["rollouts"]:
            assert rollout["advantage"] == 0 and rollout["surrogates"] and rollout.get("contributions") is None
    whole = service.read(f"/v1/batches/{batch['id']}")
    assert whole["loss"] == batch["loss"] and by_task(whole)["a"]["id"] == groups["a"]["id"]


def test_groups_come_in_the_order_in_which_they_finish(service, engine):
    engine.rules({"in": "slow", "hold": True})
    body = make_batch(make_group("s", "slow"), make_group("q", "quick"), sampling=sampling(1))
    with open_stream(service, body) as wire:
        assert json.loads(next_chunk(wire))["group"]["task"] == "q"
        engine.release()
        assert json.loads(next_chunk(wire).splitlines()[0])["group"]["task"] == "s"


def test_a_line_is_sent_as_soon_as_its_group_is_closed(service, engine):
    engine.rules({"in": "never", "delay": 60})
    with open_stream(service, make_batch(make_group("n", "never"), make_group("q", "quick"), sampling=sampling(1))) as wire:
        line = json.loads(next_chunk(wire))
        assert line["group"]["task"] == "q" and line["group"]["state"] == "complete"


def test_a_reader_that_hangs_up_cancels_the_batch_and_the_engine_is_told(service, engine):
    engine.rules({"in": "never", "delay": 60})
    with open_stream(service, make_batch(make_group("n", "never"), make_group("q", "quick"), sampling=sampling(1))) as wire:
        identity = json.loads(next_chunk(wire))["group"]["rollouts"][0]["id"].replace("r_", "b_").rsplit("-", 2)[0]
    eventually(lambda: engine.open == 0, "the engine to be told")  # asking for the batch first would be another waiter
    assert service.settled(identity)["state"] == "cancelled"


def test_with_a_key_the_batch_outlives_its_reader_and_can_be_joined_again(service, engine):
    engine.rules({"in": "slow", "hold": True})
    body = make_batch(make_group("s", "slow"), make_group("q", "quick"), sampling=sampling(1))
    with open_stream(service, body, "Idempotency-Key: again\r\n") as wire:
        next_chunk(wire)
    eventually(lambda: metrics(service)[0]["rolloutd_connections", ()] == 1, "the hang-up to be seen")  # one asks for the metrics
    engine.release()
    lines = lines_of(service.post("/v1/batches", body, {**NDJSON, "Idempotency-Key": "again"}))
    assert sorted(line["group"]["task"] for line in lines[:-1]) == ["q", "s"] and lines[-1]["batch"]["state"] == "complete"
    assert len(engine.samples) == 2


def test_a_batch_of_the_record_is_streamed_too(service):
    identity = service.batch(make_batch(make_group("a"), make_group("b")))["id"]
    lines = lines_of(service.request("GET", f"/v1/batches/{identity}", headers=NDJSON))
    assert [line["group"]["task"] for line in lines[:-1]] == ["a", "b"] and lines[-1]["batch"]["id"] == identity
    assert service.request("GET", "/v1/batches/b_nothing", headers=NDJSON).status == 404


def test_a_rule_over_the_whole_batch_cannot_be_streamed(service, engine):
    body = make_batch(objective={"preset": "grpo", "advantage": {"scale": "batch"}})
    reply = service.post("/v1/batches", body, NDJSON)
    assert reply.status == 422 and reply.error["code"] == "objective_options" and not engine.samples


def test_without_the_last_line_a_client_knows_that_it_was_cut_off(service, engine):
    engine.rules({"in": "never", "delay": 60})
    with open_stream(service, make_batch(make_group("n", "never"), make_group("q", "quick"), sampling=sampling(1))) as wire:
        next_chunk(wire)
        service.process.terminate()
        assert wire.closed() and b'{"batch"' not in wire.held and not wire.held.endswith(b"0\r\n\r\n")
    assert service.wait_exit() == 0


def test_a_reader_that_does_not_read_costs_one_part(start, toy):
    service = start(toy)
    body = make_batch(*[make_group(f"t{index}", "1+1=", "2") for index in range(400)], sampling=sampling(8, max_tokens=64))
    with open_stream(service, body) as wire:
        other = service.batch(make_batch(make_group("other", "1+1=", "2")))
        assert other["state"] == "complete"
        body = b""
        while (chunk := next_chunk(wire)):  # a line may be cut by the end of a chunk
            body += chunk
        lines = body.splitlines()
        assert len(lines) == 401 and lines[-1].startswith(b'{"batch"')
