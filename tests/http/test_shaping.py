"""cosine_length, overlong, repetition: scores that depend on the length, on words that come again, and on another verifier's score."""
import json
import math

import pytest

from material import make_batch, make_group, rollouts, sampling
from test_verify import verify

TRUTH = {"name": "exact", "id": "truth", "weight": 0}


def cosine(**options):
    return {"name": "cosine_length", "options": {"of": "truth", "max_length": 100, **options}}


def item(completion, tokens=None, **more):
    return {"id": "1", "completion": completion, **({} if tokens is None else {"completion_tokens": tokens}), **more}


def verdict_of(found, name):
    return next(verdict for verdict in found["verdicts"] if verdict["id"] == name)


# -- POST /v1/verify ------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("tokens, right, wrong", [(0, 1, -1), (25, 0.75 + math.sqrt(2) / 8, -0.75 - math.sqrt(2) / 8), (50, 0.75, -0.75), (100, 0.5, -0.5), (10 ** 9, 0.5, -0.5)])
def test_short_and_right_earns_most_and_long_and_wrong_loses_least(plain, tokens, right, wrong):
    for reference, score in (("yes", right), ("no", wrong)):
        found, = verify(plain, [item("yes", tokens, reference=reference)], [cosine(), TRUTH])
        assert found["reward"] == pytest.approx(score, abs=1e-12) and found["failure"] is None
        assert verdict_of(found, "cosine_length")["detail"] == {"length": tokens}


@pytest.mark.parametrize("verifiers", [[cosine(), TRUTH], [TRUTH, cosine()]], ids=["before", "behind"])
def test_the_other_verifier_may_stand_before_or_behind(plain, verifiers):
    found, = verify(plain, [item("yes", 0, reference="yes")], verifiers)
    assert found["reward"] == 1 and list(found["rewards"]) == [verifier.get("id", verifier["name"]) for verifier in verifiers]


def test_a_verdict_without_the_other_ones_score_is_unscored_with_its_code(plain):
    found, = verify(plain, [item("yes", 5)], [cosine(), TRUTH])
    verdict = verdict_of(found, "cosine_length")
    assert (verdict["verdict"], verdict["score"], verdict["reason"]) == ("unscored", None, "of_unscored")
    assert "truth" in verdict["failure"]["message"] and "reference_unreadable" in verdict["failure"]["message"]
    assert found["reward"] is None


@pytest.mark.parametrize("verifier", [cosine(), {"name": "overlong", "options": {"max_length": 10, "cache": 0}}], ids=["cosine_length", "overlong"])
def test_without_a_length_there_is_no_score(plain, verifier):
    found, = verify(plain, [item("yes", reference="yes")], [verifier, TRUTH])
    assert found["reward"] is None and verdict_of(found, verifier["name"])["failure"]["code"] == "missing_field"


@pytest.mark.parametrize("verifiers, name", [
    ([cosine(of="nobody"), TRUTH], "of"), ([cosine(of="cosine_length"), TRUTH], "of"), ([cosine(of=None), TRUTH], "of"), ([cosine(of=""), TRUTH], "of"),
    ([cosine(), {"name": "exact", "id": "truth", "heldout": True}], "of"), ([cosine(max_length=0), TRUTH], "max_length"), ([cosine(max_length=1.5), TRUTH], "max_length"),
    ([{"name": "cosine_length", "options": {"of": "truth"}}, TRUTH], "max_length"), ([{"name": "overlong", "options": {"max_length": 10, "cache": 11}}], "cache"),
    ([{"name": "overlong", "options": {"max_length": 10, "cache": -1}}], "cache"), ([{"name": "overlong", "options": {"max_length": 10}}], "cache"),
    ([{"name": "repetition", "options": {"ngram": 0, "max_penalty": -1}}], "ngram"), ([{"name": "repetition", "options": {"ngram": 2, "max_penalty": 0.1}}], "max_penalty"),
    ([{"name": "repetition", "options": {"ngram": 2}}], "max_penalty"), ([{"name": "overlong", "options": {"of": "repetition", "max_length": 1, "cache": 1}},
                                                                       {"name": "repetition", "options": {"of": "overlong", "ngram": 1, "max_penalty": -1}}], "of")])
def test_options_that_cannot_be_meant_are_refused_by_their_path(plain, verifiers, name):
    reply = plain.post("/v1/verify", {"verifiers": verifiers, "items": [item("yes", 1)]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", f"verifiers[0].options.{name}")
    found, = verify(plain, [{**item("yes", 1), "verifiers": verifiers}])
    assert found["reward"] is None and found["failure"]["code"] == "verifier_options"


def test_steps_go_with_words_and_not_with_another_ones_score(plain):
    repetition = {"name": "repetition", "steps": "per_line", "options": {"ngram": 1, "max_penalty": -1}}
    found, = verify(plain, [item("a a\na b c d")], [repetition])
    assert found["reward"] == -0.25
    reply = plain.post("/v1/verify", {"verifiers": [{**repetition, "options": {**repetition["options"], "of": "truth"}}, TRUTH], "items": [item("a a")]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[0].steps")


def test_a_penalty_with_of_is_for_what_is_correct_alone(plain):
    verifiers = [{"name": "overlong", "options": {"of": "truth", "max_length": 100, "cache": 10}}, {"name": "repetition", "options": {"of": "truth", "ngram": 1, "max_penalty": -1}}, TRUTH]
    right, wrong = verify(plain, [item("a a", 95, reference="a a"), item("a a", 95, reference="b")], verifiers)
    assert {name: entry["score"] for name, entry in right["rewards"].items()} == {"overlong": -0.5, "repetition": -0.5, "truth": 1}
    assert {name: entry["score"] for name, entry in wrong["rewards"].items()} == {"overlong": 0, "repetition": 0, "truth": 0}
    assert [verdict["reason"] for verdict in wrong["verdicts"]] == ["of_wrong", "of_wrong", "different"]


def test_a_mebibyte_of_words_is_counted_in_every_way(plain):
    """Half of it at random and then again: the runs of every length come again, and few of them at once."""
    state, words = 1, []
    for _ in range(1 << 18):
        state = (state * 1103515245 + 12345) % (1 << 31)
        words.append(chr(97 + (state >> 16) % 26))
    text = " ".join(words + words)
    for ngram in (1, 3, 40, 1000, 200000):
        found, = verify(plain, [item(text)], [{"name": "repetition", "options": {"ngram": ngram, "max_penalty": -1}}])
        runs = len(words) * 2 - ngram + 1
        distinct = len({text[2 * at:2 * (at + ngram)] for at in range(len(words))}) if ngram <= 40 else len(words)
        assert found["reward"] == pytest.approx(-(1 - distinct / runs) if ngram <= 1000 else -(runs - len(words)) / runs, abs=1e-4), ngram


# -- batches, scores, the record ------------------------------------------------------------------------------------------------------

SHAPED = [cosine(max_length=8), {"name": "overlong", "weight": 0.5, "options": {"max_length": 8, "cache": 4}}, {"name": "exact", "id": "truth", "weight": 0}]


def shaped(tokens, right):
    place = (1 + math.cos(math.pi * min(tokens / 8, 1))) / 2
    value = place + (1 - place) / 2 if right else -place - (1 - place) / 2
    return value + 0.5 * -min(max(tokens - 4, 0), 4) / 4


def test_a_batch_is_shaped_by_the_tokens_of_the_engine(start, engine):
    service = start(engine)
    engine.rules({"times": 1, "text": "yes"}, {"times": 1, "text": "no"}, {"text": "yes and more than that, again and again"})
    batch = service.batch(make_batch(make_group("t", "p", "yes"), verifiers=SHAPED, sampling=sampling(4)))
    for rollout in rollouts(batch):
        right = rollout["rewards"]["truth"]["score"] == 1
        assert rollout["reward"] == pytest.approx(shaped(len(rollout["completion_ids"]), right), abs=1e-12)
    assert {rollout["rewards"]["truth"]["score"] for rollout in rollouts(batch)} == {0, 1}
    kept = service.read(f"/v1/batches/{batch['id']}")
    assert [rollout["reward"] for rollout in rollouts(kept)] == [rollout["reward"] for rollout in rollouts(batch)]


def test_a_score_is_shaped_by_the_ids_that_it_brings_and_unscored_without(start):
    service = start()
    completions = [{"text": "yes", "completion_ids": list(range(count)), "logprobs": [-0.5] * count} for count in (1, 6, 20)]
    reply = service.post("/v1/score", {"run": "s", "verifiers": SHAPED, "deadline": "30s", "groups": [
        {"task": "t", "prompt": "p", "reference": "yes", "completions": [*completions, {"text": "yes"}]}]})
    assert reply.status == 200, reply
    *counted, unknown = rollouts(reply.json)
    assert [rollout["reward"] for rollout in counted] == pytest.approx([shaped(count, True) for count in (1, 6, 20)], abs=1e-12)
    assert unknown["reward"] is None and unknown["failure"]["code"] == "missing_field"


def test_an_audit_with_made_up_completions_judges_words_and_knows_no_length(plain):
    verifiers = [{"name": "exact", "id": "truth"}, {"name": "repetition", "weight": 0.5, "options": {"ngram": 3, "max_penalty": -1}}]
    reply = plain.post("/v1/audits", {"kind": "adversarial", "verifiers": verifiers, "tasks": [{"task": "t", "prompt": "p", "reference": "4"}]})
    assert reply.status == 200, reply
    padded = next(one for one in reply.json["items"] if one["probe"] == "padded_wrong")
    assert padded["scores"]["repetition"] < -0.9 and not padded["paid"]
    reply = plain.post("/v1/audits", {"kind": "adversarial", "verifiers": [cosine(), TRUTH], "tasks": [{"task": "t", "prompt": "p", "reference": "4"}]})
    assert {one["scores"].get("cosine_length") for one in reply.json["items"]} == {None} and json.dumps(reply.json).count("missing_field") >= 5
