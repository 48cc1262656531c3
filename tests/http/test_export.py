"""GET /v1/export: every rollout that fits, to the last line (docs/history.md)."""
import csv
import io
import json
import socket
import sqlite3
import threading

import pytest

from harness import eventually
from material import make_batch, make_group, rollouts, sampling
from test_records import pages
from test_score import completion, make_score, score
from test_score import make_group as make_completions

ODD = ['comma, "quoted"\r\nnext line', " blank ", "# end,7", "größer \U0001f4a5", "=1+1"]


@pytest.fixture(scope="module")
def record(shared_factory):
    service = shared_factory()
    for revision in range(1, 6):
        score(service, make_score(make_completions("odd, task", completions=[completion(text, [index + 1]) for index, text in enumerate(ODD)]),
                                  make_completions("lost", completions=[completion("x", [1], failure={"stage": "sample", "code": "engine_error", "message": "no, \"never\"",
                                                                                                      "retryable": False, "attempts": 1})]),
                                  run="export", policy_revision=revision))
    return service


def export(service, **query):
    """Its rows and its end."""
    reply = service.get("/v1/export", **query)
    assert reply.status == 200 and reply.headers["content-type"] == "application/x-ndjson", reply
    lines = [json.loads(line) for line in reply.body.decode().splitlines()]
    assert list(lines[-1]) == ["end"]
    return lines[:-1], lines[-1]["end"]


def as_csv(service, **query):
    reply = service.request("GET", "/v1/export", headers={"Accept": "text/csv"}, **query)
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/csv"), reply
    body, _, end = reply.body.decode().rstrip("\n").rpartition("# end,")
    assert body.endswith("\r\n") and reply.body.endswith(b"\n")
    return list(csv.DictReader(io.StringIO(body, newline=""))), end


def test_a_line_is_the_rollout_as_it_reads_alone(record):
    rows, end = export(record, run="export")
    assert end == {"rows": 30, "next": None} and len(rows) == 30
    assert all(row == {**record.read(f"/v1/rollouts/{row['id']}"), **record.read(f"/v1/rollouts/{row['id']}", fields="prompt,reference")} for row in rows)
    assert [row["id"] for row in rows] == [row["id"] for row in pages(record, run="export")]


@pytest.mark.parametrize("query", [{"state": "failed"}, {"text": "quoted"}, {"revision": 2, "order_by": "tokens", "order": "desc"}, {"task": "nobody"}])
def test_it_takes_the_filters_and_orders_of_lists(record, query):
    rows, end = export(record, run="export", **query)
    assert [row["id"] for row in rows] == [row["id"] for row in pages(record, run="export", **query)] and end == {"rows": len(rows), "next": None}


def test_arrays_are_packed_or_left_out(record):
    (row,), _ = export(record, run="export", limit=1, arrays="none")
    assert row["text"] and "completion_ids" not in row and "logprobs" not in row
    (row,), _ = export(record, run="export", limit=1, arrays="base64")
    assert row["completion_ids_u32"] == "AQAAAA=="
    (row,), _ = export(record, run="export", limit=1, fields="reward")
    assert set(row) == {"id", "reward"}


@pytest.mark.parametrize("order_by", ["created", "reward"])
def test_an_export_with_a_limit_goes_on_at_its_next(record, order_by):
    query = {"run": "export", "revision": 3, "order_by": order_by}
    whole, _ = export(record, **query)
    first, end = export(record, **query, limit=4)
    assert end["rows"] == 4 and end["next"]
    rest, end = export(record, **query, cursor=end["next"])
    assert first + rest == whole and end == {"rows": 2, "next": None}
    reply = record.get("/v1/export", run="export", cursor="garbage")
    assert (reply.status, reply.error["path"]) == (400, "cursor")


def test_it_does_not_end_with_the_scan_budget(start):
    service = start(args=["--set", "scan_budget=5"])
    for _ in range(4):
        score(service, make_score(make_completions(completions=[completion("3"), completion("4"), completion("5")])))
    assert export(service, text="5")[1] == {"rows": 4, "next": None}


# -- CSV -----------------------------------------------------------------------------------------------------------------------

def test_csv_has_the_flat_columns_of_the_same_rows(record):
    rows, end = as_csv(record, run="export")
    lines, _ = export(record, run="export")
    assert end == "30" and len(rows) == 30
    for row, line in zip(rows, lines):
        for name in ("id", "run", "task", "text", "state", "finish_reason", "created_at"):
            assert row[name] == (line[name] or ""), name
        for name in ("reward", "advantage", "completion_tokens", "policy_revision"):
            assert (float(row[name]) if row[name] else None) == line[name], name
        assert json.loads(row["rewards"]) == line["rewards"] and row["queued_us"] == str(line["timing"]["queued_us"])
        assert row["failure"] == (line["failure"] or {"code": ""})["code"] and row["failure_message"] == (line["failure"] or {"message": ""})["message"]
        assert row["duplicate"] == json.dumps(line["duplicate"]) and row["prompt"] == line["prompt"] and row["reference"] == line["reference"]
    assert {row["text"] for row in rows} >= set(ODD)


def test_csv_takes_fields_and_says_where_it_goes_on(record):
    rows, end = as_csv(record, run="export", fields="reward,text", limit=2)
    assert [list(row) for row in rows] == [["id", "reward", "text"]] * 2
    count, _, cursor = end.partition(",")
    assert count == "2" and len(as_csv(record, run="export", cursor=cursor)[0]) == 28
    assert as_csv(record, run="nobody") == ([], "0")
    reply = record.request("GET", "/v1/export", headers={"Accept": "text/csv"}, fields="logprobs")
    assert (reply.status, reply.error["path"]) == (400, "fields")


# -- beside a running service --------------------------------------------------------------------------------------------------

def test_rows_that_are_written_meanwhile_neither_repeat_nor_hide_others(start):
    service, stop = start(), threading.Event()
    body = make_score(make_completions(completions=[completion("3", range(1, 200)), completion("4", range(200))]))
    for _ in range(20):
        score(service, body)
    before = {row["id"] for row in pages(service, limit=1000)}

    def add():
        while not stop.is_set():
            score(service, body)
    adder = threading.Thread(target=add)
    adder.start()
    try:
        exports = [[row["id"] for row in export(service, order=order)[0]] for order in ("asc", "desc", "asc")]
    finally:
        stop.set()
        adder.join()
    for found in exports:
        assert len(found) == len(set(found)) and before <= set(found)


def test_r52_an_export_that_is_read_slowly_keeps_no_snapshot(service, engine):
    """R52: rows written during an export move from the log into the database. The record is larger than what sockets hold."""
    text = "x" * 100_000
    engine.rules({"text": text, "ids": [1], "lp": [-0.5]})
    many = make_batch(*[make_group(f"k{index}") for index in range(10)], run="slow", sampling=sampling(4))
    for _ in range(3):
        service.batch(many)
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(f"GET /v1/export?run=slow HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        assert slow.recv(1024).startswith(b"HTTP/1.1 200")
        for _ in range(3):
            service.batch(many)
        eventually(lambda: checkpointed(service), "a checkpoint that passes all of the log")
        received = b""
        while b'{"end":' not in received[-200:]:
            piece = slow.recv(1 << 20)
            assert piece, "the export was cut off"
            received += piece
    assert received.count(b'"id":"r_') >= 120


def test_r53_a_text_with_nul_is_found_and_exported_whole(service, engine):
    """R53: the search does not end at the NUL."""
    text = "a\u0000b needle \\boxed{42}"
    engine.rules({"text": text, "ids": [9], "lp": [-0.5]})
    rollout = rollouts(service.batch(make_batch(sampling=sampling(1))))[0]
    for _ in range(2):
        assert [row["id"] for row in service.read("/v1/rollouts", text="needle")["items"]] == [rollout["id"]]
        assert [(row["text"], row["reward"]) for row in export(service, text="needle")[0]] == [(text, 1)]
        assert [row["text"] for row in as_csv(service)[0]] == [text]
        service.restart()


def checkpointed(service):
    """Whether no snapshot holds a checkpoint back."""
    with sqlite3.connect(service.database, timeout=0) as database:
        busy, pages_in_log, moved = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    database.close()
    return not busy and pages_in_log == moved


def test_a_client_that_hangs_up_ends_its_export(service, engine):
    engine.rules({"text": "x" * 100_000, "ids": [1], "lp": [-0.5]})
    batch = service.batch(make_batch(*[make_group(f"k{index}") for index in range(10)], sampling=sampling(8)))
    assert len(rollouts(batch)) == 80
    wire = service.wire()
    wire.send(b"GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
    wire.close()
    assert export(service, arrays="none")[1]["rows"] == 80
