"""The verifier `judge`: another model's verdict, read in one form; whatever else the judge does is no number."""
import json
import os

import pytest

from engines import ScriptedEngine
from harness import ROOT, eventually
from material import assert_failed_without_a_number, make_batch, make_group, rollouts, sampling
from test_verifier_pages import near, tables, value_of

QUICK = {"engine.backoff_min": "5ms", "engine.backoff_max": "20ms", "engine.attempts": 3, "engine.down_timeout": "2s", "engine.probe_samples": "false"}
TEMPLATE = "Q {prompt}\nR {reference}\nA {completion}\nYES or NO?"
YES, NO = {"text": "YES", "ids": [1], "lp": [-0.1]}, {"text": "NO", "ids": [1], "lp": [-0.1]}


class Judge(ScriptedEngine):
    def __init__(self, pool="judges", **more):
        super().__init__(kind="openai_compat", model="judge-1", serves="judge-1", **more)
        self.for_rolloutd += f"&pool={pool}&name={pool}"

    @property
    def asked(self):
        return [entry["body"] for entry in self.requests if "messages" in entry["body"]]


@pytest.fixture
def judge():
    made = Judge()
    yield made
    made.close()


@pytest.fixture
def service(start, judge, engine):
    """A policy in the pool that has no name, and a judge in one of its own."""
    return start(engine, judge, settings=QUICK)


def options(**more):
    return {"engine": "judges", "template": TEMPLATE, "parse": {"kind": "yes_no"}, **more}


def verdict_on(service, completion="41", reference="42", **more):
    item = {"id": "1", "prompt": "What is 6*7?", "completion": completion, "reference": reference, "verifiers": [{"name": "judge", "options": options(**more)}]}
    reply = service.post("/v1/verify", {"items": [{key: value for key, value in item.items() if value is not None}]})
    assert reply.status == 200, reply
    return reply.json["items"][0]["verdicts"][0]


# -- hostile judges -------------------------------------------------------------------------------------------------------------

OVERFLOW = {"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens in the messages.", "type": "BadRequestError", "code": 400}}
HOSTILE = {
    "hangs": ({"hold": True}, {"timeout": "300ms"}, {"engine_timeout", "verifier_timeout"}, 3),
    "stalls": ({"stall": 20}, {"timeout": "300ms"}, {"engine_timeout", "verifier_timeout"}, 3),
    "hangs-up": ({"drop": True}, {}, {"engine_unreachable"}, 4),  # once more behind a connection that was kept
    "dies-in-the-middle": ({"cut": 30}, {}, {"invalid_reply"}, 3),
    "is-a-web-server": ({"raw": "<html>YES</html>"}, {}, {"invalid_reply"}, 3),
    "says-an-error": ({"json": {"error": {"message": "busy"}}}, {}, {"invalid_reply", "engine_error"}, 3),
    "says-nothing": ({"raw": ""}, {}, {"invalid_reply"}, 3),
    "says-too-much": ({"raw": json.dumps({"choices": [{"message": {"content": "YES " * 2_000_000}}]})}, {}, {"invalid_reply"}, 3),
    "nests-deep": ({"raw": "[" * 200_000}, {}, {"invalid_reply"}, 3),
    "gives-two": ({"extra": 1, **YES}, {}, {"invalid_reply"}, 3),
    "is-cut-off": ({**YES, "finish": "length"}, {}, {"judge_truncated"}, 1),
    "is-filtered": ({**YES, "finish": "content_filter"}, {}, {"judge_unreadable"}, 1),
    "calls-a-tool": ({**YES, "finish": "tool_calls", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "grade", "arguments": "{\"verdict\": \"YES\"}"}}]}, {}, {"judge_unreadable"}, 1),
    "refuses": ({"json": {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "I will not say YES."}, "finish_reason": "stop"}]}}, {}, {"judge_unreadable"}, 1),
    "hedges": ({**YES, "text": "Yes and no."}, {}, {"judge_unreadable"}, 1),
    "thinks-for-ever": ({**YES, "text": "<think>YES " * 1000}, {}, {"judge_unreadable"}, 1),
    "knows-no-model": ({"status": 404, "json": {"error": {"message": "The model `judge-1` does not exist."}}}, {}, {"engine_error"}, 1),
    "wants-a-key": ({"status": 401, "json": {"error": {"message": "no key"}}}, {}, {"engine_error"}, 1),
    "cannot-read-it": ({"status": 400, "json": {"error": {"message": "bad request"}}}, {}, {"engine_error"}, 1),
    "has-no-room": ({"status": 400, "json": OVERFLOW}, {}, {"context_overflow"}, 1),
    "is-busy": ({"status": 429, "json": {"error": {"message": "slow down"}}, "headers": {"Retry-After": "0"}}, {}, {"engine_overloaded"}, 3),
    "is-broken": ({"status": 500, "json": {"error": {"message": "broken"}}}, {}, {"engine_error"}, 3),
}


@pytest.fixture(scope="module")
def bad_judges(shared_factory):
    """Each in a pool of its own: the breaker of one is none of the others' business."""
    judges = {name: Judge(name) for name in HOSTILE}
    for name, (rule, *_) in HOSTILE.items():
        judges[name].rules(rule)
    yield judges, shared_factory(*judges.values(), settings=QUICK)
    for one in judges.values():
        one.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_judge_that_does_not_judge_gives_no_score(bad_judges, name):
    judges, service = bad_judges
    _, more, codes, most = HOSTILE[name]
    verdict = verdict_on(service, engine=name, **more)
    assert (verdict["score"], verdict["verdict"]) == (None, "unscored"), verdict
    assert verdict["failure"]["code"] in codes and verdict["failure"]["message"], verdict
    assert 1 <= len(judges[name].asked) <= most
    ask, = verdict["detail"]["asks"]
    assert ask["read"] is None and ask["failure"] == verdict["failure"]["code"] and len(ask["reply"] or "") <= 4096


def test_a_question_that_is_asked_again_has_a_verdict_in_the_end(service, judge):
    judge.rules({"status": 500, "json": {}, "times": 1}, {"drop": True, "times": 1}, YES)
    verdict = verdict_on(service)
    assert verdict["score"] == 1 and len(judge.asked) == 3
    assert judge.asked[0] == judge.asked[1] == judge.asked[2]


# -- examples of the page -------------------------------------------------------------------------------------------------------

def examples():
    with open(os.path.join(ROOT, "docs", "verifiers", "judge.md"), encoding="utf-8") as file:
        page = file.read()
    for _, columns, rows in tables(page):
        if columns[0] == "parse" and "score" in columns:
            yield from (dict(zip(["parse", "reply", "score", "code"], row)) for row in rows)


@pytest.fixture(scope="module")
def page_judge(shared_factory):
    judge = Judge()
    yield judge, shared_factory(judge, settings=QUICK)
    judge.close()


def test_the_page_has_twenty_examples():
    assert len(list(examples())) >= 20


@pytest.mark.parametrize("row", examples(), ids=lambda row: f"{row['reply']}"[:40])
def test_an_example_of_the_page(page_judge, row):
    judge, service = page_judge
    parse, said = value_of(row["parse"]), row["reply"].strip("`")
    reward = parse["kind"] == "reward_model"
    judge.rules({"json": json.loads(said)} if reward else {**YES, "text": said})
    item = {"id": "1", "prompt": "Which river flows through Tours?", "completion": "the Seine", "reference": "the Loire",
            "verifiers": [{"name": "judge", "options": {"engine": "judges", "parse": parse}}]}
    verdict = service.post("/v1/verify", {"items": [item]}).json["items"][0]["verdicts"][0]
    assert verdict["score"] == near(row["score"]), verdict
    assert (verdict["failure"] or {}).get("code") == value_of(row["code"]), verdict


# -- batches --------------------------------------------------------------------------------------------------------------------

def judged_batch(*groups, **fields):
    return make_batch(*(groups or [make_group("t1")]), verifiers=[{"name": "judge", "options": options()}], **fields)


def test_a_batch_is_judged_and_the_record_says_by_whom(service, judge, engine):
    engine.rules({"in": "RIGHT", "text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]}, {"text": " 41", "ids": [4, 1], "lp": [-0.1, -0.2]})
    judge.rules({"in": " 42\\\"", **YES}, {"in": " 42\"", **YES}, NO)
    batch = service.batch(judged_batch(make_group("t1", "RIGHT? 6*7"), make_group("t2", "6*7?"), sampling=sampling(2)))
    assert [rollout["reward"] for rollout in rollouts(batch)] == [1, 1, 0, 0], [rollout["verdicts"] for rollout in rollouts(batch)]
    shown = service.read(f"/v1/rollouts/{rollouts(batch)[0]['id']}")["verdicts"][0]
    assert shown["detail"] == {"asks": [{"reply": "YES", "read": "yes", "seed": 0, "swapped": False, "engine": "judges"}], "engine_model": "judge-1", "engine_version": None, "label": "yes"}
    assert (shown["verdict"], shown["reason"], shown["version"]) == ("correct", "judged", "1")
    assert len(judge.asked) == 4 and all(body["model"] == "judge-1" and body["temperature"] == 0 and body["seed"] == 0 for body in judge.asked)


def test_a_rollout_whose_judge_fails_has_no_reward_and_is_in_no_mean(service, judge, engine):
    engine.rules({"text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]})
    judge.rules({"times": 1, **YES, "finish": "length"}, YES, )
    batch = service.batch(judged_batch(sampling=sampling(4)))
    failed, = [rollout for rollout in rollouts(batch) if rollout["state"] == "failed"]
    assert_failed_without_a_number(failed)
    assert failed["failure"]["code"] == "judge_truncated" and failed["failure"]["stage"] == "verify"
    assert (batch["summary"]["scored"], batch["summary"]["reward_mean"], batch["summary"]["failures"]) == (3, 1, {"judge_truncated": 1})


@pytest.mark.parametrize("pool", ["default", "nobody"])
def test_a_batch_names_neither_its_own_pool_nor_one_that_is_not_there(service, judge, engine, pool):
    reply = service.post("/v1/batches", make_batch(make_group("t1"), verifiers=[{"name": "judge", "options": options(engine=pool)}]))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[0].options.engine"), reply
    assert not engine.samples and not judge.asked


def test_a_judge_that_samples_for_another_run_judges_all_the_same(service, judge, engine):
    """The rule of one run a pool is for samples."""
    judge.rules({"in": "SAMPLE", "hold": True}, YES)
    engine.rules({"text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]})
    other = service.post("/v1/batches", make_batch(make_group("t", "SAMPLE"), run="other", engine="judges", verifiers=[{"name": "exact"}]), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: judge.open > 0, "the other run's sample to be under way")
    assert service.batch(judged_batch(sampling=sampling(2)))["summary"]["reward_mean"] == 1
    judge.release()
    service.settled(other)


def test_a_weight_update_neither_waits_for_a_judge_nor_holds_it_back(service, judge, engine):
    engine.rules({"text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]})
    judge.rules({"hold": True, **YES})
    batch = service.post("/v1/batches", judged_batch(sampling=sampling(1)), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: judge.open == 1, "the judge to be asked")
    begun = service.post("/v1/runs/test/policy/begin", {"revision": 2, "mode": "straddle"})
    assert begun.status == 200, begun
    judge.release()
    assert rollouts(service.settled(batch))[0]["reward"] == 1
    assert service.post("/v1/runs/test/policy/commit", {"revision": 2}).status == 200


def test_the_same_completion_is_asked_in_the_same_bytes(service, judge):
    judge.rules(YES)
    for _ in range(2):
        verdict_on(service, "41 <|im_end|> {reference}", votes=2, combine="mean")
    first, second = judge.asked[:2], judge.asked[2:]
    assert sorted(first, key=lambda body: body["seed"]) == sorted(second, key=lambda body: body["seed"])
    assert {body["seed"] for body in first} == {0, 1}


# -- options --------------------------------------------------------------------------------------------------------------------

CHANGES = [{}, {"template": None}, {"template": "{completion}{reference}"}, {"template": [{"role": "system", "content": TEMPLATE}]}, {"values": "raw"}, {"temperature": 0.5}, {"seed": 1}, {"max_tokens": 16}, {"votes": 3},
           {"votes": 3, "combine": "mean"}, {"swap": True}, {"swap": {"yes": "no", "no": "yes"}}, {"swap": True, "disagree": "min"}, {"timeout": "59s"}, {"endpoint": "/chat"}, {"parse": {"kind": "yes_no", "position": "last"}},
           {"parse": {"kind": "yes_no", "labels": {"yes": 0.5, "no": 0}}}]


def test_everything_that_can_change_a_verdict_is_in_the_hash_of_its_options(service, judge):
    judge.rules(YES)
    hashes = {verdict_on(service, **change)["options_sha256"] for change in CHANGES}
    assert len(hashes) == len(CHANGES)


@pytest.mark.parametrize("change, path", [({"parse": {"kind": "vibes"}}, "parse"), ({"template": "no mark"}, "template"), ({"swap": {"yes": "no"}}, "swap"), ({"votes": 0}, "votes"), ({"engine": None}, "engine"), ({"model": "x"}, "model"),
                                          ({"timeout": "never"}, "timeout"), ({"endpoint": "//../x"}, "endpoint"), ({"parse": {"kind": "reward_model"}}, "template")])
def test_an_option_that_cannot_be_meant_is_refused_with_its_path(service, judge, change, path):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "judge", "options": options(**change)}], "items": [{"id": "1", "completion": "x"}]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", f"verifiers[0].options.{path}"), reply
    assert not judge.asked


def test_the_table_of_verifiers_says_that_it_asks_an_engine(service):
    row, = [row for row in service.read("/v1/verifiers")["verifiers"] if row["name"] == "judge"]
    assert row["asks_engine"] and not row["needs_reference"] and row["options"]["engine"]["required"]
    assert row["options"]["template"]["type"] == "string or messages" and row["options"]["swap"]["type"] == "boolean or object"


# -- steps ----------------------------------------------------------------------------------------------------------------------

def test_steps_are_asked_one_by_one_and_shown_with_their_scores(service, judge):
    judge.rules({"in": "so 5", **NO}, YES)
    verifier = {"name": "judge", "steps": "per_line", "options": options(template="Step {step}\nYES or NO?")}
    reply = service.post("/v1/score", {"run": "s", "verifiers": [verifier], "groups": [{"task": "t", "prompt": "Count", "completions": [
        {"text": "2+2=4\nso 5", "completion_ids": [100, 101, 102], "token_ends": [5, 6, 10], "logprobs": [-0.5] * 3}]}]})
    assert reply.status == 200, reply
    rollout, = rollouts(reply.json)
    verdict = service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"][0]
    assert rollout["reward"] == 0.5 and [(step["end"], step["score"]) for step in verdict["steps"]] == [(2, 1), (3, 0)]
    assert [ask["read"] for ask in verdict["detail"]["asks"]] == ["yes", "no"]
