"""Replies that nobody reads, and reads that would hold up everybody: F11, F17; R74. No times are asserted."""
import contextlib
import json
import os
import re
import selectors
import socket
import sqlite3
import threading

import pytest

from harness import eventually

SANITIZED = bool(os.environ.get("ROLLOUTD_SANITIZED"))
BUDGET = 64 << 20
ROWS, ROW_BYTES = 400, 15_000
SMALL_VERIFY = {"verifiers": [{"name": "exact"}], "items": [{"completion": "a", "reference": "a"}]}
LIST = "/v1/rollouts?limit=400&fields=id,text,completion_ids,logprobs"


def memory_kept(service, name="VmHWM"):
    with open(f"/proc/{service.pid}/status", encoding="ascii") as file:
        return int(re.search(name + r":\s+(\d+)", file.read())[1]) << 10


def score(groups, members, **fields):
    completion = {"text": "x" * (ROW_BYTES // 2), "completion_ids": list(range(300)), "logprobs": [-0.125] * 300}
    return {"run": "long", "policy_revision": 1, "verifiers": [{"name": "exact"}],
            "groups": [{"task": f"t{index}", "prompt": "p", "reference": "y", "completions": [completion] * members} for index in range(groups)], **fields}


def fill(service):
    """A batch of 400 rollouts of 15 KB; gives its id."""
    reply = service.post("/v1/score", score(ROWS // 16, 16), arrays="none")
    assert reply.status == 200, reply
    return reply.json["id"]


def ask(service, request, receive_bytes=4096):
    """Sends a request, and reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.connect(("127.0.0.1", service.port))
    client.sendall(request)
    return client


def get(path, accept="*/*"):
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\n\r\n".encode()


def post(path, body):
    data = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def read_all(client):
    """Status and whatever comes until the connection closes."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(1 << 20):
            data += piece
    return data


def answered(clients):
    with selectors.DefaultSelector() as ready:
        for client in clients:
            ready.register(client, selectors.EVENT_READ)
        return len(ready.select(0))


@contextlib.contextmanager
def silent(service, count, request):
    clients = [ask(service, request) for _ in range(count)]
    try:
        eventually(lambda: answered(clients) > 0, "the first of them to be served")
        yield clients
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize("path, accept, clients", [
    (LIST, "*/*", 48),
    (LIST, "*/*", 400),
    ("/v1/batches/{id}", "*/*", 200),
    ("/v1/batches/{id}/groups?limit=100", "*/*", 200),
    ("/v1/batches/{id}", "application/x-ndjson", 200),
    ("/v1/batches/{id}/request", "*/*", 48),
    ("/openapi.yaml", "*/*", 400),
    ("/metrics", "*/*", 400),
])
def test_replies_that_nobody_reads_stay_within_memory_budget(start, path, accept, clients):
    """F11. The others are answered meanwhile, and one who reads gets all of it."""
    service = start(settings={"memory_budget": "64MiB", "reply_timeout": "3s"})
    path = path.format(id=fill(service))
    whole = service.request("GET", path, headers={"Accept": accept})
    before = memory_kept(service, "VmRSS")
    with silent(service, clients, get(path, accept)):
        assert service.post("/v1/verify", SMALL_VERIFY).json["items"][0]["reward"] == 1
        assert service.get("/healthz").status == 200
        again = service.request("GET", path, headers={"Accept": accept})
        assert again.status == 200 and ("metrics" in path or again.body == whole.body)
        assert SANITIZED or memory_kept(service) < before + BUDGET
    assert len(whole.body) > 1_000_000 or "/v1/" not in path


def test_verdicts_and_objectives_that_nobody_reads_stay_within_memory_budget(start):
    """F11: whole replies are counted, and there is a reply for those who do not fit."""
    service = start(settings={"memory_budget": "64MiB", "reply_timeout": "3s"})
    verify = {"verifiers": [{"name": "exact"}], "items": [{"completion": "a", "reference": "b"}] * 13_000}
    objective = {"sequences": [{"group": "a", "reward": index % 2, "logprobs": [-0.5] * 20_000} for index in range(6)]}
    sizes = [len(service.post(path, body).body) for path, body in (("/v1/verify", verify), ("/v1/objective", objective))]
    before = memory_kept(service, "VmRSS")
    assert min(sizes) > 4_000_000, sizes
    with silent(service, 24, post("/v1/verify", verify)), silent(service, 24, post("/v1/objective", objective)):
        assert service.post("/v1/verify", SMALL_VERIFY).json["items"][0]["reward"] == 1
        eventually(lambda: service.post("/v1/verify", verify).status == 200, "room for one who reads")
        assert SANITIZED or memory_kept(service) < before + 3 * BUDGET  # bodies and their trees have shares of their own


def test_bodies_get_what_replies_that_nobody_reads_leave_of_the_budget(start):
    """F11. Two bodies of 30 MiB that stop half-way fit into 64 MiB, and not beside replies that wait."""
    service = start(settings={"memory_budget": "64MiB", "body_timeout": "10m", "reply_timeout": "10m"})
    head = b"POST /v1/verify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 33554432\r\n\r\n"
    objective = {"sequences": [{"group": "a", "reward": index % 2, "logprobs": [-0.5] * 20_000} for index in range(6)]}
    with silent(service, 12, post("/v1/objective", objective)) as clients:
        eventually(lambda: answered(clients) == len(clients), "all of them to be answered or refused")
        with contextlib.closing(ask(service, head)) as first, contextlib.closing(ask(service, head)) as second:
            for client in (first, second):
                with contextlib.suppress(ConnectionError):
                    client.sendall(b" " * (30 << 20))
            eventually(lambda: answered([first, second]) == 1, "one of them to be refused")
            assert service.post("/v1/verify", SMALL_VERIFY).status == 200


def test_a_client_that_takes_nothing_is_cut_off(start):
    """F11: after reply_timeout; what it held is free then."""
    service = start(settings={"reply_timeout": "300ms"})
    fill(service)
    client = ask(service, get(LIST))
    client.settimeout(None)
    eventually(lambda: f":{client.getsockname()[1]:04X}" not in connections(service), "its connection to be closed")
    assert not read_all(client).endswith(b"0\r\n\r\n")
    client.close()


def connections(service):
    """The remote ports of the service's established connections."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return {":" + row[2].rpartition(":")[2] for row in rows if row[3] == "01" and row[1].endswith(f":{service.port:04X}")}


def test_a_slow_client_that_reads_gets_the_whole_reply(start):
    """F11: longer than reply_timeout in all, and longer than connection_timeout, but never that long without a byte."""
    service = start(settings={"reply_timeout": "1s", "connection_timeout": "1s"})
    fill(service)
    whole = service.get(LIST).body
    client = ask(service, get(LIST).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), receive_bytes=32768)
    data, pause = b"", threading.Event()
    for _ in range(40):
        data += client.recv(8192)
        pause.wait(0.1)  # the client's own pace
    data += read_all(client)
    body = unchunked(data.split(b"\r\n\r\n", 1)[1])
    assert body == whole
    client.close()


def unchunked(data):
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        size = int(size, 16)
        if size == 0:
            return body
        body, data = body + data[:size], data[size + 2:]


def test_a_client_that_reads_nothing_holds_no_snapshot(start):
    """R52: between two parts of its reply nothing keeps the write-ahead log."""
    service = start()
    identity = fill(service)
    with silent(service, 1, get(LIST)), silent(service, 1, get(f"/v1/batches/{identity}")), silent(service, 1, get(f"/v1/batches/{identity}/request")):
        with contextlib.closing(sqlite3.connect(service.database)) as database:
            eventually(lambda: database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "a checkpoint that nobody stands in the way of")
        assert os.path.getsize(service.database + "-wal") == 0


def test_no_room_for_a_reply_is_429_and_says_why(start):
    """F11: a whole reply larger than the limit waits for its client alone."""
    service = start(settings={"memory_budget": "2MiB"})
    objective = {"sequences": [{"group": "a", "reward": index % 2, "logprobs": [-0.5] * 20_000} for index in range(4)]}
    with silent(service, 1, post("/v1/objective", objective)):
        reply = service.post("/v1/objective", objective)
        assert reply.status == 429 and reply.error["code"] == "queue_full" and "memory_budget" in reply.error["message"], reply
        assert int(reply.headers["retry-after"]) > 0
        assert service.post("/v1/verify", SMALL_VERIFY).status == 200
    eventually(lambda: service.post("/v1/objective", objective).status == 200, "room when its client is gone")


def multiply_rows(service, count):
    """The record's rows, copied until there are so many: a scan of minutes' worth of sampling."""
    service.terminate()
    with contextlib.closing(sqlite3.connect(service.database)) as database:
        names = [row[1] for row in database.execute("PRAGMA table_info(rollouts)")]
        chosen = ", ".join({"seq": "NULL", "shaped_reward": "NULL", "sample_index": "1000 + number", "advantage": "NULL"}.get(name, name) for name in names)
        database.execute(f"WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < {count}) "
                         f"INSERT INTO rollouts SELECT {chosen} FROM (SELECT * FROM rollouts LIMIT 1), numbers")
        database.commit()
    return service.start()


def test_a_small_request_is_answered_before_the_scans_that_came_first(start):
    """F17: reads of the record have threads of their own, whatever the others wait for."""
    service = start(settings={"scan_budget": 1_000_000})
    assert service.post("/v1/score", score(1, 2)).status == 200
    multiply_rows(service, 40_000 if SANITIZED else 200_000)
    scans = [ask(service, get("/v1/rollouts?reward_min=2")) for _ in range(32)]
    assert service.post("/v1/verify", SMALL_VERIFY).json["items"][0]["reward"] == 1
    assert answered(scans) < len(scans)
    assert service.get("/v1/runs").status == 200
    assert answered(scans) < len(scans), "a small read takes its turn between the slices of the scans"
    for scan in scans:
        head = scan.recv(65536)
        assert head.startswith(b"HTTP/1.1 200") and b'"items":[]' in head, head
        scan.close()


def test_a_small_verify_is_answered_before_large_requests_that_came_first(start):
    """F17: large bodies, large scores and large verifies have a quota; one worker is kept for small requests."""
    service = start()
    large = {"verifiers": [{"name": "exact"}], "items": [{"completion": "a" * 40, "reference": "b"}] * 20_000}
    scores = {"run": "s", "policy_revision": 1, "verifiers": [{"name": "exact"}],
              "groups": [{"task": f"t{index}", "prompt": "p", "reference": "y", "completions": [{"text": "z"}] * 16} for index in range(500)]}
    clients = [ask(service, post("/v1/verify", large)) for _ in range(6)] + [ask(service, post("/v1/score?arrays=none", scores)) for _ in range(2)]
    assert service.post("/v1/verify", SMALL_VERIFY).json["items"][0]["reward"] == 1
    assert answered(clients) < len(clients)
    for client in clients:
        client.close()


def test_an_object_of_many_names_is_read_or_refused_by_the_budget(start):
    """F17: what does not fit memory_budget is refused with its name."""
    names = {f"k{index}": 1 for index in range(200_000 if SANITIZED else 600_000)}
    body = {"verifiers": [{"name": "exact"}], "items": [{"completion": "a", "reference": names}]}
    assert start().post("/v1/verify", body).status == 200
    reply = start(settings={"memory_budget": "1MiB"}).post("/v1/verify", {**body, "items": body["items"] * 2})
    assert reply.status == 413 and reply.error["code"] == "body_too_large" and "memory_budget" in reply.error["message"], reply


def test_a_list_over_many_slices_says_where_it_goes_on(start):
    """F17: a scan in slices ends where one in a piece would: at scan_budget, with `next`."""
    service = start(settings={"scan_budget": 5000})
    assert service.post("/v1/score", score(1, 2)).status == 200
    multiply_rows(service, 12_000)
    pages, cursor = [], {}
    while not pages or pages[-1]["next"]:
        pages.append(service.read("/v1/rollouts", reward_min=2, **cursor))
        cursor = {"cursor": pages[-1]["next"]}
    assert [page["items"] for page in pages] == [[]] * 3
    ids = [item["id"] for item in service.read("/v1/rollouts", limit=1000, fields="id")["items"]]
    assert len(set(ids)) == 1000
