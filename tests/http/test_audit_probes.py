"""POST /v1/audits of kind adversarial: probes of verifiers."""
import pytest

from audit_by_hand import audit, refused

PROBES = ("empty", "blank", "prompt_copy", "padded_wrong", "formatted_wrong", "reference_echo", "many_answers", "denied_answer")


def probe(service, verifiers, *tasks, **more):
    return audit(service, {"kind": "adversarial", "verifiers": verifiers, "tasks": list(tasks), **more})


def by_probe(got, task):
    return {item["probe"]: item for item in got["items"] if item["task"] == task}


SUM = {"task": "sum", "prompt": "What is 3+4?", "reference": "7", "answer": "7"}


def test_each_probe_is_judged_as_verify_judges_it(plain):
    verifiers = [{"name": "math", "weight": 0.8}, {"name": "format", "weight": 0.2, "options": {"template": "think_answer"}}, {"name": "exact", "heldout": True}]
    got = probe(plain, verifiers, SUM, {"task": "two", "prompt": "One half?", "reference": "\\frac{1}{2}"})
    assert [(item["task"], item["probe"]) for item in got["items"]] == [(task, name) for task in ("sum", "two") for name in PROBES]
    reply = plain.post("/v1/verify", {"verifiers": verifiers, "items": [
        {"id": str(index), "completion": item["completion"], "reference": "7" if item["task"] == "sum" else "\\frac{1}{2}"} for index, item in enumerate(got["items"])]})
    for item, judged in zip(got["items"], reply.json["items"]):
        assert (item["reward"], item["failure"], item["note"]) == (judged["reward"], None, None), item
        assert item["scores"] == {verdict["id"]: verdict["score"] for verdict in judged["verdicts"]}
    assert got["paid"] == sum(item["paid"] for item in got["items"]) and (got["failed"], got["references"]) == (0, [])


def test_each_probe_has_its_text(plain):
    items = by_probe(probe(plain, [{"name": "exact"}], SUM), "sum")
    assert (items["empty"]["completion"], items["blank"]["completion"].strip(), items["prompt_copy"]["completion"], items["reference_echo"]["completion"]) == ("", "", SUM["prompt"], "7")
    assert "7" not in items["formatted_wrong"]["completion"].replace("8675309", "") and len(items["padded_wrong"]["completion"]) > 3000
    assert "\\boxed{7}" in items["many_answers"]["completion"] and items["denied_answer"]["completion"] == "The answer is not \\boxed{7}."
    assert [name for name, item in items.items() if item["reward"] != 0] == ["reference_echo"] and not any(item["paid"] for item in items.values())


def test_an_echo_is_right_for_exact_and_math_and_paid_if_another_pays(plain):
    alone = by_probe(probe(plain, [{"name": "exact"}, {"name": "math", "options": {"extract": "answer_is"}}], SUM), "sum")["reference_echo"]
    assert (alone["reward"], alone["paid"]) == (1, False)
    other = by_probe(probe(plain, [{"name": "exact"}, {"name": "regex", "weight": 0.1, "options": {"pattern": "\\d"}}], SUM), "sum")["reference_echo"]
    assert (other["reward"], other["paid"]) == (1.1, True)
    punished = by_probe(probe(plain, [{"name": "exact"}, {"name": "regex", "weight": -0.1, "options": {"pattern": "\\d"}}], SUM), "sum")["reference_echo"]
    assert (punished["reward"], punished["paid"]) == (0.9, False)


def test_a_verifier_that_looks_for_the_answer_anywhere_pays_for_tricks(plain):
    got = probe(plain, [{"name": "regex", "options": {"pattern": "\\b7\\b"}}], SUM)
    assert {item["probe"] for item in got["items"] if item["paid"]} == {"reference_echo", "many_answers", "denied_answer"} and got["paid"] == 3


def test_the_wrong_answer_to_a_choice_is_another_letter(plain):
    items = by_probe(probe(plain, [{"name": "exact", "options": {"extract": "boxed"}}], {"task": "t", "reference": "A"}, {"task": "u", "reference": "B,D"}), "t")
    assert "\\boxed{B}" in items["formatted_wrong"]["completion"] and items["formatted_wrong"]["reward"] == 0
    assert "\\boxed{B}, or \\boxed{C}, or \\boxed{A}" in items["many_answers"]["completion"]


def test_references_that_are_empty_or_cannot_be_read_are_named(plain):
    tasks = [{"task": "good", "reference": "1"}, {"task": "none"}, {"task": "null", "reference": None}, {"task": "blank", "reference": " \n"}, {"task": "list", "reference": []},
             {"task": "broken", "reference": "\\frac{1}{"}]
    got = probe(plain, [{"name": "format", "id": "style", "options": {"template": "boxed_once"}}, {"name": "math", "id": "correct"}], *tasks)
    assert [(one["task"], one["verifier"], one["code"]) for one in got["references"]] == [(task["task"], "correct", "reference_unreadable") for task in tasks[1:]]
    assert all(one["message"] for one in got["references"])
    for item in got["items"]:
        if item["task"] == "good":
            assert item["completion"] is None or item["reward"] is not None
        elif item["completion"] is not None:
            assert (item["reward"], item["paid"], item["failure"]["code"]) == (None, False, "reference_unreadable"), item
    assert got["failed"] == sum(item["failure"] is not None for item in got["items"])
    assert probe(plain, [{"name": "format", "options": {"template": "boxed_once"}}], *tasks)["references"] == []


def test_a_probe_that_cannot_be_made_is_null_with_a_note(plain):
    items = by_probe(probe(plain, [{"name": "countdown"}], {"task": "t", "reference": {"numbers": [1, 2], "target": 3}}), "t")
    for name in ("prompt_copy", "many_answers", "denied_answer"):
        assert (items[name]["completion"], items[name]["reward"], items[name]["paid"], items[name]["failure"]) == (None, None, False, None) and items[name]["note"]
    assert items["reference_echo"]["completion"] == '{"numbers":[1,2],"target":3}' and items["empty"]["reward"] == 0
    answered = by_probe(probe(plain, [{"name": "countdown"}], {"task": "t", "reference": {"numbers": [1, 2], "target": 3}, "answer": "1+2"}), "t")
    assert "\\boxed{1+2}" in answered["denied_answer"]["completion"]


@pytest.mark.parametrize("status, code, path, change", [
    (400, "missing_field", "verifiers", {"verifiers": None}), (400, "missing_field", "tasks", {"tasks": None}), (400, "invalid_field", "verifiers", {"verifiers": []}),
    (400, "invalid_field", "tasks", {"tasks": []}), (400, "invalid_field", "tasks", {"tasks": [{"task": "t"}] * 1025}), (400, "missing_field", "tasks[1].task", {"tasks": [{"task": "t"}, {}]}),
    (400, "unknown_field", "tasks[0].answers", {"tasks": [{"task": "t", "answers": 1}]}), (400, "invalid_field", "tasks[0].prompt", {"tasks": [{"task": "t", "prompt": 1}]}), (400, "invalid_field", "tasks[0].task", {"tasks": [{"task": "t" * 1025}]}),
    (400, "invalid_field", "verifiers[0].name", {"verifiers": [{"name": "meth"}]}), (422, "verifier_options", "verifiers[0].options.patern", {"verifiers": [{"name": "regex", "options": {"patern": "a"}}]}),
    (400, "unknown_field", "sweep", {"sweep": {}}), (413, "body_too_large", "tasks", {"tasks": [{"task": "t", "prompt": "x" * (1 << 20)}] * 12})])
def test_a_wrong_field_is_refused_with_its_path(plain, status, code, path, change):
    body = {"kind": "adversarial", "verifiers": [{"name": "math"}], "tasks": [SUM], **change}
    refused(plain, status, code, path, {name: value for name, value in body.items() if value is not None})


def test_hostile_tasks_get_a_reward_or_a_failure_for_each_probe(plain):
    tasks = [{"task": "nul", "prompt": "a\u0000b", "reference": "1\u00002", "answer": "}\\boxed{"}, {"task": "deep", "reference": {"a": [[[{}]]]}}, {"task": "large", "reference": "9" * 10000},
             {"task": "braces", "reference": "{" * 1000, "answer": "{" * 1000}]
    got = probe(plain, [{"name": "math"}, {"name": "exact", "heldout": True}], *tasks)
    assert len(got["items"]) == 32 and all(item["reward"] is None or item["failure"] is None for item in got["items"])
