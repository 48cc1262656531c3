"""A full disk: nothing is lost, nobody waits for ever, and the service recovers by itself."""
import os
import resource
from datetime import datetime

import pytest

from harness import eventually
from material import assert_sums_up, make_batch, make_group, sampling

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}


def limit_files(service, size):
    """A limit on the size of a file is as good as a full disk."""
    hard = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def failed_commits(service):
    """When they failed, by the service's own clock."""
    return [datetime.fromisoformat(line.split(" ", 1)[0]) for line in service.log().splitlines() if " error commit failed" in line]


def full_while_sampling(service, engine, members=4):
    """A batch of which no row can be stored; its request."""
    engine.rules({**RIGHT, "hold": True})
    body = make_batch(make_group("a", "P" * 5000), sampling=sampling(members), deadline="2m")
    headers = {"Idempotency-Key": "k"}
    identity = service.post("/v1/batches", body, {**headers, "Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == members, "all to be sampling")
    limit_files(service, os.path.getsize(service.log_file) + 4096)
    engine.release()
    eventually(lambda: service.get("/readyz").status == 503, "the disk to be full")
    return identity, body, headers


def test_a_batch_is_completed_when_there_is_room_again(service, engine):
    identity, body, headers = full_while_sampling(service, engine)
    assert service.get("/healthz").status == 200
    reply = service.post("/v1/batches", make_batch(run="new"))
    assert (reply.status, reply.error["code"]) == (507, "disk_full")
    assert service.put("/v1/runs/new/policy", {"revision": 1}).status == 507
    limit_files(service, None)
    batch = service.settled(identity)
    assert batch["state"] == "complete" and batch["summary"]["scored"] == 4 and len(engine.samples) == 4
    assert_sums_up(batch)
    assert service.post("/v1/batches", body, headers).json["id"] == identity


def test_it_is_ready_again_by_itself(service):
    """Nobody asks for anything: whoever asks whether it is ready before he sends would wait for ever."""
    limit_files(service, 4096)
    assert service.put("/v1/runs/new/policy", {"revision": 1}).status == 507
    ready = service.get("/readyz")
    assert ready.status == 503 and ready.json["parts"]["store"] == "the disk is full"
    limit_files(service, None)
    eventually(lambda: service.get("/readyz").status == 200, "the store to be tried")
    assert service.get("/v1/runs").json["items"] == []


def put_in_the_air(wire):
    raw = b'{"revision":1}'
    wire.send(b"PUT /v1/runs/new/policy HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)


def test_a_known_key_is_answered_from_the_record_whatever_shares_its_commit(start, engine):
    """It needs no room: "nothing was created" would make its client create the batch again under another key."""
    engine.rules(RIGHT)
    service = start(engine, settings={"commit_delay": "500ms"})
    body, headers = make_batch(), {"Idempotency-Key": "k"}
    identity = service.post("/v1/batches", body, headers).json["id"]
    limit_files(service, 4096)
    for request, outcome in ((body, 200), (make_batch(seed=8), 409)):
        with service.wire() as neighbour:
            put_in_the_air(neighbour)
            reply = service.post("/v1/batches", request, headers)
            assert reply.status == outcome and neighbour.reply().status == 507, reply
            assert outcome == 409 or reply.json["id"] == identity
    assert len(engine.samples) == 2


def test_reads_do_not_make_a_full_disk_ready(service, engine):
    engine.rules(RIGHT)
    body, headers = make_batch(), {"Idempotency-Key": "k"}
    assert service.post("/v1/batches", body, headers).status == 200
    limit_files(service, 4096)
    assert service.put("/v1/runs/new/policy", {"revision": 1}).status == 507
    assert service.post("/v1/batches", body, headers).status == 200
    assert service.get("/readyz").status == 503 and "the store writes again" not in service.log()


def test_reading_goes_on_while_the_disk_is_full(service, engine):
    """A GET that waits is told how the batch stands, 200 always; whoever waits for the end is told why it does not come."""
    identity, body, headers = full_while_sampling(service, engine)
    reply = service.get(f"/v1/batches/{identity}", wait="600ms")
    assert reply.status == 200 and reply.json["state"] == "running" and reply.json["waiting"]["storing"] == 4
    refusal = service.post("/v1/batches", body, headers)
    assert refusal.status == 507 and identity in refusal.error["message"], "it exists and continues"
    assert service.delete(f"/v1/batches/{identity}").status == 507


@pytest.mark.parametrize("steps, closing", [(0, "group"), (1, "batch")])
def test_a_disk_that_is_full_only_when_something_is_closed(start, engine, slow_sync, tmp_path, steps, closing):
    """Earlier steps are on record; then there is no room. The closing is tried until there is, and done once."""
    engine.rules({**RIGHT, "hold": True})
    hanging, waits, step = (tmp_path / f"hanging{end}" for end in ("", ".waits", ".step"))
    service = start(engine, env={"LD_PRELOAD": slow_sync, "SLOW_SYNC_FILE": str(hanging)})
    identity = service.post("/v1/batches", make_batch(sampling=sampling(1)), {"Prefer": "respond-async"}).json["id"]
    hanging.touch()
    engine.release()
    eventually(waits.exists, "the row to be written and not yet on the disk")
    for _ in range(steps):
        step.touch()
        eventually(lambda: not step.exists(), "that to pass")
        eventually(waits.exists, "the closing of the group to be written")
    limit_files(service, os.path.getsize(service.database + "-wal"))
    hanging.unlink()
    eventually(lambda: service.get("/readyz").status == 503, "the disk to be full")
    (rollout,) = service.read("/v1/rollouts")["items"]
    assert rollout["reward"] == 1 and service.read(f"/v1/batches/{identity}", wait="0s")["state"] == "running"
    (group,) = service.read(f"/v1/batches/{identity}/groups")["items"]
    assert group["state"] == ("running" if closing == "group" else "complete")
    limit_files(service, None)
    batch = service.settled(identity)
    assert batch["state"] == "complete" and batch["groups"][0]["state"] == "complete" and len(engine.samples) == 1
    assert_sums_up(batch)
    assert " refused by the store" not in service.log()


def test_a_full_disk_is_tried_now_and_then_and_not_all_the_time(service, engine):
    """The one row each 250 ms, and once a second whether anything can be written."""
    full_while_sampling(service, engine, 1)
    eventually(lambda: len(failed_commits(service)) >= 12, "some tries")
    times = failed_commits(service)
    seconds = (times[-1] - times[0]).total_seconds()
    assert len(times) <= (seconds / 0.25 + 2) + (seconds + 2), times
