"""A task's prompt and reference: on record once, read with a rollout and with a group."""
import json
import sqlite3

import pytest

from harness import eventually
from material import make_batch, make_group, rollouts
from test_provenance import REQUEST, RIGHT, old_batch
from test_rollups import verify
from test_tasksets import body_of, put

MESSAGES = [{"role": "user", "content": "What is 6*7? Ünï \u0000 \"quoted\""}]


def contents(service):
    with sqlite3.connect(service.database) as link:
        found = link.execute("SELECT codec, plain_bytes, length(content) FROM contents ORDER BY seq").fetchall()
    link.close()
    return found


def task_of(service, identity):
    shown = service.read(f"/v1/groups/{identity}", fields="prompt,reference", arrays="none")
    return shown["prompt"], shown["reference"]


@pytest.mark.parametrize("group, want", [
    (make_group("t", prompt="What is 6*7?\n\t\"Ünï\u2028\""), ("What is 6*7?\n\t\"Ünï\u2028\"", "42")),
    (make_group("t", prompt="p" * 5000, reference={"answer": [42, None, 4.5], "é": "x"}), ("p" * 5000, {"answer": [42, None, 4.5], "é": "x"})),
    (make_group("t", prompt=None, messages=MESSAGES), (MESSAGES, "42")),
    (make_group("t", prompt=None, prompt_ids=[1, 2, 3]), (None, "42")),
    (make_group("t", reference=None), ("What is 6*7?", None))])
def test_prompt_and_reference_come_with_rollouts_and_groups_that_name_them(start, engine, group, want):
    engine.rules(RIGHT)
    service = start(engine)
    group = {name: value for name, value in group.items() if value is not None}
    batch = service.batch(make_batch(group, verifiers=[{"name": "regex", "options": {"pattern": "42"}}]))
    identity = rollouts(batch)[0]["id"]
    assert task_of(service, batch["groups"][0]["id"]) == want
    one = service.read(f"/v1/rollouts/{identity}", fields="prompt,reference,reward")
    assert one == {"id": identity, "prompt": want[0], "reference": want[1], "reward": one["reward"]}
    for row in service.read("/v1/rollouts", batch=batch["id"], fields="prompt,reference")["items"]:
        assert (row["prompt"], row["reference"]) == want and set(row) == {"id", "prompt", "reference"}
    item, = service.read(f"/v1/batches/{batch['id']}/groups", fields="reference")["items"]
    assert item["reference"] == want[1] and "prompt" not in item and len(item["rollouts"]) == 2


def test_without_being_named_they_are_in_no_reply(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    batch = service.batch(make_batch())
    identity = rollouts(batch)[0]["id"]
    shown = [batch["groups"][0], service.read(f"/v1/groups/{batch['groups'][0]['id']}"), service.read(f"/v1/rollouts/{identity}"), *service.read("/v1/rollouts")["items"],
             *service.read(f"/v1/batches/{batch['id']}/groups")["items"]]
    assert not any({"prompt", "reference"} & set(item) for item in shown)


@pytest.mark.parametrize("fields", ["reward", "prompt,reward", "prompts", ""])
def test_to_a_group_only_they_can_be_added(start, engine, fields):
    engine.rules(RIGHT)
    service = start(engine)
    batch = service.batch(make_batch())
    for path in (f"/v1/groups/{batch['groups'][0]['id']}", f"/v1/batches/{batch['id']}/groups"):
        reply = service.get(path, fields=fields)
        assert reply.status == 400 and reply.error["path"] == "fields", (fields, reply)


def test_equal_prompts_and_references_are_on_record_once(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    groups = [make_group(f"t{index}", prompt=f"{'long ' * 400}{index % 3}") for index in range(9)]
    for _ in range(3):
        service.batch(make_batch(*groups))
    score = {"run": "test", "verifiers": [{"name": "math"}], "groups": [{"task": "s", "prompt": groups[0]["prompt"], "reference": "42", "completions": [{"text": "42"}]}]}
    assert service.post("/v1/score", score).status == 200
    found = contents(service)
    assert len(found) == 4  # three prompts and one reference
    assert sorted(codec for codec, _, _ in found) == ["plain", "zstd", "zstd", "zstd"]
    assert all(stored < plain / 10 for codec, plain, stored in found if codec == "zstd")


def test_a_batch_that_is_resumed_has_them(start, engine):
    engine.rules({**RIGHT, "hold": True})
    service = start(engine)
    batch = service.post("/v1/batches", make_batch(make_group("a", prompt="one"), make_group("b", prompt="two"), deadline="120s"), headers={"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 4, "the samples to be asked for")
    service.kill()
    engine.release()
    service.start()
    assert [task_of(service, group["id"])[0] for group in service.settled(batch)["groups"]] == ["one", "two"]


def test_groups_from_before_have_them_from_the_request(start, engine, tmp_path):
    batch = old_batch(tmp_path / "old.db", ["e1", "e2"])
    engine.rules(RIGHT)
    service = start(engine, database=tmp_path / "old.db")
    task = json.loads(REQUEST)["groups"][0]
    shown = service.read(f"/v1/batches/{batch}")
    assert task_of(service, shown["groups"][0]["id"]) == (task["prompt"], task["reference"])
    rows = service.read("/v1/rollouts", batch=batch, fields="prompt,reference")["items"]
    assert [(row["prompt"], row["reference"]) for row in rows] == [(task["prompt"], task["reference"])] * 2
    new = service.batch(make_batch(make_group("t", prompt="later", reference="41")))
    rows = service.read("/v1/rollouts", fields="prompt")["items"]
    assert [row["prompt"] for row in rows] == [task["prompt"]] * 2 + ["later"] * 2
    assert task_of(service, new["groups"][0]["id"]) == ("later", "41")


def test_with_its_last_group_a_prompt_goes_too(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    service.batch(make_batch(make_group("a", prompt="shared"), make_group("b", prompt="of the first run alone"), run="first"))
    service.batch(make_batch(make_group("a", prompt="shared"), run="second"))
    assert len(contents(service)) == 3
    assert service.delete("/v1/runs/first").status == 202
    eventually(lambda: len(contents(service)) == 2, "unreferenced contents to be deleted")
    row, = {json.dumps(row["prompt"]) for row in service.read("/v1/rollouts", run="second", fields="prompt")["items"]}
    assert row == '"shared"'


def test_each_line_of_an_export_has_them_and_csv_has_a_column_for_each(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    service.batch(make_batch(make_group("t", prompt="What is 6*7?")))
    lines = [json.loads(line) for line in service.get("/v1/export", arrays="none").body.splitlines()][:-1]
    assert [(line["prompt"], line["reference"]) for line in lines] == [("What is 6*7?", "42")] * 2
    lines = [json.loads(line) for line in service.get("/v1/export", fields="reference").body.splitlines()][:-1]
    assert [set(line) for line in lines] == [{"id", "reference"}] * 2
    reply = service.request("GET", "/v1/export?fields=prompt,reference", headers={"Accept": "text/csv"})
    header, *rows, end = reply.body.decode().splitlines()
    assert header == "id,prompt,reference" and [row.partition(",")[2] for row in rows] == ["What is 6*7?,42"] * 2 and end == "# end,2"


def test_a_damaged_prompt_is_an_error_and_not_none(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    batch = service.batch(make_batch(make_group("t", prompt="long " * 1000)))
    assert put(service, "set", body_of({"task": "t", "prompt": "long " * 1000})).status == 201
    with sqlite3.connect(service.database) as link:
        assert link.execute("UPDATE contents SET content = substr(content, 1, length(content) - 5) WHERE codec = 'zstd'").rowcount == 1
    link.close()
    identity = rollouts(batch)[0]["id"]
    for path, query in ((f"/v1/groups/{batch['groups'][0]['id']}", {"fields": "prompt"}), (f"/v1/rollouts/{identity}", {"fields": "prompt"}),
                        ("/v1/rollouts", {"fields": "prompt"}), ("/v1/tasksets/set/tasks", {})):
        reply = service.get(path, **query)
        assert reply.status == 503 and reply.error["code"] == "store_unavailable", (path, reply)
    asked = len(engine.samples)
    reply = service.post("/v1/batches", make_batch({"set": "set", "task": "t"}))
    assert reply.status == 503 and len(engine.samples) == asked, reply
    assert service.read(f"/v1/rollouts/{identity}", fields="reward")["reward"] is not None


@pytest.mark.parametrize("change, where", [
    ("UPDATE contents SET content = substr(content, 1, length(content) - 5) WHERE codec = 'zstd'", "content 1"),
    ("UPDATE contents SET content = CAST('\"41\"' AS BLOB) WHERE codec = 'plain'", "content 2"),
    ("UPDATE requests SET body_bytes = body_bytes + 1", "request of b_"), ("UPDATE requests SET body_bytes = -1", "request of b_")])
def test_verify_database_finds_a_damaged_prompt_reference_or_request(start, engine, change, where):
    engine.rules(RIGHT)
    service = start(engine)
    service.batch(make_batch(make_group("t", prompt="long " * 1000)))
    service.terminate()
    assert verify(service).returncode == 0
    with sqlite3.connect(service.database) as link:
        assert link.execute(change).rowcount == 1
    link.close()
    done = verify(service)
    assert done.returncode == 1 and f"a prompt, reference, request or completion is damaged: {where}" in done.stdout, done
