"""The record on a bad day: a slow disk, a disk that hangs, a reader that holds a page, damage, a place that is read-only."""
import os
import sqlite3

import pytest

from engines import CannedEngine
from harness import PATIENCE, StartFailed, eventually
from material import make_batch, make_group, rollouts, sampling
from test_database import answers, launch
from test_health import ASYNC, Watch
from test_hostile import post

LOOSE = [{"name": "regex", "options": {"pattern": "^4"}}]


@pytest.fixture
def canned(tmp_path):
    made = CannedEngine(tmp_path, "--tokens", "64", "--text-bytes", "200")
    yield made
    made.close()


def groups_of(count):
    return [make_group(f"t{index}", "1+1=") for index in range(count)]


# -- a slow disk --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("milliseconds", [5, 50])
def test_on_a_slow_disk_many_rollouts_share_a_commit(start, canned, slow_sync, milliseconds):
    service = start(canned, env={"LD_PRELOAD": slow_sync, "SLOW_SYNC_US": str(1000 * milliseconds)})
    value = Watch(service)
    eventually(lambda: value("commit_rows_sum") == 1, "leases that ended while nobody was there to be looked for")
    quick = {"le": "0.0025" if milliseconds == 5 else "0.025"}
    before = value("commit_seconds_bucket", **quick)
    batch = service.batch(make_batch(*groups_of(250), verifiers=LOOSE, sampling=sampling(8, max_tokens=64), deadline="5m"))
    assert batch["summary"]["scored"] == 2000
    commits, rows = value("commit_seconds_count") - 1, value("commit_rows_sum") - 1
    print(f"fsync {milliseconds} ms: {rows / commits:.1f} operations in a commit")
    assert value("commit_seconds_bucket", **quick) == before, "each commit was synced"
    assert rows == 1 + 2000 + 250 + 1 and rows / commits > 8


def test_a_disk_that_hangs_stops_nobody_but_those_who_must_be_told_what_is_on_it(start, canned, slow_sync, tmp_path):
    hanging = tmp_path / "hanging"
    service = start(canned, env={"LD_PRELOAD": slow_sync, "SLOW_SYNC_FILE": str(hanging)})
    first = service.batch(make_batch(make_group("first"), verifiers=LOOSE))
    hanging.touch()
    with service.wire() as wire:
        raw = b'{"revision":2}'
        wire.send(b"PUT /v1/runs/test/policy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)
        for path in ("/healthz", "/readyz", "/metrics", "/v1/pending", f"/v1/batches/{first['id']}", "/v1/rollouts", "/v1/runs/test"):
            assert service.get(path).status == 200, path
        wire.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            wire.more()
        assert not wire.held, "it was told before it was on disk"
        assert service.post("/v1/verify", {"verifiers": [{"name": "exact"}], "items": [{"completion": "a", "reference": "a"}]}).status == 200
        hanging.unlink()
        wire.socket.settimeout(30)
        assert wire.reply().status == 200


def left_while_it_is_recorded(service, hanging, request):
    """The request is sent, its commit hangs, its client goes, and then it is on the disk."""
    hanging.touch()
    with service.wire() as wire:
        wire.send(request)
        eventually(lambda: os.path.exists(f"{hanging}.waits"), "it to be written")
    eventually(lambda: Watch(service)("connections") == 1, "the hang-up to be seen")  # one asks for the metrics
    hanging.unlink()


def test_a_worker_that_cannot_open_the_record_tries_again_before_each_job(start, refuse_reads, tmp_path):
    refusing = tmp_path / "refusing"
    service = start(env={"LD_PRELOAD": refuse_reads, "REFUSE_READS_FILE": str(refusing)}, settings={"workers": "1", "readers": "1"})
    service.terminate()
    refusing.touch()
    service.args += ["--listen", service.url.removeprefix("http://")]
    launch(service)  # not ready before the unfinished batches are read
    eventually(lambda: answers(service), "an answer")
    eventually(lambda: service.log().count("worker without a read connection") == 2, "one line for each worker")
    for _ in range(3):
        for path in ("/v1/runs", "/v1/rollouts", "/v1/batches"):
            reply = service.get(path)
            assert (reply.status, reply.error["code"]) == (503, "store_unavailable"), reply
    refusing.unlink()
    for path in ("/v1/runs", "/v1/rollouts", "/v1/batches"):
        assert service.read(path)["items"] == []
    assert 1 <= service.log().count("worker has its read connection after all") <= 2
    assert service.log().count("worker without a read connection") == 2


def test_unfinished_batches_are_resumed_as_soon_as_the_record_can_be_read(start, engine, refuse_reads, tmp_path):
    refusing = tmp_path / "refusing"
    service = start(engine, env={"LD_PRELOAD": refuse_reads, "REFUSE_READS_FILE": str(refusing)}, settings={"workers": "1", "readers": "1"})
    engine.rules({"hold": True})
    batch = service.post("/v1/batches", make_batch(make_group("a", "p"), deadline="10m"), {"Prefer": "respond-async"}).json
    service.kill()
    refusing.touch()
    said = "unfinished batches cannot be listed yet"
    launch(service)  # the ready file comes when they are read
    eventually(lambda: said in service.log(), "a try that failed")
    service.process.terminate()  # a service that waits for its record stops as any other
    assert service.process.wait(PATIENCE) == 0
    launch(service)
    eventually(lambda: service.log().count(said) == 2, "a try that failed")
    refusing.unlink()
    eventually(lambda: "batch resumed" in service.log(), "the batch to be resumed")
    service.kill()
    engine.release()
    service.start()
    assert service.settled(batch["id"])["state"] == "complete"


@pytest.mark.parametrize("key, state", [("", "cancelled"), ("Idempotency-Key: k\r\n", "complete")], ids=["no key", "key"])
def test_a_hang_up_while_a_batch_is_recorded_leaves_the_batch(start, canned, slow_sync, tmp_path, key, state):
    hanging = tmp_path / "hanging"
    service = start(canned, env={"LD_PRELOAD": slow_sync, "SLOW_SYNC_FILE": str(hanging)})
    left_while_it_is_recorded(service, hanging, post(make_batch(verifiers=LOOSE, deadline="5m"), "/v1/batches", key))
    (item,) = eventually(lambda: service.read("/v1/batches")["items"], "the batch to be there")
    assert service.settled(item["id"])["state"] == state


def test_a_hang_up_while_a_revision_is_recorded_leaves_it_declared(start, canned, slow_sync, tmp_path):
    hanging = tmp_path / "hanging"
    service = start(canned, env={"LD_PRELOAD": slow_sync, "SLOW_SYNC_FILE": str(hanging)})
    service.batch(make_batch(verifiers=LOOSE))
    left_while_it_is_recorded(service, hanging, post({"revision": 9}, "/v1/runs/test/policy").replace(b"POST", b"PUT", 1))
    eventually(lambda: service.read("/v1/runs/test")["policy_revision"] == 9, "the revision to be there")


# -- a reader that holds a page -----------------------------------------------------------------------------------------------

def test_a_reader_that_holds_a_page_lets_the_log_grow_and_it_shrinks_again(start, tmp_path):
    """Somebody has the file open in another program, in the middle of a read."""
    engine = CannedEngine(tmp_path, "--tokens", "2048", "--text-bytes", "8192")
    try:
        service = start(engine)
        value, log = Watch(service), lambda: os.path.getsize(service.database + "-wal")
        size = lambda count: make_batch(*groups_of(count), verifiers=LOOSE, sampling=sampling(16, max_tokens=2048), deadline="5m")
        service.batch(size(1), arrays="none")
        reader = sqlite3.connect(service.database, isolation_level=None)
        reader.execute("BEGIN")
        (before,) = reader.execute("SELECT count(*) FROM rollouts").fetchone()
        count = 0
        while log() < 80 << 20:
            assert service.batch(size(64), arrays="none")["state"] == "complete"
            count += 1
        assert reader.execute("SELECT count(*) FROM rollouts").fetchone() == (before,), "it sees what it saw"
        eventually(lambda: value("wal_bytes") == log(), "the metric to say so")
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM rollouts").fetchone() == (before + count * 1024,)
        reader.close()
        eventually(lambda: service.batch(size(1), arrays="none") and log() <= 64 << 20, "the log to shrink to its limit")
        assert value("wal_bytes") <= 64 << 20
    finally:
        engine.close()


def test_a_client_that_reads_slowly_holds_no_page(start, tmp_path):
    """R52: the record is read in short transactions, none of which waits for the client."""
    engine = CannedEngine(tmp_path, "--tokens", "2048", "--text-bytes", "8192")
    try:
        service = start(engine)
        log = lambda: os.path.getsize(service.database + "-wal")
        size = lambda count: make_batch(*groups_of(count), verifiers=LOOSE, sampling=sampling(16, max_tokens=2048), deadline="5m")
        large = service.batch(size(32), arrays="none")["id"]
        with service.wire() as slow:
            slow.send(f"GET /v1/batches/{large} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").more()
            begun = os.path.getsize(service.database)
            while os.path.getsize(service.database) < begun + (80 << 20):
                assert service.batch(size(32), arrays="none")["summary"]["failed"] == 0
                assert log() <= 64 << 20
                slow.more()
        eventually(lambda: Watch(service)("wal_bytes") == log(), "the metric to say so")
        assert "locked" not in service.log()
    finally:
        engine.close()


# -- damage -------------------------------------------------------------------------------------------------------------------

def test_a_file_that_is_damaged_in_the_middle_makes_named_errors(start, canned):
    """The first page is whole, so that it is opened. Nothing is made up, nothing ends the service."""
    service = start(canned)
    identity = service.batch(make_batch(*groups_of(40), verifiers=LOOSE, sampling=sampling(4)))["id"]
    service.terminate()
    with open(service.database, "r+b") as file:
        size = file.seek(0, 2)
        for offset in range(8192, size - 4096, 4096):
            file.seek(offset)
            file.write(b"\xa5" * 4096)
    try:
        service.start()
    except StartFailed as problem:
        assert service.process.returncode == 1 and "damaged" in str(problem), problem
        return
    for path in (f"/v1/batches/{identity}", "/v1/rollouts", "/v1/batches", "/v1/runs", f"/v1/groups/{identity.replace('b_', 'g_')}-00000"):
        reply = service.get(path)
        assert reply.status in (200, 404, 503), reply
        if reply.status == 503:
            assert reply.error["code"] == "store_unavailable"
    assert service.get("/healthz").status == 200
    reply = service.post("/v1/batches", make_batch(), ASYNC)
    assert reply.status in (202, 503, 507), reply


# -- read-only ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_record_that_must_not_be_written_is_refused_and_named(start, canned, as_nobody, what):
    wrapper, folder = as_nobody
    path = os.path.join(folder, "x.db")
    service = start.make(canned, database=path, wrapper=wrapper)
    if wrapper:
        os.makedirs(service.folder, exist_ok=True)
        service.ready_file = os.path.join(folder, "ready")
    service.start()
    assert len(rollouts(service.batch(make_batch(verifiers=LOOSE)))) == 2
    service.terminate()
    os.chmod(path if what == "file" else folder, 0o444 if what == "file" else 0o555)
    service.ready_file = os.path.join(service.folder, "ready")
    with pytest.raises(StartFailed) as refusal:
        service.start()
    assert service.process.returncode == 1 and path in str(refusal.value), refusal.value
    os.chmod(folder, 0o777)  # a reader of a WAL database writes beside it
    os.chmod(path, 0o666)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM rollouts").fetchone() == (2,)
