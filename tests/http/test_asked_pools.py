"""Verifiers that ask a pool of engines, through one that is only in the tests' program (`asker`): whom they may ask, and what of a pool's rules concerns them."""
import threading

import pytest

from engines import ScriptedEngine
from harness import eventually
from material import make_batch, make_group, rollouts, sampling

QUICK = {"engine.backoff_min": "5ms", "engine.backoff_max": "20ms", "engine.down_timeout": "2s", "engine.attempts": 3}
CHAT = "/v1/chat/completions"


@pytest.fixture
def judge():
    made = ScriptedEngine()
    yield made
    made.close()


@pytest.fixture
def start_asking(start_endless, engine, judge):
    """A service whose default pool samples, and whose pool `judge` is asked."""
    def make(**settings):
        return start_endless(engine, judge.for_rolloutd + "&name=j&pool=judge", settings={**QUICK, **settings})
    return make


def asker(pool="judge", **options):
    return {"name": "asker", "options": {"engine": pool, **options}}


def asked(judge):
    return [entry for entry in judge.requests if entry["path"] == CHAT]


def verify(service, *completions, **options):
    reply = service.post("/v1/verify", {"verifiers": [asker(**options)], "items": [{"id": str(place), "completion": text} for place, text in enumerate(completions)]})
    assert reply.status == 200, reply
    return [item["verdicts"][0] for item in reply.json["items"]]


def test_the_pool_that_it_names_is_asked_with_the_model_of_its_engine(start_asking, engine, judge):
    verdict, = verify(start_asking(), "is it so?")
    one, = asked(judge)
    assert one["body"] == {"model": verdict["detail"]["model"], "messages": [{"role": "user", "content": "is it so?"}]} and list(one["body"])[0] == "model"
    assert (verdict["score"], verdict["detail"]["engine"], verdict["detail"]["status"]) == (1, "j", 200) and asked(engine) == []


def test_several_calls_of_a_verdict_go_out_together(start_asking, judge):
    judge.rules({"hold": True})
    service = start_asking()
    asking = threading.Thread(target=verify, args=(service, "x"), kwargs={"calls": 5})
    asking.start()
    eventually(lambda: len(asked(judge)) == 5, "five calls")
    assert service.read("/v1/pending")["calls"] == [{"run": None, "engine": "judge", "external": None, "waiting": 0, "in_flight": 5}]
    judge.release()
    asking.join()


def test_a_failed_call_is_told_with_the_codes_of_sampling(start_asking, judge):
    judge.rules({"status": 400, "json": {"error": {"message": "maximum context length is 8"}}})
    verdict, = verify(start_asking(), "x")
    assert (verdict["score"], verdict["failure"]["code"]) == (None, "asker_failed") and verdict["failure"]["message"].startswith("context_overflow: ") and len(asked(judge)) == 1


def test_an_overloaded_judge_is_asked_again(start_asking, judge):
    judge.rules({"times": 2, "status": 429, "json": {"error": {"message": "later"}}, "headers": {"Retry-After": "0"}})
    verdict, = verify(start_asking(), "x")
    assert verdict["score"] == 1 and len(asked(judge)) == 3


def test_a_judge_that_hangs_is_left_at_the_timeout_of_the_verdict(start_asking, judge):
    judge.rules({"hold": True})
    verdict, = verify(start_asking(), "x", timeout="300ms")
    assert verdict["failure"]["message"].startswith("engine_timeout: ")


# -- whom they may ask -------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("named, own", [("default", {}), ("judge", {"engine": "judge"})])
def test_a_batch_may_not_be_judged_by_its_own_pool(start_asking, judge, named, own):
    service = start_asking()
    reply = service.post("/v1/batches", make_batch(make_group("sum"), verifiers=[{"name": "exact"}, asker(named)], **own))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[1].options.engine") and "grade itself" in reply.error["message"]
    group = {**make_group("sum"), "verifiers": [asker(named)]}
    reply = service.post("/v1/batches", make_batch(make_group("product"), group, verifiers=[{"name": "exact"}], **own))
    assert (reply.status, reply.error["path"]) == (422, "groups[1].verifiers[0].options.engine") and asked(judge) == []


def test_a_pool_without_engines_is_refused_with_the_nearest_name(start_asking):
    service = start_asking()
    for path, body in (("/v1/verify", {"verifiers": [asker("juge")], "items": []}), ("/v1/batches", make_batch(make_group("sum"), verifiers=[asker("juge")])),
                       ("/v1/score", {"run": "r", "verifiers": [asker("juge")], "groups": [{"task": "t", "prompt": "p", "completions": [{"text": "x"}]}]})):
        reply = service.post(path, body)
        assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[0].options.engine") and 'did you mean "judge"' in reply.error["message"], path
    reply = service.post("/v1/verify", {"items": [{"id": "a", "completion": "x", "verifiers": [asker("juge")]}, {"id": "b", "completion": "x", "verifiers": [asker()]}]})
    assert [item["failure"] and item["failure"]["code"] for item in reply.json["items"]] == ["verifier_options", None]


def test_given_completions_may_be_judged_by_any_pool(start_asking):
    reply = start_asking().post("/v1/score", {"run": "r", "verifiers": [asker("default")], "groups": [{"task": "t", "prompt": "p", "completions": [{"text": "x"}]}]})
    assert [rollout["reward"] for rollout in rollouts(reply.json)] == [1]


# -- what does not concern them ------------------------------------------------------------------------------------------------------------

def test_several_runs_ask_a_judge_that_is_not_shared_at_once(start_asking, judge):
    judge.rules({"hold": True})
    service = start_asking()
    names = [service.post("/v1/score", {"run": run, "verifiers": [asker()], "groups": [{"task": "t", "prompt": "p", "completions": [{"text": "x"}]}]}, wait="0s").json["id"] for run in ("a", "b")]
    eventually(lambda: len(asked(judge)) == 2, "both runs' calls")
    judge.release()
    assert [service.settled(name)["state"] for name in names] == ["complete", "complete"]


def test_a_weight_update_does_not_wait_for_calls(start_asking, judge):
    judge.rules({"hold": True})
    service = start_asking()
    batch = service.post("/v1/batches", make_batch(make_group("sum"), sampling=sampling(2), verifiers=[asker()], deadline="600s"), wait="0s").json
    eventually(lambda: len(asked(judge)) == 2, "two calls")
    begun = service.post("/v1/runs/test/policy/begin", {"revision": 2})
    assert begun.status == 200, begun
    assert service.post("/v1/runs/test/policy/commit", {"revision": 2}).status == 200
    judge.release()
    assert [rollout["reward"] for rollout in rollouts(service.settled(batch["id"]))] == [1, 1]
