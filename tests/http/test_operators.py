"""docs/operators.md: each question of an operator is one line, and its output is correct."""
import json
import os
import re
import shutil
from datetime import datetime

import pytest

from harness import ROOT, eventually
from material import make_batch, make_group, sampling
from test_curl_pages import printed, same, training
from test_deletion import score

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="there is no jq or no curl")
def test_each_line_prints_the_output_on_the_page(service, engine):
    training(service)
    body = {"run": "demo", "policy_revision": 0, "verifiers": [{"name": "math"}], "groups": [{"task": "t", "reference": "1", "completions": [{"text": "1"}]}]}
    assert service.post("/v1/score", body, {"Idempotency-Key": "step-1"}).status == 200
    assert service.request("GET", "/v1/runs/nobody", headers={"X-Request-Id": "ticket-17"}).status == 404
    engine.rules({**RIGHT, "hold": True})
    identity = service.post("/v1/batches", make_batch(run="live"), {"Prefer": "respond-async"}).json["id"]
    assert service.post("/v1/runs/other/policy/begin", {"revision": 2}).status == 200
    with open(os.path.join(ROOT, "docs", "operators.md"), encoding="utf-8") as file:
        found = re.findall(r"^```sh\n(.*?)\n```\n(?:\n```\n(.*?)\n```$)?", file.read(), re.M | re.S)
    assert len(found) == 5
    for line, shown in found:
        got = printed(service, line)
        assert got, line
        if shown:
            want = [json.loads(row) for row in shown.splitlines()]
            assert len(got) == len(want) and all(same(*pair) for pair in zip(got, want)), (line, got)
    engine.release()
    service.settled(identity)


def test_every_question_of_the_table_has_an_answer(plain):
    verifiers = [{"name": "math"}, {"name": "math", "id": "again", "heldout": True}]
    body = {"run": "demo", "policy_revision": 0, "verifiers": verifiers, "groups": [{"task": "t", "reference": "1", "completions": [{"text": "\\boxed{1}"}]}]}
    batch = plain.post("/v1/score", body).json
    names = {"RUN": "demo", "BATCH": batch["id"], "ROLLOUT": batch["groups"][0]["rollouts"][0]["id"], "TASK": "t"}
    with open(os.path.join(ROOT, "docs", "operators.md"), encoding="utf-8") as file:
        rows = re.findall(r"^\| (.*?) \| (.*) \|$", file.read(), re.M)[1:]
    paths = [path for _, answer in rows for path in re.findall(r"^`(/\S+)`", answer)]
    assert len(rows) == 36 and len(paths) >= 32
    for path in paths:
        reply = plain.get(re.sub("|".join(names), lambda name: names[name[0]], path))
        assert reply.status == 200 or path == "/readyz", (path, reply)  # there is no engine


def test_the_batches_of_a_key_are_found_in_all_runs_and_incarnations(plain):
    made = []
    for run, revision in (("keys-a", 1), ("keys-b", 1)):
        body = {"run": run, "policy_revision": revision, "verifiers": [{"name": "math"}], "groups": [{"task": "t", "reference": "1", "completions": [{"text": "1"}]}]}
        made.append(plain.post("/v1/score", body, {"Idempotency-Key": "twice"}).json["id"])
    assert plain.put("/v1/runs/keys-a/policy", {"revision": 0, "rewind_to_step": 0}).status == 200
    made.append(plain.post("/v1/score", {**body, "run": "keys-a"}, {"Idempotency-Key": "twice"}).json["id"])
    assert [item["id"] for item in plain.read("/v1/batches", idempotency_key="twice")["items"]] == made[::-1]
    assert [item["id"] for item in plain.read("/v1/batches", idempotency_key="twice", run="keys-b")["items"]] == [made[1]]
    assert plain.read("/v1/batches", idempotency_key="never")["items"] == []
    assert plain.get("/v1/batches", idempotency_key="a", request_id="b").status == 400


def test_the_batch_of_a_request_is_found_by_its_id(plain):
    body = {"run": "asked", "policy_revision": 1, "verifiers": [{"name": "math"}], "groups": [{"task": "t", "reference": "1", "completions": [{"text": "1"}]}]}
    identity = plain.post("/v1/score", body, {"X-Request-Id": "req-5"}).json["id"]
    item, = plain.read("/v1/batches", request_id="req-5")["items"]
    assert item["id"] == identity and item["request_id"] == "req-5"


def test_the_last_thousand_refusals_are_kept_and_counted(start):
    service = start()
    for number in range(1003):
        service.request("GET", "/v1/runs/nobody", headers={"X-Request-Id": f"n-{number}"})
    page = service.read("/v1/refusals", limit=1000)
    assert (page["kept"], page["total"], len(page["items"])) == (1000, 1003, 1000)
    assert page["items"][0]["request_id"] == "n-1002" and service.read("/v1/refusals", request_id="n-2")["items"] == []
    assert service.read("/v1/refusals", request_id="n-3")["items"][0]["message"] and service.get("/v1/refusals", limit=0).status == 400


def test_a_refusal_of_a_broken_head_is_kept_without_its_path(plain):
    with plain.wire() as wire:
        wire.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-Request-Id: broken\r\n\r\n")
        assert wire.reply().status == 400
    assert any(item["status"] == 400 for item in plain.read("/v1/refusals")["items"])


def test_storage_grows_with_the_record_and_has_free_pages_after_a_deletion(start):
    service = start()
    before = service.read("/v1/storage")
    assert before["growth"]["bytes_per_hour"] is None and before["full_at"] is None and before["disk_free_bytes"] > 0
    score(service, "large", tasks=50, members=20)
    after = service.read("/v1/storage")
    assert after["file_bytes"] - after["free_bytes"] > before["file_bytes"] + 100000
    assert service.delete("/v1/runs/large").status == 202
    eventually(lambda: service.get("/v1/runs/large").status == 404, "it to be gone")
    eventually(lambda: service.read("/v1/storage")["free_bytes"] > 100000, "its pages to be free")
    text = service.get("/metrics").body.decode()
    assert re.search(r"^rolloutd_database_free_bytes [1-9]", text, re.M) and "rolloutd_deletions_running 0" in text


def test_the_growth_of_the_record_says_when_the_disk_is_full(start):
    service = start()
    eventually(lambda: service.read("/v1/storage")["growth"]["bytes_per_hour"] == 0, "ten seconds to pass")
    score(service, "large", tasks=50, members=20)
    storage = service.read("/v1/storage")
    assert storage["growth"]["bytes_per_hour"] > 100000 and storage["growth"]["over_hours"] > 0
    assert storage["full_at"] is None or datetime.fromisoformat(storage["full_at"]) > datetime.fromisoformat("2026-01-01T00:00:00Z")


def test_the_progress_of_a_batch_counts_ended_rollouts(service, engine):
    engine.rules({"in": "SLOW", **RIGHT, "hold": True}, {**RIGHT})
    groups = [make_group("fast"), make_group("slow", "SLOW")]
    identity = service.post("/v1/batches", make_batch(*groups, sampling=sampling(2)), {"Prefer": "respond-async"}).json["id"]

    def half():
        batch = service.read(f"/v1/batches/{identity}", wait="0s")
        return batch if batch["progress"]["share"] == 0.5 else None
    batch = eventually(half, "the fast group")
    assert datetime.fromisoformat(batch["progress"]["expected_at"]) > datetime.fromisoformat(batch["created_at"])
    assert service.read("/v1/pending")["items"][0]["progress"]["share"] == 0.5
    engine.release()
    assert service.settled(identity)["state"] == "complete"


def test_an_open_update_names_the_cause_of_its_wait(service, engine):
    engine.rules({**RIGHT, "hold": True})
    identity = service.post("/v1/batches", make_batch(run="live"), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "samples")
    with service.wire() as wire:
        raw = b'{"revision":2,"mode":"wait","deadline":"10m"}'
        wire.send(b"POST /v1/runs/live/policy/begin HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)
        update, = eventually(lambda: service.read("/v1/pending")["updates"], "the update")
        assert update["phase"] == "stopping" and update["in_flight"] == 2 and "engines" in update["waits_for"]
        assert 0 <= update["open_s"] and 0 < update["left_s"] <= 600
        engine.release()
        assert wire.reply().status == 200
    update, = service.read("/v1/pending")["updates"]
    assert update["phase"] == "quiet" and "trainer" in update["waits_for"]
    assert service.post("/v1/runs/live/policy/cancel", {}).status == 200
    service.settled(identity)
