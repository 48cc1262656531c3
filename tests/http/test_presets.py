"""Every preset computes its worked example of docs/presets.md, whose numbers come from formulas in fifty digits."""
import importlib.util
import json
import os
import re

import pytest

from harness import ROOT
from material import close

PAGE = os.path.join(ROOT, "docs", "presets.md")
TOOL = os.path.join(ROOT, "tests", "tools", "worked_examples.py")


def load_tool():
    spec = importlib.util.spec_from_file_location("worked_examples", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def numbers(cell):
    return [[float(word) for word in part.split()] for part in cell.split(" · ")]


def examples():
    """{preset: {"A", "dloss_dlogp", "loss"}} as a reader of the page sees them."""
    found = {}
    for part in read_page().split("\n## ")[1:]:
        rows = dict(re.findall(r"^\| (A|`dloss_dlogp`|`loss`) \| (.*) \|$", part, re.M))
        found[part[1:part.index("`", 1)]] = {name.strip("`"): numbers(cell) for name, cell in rows.items()}
    return found


EXAMPLES = examples()
REQUEST = json.loads(re.search(r"```json\n(.*?)```", read_page(), re.S)[1])


def test_the_page_has_every_preset_and_the_numbers_of_the_formulas(plain):
    presets = [preset["name"] for preset in plain.read("/v1/presets")["presets"]]
    assert sorted(presets) == sorted(EXAMPLES), "a preset without a worked example, or an example without a preset"
    assert load_tool().page() == read_page(), "run tests/tools/worked_examples.py --write docs/presets.md"


@pytest.mark.parametrize("preset", EXAMPLES)
def test_a_preset_computes_its_worked_example(plain, preset):
    want = EXAMPLES[preset]
    reply = plain.post("/v1/objective", {**REQUEST, "objective": {"preset": preset}})
    assert reply.status == 200, reply
    got = reply.json
    assert got["objective"]["preset"] == preset and got["overrides"] == []
    assert close(got["loss"], want["loss"][0][0], 1e-11), (got["loss"], want["loss"])
    for row, gradient, advantage, asked in zip(got["sequences"], want["dloss_dlogp"], want["A"], REQUEST["sequences"], strict=True):
        assert close(row["dloss_dlogp"], gradient, 1e-11, 1e-16), (row, gradient)
        own = row["advantage"] if isinstance(row["advantage"], list) else [row["advantage"]] * len(asked["mask"])
        own = [value for value, on in zip(own, asked["mask"]) if on]
        if not row["kept"] and got["objective"]["filter"]["rule"] != "none":
            own = [0] * len(own)  # the page shows 0 for what the filter dropped
        assert close(own, advantage * len(own) if len(advantage) == 1 else advantage, 1e-11, 1e-16), (row, advantage)
