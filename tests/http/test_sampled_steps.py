"""Steps of sampled completions: the ends of tokens from the engine's reply, or from its /detokenize."""
import pytest

from engines import ScriptedEngine
from harness import eventually
from material import close, make_batch, make_group, rollouts

OKS = {"name": "regex", "options": {"pattern": "^ok", "mode": "search"}, "steps": "per_line"}
WORDS = {1: b"ok", 2: b" a", 3: b"\n", 4: b"no", 5: "é".encode()[:1], 6: "é".encode()[1:] + b"\n", 7: b"x\nok", 8: b""}
END = 8


def spell(ids):
    return b"".join(WORDS[i] for i in ids).decode("utf-8", "replace")


def say(*ids, **more):
    return {"text": spell(ids), "ids": list(ids), "lp": [-0.5] * len(ids), "finish": "stop", **more}


def asked(service, *verifiers, **fields):
    return service.batch(make_batch(make_group("t"), verifiers=list(verifiers) or [OKS], **fields))


def steps(rollout, name="regex"):
    return [[step["end"], step["score"], step["byte_end"]] for step in next(entry for entry in rollout["verdicts"] if entry["id"] == name)["steps"]]


def detokenizations(engine):
    return [entry for entry in engine.requests if entry["path"] == "/detokenize"]


@pytest.fixture
def spelling(engine):
    """The scripted engine, which tells the text of ids as vLLM does."""
    engine.module.MAKERS["/detokenize"] = lambda rule, ask: {"prompt": rule.get("detokenized", spell(ask["tokens"]))}
    return engine


def test_the_engine_is_asked_where_its_tokens_end(service, spelling):
    spelling.rules({"choices": [say(1, 2, 3, 4, 5, 6, 7, END), say(4, 3, 4, END)]})
    second, first = sorted(rollouts(asked(service)), key=lambda rollout: len(rollout["completion_ids"]))
    assert steps(first) == [[3, 1.0, 5], [6, 0.0, 10], [7, 0.0, 12], [7, 1.0, 14]] and close(first["reward"], 0.5)
    assert steps(second) == [[2, 0.0, 3], [3, 0.0, 5]]
    assert 2 <= len(detokenizations(spelling)) <= 20
    assert all(entry["body"]["model"] == "demo-1b" for entry in detokenizations(spelling))


def test_a_batch_that_grades_no_steps_asks_nothing(service, spelling):
    spelling.rules({"choices": [say(1, 3, 4, END)]})
    asked(service, {"name": "exact"})
    assert not detokenizations(spelling)


def test_process_works_in_a_sampled_batch(service, spelling):
    spelling.rules({"choices": [say(1, 3, 4, END), say(1, 3, 1, END)]})
    batch = asked(service, objective={"advantage": {"estimator": "process"}})
    by_reward = {rollout["reward"]: rollout["advantage"] for rollout in rollouts(batch)}
    one, zero = 3 ** -0.5, -3 ** 0.5  # grades 1, 0, 1, 1: mean 3/4, deviation sqrt(3)/4
    assert close(by_reward[0.5], [one + zero, one + zero, zero, 0.0], relative=1e-12) and close(by_reward[1.0], [2 * one, 2 * one, one, 0.0], relative=1e-12)
    assert service.read(f"/v1/batches/{batch['id']}") == batch


@pytest.mark.parametrize("rule", [{"status": 404, "json": {"detail": "Not Found"}}, {"drop": True}, {"raw": "{"}, {"json": {"text": "ok\nno"}}, {"json": {"prompt": 7}},
                                  {"detokenized": "something else"}, {"detokenized": ""}, {"detokenized": "ok"}])
def test_without_an_answer_that_fits_the_verdict_is_unscored(service, spelling, rule):
    spelling.rules({"in": '"tokens"', **rule}, {"choices": [say(1, 3, 4, END)]})
    batch = asked(service)
    assert [rollout["failure"]["code"] for rollout in rollouts(batch)] == ["no_token_offsets"] * 2
    assert batch["summary"]["failures"] == {"no_token_offsets": 2}


def test_answers_that_contradict_each_other_are_none(service, spelling):
    answers = {4: spell([1, 3, 4, END])}
    spelling.module.MAKERS["/detokenize"] = lambda rule, ask: {"prompt": answers.get(len(ask["tokens"]), "")}
    spelling.rules({"choices": [say(1, 3, 4, END)]})
    found = rollouts(asked(service))
    assert all(steps(rollout) == [[4, 1.0, 3], [4, 0.0, 5]] for rollout in found)  # the only token that is known to reach both
    answers.update({2: "ok\nno", 1: "ok"})
    assert all(steps(rollout) == [[2, 1.0, 3], [2, 0.0, 5]] for rollout in rollouts(asked(service)))


def test_more_steps_than_are_asked_for_are_not_placed(service, spelling):
    spelling.rules({"choices": [say(*[1, 3] * 1025)]})
    batch = asked(service, sampling={"n": 1, "max_tokens": 4096, "temperature": 1.0})
    assert [rollout["failure"]["code"] for rollout in rollouts(batch)] == ["no_token_offsets"] and not detokenizations(spelling)


def test_a_batch_can_be_cancelled_while_the_engine_is_asked(service, spelling):
    spelling.rules({"in": '"tokens"', "hold": True}, {"choices": [say(1, 3, 4, END)]})
    reply = service.post("/v1/batches", make_batch(make_group("t"), verifiers=[OKS]), {"Prefer": "respond-async"})
    assert reply.status == 202, reply
    eventually(lambda: len(detokenizations(spelling)) == 2, "both samples to be asked about")
    assert service.delete(f"/v1/batches/{reply.json['id']}").status in (200, 202)
    eventually(lambda: service.read(f"/v1/batches/{reply.json['id']}", wait="0s")["state"] == "cancelled", "the batch to be cancelled")
    spelling.release()


def test_replies_with_the_bytes_of_tokens_say_where_they_end(start):
    engine = ScriptedEngine(kind="llamacpp")
    made = engine.module.MAKERS["/completion"]

    def with_bytes(rule, ask):
        reply = made(rule, ask)
        for entry in reply["completion_probabilities"]:
            entry["bytes"] = rule.get("bytes", list(WORDS[entry["id"]]))
        return reply

    engine.module.MAKERS["/completion"] = with_bytes
    engine.module.MAKERS["/tokenize"] = lambda rule, ask: {"tokens": [1, 2]}
    engine.module.MAKERS["/detokenize"] = lambda rule, ask: {"content": spell(ask["tokens"])}
    try:
        service = start(engine)
        engine.rules({"choices": [say(1, 2, 3, 4, 5, 6, 7, END)]})
        for rollout in rollouts(asked(service)):
            assert steps(rollout) == [[3, 1.0, 5], [6, 0.0, 10], [7, 0.0, 12], [7, 1.0, 14]]
        assert not detokenizations(engine)
        for other in ([120], None, [300], "ok", [[1]]):
            engine.rules({"bytes": other, "choices": [say(1, 3, 4, END)]})
            assert [steps(rollout) for rollout in rollouts(asked(service))] == [[[2, 1.0, 3], [3, 0.0, 5]]] * 2
            assert detokenizations(engine)
    finally:
        engine.close()
