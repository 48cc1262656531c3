"""docs/verifiers/math.md is true: its examples and reasons are read from the page and run."""
import json
import os
import re

import pytest

from harness import ROOT

PAGE = os.path.join(ROOT, "docs", "verifiers", "math.md")


def read_page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def rows(heading):
    """The cells of the tables below a heading."""
    part = read_page().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def code(cell):
    return re.fullmatch("`(.*)`", cell)[1]


def examples():
    found = [(code(reference), code(answer), {}, paid) for reference, answer, paid, _ in rows("Examples") if reference.startswith("`")]
    return found + [(code(row[0]), code(row[2]), json.loads(code(row[1])), row[3]) for row in rows("Options") if len(row) == 4 and row[0].startswith("`")]


EXAMPLES = examples()


def judge(service, completion, reference, **options):
    reply = service.post("/v1/verify", {"verifiers": [{"name": "math", "options": options}], "items": [{"id": "1", "completion": completion, "reference": reference}]})
    assert reply.status == 200, reply
    return reply.json["items"][0]["verdicts"][0]


def test_the_page_has_examples_of_both_kinds():
    assert len(EXAMPLES) >= 60 and {paid for *_, paid in EXAMPLES} == {"yes", "no"}


@pytest.mark.parametrize("reference, answer, options, paid", EXAMPLES)
def test_an_example_of_the_page(plain, reference, answer, options, paid):
    verdict = judge(plain, f"Therefore $\\boxed{{{answer}}}$.", reference, **options)
    assert verdict["score"] == (1 if paid == "yes" else 0), verdict


def test_the_request_of_the_page_is_paid(plain):
    request = json.loads(re.search(r"```json\n(.*?)```", read_page(), re.S)[1])
    assert plain.post("/v1/verify", request).json["items"][0]["reward"] == 1


def test_the_page_names_every_option_and_its_default(plain):
    math = next(one for one in plain.read("/v1/verifiers")["verifiers"] if one["name"] == "math")
    named = {name.strip(" `"): row[1] for row in rows("Options") if len(row) == 3 for name in row[0].split(",")}
    assert set(named) - {"option", "---"} == set(math["options"])
    for name, option in math["options"].items():
        assert json.loads(named[name].strip("`")) == option["default"], option


@pytest.mark.parametrize("reason, completion, reference, options", [
    ("equal", "\\boxed{5}", "5", {}), ("different", "\\boxed{6}", "5", {}), ("no_answer", "5", "5", {}), ("no_answer", "\\boxed{5", "5", {}),
    ("unparsed_answer", "\\boxed{5\\foo}", "5", {}), ("wrong_form", "\\boxed{2+3}", "5", {"form": "evaluated"}), ("undecided", "\\boxed{5^{5^{5^{5^5}}}}", "5", {}),
    ("too_long", f"\\boxed{{{'5' * 9000}}}", "5", {}), ("several_answers", "\\boxed{5}\\boxed{6}", "6", {"multiple": "refuse"}),
    ("too_many_boxes", "\\boxed{1}\\boxed{2}\\boxed{5}", "5", {"max_boxes": 2})])
def test_each_reason_of_the_page(plain, reason, completion, reference, options):
    assert any(f"`{reason}`" in row[0] for row in rows("Members of a verdict"))
    assert judge(plain, completion, reference, **options)["reason"] == reason


@pytest.mark.parametrize("reference", ["\\frac{1}{", "1/0", "", "\\foo"])
def test_a_reference_that_cannot_be_used_is_no_verdict(plain, reference):
    verdict = judge(plain, "\\boxed{5}", reference)
    assert verdict["score"] is None and verdict["failure"]["code"] == "reference_unreadable"
