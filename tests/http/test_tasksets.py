"""Task sets: tasks under a name that never change, read line by line from a body of any size."""
import hashlib
import json
import os
import sqlite3
import threading

import pytest

from harness import eventually
from test_disk import limit_files

TYPE = {"Content-Type": "application/x-ndjson"}
REST = "/v1/tasksets/"


def line(task, **fields):
    return {"task": task, "prompt": f"What is {task}?", "reference": "42", **fields}


def body_of(*tasks):
    return b"".join(json.dumps(task).encode() + b"\n" for task in tasks)


def put(service, name, body, **headers):
    return service.request("PUT", REST + name, body, {**TYPE, **headers})


def number(service, sql):
    with sqlite3.connect(service.database) as connection:
        found = connection.execute(sql).fetchone()[0]
    connection.close()
    return found


def no_draft(service):
    eventually(lambda: number(service, "SELECT count(*) FROM tasksets WHERE sha256 IS NULL") == 0, "the draft to be dropped")
    assert number(service, "SELECT count(*) FROM taskset_tasks WHERE set_seq NOT IN (SELECT seq FROM tasksets)") == 0


MANY = body_of(*(line(f"t{i}", split="test" if i % 10 == 0 else "train", reference=str(i % 7)) for i in range(4000)))


# -- a set ---------------------------------------------------------------------------------------------------------------------

def test_a_set_is_its_body_s_digest_and_counts(plain):
    body = body_of(line("a"), line("b", split="test"), line("c", split="train"))
    made = put(plain, "counted", body)
    assert made.status == 201
    assert made.json == {"set": "counted", "sha256": hashlib.sha256(body).hexdigest(), "tasks": 3, "splits": {"train": 2, "test": 1}}
    assert plain.read(REST + "counted") == made.json
    assert made.json in plain.read("/v1/tasksets")["items"]


def test_the_same_body_again_changes_nothing_and_another_is_refused(plain):
    body = body_of(line("a"))
    made = put(plain, "frozen", body)
    again = put(plain, "frozen", body)
    assert (made.status, again.status) == (201, 200) and again.json == made.json
    for other in (body + b"\n", body_of(line("a", reference="43")), b"no tasks at all"):
        reply = put(plain, "frozen", other)
        assert (reply.status, reply.error["code"], reply.error["path"]) == (409, "state_conflict", "set")
    assert plain.read(REST + "frozen") == made.json


def test_tasks_come_back_as_they_were_put(plain):
    tasks = [line("a/b c", split="test", metadata={"k": [1, 2.5, None]}, tags={"source": "x"}), line("chat", messages=[{"role": "user", "content": "é\u0000"}], prompt=None),
             line("bare", reference=None), {"task": "obj", "prompt": "", "reference": {"a": [1]}}]
    tasks[1].pop("prompt")
    assert put(plain, "whole", body_of(*tasks)).status == 201
    wanted = [{"split": "train", "reference": None, "metadata": None, "tags": {}, **task} for task in tasks]
    assert plain.read(REST + "whole/tasks")["items"] == wanted
    assert plain.read(REST + "whole/tasks/a%2Fb%20c") == wanted[0]
    assert [one["task"] for one in plain.read(REST + "whole/tasks", split="test")["items"]] == ["a/b c"]


def test_pages_show_each_task_once_in_order(plain):
    assert put(plain, "paged", MANY).status == 201
    seen, cursor = [], None
    while True:
        page = plain.read(REST + "paged/tasks", limit=700, **({"cursor": cursor} if cursor else {}))
        seen += [task["task"] for task in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [f"t{i}" for i in range(4000)]
    other = plain.read(REST + "paged/tasks", limit=1)["next"]
    assert plain.get(REST + "paged/tasks", split="test", cursor=other).error["path"] == "cursor"


def test_equal_references_are_on_record_once(start):
    service = start()
    assert put(service, "many", MANY).status == 201
    assert number(service, "SELECT count(*) FROM contents") == 4000 + 7


def test_a_set_is_there_after_a_restart(start):
    service = start()
    made = put(service, "kept", MANY).json
    service.restart()
    assert service.read(REST + "kept") == made and put(service, "kept", MANY).status == 200


@pytest.mark.parametrize("body", [b'{"task":"a","prompt":"x"}', b'\n \r\n{"task":"a","prompt":"x"}\r\n\n\n', b'{"task":"a","prompt":"x"}\n \t'])
def test_blank_lines_and_ends_of_lines_do_not_matter(plain, body):
    name = hashlib.sha256(body).hexdigest()[:8]
    reply = put(plain, name, body)
    assert reply.status == 201 and reply.json["tasks"] == 1 and reply.json["sha256"] == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize("path, field", [("nobody", "set"), ("nobody/tasks", "set"), ("nobody/tasks/a", "set"), ("there/tasks/b", "task")])
def test_an_unknown_set_or_task_is_not_found(plain, path, field):
    assert put(plain, "there", body_of(line("a"))).status in (200, 201)
    reply = plain.get(REST + path)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (404, "not_found", field)


# -- wrong bodies ----------------------------------------------------------------------------------------------------------------

WRONG = [
    (b'{"task":"x"}', 400, "missing_field", "line[3].prompt"),
    (b'{"prompt":"x"}', 400, "missing_field", "line[3].task"),
    (b'{"task":"x","prompt":"x","messages":[{"role":"user"}]}', 400, "invalid_field", "line[3].prompt"),
    (b'{"task":"x","messages":[{"role":"user"},{}]}', 400, "invalid_field", "line[3].messages[1]"),
    (b'{"task":"x","messages":[]}', 400, "invalid_field", "line[3].messages"),
    (b'{"task":"","prompt":"x"}', 400, "invalid_field", "line[3].task"),
    (b'{"task":"' + b"n" * 1025 + b'","prompt":"x"}', 400, "invalid_field", "line[3].task"),
    (b'{"task":"x","prompt":"x","split":"a b"}', 400, "invalid_field", "line[3].split"),
    (b'{"task":"x","prompt":"x","tags":{"source":1}}', 400, "invalid_field", "line[3].tags.source"),
    (b'{"task":"x","prompt":"x","answer":"1"}', 400, "unknown_field", "line[3].answer"),
    (b'{"task":"x","prompt":"x","reference":1e999}', 400, "invalid_field", "line[3].reference"),
    (b'{"task":"x","prompt":"\xff"}', 400, "invalid_json", "line[3]"),
    (b'{"task":"x","prompt":"x"', 400, "invalid_json", "line[3]"),
    (b'{"task":"x","prompt":"x"}{"task":"y","prompt":"x"}', 400, "invalid_json", "line[3]"),
    (b'\xef\xbb\xbf{"task":"x","prompt":"x"}', 400, "invalid_json", "line[3]"),
    (b'["task"]', 400, "invalid_field", "line[3]"),
    (b"\0", 400, "invalid_json", "line[3]"),
    (b'{"task":"t1","prompt":"x"}', 422, "duplicate_task", "line[3].task"),
]


@pytest.mark.parametrize("wrong, status, code, path", WRONG)
def test_a_wrong_line_refuses_the_set_with_its_number_and_path(plain, wrong, status, code, path):
    reply = put(plain, "wrong", b'{"task":"t1","prompt":"x"}\n\n' + wrong + b'\n{"task":"t2","prompt":"x"}\n')
    assert reply.status == status and reply.error["code"] == code and (reply.error["path"] or "").startswith(path), reply
    assert "line 3" in reply.error["message"] and len(reply.error["message"]) < 500
    assert plain.get(REST + "wrong").status == 404
    no_draft(plain)


@pytest.mark.parametrize("body", [b"", b"\n\n", b" \t\r\n"])
def test_an_empty_set_is_refused(plain, body):
    reply = put(plain, "empty", body)
    assert (reply.status, reply.error["code"]) == (400, "invalid_field") and plain.get(REST + "empty").status == 404


def test_a_wrong_line_far_behind_refuses_the_earlier_lines_too(plain):
    reply = put(plain, "late", MANY + b'{"task":"t17","prompt":"x"}')
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "duplicate_task", "line[4001].task") and "line 18" in reply.error["message"]
    assert plain.get(REST + "late").status == 404
    no_draft(plain)
    assert put(plain, "late", MANY).status == 201


def test_too_many_splits_are_refused(plain):
    reply = put(plain, "splits", body_of(*(line(f"t{i}", split=f"s{i}") for i in range(101))))
    assert (reply.status, reply.error["path"]) == (400, "line[101].split")
    no_draft(plain)


@pytest.mark.parametrize("name", ["a%20b", "n" * 129, "%C3%A9", "a%2Fb"])
def test_a_name_that_no_set_may_have_is_refused(plain, name):
    reply = put(plain, name, MANY)
    assert (reply.status, reply.error["path"]) == (400, "set")


def test_another_type_is_refused(plain):
    for headers in ({"Content-Type": "application/json"}, {"Content-Type": "text/plain"}):
        assert plain.request("PUT", REST + "typed", MANY, headers).status == 415
    assert plain.request("PUT", REST + "typed?x=1", MANY, TYPE).error["path"] == "x"


# -- bodies of any size ------------------------------------------------------------------------------------------------------------

def test_a_body_larger_than_the_limits_of_memory_is_read_as_it_arrives(start):
    service = start(args=["--set", "memory_budget=4MiB", "--set", "body_limit=1MiB"])
    body = body_of(*(line(f"t{i}", prompt=f"{i} " + "x" * 3000) for i in range(8000)))
    assert len(body) > 5 * 4 * 1024 * 1024
    reply = put(service, "large", body)
    assert reply.status == 201 and reply.json["tasks"] == 8000 and reply.json["sha256"] == hashlib.sha256(body).hexdigest()
    assert put(service, "large", body).status == 200


def head(name, *lines):
    return "\r\n".join([f"PUT {REST}{name} HTTP/1.1", "Host: localhost", "Content-Type: application/x-ndjson", *lines]) + "\r\n\r\n"


def test_a_line_of_100_mb_is_refused_before_all_of_it_has_come(plain):
    with plain.wire() as wire:
        wire.send(head("long", f"Content-Length: {100 * 1000 * 1000}"))
        wire.send(b'{"task":"a","prompt":"x"}\n{"task":"b","prompt":"')
        try:
            for _ in range(100):
                wire.send(b"x" * 1000 * 1000)
        except OSError:
            pass  # it is not read to its end
        reply = wire.reply()
    assert (reply.status, reply.error["code"], reply.error["path"]) == (413, "body_too_large", "line[2]")
    assert plain.get(REST + "long").status == 404


def test_a_body_beyond_the_limit_is_refused(start):
    service = start(args=["--set", "taskset_limit=100KiB"])
    reply = put(service, "beyond", MANY)
    assert (reply.status, reply.error["code"]) == (413, "body_too_large") and "taskset_limit" in reply.error["message"]
    with service.wire() as wire:
        wire.send(head("beyond", "Transfer-Encoding: chunked"))
        try:
            for at in range(0, len(MANY), 50000):
                piece = MANY[at:at + 50000]
                wire.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        except OSError:
            pass
        assert wire.reply().status == 413
    no_draft(service)


def test_a_body_that_is_cut_off_leaves_nothing(start):
    service = start()
    body = MANY + body_of(*(line(f"u{i}", prompt="x" * 1000) for i in range(4000)))
    for ends in ("Content-Length: %d" % (2 * len(body)), "Transfer-Encoding: chunked"):
        with service.wire() as wire:
            wire.send(head("cut", ends))
            wire.send(b"%x\r\n" % (2 * len(body)) if "chunked" in ends else b"").send(body)
            eventually(lambda: number(service, "SELECT count(*) FROM taskset_tasks") > 0, "the first tasks to be stored")
        no_draft(service)
    assert service.read("/v1/tasksets")["items"] == [] and number(service, "SELECT count(*) FROM contents") == 0
    assert put(service, "cut", body).status == 201


def test_a_body_that_does_not_come_on_is_given_up(start):
    service = start(args=["--set", "body_timeout=300ms"])
    body = MANY + body_of(*(line(f"u{i}", prompt="x" * 1000) for i in range(2000)))
    with service.wire() as wire:
        wire.send(head("slow", "Content-Length: %d" % (2 * len(body)))).send(body)
        assert wire.reply().status == 408
    no_draft(service)
    assert service.get(REST + "slow").status == 404


def test_chunks_may_end_anywhere(plain):
    with plain.wire() as wire:
        wire.send(head("chunks", "Transfer-Encoding: chunked"))
        small = body_of(line("a"), line("b"))
        for at in range(len(small)):
            wire.send(b"1\r\n%s\r\n" % small[at:at + 1])
        wire.send(b"0\r\n\r\n")
        reply = wire.reply()
    assert reply.status == 201 and reply.json["sha256"] == hashlib.sha256(small).hexdigest()


def test_the_connection_goes_on_behind_a_large_body(plain):
    body = MANY + body_of(*(line(f"u{i}", prompt="x" * 1000) for i in range(4000)))
    with plain.wire() as wire:
        wire.send(head("first", "Content-Length: %d" % len(body))).send(body)
        assert wire.reply().status == 201
        wire.send(head("first", "Content-Length: %d" % len(body), "Expect: 100-continue"))
        assert wire.reply().status == 100
        wire.send(body)
        assert wire.reply().status == 200


def test_two_clients_that_put_one_set_at_once_make_one(start):
    service = start()
    body, other = MANY, MANY + body_of(line("more"))
    replies = []
    threads = [threading.Thread(target=lambda which=which: replies.append((which, put(service, "both", which)))) for which in (body, body, other, body)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = service.read(REST + "both")["sha256"]
    for which, reply in replies:
        same = hashlib.sha256(which).hexdigest() == winner
        assert reply.status in ((200, 201) if same else (409,)), reply
    assert sum(reply.status == 201 for _, reply in replies) == 1
    no_draft(service)
    assert number(service, "SELECT count(*) FROM tasksets") == 1


# -- the end of the process, of the disk -----------------------------------------------------------------------------------------------

def test_a_draft_that_a_crash_left_is_invisible_and_dropped_by_the_next_start(start):
    service = start()
    assert put(service, "before", MANY).status == 201
    with service.wire() as wire:
        body = body_of(*(line(f"u{i}", prompt=f"{i}" + "x" * 1000) for i in range(4000)))
        wire.send(head("killed", "Content-Length: %d" % (2 * len(body)))).send(body)
        eventually(lambda: number(service, "SELECT count(*) FROM taskset_tasks") > 4000, "some tasks to be stored")
        service.kill()
    assert number(service, "SELECT count(*) FROM tasksets WHERE sha256 IS NULL") == 1
    service.start()
    assert [one["set"] for one in service.read("/v1/tasksets")["items"]] == ["before"] and service.get(REST + "killed").status == 404
    no_draft(service)
    assert number(service, "SELECT count(*) FROM taskset_tasks") == 4000
    assert put(service, "killed", body).status == 201


def test_a_full_disk_refuses_the_set_and_leaves_nothing(start):
    service = start()
    assert put(service, "before", body_of(line("a"))).status == 201
    body = body_of(*(line(f"u{i}", prompt=f"{i}" + "x" * 1000) for i in range(8000)))
    limit_files(service, 3 * 1024 * 1024)
    with service.wire() as wire:
        wire.send(head("full", "Content-Length: %d" % len(body)))
        try:
            wire.send(body)
        except OSError:
            pass
        reply = wire.reply()
    assert (reply.status, reply.error["code"]) == (507, "disk_full")
    limit_files(service, None)
    no_draft(service)
    assert [one["set"] for one in service.read("/v1/tasksets")["items"]] == ["before"]
    assert put(service, "full", body).status == 201


def test_others_are_served_while_a_large_set_arrives(start):
    service = start()
    body = body_of(*(line(f"u{i}", prompt=f"{i}" + "x" * 1000) for i in range(8000)))
    with service.wire() as wire:
        wire.send(head("slowly", "Content-Length: %d" % len(body))).send(body[:-100])
        eventually(lambda: number(service, "SELECT count(*) FROM taskset_tasks") > 0, "some tasks to be stored")
        reply = service.post("/v1/score", {"run": "r", "groups": [{"task": "a", "completions": [{"text": "1"}]}]})
        assert reply.status == 200 and service.get(REST + "slowly").status == 404
        wire.send(body[-100:])
        assert wire.reply().status == 201
    assert os.path.exists(service.database)
