"""Graded steps: a verifier that judges each line or paragraph, steps that a request brings, their ends as token indexes."""
import json
import os
import random

import pytest

from harness import ROOT
from material import close, packed, rollouts

OKS = {"name": "regex", "options": {"pattern": "^ok", "mode": "search"}}


def cases(*categories):
    with open(os.path.join(ROOT, "tests", "cases", "steps.jsonl"), encoding="utf-8") as file:
        read = [json.loads(line) for line in file]
    return [pytest.param(case, id=case["id"]) for case in read if not categories or case["category"] in categories]


def with_logprobs(completion):
    return {**completion, "logprobs": [-0.5] * len(completion["completion_ids"])} if "completion_ids" in completion else completion


def body(verifiers, *completions, **fields):
    return {"run": "steps", "policy_revision": 1, "verifiers": verifiers,
            "groups": [{"task": "t", "prompt": "Go.", "completions": [with_logprobs(entry) for entry in completions]}], **fields}


def score(service, *args, **fields):
    reply = service.post("/v1/score", body(*args, **fields))
    assert reply.status == 200, reply
    return rollouts(reply.json)


def verdict(rollout, name="regex"):
    return next(entry for entry in rollout["verdicts"] if entry["id"] == name)


def pairs(found):
    return [[step["end"], step["score"]] for step in found["steps"]]


def per_line(**more):
    return {**OKS, "steps": "per_line", **more}


def tokens(ends):
    return {"completion_ids": list(range(100, 100 + len(ends))), "token_ends": list(ends)}


# -- the cases --------------------------------------------------------------------------------------------------------

def check(rollout, case, want):
    found = verdict(rollout, case["id_of_verdict"])
    if "failure" in want:
        assert found["score"] is None and found["failure"]["code"] in want["failure"] and "steps" not in found
    else:
        assert close(found["score"], want["score"]) and found["reason"] == want.get("reason", found["reason"])
        assert [step[0] for step in pairs(found)] == [step[0] for step in want["steps"]]
        assert close([step[1] for step in pairs(found)], [step[1] for step in want["steps"]])


@pytest.mark.parametrize("case", cases("per_line", "per_paragraph", "bytes", "no_steps", "no_offsets", "bad_offsets", "given", "given_bad",
                                       "given_no_offsets"))
def test_steps_as_the_case_says(plain, case):
    reply = plain.post("/v1/score", body(case["verifiers"], *case["completions"], store=False))
    if case["expected"] == "refused":
        assert reply.status in (400, 422) and reply.error["code"] in case["codes"], reply
        return
    assert reply.status == 200, reply
    for rollout, want in zip(rollouts(reply.json), case["expected"]):
        check(rollout, case, want)


# -- against a second reading of the rule -------------------------------------------------------------------------------

def pieces(text, how):
    """(bytes of the piece, its end) in plain Python: lines end at LF, a CR in front of it belongs to it."""
    found, at = [], 0
    for line in text.encode().split(b"\n"):
        start, at = at, at + len(line) + 1
        found.append((start, min(at, len(text.encode())), not line.strip(b" \t\r\v\f")))
    steps, open_piece = [], False
    for start, end, blank in found:
        if blank:
            open_piece = False
        elif open_piece and how == "per_paragraph":
            steps[-1] = (steps[-1][0], end)
        else:
            steps.append((start, end))
            open_piece = True
    return [(text.encode()[start:end], end) for start, end in steps]


@pytest.mark.parametrize("how", ["per_line", "per_paragraph"])
def test_random_texts_have_the_steps_of_the_rule(plain, how):
    draw = random.Random(15)
    entries = []
    for _ in range(60):
        text = "x" + "".join(draw.choice(["ok", "no", "\n", "\n", "\r\n", " ", "\t", "é", "日", "\x0b", "\r", "\u2028"]) for _ in range(draw.randrange(25)))
        size = len(text.encode())
        ends = sorted(draw.randrange(size + 1) for _ in range(draw.randrange(8))) + [size]
        entries.append({"text": text, **tokens(ends)})
    verifier = {"name": "regex", "options": {"pattern": "ok", "mode": "search"}, "steps": how}
    for entry, rollout in zip(entries, score(plain, [verifier], *entries)):
        want = [[next(i for i, end in enumerate(entry["token_ends"], 1) if end >= step_end), 1.0 if b"ok" in piece else 0.0]
                for piece, step_end in pieces(entry["text"], how)]
        found = verdict(rollout)
        assert pairs(found) == want, entry
        assert [step["byte_end"] for step in found["steps"]] == [end for _, end in pieces(entry["text"], how)]
        assert close(found["score"], sum(step[1] for step in want) / len(want))


# -- hostile input ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("ends, code, path", [
    ([2, 3], "length_mismatch", "token_ends"),
    ([1, 2, 3, 4], "length_mismatch", "token_ends"),
    ([], "length_mismatch", "token_ends"),
    ([2, 1, 3], "invalid_field", "token_ends[1]"),
    ([1, 2, 4], "invalid_field", "token_ends[2]"),
    ([1, 1, 2], "invalid_field", "token_ends[2]"),
    ([-1, 2, 3], "invalid_field", "token_ends[0]"),
    ([0.5, 2, 3], "invalid_field", "token_ends[0]"),
    ([1, None, 3], "invalid_field", "token_ends[1]"),
    ([1, 2, 1e300], "invalid_field", "token_ends[2]"),
    ("123", "invalid_field", "token_ends"),
])
def test_ends_of_tokens_that_cannot_be_are_refused(plain, ends, code, path):
    reply = plain.post("/v1/score", body([per_line()], {"text": "abc", "completion_ids": [1, 2, 3], "token_ends": ends}))
    assert reply.status == (422 if code == "length_mismatch" else 400), reply
    assert (reply.error["code"], reply.error["path"]) == (code, "groups[0].completions[0]." + path)


def test_ends_of_tokens_need_ids_and_a_text(plain):
    reply = plain.post("/v1/score", body([per_line()], {"text": "abc", "token_ends": [3]}))
    assert (reply.status, reply.error["code"]) == (400, "missing_field"), reply
    reply = plain.post("/v1/score", body([], {"completion_ids": [1], "token_ends": [3], "rewards": {"a": {"score": 1}}}))
    assert (reply.status, reply.error["path"]) == (400, "groups[0].completions[0].text"), reply


def test_a_token_may_end_inside_of_a_character(plain):
    [rollout] = score(plain, [per_line()], {"text": "ok é\nno", **tokens([4, 4, 6, 8])})
    assert pairs(verdict(rollout)) == [[3, 1.0], [4, 0.0]]


def test_ends_of_tokens_may_be_packed(plain):
    ids = {"completion_ids_u32": packed("I", [1, 2]), "logprobs_f32": packed("f", [-0.5, -0.5]), "token_ends_u32": packed("I", [3, 5])}
    [rollout] = score(plain, [per_line()], {"text": "ok\nno", **ids})
    assert pairs(verdict(rollout)) == [[1, 1.0], [2, 0.0]]


def test_a_mebibyte_of_breaks_has_no_step(plain):
    [rollout] = score(plain, [per_line()], {"text": "\n" * (1 << 20), **tokens([1 << 20])}, store=False)
    found = verdict(rollout)
    assert (found["score"], found["reason"], found["steps"]) == (0.0, "no_answer", [])


def test_steps_are_kept_up_to_a_limit_and_one_more_is_wrong(plain):
    most, more = [score(plain, [per_line()], {"text": "a\n" * count, **tokens([2 * count])}, store=False, **{"return": []})[0]
                  for count in (65536, 65537)]
    assert len(verdict(most)["steps"]) == 65536 and verdict(most)["score"] == 0
    assert (verdict(more)["score"], verdict(more)["reason"], verdict(more)["steps"]) == (0.0, "too_many_steps", [])


def test_lines_that_make_a_pattern_slow_are_counted_together(plain):
    """Each of them alone takes all the work that a verdict may take."""
    slow = {"name": "regex", "options": {"pattern": "^(a+)+$"}, "steps": "per_line"}
    text = "\n".join(["aaa", *["a" * 40 + "!"] * 2000, "aaa"])
    found = verdict(score(plain, [slow], {"text": text, **tokens([len(text)])})[0])
    assert close(found["score"], 1 / 2002), found.get("failure")
    assert [step["score"] for step in found["steps"]] == [1] + [0] * 2001


@pytest.mark.parametrize("steps, path", [
    ({"end": 1, "score": 1}, ""),
    ([[1, 0.5]], "[0]"),
    ([{"end": 1, "score": 1, "weight": 1}], "[0].weight"),
    ([{"end": 1.5, "score": 1}], "[0].end"),
    ([{"end": 1, "score": "1"}], "[0].score"),
    ([{"end": 1, "score": None}], "[0].score"),
    ([{"end": 1, "score": 1e200}], "[0].score"),
    ([{"end": 2, "score": 1}, {"end": 1, "score": 1}], "[1].end"),
    ([{"end": 2, "score": 1}, {"byte_end": 1, "score": 1}], "[1].byte_end"),
    ([{"byte_end": 2, "score": 1}, {"byte_end": 1, "score": 1}], "[1].byte_end"),
    ([{"byte_end": 0, "score": 1}], "[0].byte_end"),
    ([{"end": 2 ** 40, "score": 1}], "[0].end"),
    ([{"end": 1, "score": 1}] * 65537, ""),
])
def test_given_steps_that_cannot_be_are_refused(plain, steps, path):
    reply = plain.post("/v1/score", body([], {"text": "abc", **tokens([1, 3]), "rewards": {"prm": {"score": 1, "steps": steps}}}))
    assert reply.status == 400, reply
    assert reply.error["path"] == "groups[0].completions[0].rewards.prm.steps" + path


def test_given_steps_need_a_score_and_ids(plain):
    for prm in ({"score": None, "steps": [{"end": 1, "score": 1}]}, {"steps": []}):
        reply = plain.post("/v1/score", body([], {"text": "abc", **tokens([3]), "rewards": {"prm": prm}}))
        assert reply.status == 400, reply
    reply = plain.post("/v1/score", body([], {"text": "abc", "rewards": {"prm": {"score": 1, "steps": [{"end": 1, "score": 1}]}}}))
    assert (reply.status, reply.error["path"]) == (400, "groups[0].completions[0].rewards.prm.steps[0].end"), reply


def test_as_many_given_steps_as_the_limit_pass(plain):
    steps = [{"end": 1 + (i > 9), "score": i % 2} for i in range(65536)]
    [rollout] = score(plain, [], {"text": "abc", **tokens([1, 3]), "rewards": {"prm": {"score": 1, "steps": steps}}}, store=False)
    assert pairs(verdict(rollout, "prm")) == [[1 + (i > 9), i % 2] for i in range(65536)]


# -- verdicts ---------------------------------------------------------------------------------------------------------

def test_programs_are_not_judged_by_lines(plain):
    reply = plain.post("/v1/score", body([{"name": "code", "steps": "per_line", "reference": {"tests": []}}], {"text": "a"}))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[0].steps"), reply
    reply = plain.post("/v1/score", body([{**OKS, "steps": "per_word"}], {"text": "a"}))
    assert (reply.status, reply.error["path"]) == (400, "verifiers[0].steps"), reply


def test_one_step_that_cannot_be_judged_leaves_the_verdict_unscored(plain):
    verifier = {"name": "math", "reference": "\\frac", "steps": "per_line"}
    [rollout] = score(plain, [verifier], {"text": "1\n2", **tokens([3])}, store=False)
    found = verdict(rollout, "math")
    assert found["failure"]["code"] == "reference_unreadable" and found["failure"]["message"].startswith("step 0: ")
    assert rollout["state"] == "failed" and "steps" not in found


def test_verdicts_on_steps_have_other_hashes_of_options(plain):
    whole, lines, paragraphs = [verdict(score(plain, [entry], {"text": "ok", **tokens([2])}, store=False)[0])["options_sha256"]
                                for entry in (OKS, per_line(), {**OKS, "steps": "per_paragraph"})]
    assert len({whole, lines, paragraphs}) == 3


def test_a_verdict_on_steps_is_on_record_as_it_was_answered(plain):
    batch = plain.post("/v1/score", body([per_line()], {"text": "ok\nno", **tokens([3, 5])})).json
    [rollout] = rollouts(batch)
    assert verdict(rollout)["steps"] == [{"end": 1, "score": 1.0, "byte_end": 3}, {"end": 2, "score": 0.0, "byte_end": 5}]
    assert verdict(plain.read(f"/v1/rollouts/{rollout['id']}")) == verdict(rollout)
    assert plain.read(f"/v1/batches/{batch['id']}/request")["groups"][0]["completions"][0]["token_ends"] == [3, 5]


def test_a_rollout_shows_its_steps_with_their_places(plain):
    prm = {"prm": {"score": 1, "steps": [{"end": 1, "score": 0.25}]}}
    batch = plain.post("/v1/score", body([per_line()], {"text": "ok é\n\nno" + "x" * 300, **tokens([4, 5, 8, 309]), "rewards": prm}, {"text": "ok"})).json
    first, second = rollouts(batch)
    assert "steps" not in first
    assert plain.read(f"/v1/rollouts/{first['id']}")["steps"] == [
        {"verifier": "regex", "start": 0, "end": 3, "byte_start": 0, "byte_end": 6, "text": "ok é\n", "score": 1.0},
        {"verifier": "regex", "start": 3, "end": 4, "byte_start": 6, "byte_end": 309, "text": "\nno" + "x" * 253, "score": 0.0},
        {"verifier": "prm", "start": 0, "end": 1, "byte_start": 0, "byte_end": 4, "text": "ok \ufffd", "score": 0.25}]
    assert plain.read(f"/v1/rollouts/{second['id']}")["steps"] == []
    bare = plain.post("/v1/score", body([], {"text": "abc", "completion_ids": [1, 2], "rewards": prm})).json
    [shown] = plain.read(f"/v1/rollouts/{rollouts(bare)[0]['id']}")["steps"]
    assert shown == {"verifier": "prm", "start": 0, "end": 1, "byte_start": 0, "byte_end": None, "text": None, "score": 0.25}


def test_without_tokens_there_are_bytes_alone(plain):
    reply = plain.post("/v1/verify", {"verifiers": [per_line()], "items": [{"id": "1", "completion": "ok\nno"}]})
    [found] = reply.json["items"][0]["verdicts"]
    assert found["score"] == 0.5
    assert found["steps"] == [{"end": None, "score": 1.0, "byte_end": 3}, {"end": None, "score": 0.0, "byte_end": 5}]
