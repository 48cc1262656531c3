"""Arrays that come with a score are on record once: the request comes out byte for byte, the rollouts have them, across restarts and in old records."""
import json
import random
import sqlite3

import pytest

from harness import eventually
from material import f32, make_group, packed, rollouts, unpacked
from test_rollups import verify

TOKENS = 300
STYLES = {
    "python": lambda body: json.dumps(body),
    "dense": lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False),
    "indented": lambda body: json.dumps(body, indent=1),  # an array is many lines: kept as it is
}


def completion(dice, form):
    ids = [int(dice.paretovariate(0.3)) % 128000 for _ in range(TOKENS)]
    logprobs = {"seven digits": [round(-dice.expovariate(2), 7) for _ in ids], "float": [f32(-dice.expovariate(2) ** 6) for _ in ids],
                "double": [-dice.expovariate(2) for _ in ids], "masked": [-dice.expovariate(2) for _ in ids]}.get(form, [f32(-dice.expovariate(2)) for _ in ids])
    made = {"text": f"so \"logprobs\": [1, 2] ünïcode {dice.random()} " * 9, "finish_reason": "stop"}
    if form == "base64":
        return {**made, "completion_ids_u32": packed("I", ids), "logprobs_f32": packed("f", logprobs)}
    mask = {"completion_mask": [int(dice.random() < 0.7) for _ in ids]} if form == "masked" else {}
    return {"logprobs": logprobs, **made, "completion_ids": ids, **mask}


def make_score(form, groups=3, **fields):
    dice = random.Random(form)
    return {"run": "test", "policy_revision": 1, "verifiers": [{"name": "math"}], "metadata": {"logprobs": [0.5, 1], "completion_ids": "none"},
            "groups": [make_group(f"t{index}", completions=[completion(dice, form) for _ in range(3)]) for index in range(groups)], **fields}


def send(service, body, style="python", **query):
    text = STYLES[style](body).encode()
    reply = service.request("POST", "/v1/score", text, headers={"Content-Type": "application/json"}, **query)
    assert reply.status in (200, 202), reply
    return reply.json, text


def one(service, statement):
    with sqlite3.connect(service.database) as link:
        found = link.execute(statement).fetchone()
        link.commit()
    link.close()
    return found[0] if found else None


def assert_arrays(service, batch, body):
    for index, group in enumerate(body["groups"]):
        shown = service.read(f"/v1/batches/{batch}/groups", arrays="json")["items"][index]
        for rollout, given in zip(shown["rollouts"], group["completions"]):
            ids = given.get("completion_ids") or unpacked("I", given["completion_ids_u32"])
            logprobs = given.get("logprobs") or unpacked("f", given["logprobs_f32"])
            mask = given.get("completion_mask") or [1] * len(ids)
            assert rollout["completion_ids"] == ids and rollout["completion_mask"] == mask, rollout["id"]
            assert [f32(value) for value in rollout["logprobs"]] == [f32(value) if kept else 0 for value, kept in zip(logprobs, mask)], rollout["id"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("form", ["seven digits", "float", "double", "masked", "base64"])
def test_the_request_comes_out_as_posted_and_the_rollouts_have_the_arrays(start, form, style):
    service = start()
    body = make_score(form)
    batch, text = send(service, body, style)
    assert service.get(f"/v1/batches/{batch['id']}/request").body == text
    assert_arrays(service, batch["id"], body)
    lean = style != "indented" or form == "base64"
    assert one(service, "SELECT codec FROM requests") == ("lean" if lean else "zstd")
    assert one(service, "SELECT count(*) FROM given_arrays") == (9 if lean else 0)
    assert one(service, "SELECT count(*) FROM rollout_arrays") == (0 if lean else 9)
    service.restart()
    assert service.get(f"/v1/batches/{batch['id']}/request").body == text
    assert_arrays(service, batch["id"], body)
    service.terminate()
    assert verify(service).returncode == 0


def test_the_record_is_smaller_than_one_and_a_half_times_its_raw_bytes(start):
    service = start()
    body = make_score("seven digits", groups=100)
    send(service, body)
    service.terminate()
    raw = sum(len(item["text"].encode()) + 8 * TOKENS for group in body["groups"] for item in group["completions"])
    used = one(service, "SELECT (SELECT sum(length(body)) FROM requests) + (SELECT sum(length(completion_ids) + length(logprobs)) FROM given_arrays)"
                        " + (SELECT sum(coalesce(length(packed), length(text))) FROM rollout_texts)")
    assert used < 1.5 * raw, (used, raw)


def test_a_score_of_texts_alone_keeps_its_request_whole(start):
    service = start()
    body = make_score("float")
    body["groups"] = [make_group("t", completions=[{"text": "long " * 200}] * 2)]
    batch, text = send(service, body)
    assert one(service, "SELECT codec FROM requests") == "zstd" and one(service, "SELECT count(*) FROM given_arrays") == 0
    assert service.get(f"/v1/batches/{batch['id']}/request").body == text


def test_equal_completions_are_duplicates_as_ever(start):
    service = start()
    body = make_score("float", groups=1)
    body["groups"][0]["completions"][2] = {**body["groups"][0]["completions"][0], "text": "another text"}
    batch, _ = send(service, body)
    assert [rollout["duplicate"] for rollout in rollouts(service.read(f"/v1/batches/{batch['id']}"))] == [False, False, True]


def test_a_score_that_was_cut_short_goes_on_and_stays_whole(start):
    service = start()
    body = make_score("float", groups=40, deadline="120s")
    text = STYLES["python"](body).encode()
    reply = service.request("POST", "/v1/score", text, headers={"Content-Type": "application/json", "Prefer": "respond-async"})
    assert reply.status == 202, reply
    service.kill()
    service.start()
    batch = service.settled(reply.json["id"])
    assert batch["state"] == "complete" and len(rollouts(batch)) == 120
    assert service.get(f"/v1/batches/{batch['id']}/request").body == text
    assert one(service, "SELECT count(*) FROM given_arrays") == 120 and one(service, "SELECT count(*) FROM rollout_arrays") == 0
    assert_arrays(service, batch["id"], body)


def test_a_request_from_before_is_read_and_its_rollouts_too(start):
    service = start()
    body = make_score("float")
    batch, text = send(service, body)
    service.terminate()
    with sqlite3.connect(service.database) as link:  # as the schema before had it
        link.execute("UPDATE requests SET codec = 'plain', body = ?", (text,))
        link.execute("INSERT INTO rollout_arrays SELECT r.seq, v.completion_ids, v.logprobs, v.completion_mask FROM given_arrays v JOIN rollouts r USING (group_seq, sample_index)")
        link.execute("DELETE FROM given_arrays")
        link.execute("UPDATE groups SET arrays_given = NULL")
    link.close()
    service.start()
    assert service.get(f"/v1/batches/{batch['id']}/request").body == text
    assert_arrays(service, batch["id"], body)
    service.terminate()
    assert verify(service).returncode == 0


@pytest.mark.parametrize("damage", ["UPDATE given_arrays SET logprobs = zeroblob(length(logprobs)) WHERE seq = 5", "DELETE FROM given_arrays WHERE seq = 5",
                                    "UPDATE requests SET body = substr(body, 1, length(body) - 9)"])
def test_verify_database_finds_a_request_that_would_come_out_in_another_way(start, damage):
    service = start()
    batch, _ = send(service, make_score("float"))
    service.terminate()
    one(service, damage)
    done = verify(service)
    assert done.returncode == 1 and f"the request of this batch is damaged: {batch['id']}" in done.stdout, done


def test_with_its_run_they_go(start):
    service = start()
    send(service, make_score("float"))
    assert service.delete("/v1/runs/test").status == 202
    eventually(lambda: service.get("/v1/runs/test").status == 404, "the run to be gone")
    assert one(service, "SELECT count(*) FROM given_arrays") == 0
