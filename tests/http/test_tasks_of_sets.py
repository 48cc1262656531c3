"""Groups and items that name a task of a set."""
import pytest

from harness import eventually
from material import by_task, make_batch, rollouts, sampling
from test_tasksets import body_of, put

TASKS = [{"task": "gsm-1", "prompt": "RIGHT 6*7?", "reference": "42", "metadata": {"from": "set"}, "tags": {"source": "gsm8k"}},
         {"task": "gsm-2", "split": "test", "prompt": "RIGHT held out", "reference": "42"},
         {"task": "chat", "messages": [{"role": "user", "content": "RIGHT chat"}], "reference": "42"},
         {"task": "bare", "prompt": "RIGHT nothing to compare with"}]


def has_set(service):
    assert put(service, "gsm", body_of(*TASKS)).status in (200, 201)
    return service


def named(task, **fields):
    return {"set": "gsm", "task": task, **fields}


def score(service, *groups, **fields):
    return service.post("/v1/score", {"run": "r", "verifiers": [{"name": "math"}], "groups": [{"completions": [{"text": "\\boxed{42}"}], **group} for group in groups], **fields})


@pytest.fixture
def sampled(service, engine):
    engine.rules({"in": "RIGHT", "text": "\\boxed{42}", "ids": [5], "lp": [-0.5]})
    return has_set(service)


def test_a_group_takes_all_from_its_task(sampled, engine):
    groups = by_task(sampled.batch(make_batch(named("gsm-1"), named("chat"))))
    group = groups["gsm-1"]
    assert (group["set"], group["split"], group["metadata"], group["tags"]) == ("gsm", "train", {"from": "set"}, {"source": "gsm8k"})
    assert groups["chat"]["tags"] == {} and "metadata" not in groups["chat"]
    assert all(rollout["reward"] == 1 for group in groups.values() for rollout in group["rollouts"])
    assert len(engine.samples_for("RIGHT 6*7?")) == 2 and engine.samples_for("RIGHT chat")
    assert [item["task"] for item in sampled.read("/v1/rollouts", **{"tag.source": "gsm8k"})["items"]] == ["gsm-1"] * 2
    assert sampled.read(f"/v1/groups/{group['id']}")["set"] == "gsm"


def test_a_group_s_own_metadata_and_tags_stand_instead(plain):
    has_set(plain)
    group, = score(plain, named("gsm-1", metadata={"own": 1}, tags={"mine": "yes"})).json["groups"]
    assert group["metadata"] == {"own": 1} and group["tags"] == {"mine": "yes"} and group["rollouts"][0]["reward"] == 1


@pytest.mark.parametrize("store", [True, False])
def test_a_score_takes_the_reference_from_its_task(plain, store):
    has_set(plain)
    reply = score(plain, named("gsm-1"), named("chat"), {"task": "own", "reference": "41"}, store=store)
    assert reply.status == 200, reply
    assert [(group["task"], group["set"], group["split"], group["reward_mean"]) for group in reply.json["groups"]] == [
        ("gsm-1", "gsm", "train", 1), ("chat", "gsm", "train", 1), ("own", None, None, 0)]


@pytest.mark.parametrize("group, status, code, path", [
    ({"set": "nobody", "task": "gsm-1"}, 404, "not_found", "groups[1].set"), ({"set": "gsm", "task": "gsm-17"}, 404, "not_found", "groups[1].task"),
    (named("gsm-1", prompt="x"), 400, "invalid_field", "groups[1].prompt"), (named("gsm-1", messages=[{"role": "user"}]), 400, "invalid_field", "groups[1].messages"),
    (named("gsm-1", prompt_ids=[1]), 400, "invalid_field", "groups[1].prompt_ids"), (named("gsm-1", reference="42"), 400, "invalid_field", "groups[1].reference"),
    (named("bare"), 400, "missing_field", "groups[1].reference"), (named("gsm-2"), 409, "heldout_task", "groups[1].task"),
    ({"task": "gsm-1", "set": 1}, 400, "invalid_field", "groups[1].set")])
def test_a_group_that_cannot_be_meant_is_refused_with_its_path(plain, group, status, code, path):
    has_set(plain)
    reply = score(plain, {"task": "first", "reference": "1"}, group)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path)


def test_a_task_that_is_held_out_is_for_evaluations_alone(sampled):
    reply = sampled.post("/v1/batches", make_batch(named("gsm-2")))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (409, "heldout_task", "groups[0].task")
    group, = sampled.batch(make_batch(named("gsm-2"), purpose="eval"))["groups"]
    assert group["split"] == "test" and all(rollout["reward"] == 1 for rollout in group["rollouts"])


def test_one_task_is_drawn_as_often_as_the_batch_says(plain):
    has_set(plain)
    assert score(plain, named("gsm-1"), named("gsm-1", draw=1)).status == 200
    assert score(plain, named("gsm-1"), named("gsm-1")).error["code"] == "duplicate_task"


def test_a_key_finds_its_batch_and_a_batch_goes_on_after_a_death(sampled, engine):
    engine.rules({"in": "RIGHT", "text": "\\boxed{42}", "ids": [5], "lp": [-0.5], "hold": True})
    body, key = make_batch(named("gsm-1"), named("chat"), sampling=sampling(2), deadline="2m"), {"Idempotency-Key": "k"}
    identity = sampled.post("/v1/batches", body, {**key, "Prefer": "respond-async"}).json["id"]
    eventually(lambda: engine.open >= 1, "samples to be under way")
    sampled.kill()
    engine.rules({"in": "RIGHT", "text": "\\boxed{42}", "ids": [5], "lp": [-0.5]})
    engine.release()
    sampled.start()
    batch = sampled.settled(identity)
    assert batch["state"] == "complete" and [rollout["reward"] for rollout in rollouts(batch)] == [1] * 4
    assert [group["set"] for group in batch["groups"]] == ["gsm", "gsm"]
    assert sampled.post("/v1/batches", body, key).json["id"] == identity


def verify(service, **item):
    return service.post("/v1/verify", {"verifiers": [{"name": "math"}], "items": [{"id": "1", "completion": "\\boxed{42}", **item}]})


def test_an_item_of_verify_takes_the_reference_of_its_task(plain):
    has_set(plain)
    for task in ("gsm-1", "gsm-2", "chat"):
        assert verify(plain, set="gsm", task=task).json["items"][0]["reward"] == 1
    assert verify(plain, set="gsm", task="gsm-1", completion="\\boxed{41}").json["items"][0]["reward"] == 0


@pytest.mark.parametrize("item, status, code, path", [
    ({"set": "gsm"}, 400, "missing_field", "items[0].task"), ({"task": "gsm-1"}, 400, "missing_field", "items[0].set"),
    ({"set": "gsm", "task": "x"}, 404, "not_found", "items[0].task"), ({"set": "x", "task": "gsm-1"}, 404, "not_found", "items[0].set"),
    ({"set": "gsm", "task": "gsm-1", "reference": "1"}, 400, "invalid_field", "items[0].reference"), ({"set": "gsm", "task": "gsm-1", "prompt": "1"}, 400, "invalid_field", "items[0].prompt")])
def test_an_item_that_cannot_be_meant_is_refused_with_its_path(plain, item, status, code, path):
    has_set(plain)
    reply = verify(plain, **item)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path)


def test_tasks_from_sets_count_towards_the_size_limit_of_a_batch(start):
    service = start(args=["--set", "body_limit=1MiB"])
    assert put(service, "large", body_of(*({"task": f"t{i}", "prompt": "x" * 300_000} for i in range(4)))).status == 201
    reply = score(service, *({"set": "large", "task": f"t{i}"} for i in range(4)), verifiers=[])
    assert (reply.status, reply.error["code"], reply.error["path"]) == (413, "body_too_large", "groups[3].task")
    assert score(service, *({"set": "large", "task": f"t{i}"} for i in range(3)), verifiers=[]).status == 200
