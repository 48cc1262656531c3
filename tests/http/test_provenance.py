"""Provenance: the model, programs and settings of a rollout are on record with their values at its dispatch."""
import json
import re
import shutil
import sqlite3
import subprocess

import pytest

from engines import ScriptedEngine
from harness import BINARY, PATIENCE, eventually
from material import make_batch, make_group, rollouts, sampling
from test_curl_pages import blocks, printed
from test_database import MIGRATIONS, make_of_version

QUICK = {"engine.backoff_min": "10ms", "engine.backoff_max": "50ms", "engine.check_interval": "100ms"}
RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
NAMES = ("engine", "engine_model", "engine_version", "tokenizer_sha256", "rolloutd_version")
HEX = re.compile(r"^[0-9a-f]{64}$")


def version_of(service):
    return service.read("/healthz").get("version") or re.search(r"rolloutd (\S+)", subprocess.run([BINARY, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout)[1]


def made_by(rollout):
    return tuple(rollout[name] for name in NAMES)


def serves(service, model):
    eventually(lambda: any(item["model"] == model and item["state"] == "up" for item in service.read("/v1/engines")["items"]), f"{model} to be up")


# -- rollouts -----------------------------------------------------------------------------------------------------------------------

def test_a_rollout_names_model_and_version_of_its_engine_and_of_the_service_everywhere(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    batch = service.batch(make_batch())
    version = version_of(service)
    want = ("e1", "demo-1b", "0.30.1", None, version)
    identity = rollouts(batch)[0]["id"]
    group = batch["groups"][0]["id"]
    seen = [*rollouts(batch), service.read(f"/v1/rollouts/{identity}"), *service.read(f"/v1/groups/{group}")["rollouts"],
            *rollouts(service.read(f"/v1/batches/{batch['id']}")), *service.read(f"/v1/batches/{batch['id']}/groups")["items"][0]["rollouts"],
            *service.read("/v1/rollouts", batch=batch["id"], fields=",".join(NAMES))["items"]]
    assert len(seen) == 11 and {made_by(rollout) for rollout in seen} == {want}


def test_the_digest_of_the_tokenizer_is_that_of_the_probe(start, toy):
    service = start(toy, settings={"engine.probe_samples": "true"})
    batch = service.batch(make_batch(sampling={"n": 2, "max_tokens": 8}))
    shown, = service.read("/v1/engines")["items"]
    assert HEX.match(shown["tokenizer_sha256"])
    assert {made_by(rollout)[1:4] for rollout in rollouts(batch)} == {(shown["model"], shown["version"], shown["tokenizer_sha256"])}
    assert batch["provenance"]["tokenizer_sha256s"] == [shown["tokenizer_sha256"]]


def test_an_engine_with_another_model_later_changes_nothing_that_is_on_record(start, engine):
    engine.rules(RIGHT)
    service = start(engine, settings=QUICK)
    first = service.batch(make_batch())
    engine.serve("other-7b", "0.31.0")
    serves(service, "other-7b")
    second = service.batch(make_batch())
    for identity, model, version in ((first["id"], "demo-1b", "0.30.1"), (second["id"], "other-7b", "0.31.0")):
        batch = service.read(f"/v1/batches/{identity}")
        assert {made_by(rollout)[:3] for rollout in rollouts(batch)} == {("e1", model, version)}
        assert (batch["provenance"]["engine_models"], batch["provenance"]["engine_versions"]) == ([model], [version])


def test_the_model_is_that_of_the_dispatch_also_if_a_probe_finds_another_before_the_reply(start, engine):
    engine.rules({**RIGHT, "hold": True})
    service = start(engine, settings=QUICK)
    batch = service.post("/v1/batches", make_batch(), headers={"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open == 2, "the samples to be asked for")
    engine.serve("other-7b")
    eventually(lambda: service.read("/v1/engines")["items"][0]["model"] == "other-7b", "the probe to find it")
    engine.release()
    assert {rollout["engine_model"] for rollout in rollouts(service.settled(batch))} == {"demo-1b"}


def test_a_model_that_the_batch_names_is_the_one_that_sampled(start, engine):
    engine.rules(RIGHT)
    engine.module.PROBES["/v1/models"]["data"].append({"id": "lora-2", "object": "model", "max_model_len": 4096})
    service = start(engine)
    assert {rollout["engine_model"] for rollout in rollouts(service.batch(make_batch(model="lora-2")))} == {"lora-2"}
    assert {rollout["engine_model"] for rollout in rollouts(service.batch(make_batch()))} == {"demo-1b"}


def test_two_engines_of_two_versions_are_two_rows_of_the_batch(start):
    made = [ScriptedEngine(serves="demo-1b"), ScriptedEngine(serves="demo-1b")]
    made[1].serve("demo-1b", "0.31.0")
    try:
        for one in made:
            one.rules({**RIGHT, "hold": True})
        service = start(*(f"{one.for_rolloutd}&in_flight=2" for one in made))
        batch = service.post("/v1/batches", make_batch(sampling=sampling(4)), headers={"Prefer": "respond-async"}).json["id"]
        eventually(lambda: all(one.open for one in made), "both to work")
        for one in made:
            one.release()
        settled = service.settled(batch)
        assert {made_by(rollout)[:3] for rollout in rollouts(settled)} == {("e1", "demo-1b", "0.30.1"), ("e2", "demo-1b", "0.31.0")}
        assert settled["provenance"]["engines"] == ["e1", "e2"] and sorted(settled["provenance"]["engine_versions"]) == ["0.30.1", "0.31.0"]
        assert settled["provenance"]["engine_models"] == ["demo-1b"]
    finally:
        for one in made:
            one.close()


def test_facts_that_an_engine_does_not_give_are_null(start):
    silent = ScriptedEngine(kind="openai_compat", probes={"/version": None, "/v1/models": {"object": "list", "data": []}})
    try:
        silent.rules(RIGHT)
        service = start(silent)
        batch = service.batch(make_batch(model="nameless", sampling={"n": 2, "max_tokens": 8, "temperature": 1.0}))
        assert {made_by(rollout) for rollout in rollouts(batch)} == {("e1", None, None, None, version_of(service))}
        assert batch["provenance"]["engines"] == ["e1"]
        assert [batch["provenance"][name] for name in ("engine_models", "engine_versions", "tokenizer_sha256s")] == [[], [], []]
    finally:
        silent.close()


def test_a_rollout_that_was_never_sent_names_the_service_alone(start):
    service = start("http://127.0.0.1:9#kind=vllm", settings={"engine.down_timeout": "100ms"})
    batch = service.batch(make_batch())
    assert {made_by(rollout) for rollout in rollouts(batch)} == {(None, None, None, None, version_of(service))}
    assert batch["provenance"]["engines"] == [] and batch["provenance"]["rolloutd_versions"] == [version_of(service)]


def scored(*completions, **fields):
    return {"run": "given", "policy_revision": 0, "verifiers": [{"name": "math"}],
            "groups": [{"task": "t", "reference": "42", "completions": list(completions)}], **fields}


@pytest.mark.parametrize("store", [True, False])
def test_completions_of_a_score_have_no_model_and_the_engines_that_the_request_names(plain, store):
    reply = plain.post("/v1/score", scored({"text": "42", "engine": "theirs"}, {"text": "41", "engine": "ours"}, {"text": "40"}, {"text": "43", "engine": "theirs"}, store=store))
    assert reply.status == 200, reply
    assert [made_by(rollout) for rollout in rollouts(reply.json)] == [(name, None, None, None, version_of(plain)) for name in ("theirs", "ours", None, "theirs")]
    provenance = reply.json["provenance"]
    assert provenance["engines"] == ["ours", "theirs"] and provenance["engine_models"] == [] and provenance["rolloutd_versions"] == [version_of(plain)]
    assert len(provenance["settings_sha256s"]) == store  # without a trace there is nothing to look up


def test_lines_and_tensors_have_the_same_provenance(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    reply = service.post("/v1/batches", make_batch(), headers={"Accept": "application/x-ndjson"})
    last = json.loads(reply.body.splitlines()[-1])["batch"]
    assert last["provenance"]["engine_models"] == ["demo-1b"]
    assert last["provenance"] == service.read(f"/v1/batches/{last['id']}")["provenance"]


# -- settings -----------------------------------------------------------------------------------------------------------------------

def test_the_settings_that_were_in_force_are_read_by_the_batch_and_by_their_digest(start, engine):
    engine.rules(RIGHT)
    service = start(engine, settings={"scan_budget": "4321", "log.level": "debug"})
    batch = service.batch(make_batch())
    items = service.read(f"/v1/batches/{batch['id']}/settings")["items"]
    assert [item["sha256"] for item in items] == batch["provenance"]["settings_sha256s"] and len(items) == 1
    found = items[0]["settings"]
    assert found["scan_budget"] == 4321 and found["log"]["level"] == "debug" and found["database"] == service.database
    assert found["drain_timeout"] == "2s" and found["engine"]["probe_samples"] == "false"
    assert [item["url"] for item in found["engines"]] == [engine.url] and found["engines"][0]["name"] == "e1"
    assert service.read(f"/v1/settings/{items[0]['sha256']}") == items[0]


def test_other_settings_after_a_restart_are_others_and_the_same_ones_are_the_same(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    first = service.batch(make_batch())
    service.restart()
    second = service.batch(make_batch())
    service.terminate()
    service.settings["scan_budget"] = "777"
    service.start()
    third = service.batch(make_batch())
    names = [batch["provenance"]["settings_sha256s"] for batch in (first, second, third)]
    assert names[0] == names[1] != names[2]
    assert service.read(f"/v1/settings/{names[2][0]}")["settings"]["scan_budget"] == 777
    assert service.read(f"/v1/settings/{names[0][0]}")["settings"]["scan_budget"] != 777


def test_a_batch_that_was_resumed_under_other_settings_names_both(start, engine):
    engine.rules({**RIGHT, "in": "one", "times": 2}, {**RIGHT, "hold": True})
    service = start(engine)
    batch = service.post("/v1/batches", make_batch(make_group("a", prompt="one"), make_group("b", prompt="two"), deadline="120s"), headers={"Prefer": "respond-async"}).json["id"]
    eventually(lambda: service.read(f"/v1/batches/{batch}", wait="0s")["counts"]["done"] == 2, "the first group on record")
    service.kill()
    service.settings["scan_budget"] = "777"
    engine.release()
    engine.serve("other-7b")
    service.start()
    settled = service.settled(batch)
    assert [(made_by(rollout)[1]) for rollout in rollouts(settled)] == ["demo-1b"] * 2 + ["other-7b"] * 2
    items = service.read(f"/v1/batches/{batch}/settings")["items"]
    assert [item["settings"]["scan_budget"] == 777 for item in items] == [False, True]
    assert [item["sha256"] for item in items] == settled["provenance"]["settings_sha256s"]
    assert settled["provenance"]["engine_models"] == ["demo-1b", "other-7b"]


def test_no_key_is_on_record(start, engine, tmp_path):
    for name in ("ours", "theirs"):
        (tmp_path / name).write_text(f"very-secret-{name}")
        (tmp_path / name).chmod(0o600)
    config = tmp_path / "rolloutd.yaml"
    config.write_text(f"engines:\n  - {{url: '{engine.url}', kind: vllm, token_file: '{tmp_path}/theirs'}}\n")
    service = start(args=["--config", str(config), "--set", f"token_file={tmp_path}/ours"])
    key = {"Authorization": "Bearer very-secret-ours"}
    batch = service.request("POST", "/v1/batches", make_batch(), headers=key)
    assert batch.status == 200, batch
    reply = service.request("GET", f"/v1/batches/{batch.json['id']}/settings", headers=key)
    assert reply.status == 200 and b"very-secret" not in reply.body and reply.json["items"][0]["settings"]["engines"]
    service.terminate()
    with open(service.database, "rb") as file:
        assert b"very-secret" not in file.read()


def test_settings_on_record_are_a_file_of_settings(start, engine, tmp_path):
    engine.rules(RIGHT)
    service = start(f"{engine.for_rolloutd}&in_flight=auto&shared=true", settings={"max_staleness": "none", "engine.retry_ratio": "0.5", "body_limit": "3MiB"})
    batch = service.batch(make_batch())
    item, = service.read(f"/v1/batches/{batch['id']}/settings")["items"]
    config = tmp_path / "again.yaml"
    config.write_text(json.dumps(item["settings"]))
    service.terminate()
    again = start(args=["--config", str(config)], settings={"database": service.database})
    second = again.batch(make_batch())
    found, = again.read(f"/v1/batches/{second['id']}/settings")["items"]
    differing = {name for name in item["settings"] if item["settings"][name] != found["settings"][name]}
    assert differing <= {"listen", "ready_file", "database"}


def test_a_reload_with_other_engines_is_other_settings(start, engine, tmp_path):
    engine.rules(RIGHT)
    config = tmp_path / "rolloutd.yaml"
    entry = f"engines:\n  - {{url: '{engine.url}', kind: vllm, name: first, in_flight: %d}}\n"
    config.write_text(entry % 7)
    service = start(args=["--config", str(config)])
    before = service.batch(make_batch())
    config.write_text(entry % 9)
    service.process.send_signal(1)
    eventually(lambda: service.read("/v1/engines")["items"][0]["in_flight_limit"] == 9, "the reload")
    after = service.batch(make_batch())
    shown = [service.read(f"/v1/batches/{batch['id']}/settings")["items"] for batch in (before, after)]
    assert [[item["settings"]["engines"][0]["in_flight"] for item in items] for items in shown] == [[7], [9]]


@pytest.mark.parametrize("digest", ["0" * 64, "x", "A" * 64, "0" * 63])
def test_settings_that_nobody_had_are_not_found(plain, digest):
    reply = plain.get(f"/v1/settings/{digest}")
    assert reply.status == 404 and reply.error["code"] == "not_found"


def test_settings_of_a_batch_that_there_is_not_are_not_found(plain):
    assert plain.get("/v1/batches/b_none/settings").status == 404
    assert plain.get("/v1/batches/b_none/settings", all="1").status == 400


# -- records from before ------------------------------------------------------------------------------------------------------------

REQUEST = '{"run": "old", "groups": [{"task": "t", "prompt": "What is 6*7?", "reference": "42"}]}'
OLD = next(index for index, path in enumerate(MIGRATIONS) if path.endswith("_provenance.sql"))  # the last schema without


def old_batch(path, engines):
    """A closed batch as the schema before had it, one group with a member for each engine."""
    make_of_version(path, OLD)
    batch = "b_0000000000000000000000000g"
    connection = sqlite3.connect(path)
    connection.executescript(f"""
        INSERT INTO owners VALUES ('rolloutd', 1);
        INSERT INTO runs (seq, name, created_at_us, policy_revision, batches, scored) VALUES (1, 'old', 1, 0, 1, {len(engines)});
        INSERT INTO run_incarnations VALUES (1, 0, 1, NULL);
        INSERT INTO objectives (seq, run_seq, sha256, objective) VALUES (1, 1, zeroblob(32), '{{}}');
        INSERT INTO tasks VALUES (1, 't');
        INSERT INTO batches (seq, id, run_seq, incarnation, purpose, state, policy_revision, seed, request_sha256, owner, owner_epoch, deliver, respond_async, created_at_us, deadline_us,
            completed_at_us, objective_seq, group_count, rollout_count, scored, total_tokens, total_sequences, total_groups)
            VALUES (1, '{batch}', 1, 0, 'train', 'complete', 0, 7, zeroblob(32), 'rolloutd', 1, 'reply', 0, 1, 2, 3, 1, 1, {len(engines)}, {len(engines)}, 0, 0, 0);
        INSERT INTO batch_contents (batch_seq, sampling, verifiers) VALUES (1, '{{}}', '[]');
        INSERT INTO requests VALUES (1, 'application/json', CAST('{REQUEST}' AS BLOB));
        INSERT INTO groups (seq, batch_seq, group_index, task_seq, draw, first_sample_index, n, state, closed_at_us, rewarded, reward_mean, reward_std, zero_variance)
            VALUES (1, 1, 0, 1, 0, 0, {len(engines)}, 'complete', 3, {len(engines)}, 1.0, 0.0, 1);
        INSERT INTO group_contents (group_seq) VALUES (1);""")
    for index, engine in enumerate(engines):
        connection.execute("INSERT INTO rollouts (group_seq, sample_index, batch_seq, run_seq, task_seq, incarnation, purpose, created_at_us, state, reward, engine, policy_revision, straddles,"
                           " resample, attempts, seed, trainable, logprobs_mode, completion_tokens, trainable_tokens, queued_us, engine_us, verify_us)"
                           " VALUES (1, ?, 1, 1, 1, 0, 'train', 1, 'scored', 1.0, ?, 0, 0, 0, 1, 7, 0, 'unknown', 0, 0, 0, 0, 0)", (index, engine))
    connection.commit()
    connection.close()
    return batch


def test_a_batch_from_before_names_its_engines_and_nothing_else(start, engine, tmp_path):
    batch = old_batch(tmp_path / "old.db", ["e2", "e1", None, "e2"])
    service = start(engine, database=tmp_path / "old.db")
    shown = service.read(f"/v1/batches/{batch}")
    assert shown["provenance"] == {"engines": ["e1", "e2"], "engine_models": [], "engine_versions": [], "tokenizer_sha256s": [], "rolloutd_versions": [], "settings_sha256s": []}
    assert [made_by(rollout) for rollout in rollouts(shown)] == [(name, None, None, None, None) for name in ("e2", "e1", None, "e2")]
    assert service.read(f"/v1/batches/{batch}/settings") == {"items": []}
    assert service.get(f"/v1/batches/{batch}/request").body == REQUEST.encode()


# -- the page -----------------------------------------------------------------------------------------------------------------------

@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="there is no jq or no curl")
def test_each_line_of_the_page_answers(start, toy):
    service = start(toy)
    batch = service.batch(make_batch(run="demo", sampling={"n": 2, "max_tokens": 8, "temperature": 1.0}))
    rollout, provenance, settings, task = (printed(service, line) for line, _ in blocks("provenance"))
    assert rollout[0]["engine_model"] == "toy-table" and rollout[0]["rolloutd_version"] == version_of(service)
    assert provenance == [batch["provenance"]]
    assert settings[0][0] == batch["provenance"]["settings_sha256s"][0] and settings[0][1:] == [4, 1.0]
    assert task == [["What is 6*7?", "42"]]


# -- requests -----------------------------------------------------------------------------------------------------------------------

def posted_bytes(service, body, path="/v1/batches"):
    reply = service.request("POST", path, body)
    assert reply.status == 200, reply
    return reply.json["id"]


def test_a_request_is_answered_byte_for_byte_and_takes_less_on_disk(start, engine):
    engine.rules(RIGHT)
    service = start(engine)
    text = json.dumps(make_batch(*[make_group(f"t{index}", prompt="Ünïcode \u0000 and what is 6*7? " * 40) for index in range(50)]), ensure_ascii=False, indent=3).encode() + b" \n\t"
    small = json.dumps(make_batch(), separators=(",", ":")).encode()
    for body in (text, small):
        batch = posted_bytes(service, body)
        reply = service.get(f"/v1/batches/{batch}/request")
        assert reply.body == body and reply.headers["content-type"] == "application/json"
        service.restart()
        assert service.get(f"/v1/batches/{batch}/request").body == body
    service.terminate()
    with sqlite3.connect(service.database) as link:
        stored = link.execute("SELECT codec, body_bytes, length(body) FROM requests ORDER BY batch_seq").fetchall()
    link.close()
    assert stored[0][:2] == ("zstd", len(text)) and stored[0][2] < len(text) / 10
    assert all(plain == length if codec == "plain" else plain > length for codec, plain, length in stored)


def test_a_packed_request_is_resumed_and_its_key_is_found(start, engine):
    engine.rules({**RIGHT, "hold": True})
    service = start(engine)
    body = json.dumps(make_batch(*[make_group(f"t{index}", prompt="what is 6*7? " * 40) for index in range(5)], deadline="120s")).encode()
    head = {"Prefer": "respond-async", "Idempotency-Key": "k"}
    batch = service.request("POST", "/v1/batches", body, headers=head).json["id"]
    eventually(lambda: engine.open == 10, "the samples to be asked for")
    service.kill()
    engine.release()
    service.start()
    assert service.settled(batch)["summary"]["scored"] == 10
    again = service.request("POST", "/v1/batches", body, headers=head)
    assert again.json["id"] == batch
    assert service.get(f"/v1/batches/{batch}/request").body == body
