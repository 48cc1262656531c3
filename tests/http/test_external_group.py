"""Reward functions of `scope: group`: all members at once, when none is left to be sampled; each has its own verdict, and who has no completion has no number."""
import json
import threading

import pytest

from harness import eventually
from material import assert_failed_without_a_number, by_task, make_batch, make_group, rollouts, sampling
from reward_server import NobodyThere, RewardServer, answer

QUICK = {"engine.backoff_min": "5ms", "engine.backoff_max": "20ms", "engine.down_timeout": "1s", "engine.attempts": 3}
RANK = r'''
import json, sys
asked = json.load(sys.stdin)
assert asked["completion"] is None and asked["completion_ids"] is None
print(json.dumps({"siblings": [{"score": place, "detail": {"of": len(asked["siblings"]), "id": member["id"]}} for place, member in enumerate(asked["siblings"])]}))
'''


def by_url(server, **more):
    return {"externals": json.dumps([{"name": "rank", "url": server.url, "scope": "group", **more}]), **QUICK}


def by_command(folder, source, **more):
    path = folder / "rank.py"
    path.write_text(source)
    return {"externals": json.dumps([{"name": "rank", "command": ["/usr/bin/python3", "-I", "-S", "rank.py"], "files": [str(path)], "scope": "group", **more}]), **QUICK}


def ranked(*groups, **fields):
    return make_batch(*groups, verifiers=[{"name": "external", "options": {"name": "rank"}}], **fields)


def places(asked):
    """Each member's place is its score."""
    return answer(json.dumps({"siblings": [{"score": place} for place, _ in enumerate(asked["siblings"])]}))


@pytest.fixture
def rewards():
    server = RewardServer(places)
    yield server
    server.close()


def verdict_of(service, rollout):
    return service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"][0]


# -- all at once ----------------------------------------------------------------------------------------------------------------------

def test_a_server_is_asked_once_for_each_group_with_all_of_its_members(start, toy, rewards):
    service = start(toy, settings=by_url(rewards))
    batch = service.batch(ranked({**make_group("sum", "2+2=", "4"), "metadata": {"level": 1}}, make_group("product"), sampling=sampling(5)))
    assert len(rewards.asked) == 2
    for asked in rewards.asked:
        group = by_task(batch)[asked["task"]]
        members = {rollout["id"]: rollout for rollout in group["rollouts"]}
        assert asked["id"] == group["id"] and asked["completion"] is None and [member["id"] for member in asked["siblings"]] == [rollout["id"] for rollout in group["rollouts"]]
        assert [members[member["id"]]["text"] for member in asked["siblings"]] == [member["completion"] for member in asked["siblings"]]
        assert all(member["completion_ids"] for member in asked["siblings"]) and [rollout["reward"] for rollout in group["rollouts"]] == [0, 1, 2, 3, 4]
    about, = [asked for asked in rewards.asked if asked["task"] == "sum"]
    assert (about["prompt"], about["reference"], about["metadata"]) == ("2+2=", "4", {"level": 1})


def test_a_command_is_run_once_for_each_group(start, toy, tmp_path):
    service = start(toy, settings=by_command(tmp_path, RANK))
    batch = service.batch(ranked(make_group("sum"), sampling=sampling(3)))
    verdicts = [verdict_of(service, rollout) for rollout in rollouts(batch)]
    if any(verdict["failure"] and verdict["failure"]["code"] == "sandbox_unavailable" for verdict in verdicts):
        pytest.skip("programs do not run here")
    assert [rollout["reward"] for rollout in rollouts(batch)] == [0, 1, 2]
    shown, = service.read("/v1/verifiers")["externals"]
    assert shown["scope"] == "group"
    for rollout, verdict in zip(rollouts(batch), verdicts):
        assert (verdict["version"], verdict["detail"]["external"], verdict["detail"]["said"]) == (shown["version"], "rank", {"of": 3, "id": rollout["id"]})
        assert "sandbox" in verdict["detail"] and "members" not in verdict["detail"]


def test_other_verifiers_of_the_list_judge_each_member_alone(start, toy, rewards):
    service = start(toy, settings=by_url(rewards))
    batch = service.batch(make_batch(make_group("sum"), sampling=sampling(3), verifiers=[
        {"name": "regex", "options": {"pattern": "."}, "weight": 10}, {"name": "external", "options": {"name": "rank"}}, {"name": "exact", "weight": 0}]))
    assert [rollout["reward"] for rollout in rollouts(batch)] == [10, 11, 12]
    assert [[verdict["name"] for verdict in service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"]] for rollout in rollouts(batch)] == [["regex", "external", "exact"]] * 3


def test_a_score_of_given_completions_asks_for_the_group_too(start, rewards):
    service = start(settings=by_url(rewards))
    reply = service.post("/v1/score", {"run": "r", "verifiers": [{"name": "external", "options": {"name": "rank"}}], "groups": [
        {"task": "sum", "prompt": "2+2=", "completions": [{"text": "3"}, {"text": "4"}, {"failure": {"code": "lost", "message": "by the trainer"}}]}]})
    assert reply.status in (200, 201), reply
    first, second, lost = rollouts(reply.json)
    assert [first["reward"], second["reward"]] == [0, 1]
    assert_failed_without_a_number(lost)
    assert [member.get("completion") for member in rewards.asked[0]["siblings"]] == ["3", "4", None]
    assert rewards.asked[0]["siblings"][2] == {"id": lost["id"], "failure": {"code": "not_sampled"}}


# -- members without a completion --------------------------------------------------------------------------------------------------------

def test_a_member_that_was_not_sampled_is_named_and_is_never_paid(start, engine, rewards):
    engine.rules({"times": 1, "status": 400, "json": {"error": {"message": "not this one", "code": 400}}})
    service = start(engine, settings=by_url(rewards))
    batch = service.batch(ranked(make_group("sum"), sampling=sampling(4)))
    failed = [rollout for rollout in rollouts(batch) if rollout["reward"] is None]
    assert len(failed) == 1 and len(rewards.asked) == 1
    assert_failed_without_a_number(failed[0])
    place = [rollout["id"] for rollout in rollouts(batch)].index(failed[0]["id"])
    assert rewards.asked[0]["siblings"][place] == {"id": failed[0]["id"], "failure": {"code": "not_sampled"}}
    assert [rollout["reward"] for rollout in rollouts(batch)] == [None if index == place else index for index in range(4)]


# -- bad replies -----------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("said, codes", [
    ('{"siblings": [{"score": 1}, {"score": NaN}, {"score": 2}]}', ["external_invalid_reply"] * 3), ('{"siblings": [{"score": 1}, null, {"score": 2}]}', [1, "external_invalid_reply", 2]),
    ('{"siblings": [{"score": 1}, {"failure": "blank"}, {"score": 2, "x": 1}]}', [1, "external_failed", "external_invalid_reply"]),
    ('{"siblings": [{"score": 1}, {"score": "2"}, {"score": true}]}', [1, "external_invalid_reply", "external_invalid_reply"]),
    ('{"siblings": [{"score": 1}, {"score": 2}]}', ["external_invalid_reply"] * 3), ('{"siblings": [{"score": 1}, {"score": 2}, {"score": 3}, {"score": 4}]}', ["external_invalid_reply"] * 3),
    ('{"siblings": {"score": 1}}', ["external_invalid_reply"] * 3), ('{"score": 1}', ["external_invalid_reply"] * 3), ('[{"score": 1}, {"score": 1}, {"score": 1}]', ["external_invalid_reply"] * 3),
    ('{"failure": "the tables are away"}', ["external_failed"] * 3), ('{"siblings": [], "failure": "x"}', ["external_invalid_reply"] * 3), ("", ["external_invalid_reply"] * 3)])
def test_output_that_is_not_exactly_a_reply_is_a_failure_of_the_members_that_it_concerns(start, toy, rewards, said, codes):
    rewards.act = lambda asked: answer(said)
    service = start(toy, settings=by_url(rewards))
    batch = service.batch(ranked(make_group("sum"), sampling=sampling(3)))
    found = [rollout["reward"] if rollout["reward"] is not None else rollout["failure"]["code"] for rollout in rollouts(batch)]
    assert found == codes


def test_a_server_that_is_away_leaves_all_members_without_a_number(start, toy):
    gone = NobodyThere()
    batch = start(toy, settings=by_url(gone)).batch(ranked(make_group("sum"), sampling=sampling(3)))
    assert [rollout["failure"]["code"] for rollout in rollouts(batch)] == ["external_unreachable"] * 3
    assert all(rollout["reward"] is None for rollout in rollouts(batch))
    gone.close()


def test_a_version_that_the_server_says_is_that_of_each_member(start, toy, rewards):
    rewards.act = lambda asked: answer(json.dumps({"siblings": [{"score": 1, "detail": {"a": 1}}] * 2, "version": "v9"}))
    service = start(toy, settings=by_url(rewards))
    batch = service.batch(ranked(make_group("sum"), sampling=sampling(2)))
    verdicts = [verdict_of(service, rollout) for rollout in rollouts(batch)]
    assert [(verdict["version"], verdict["detail"]) for verdict in verdicts] == [("v9", {"external": "rank", "said": {"a": 1}})] * 2


# -- ends ----------------------------------------------------------------------------------------------------------------------------------------

def test_a_cancelled_batch_takes_its_question_back(start, toy, rewards):
    rewards.act = lambda asked: RewardServer.HANG
    service = start(toy, settings=by_url(rewards, timeout="60s"))
    batch = service.post("/v1/batches", ranked(make_group("sum"), sampling=sampling(4)), wait="0s").json
    eventually(lambda: len(rewards.asked) == 1, "the question")
    assert service.delete(f"/v1/batches/{batch['id']}").status == 200
    service.settled(batch["id"])
    assert service.read("/v1/pending")["calls"] == []


def test_a_deadline_while_a_sibling_is_sampled_ends_those_that_wait(start, engine, rewards):
    engine.rules({"times": 1, "hold": True})
    service = start(engine, settings=by_url(rewards))
    batch = service.batch(ranked(make_group("sum"), sampling=sampling(3), deadline="1s"))
    assert all(rollout["reward"] is None for rollout in rollouts(batch)) and rewards.asked == []


def test_a_restart_asks_for_the_group_again(start, engine, rewards):
    released = threading.Event()
    rewards.act = lambda asked: places(asked) if released.is_set() else RewardServer.HANG
    service = start(engine, settings=by_url(rewards, timeout="60s"))
    batch = service.post("/v1/batches", ranked(make_group("sum"), sampling=sampling(3), deadline="300s"), wait="0s").json
    eventually(lambda: len(rewards.asked) == 1, "the first question")
    released.set()
    service.kill()
    service.start()
    batch = service.settled(batch["id"])
    assert [rollout["reward"] for rollout in rollouts(batch)] == [0, 1, 2]


def test_more_members_than_places_do_not_wait_for_each_other(start, toy, rewards):
    service = start(toy, settings={**by_url(rewards), "sandbox.queue_limit": 4})
    batch = service.batch(ranked(make_group("sum"), make_group("product"), sampling=sampling(12), deadline="120s"))
    assert [rollout["reward"] for group in batch["groups"] for rollout in group["rollouts"]] == [*range(12)] * 2


# -- without a group -------------------------------------------------------------------------------------------------------------------------------

def test_an_item_has_no_group_and_is_refused(start, rewards):
    service = start(settings=by_url(rewards))
    verifier = {"name": "external", "options": {"name": "rank"}}
    reply = service.post("/v1/verify", {"verifiers": [verifier], "items": [{"completion": "x"}]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[0].options.name") and "scope: group" in reply.error["message"]
    reply = service.post("/v1/verify", {"items": [{"id": "a", "completion": "x", "verifiers": [verifier]}, {"id": "b", "completion": "x", "reference": "x", "verifiers": [{"name": "exact"}]}]})
    first, second = reply.json["items"]
    assert (first["failure"]["code"], first["reward"], second["reward"]) == ("verifier_options", None, 1) and rewards.asked == []
