"""A batch as tensors: the arrays of its JSON as columns, the rest in `__metadata__.reply`."""
import json
import math

import pytest

import tensors
from engines import ScriptedEngine
from harness import eventually
from material import make_batch, make_group, rollouts, sampling

ACCEPT = {"Accept": tensors.MEDIA_TYPE}
RIGHT = {"in": "6*7", "choices": [{"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}, {"text": "\\boxed{41}", "ids": [11, 13], "lp": [-0.75, -1.5]}]}
BROKEN = {"in": "BAD", "lp": [-0.5, None, -0.5]}
COLUMNS = ["completion_ids", "logprobs", "completion_mask", "surrogates", "contributions"]
ARRAYS = {*COLUMNS, "prompt_ids"}


@pytest.fixture(scope="module")
def served(shared_factory):
    engine = ScriptedEngine()
    engine.rules(BROKEN, RIGHT)
    yield shared_factory(engine)
    engine.close()


def posted(service, **fields):
    return service.batch(make_batch(make_group("t1"), make_group("bad", "BAD"), make_group("t2", "Once more: 6*7?"), sampling=sampling(4), **fields))


def file_of(reply):
    assert reply.status == 200 and reply.headers["content-type"] == tensors.MEDIA_TYPE, reply
    metadata, columns = tensors.unpack(reply.body)
    return json.loads(metadata["reply"]), columns


def without_arrays(batch):
    groups = [{**{name: value for name, value in group.items() if name not in ARRAYS},
               "rollouts": [{name: value for name, value in rollout.items() if name not in ARRAYS} for rollout in group["rollouts"]]} for group in batch["groups"]]
    return {**batch, "groups": groups}


def or_nan(values, count):
    return [math.nan] * count if values is None else values


def same(left, right):
    return len(left) == len(right) and all(a == b or (a != a and b != b) for a, b in zip(left, right))


def test_the_tensors_are_the_arrays_of_the_json_and_the_rest_is_the_rest(served):
    batch = posted(served)
    reply, columns = file_of(served.request("GET", f"/v1/batches/{batch['id']}", headers=ACCEPT))
    assert reply == without_arrays(batch) and batch["summary"]["failed"] == 4
    counts = [len(rollout["completion_ids"] or []) for rollout in rollouts(batch)]
    assert columns["cu_seqlens"] == [sum(counts[:index]) for index in range(len(counts) + 1)]
    for name in COLUMNS:
        wanted = [value for rollout, count in zip(rollouts(batch), counts) for value in or_nan(rollout[name], count)]
        assert same(columns[name], wanted), name
    assert sum(columns["contributions"]) == pytest.approx(batch["loss"], abs=1e-12)
    prompts = [group["prompt_ids"] or [] for group in batch["groups"]]
    assert columns["prompt_ids"] == [token for prompt in prompts for token in prompt]
    assert columns["cu_prompts"] == [sum(map(len, prompts[:index])) for index in range(len(prompts) + 1)]


def test_the_objective_of_the_record_gives_the_same_contributions(served):
    batch = posted(served)
    _, columns = file_of(served.request("GET", f"/v1/batches/{batch['id']}", headers=ACCEPT))
    offsets, scored = columns["cu_seqlens"], [index for index, rollout in enumerate(rollouts(batch)) if rollout["state"] == "scored"]
    sequences = [{"rollout": rollouts(batch)[index]["id"], "logprobs": columns["logprobs"][offsets[index]:offsets[index + 1]]} for index in scored]
    reply = served.post("/v1/objective", {"sequences": sequences}, ACCEPT)
    objective, ours = file_of(reply)
    assert objective["loss"] == batch["loss"]
    for name in ("surrogates", "contributions"):
        assert ours[name] == [value for index in scored for value in columns[name][offsets[index]:offsets[index + 1]]], name


def test_a_post_that_waits_is_answered_in_tensors_too(served):
    body = make_batch(make_group("t1"), sampling=sampling(4), **{"return": ["logprobs"]})
    reply, columns = file_of(served.request("POST", "/v1/batches", body, ACCEPT))
    assert set(columns) == {"cu_seqlens", "logprobs"} and reply["state"] == "complete"
    stored = served.read(f"/v1/batches/{reply['id']}")
    assert columns["logprobs"] == [value for rollout in rollouts(stored) for value in rollout["logprobs"]]
    score = {"run": "given", "verifiers": [{"name": "math"}], "groups": [{"task": "t", "reference": "42", "completions": [{"text": "\\boxed{42}"}, {"text": "1", "completion_ids": [5, 6], "logprobs": [-1, -2]}]}]}
    reply, columns = file_of(served.request("POST", "/v1/score", score, ACCEPT))
    assert columns["cu_seqlens"] == [0, 0, 2] and columns["completion_ids"] == [5, 6] and columns["logprobs"] == [-1, -2]


def test_arrays_none_leaves_the_tensors_out(served):
    batch = posted(served)
    reply, columns = file_of(served.request("GET", f"/v1/batches/{batch['id']}", headers=ACCEPT, arrays="none"))
    assert set(columns) <= {"cu_seqlens"} and reply == without_arrays(batch)


def test_a_batch_that_runs_or_is_not_there_is_answered_in_json(start, engine):
    engine.rules({"hold": True})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(deadline="10m"), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.samples, "the sample to be asked for")
    running = service.request("GET", f"/v1/batches/{identity}", headers=ACCEPT, wait="0s")
    assert running.status == 200 and running.json["state"] == "running"
    missing = service.request("GET", "/v1/batches/b_none", headers=ACCEPT)
    assert (missing.status, missing.error["code"]) == (404, "not_found")
