"""docs/verifiers/ifeval.md is true: its examples and its list of instructions are read from the page and run."""
import json
import os
import re

import pytest

from harness import ROOT

PAGE = os.path.join(ROOT, "docs", "verifiers", "ifeval.md")
SETS = {"IFEval": 25, "IF-TRAIN": 29, "IFBench": 58}


def read_page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def rows(heading):
    part = read_page().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def code(cell):
    return re.fullmatch("`(.*)`", cell)[1]


def reference_of(instruction, kwargs):
    return {"instruction_id_list": [instruction], "kwargs": [kwargs]}


def judge(service, reference, completion, options=None, **item):
    items = [{"id": "1", "completion": completion, "reference": reference, **item}]
    reply = service.post("/v1/verify", {"verifiers": [{"name": "ifeval", "options": options or {}}], "items": items})
    assert reply.status == 200, reply
    return reply.json["items"][0]["verdicts"][0]


def say(verdict):
    return verdict["failure"]["code"] if verdict["failure"] else {1: "yes", 0: "no"}[verdict["score"]]


@pytest.mark.parametrize("instruction, kwargs, text, followed", rows("Examples"))
def test_an_example_of_the_page(plain, instruction, kwargs, text, followed):
    verdict = judge(plain, reference_of(code(instruction), json.loads(code(kwargs))), json.loads(code(text)))
    assert say(verdict) == followed, verdict


def test_the_page_has_ten_examples_of_every_kind():
    assert len(rows("Examples")) >= 10 and {row[3] for row in rows("Examples")} == {"yes", "no", "unsupported"}


def test_the_request_of_the_page_is_paid_in_full(plain):
    request = json.loads(re.search(r"```json\n(.*?)```", read_page(), re.S)[1])
    item = plain.post("/v1/verify", request).json["items"][0]
    assert item["reward"] == pytest.approx(2 / 3)
    assert [one["followed"] for one in item["verdicts"][0]["detail"]["instructions"]] == [True, True, False]


@pytest.mark.parametrize("name", SETS)
def test_the_page_lists_the_instructions_of_a_set(plain, name):
    listed = [code(row[0]) for row in rows(name)]
    assert len(listed) == len(set(listed)) == SETS[name]
    for instruction in listed:
        failure = judge(plain, reference_of(instruction, {}), "x")["failure"]
        assert not failure or "is no instruction" not in failure["message"], instruction


def test_the_page_names_every_option_and_its_default(plain):
    options = next(one for one in plain.read("/v1/verifiers")["verifiers"] if one["name"] == "ifeval")["options"]
    assert {code(row[0]): json.loads(code(row[1])) for row in rows("Options")} == {name: option["default"] for name, option in options.items()}


def test_the_detail_names_each_instruction(plain):
    reference = {"instruction_id_list": ["punctuation:no_comma", "startend:quotation", "words:start_verb"], "kwargs": [{}, {}, {}]}
    verdict = judge(plain, reference, '"Go, now"')
    assert verdict["score"] == 0 and verdict["reason"] == "not_followed"
    assert verdict["detail"]["instructions"] == [{"id": "punctuation:no_comma", "followed": False}, {"id": "startend:quotation", "followed": True},
                                                 {"id": "words:start_verb", "followed": None}]


def test_a_failure_of_an_undecided_instruction_names_it(plain):
    failure = judge(plain, reference_of("words:start_verb", {}), "Go now")["failure"]
    assert failure["code"] == "unsupported" and "words:start_verb" in failure["message"]


@pytest.mark.parametrize("instruction, kwargs, named", [
    ("punctuation:no_coma", {}, "punctuation:no_comma"), ("length_constraints:number_words", {"num_words": 5}, "relation"),
    ("length_constraints:number_words", {"num_words": 5.5, "relation": "at least"}, "num_words"), ("punctuation:no_comma", {"N": 1}, "N"),
    ("language:response_language", {"language": "xx"}, "language"), ("copy:copy", {}, "prompt_to_repeat")])
def test_a_broken_reference_is_named(plain, instruction, kwargs, named):
    failure = judge(plain, reference_of(instruction, kwargs), "Hi")["failure"]
    assert failure["code"] == "reference_unreadable" and named in failure["message"], failure


def test_the_prompt_is_repeated_where_no_other_is_named(plain):
    assert judge(plain, reference_of("copy:copy", {}), "say HI.", prompt="Say hi.")["score"] == 1
    assert judge(plain, reference_of("copy:copy", {"prompt_to_repeat": "Say ho."}), "say hi.", prompt="Say hi.")["score"] == 0
