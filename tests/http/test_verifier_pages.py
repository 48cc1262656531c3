"""docs/verifiers/*.md is true: each table with the columns `completion` and `score` is a list of examples, and each of them is judged.

The page's name is the verifier's. Above the table there may be a block of JSON with `verifiers` and `missing`, the last one counts; without it the
verifier stands alone. Columns: `options` (JSON, over those of the block), `reference`, `completion`, `prompt` (a text, or JSON where the cell
begins as such: with a quote, a bracket or a brace), `tokens`, `score` (– is unscored), `reason`, `reward`; an id in code: the score of that
verifier. Any other column is ignored. A page with examples of another form has a test of its own, which names it: "NAME.md".
"""
import glob
import json
import os
import re

import pytest

from harness import ROOT

FOLDER = os.path.join(ROOT, "docs", "verifiers")
LEAST = 10  # of a page


def read_page(name):
    with open(os.path.join(FOLDER, name + ".md"), encoding="utf-8") as file:
        return file.read()


def cells(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def value_of(cell):
    """Of a cell in code: JSON where it begins as such, else the text as it stands. None: it is empty."""
    code = re.fullmatch(r"(`+) ?(.*?) ?\1", cell, re.S)
    if not code:
        return None
    return json.loads(code[2]) if code[2][:1] in tuple('"[{') else code[2]


def number_of(cell):
    return None if cell in ("–", "") else float(cell.strip("`").replace("−", "-").replace(",", ""))


def request_above(name, text):
    blocks = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", text, re.M | re.S) if '"verifiers"' in block]
    found = blocks[-1] if blocks else {"verifiers": [{"name": name}]}
    return {key: found[key] for key in ("verifiers", "missing") if key in found}


def tables(page):
    """(what stands above, names of the columns, rows of cells)"""
    for found in re.finditer(r"^(\|.*\|)\n\|[-| :]+\|\n((?:\|.*\|\n?)+)", page, re.M):
        yield page[:found.start()], cells(found[1]), [cells(line) for line in found[2].splitlines()]


def examples_of(name):
    for above, columns, rows in tables(read_page(name)):
        if "completion" not in columns or not {"score", "reward"} & set(columns):
            continue
        for row in rows:
            assert len(row) == len(columns), row
            yield request_above(name, above), dict(zip(columns, row))


def asked(name, request, row):
    """The request of one example, and the id of the page's verifier."""
    made = json.loads(json.dumps(request))
    own = next((entry for entry in made["verifiers"] if entry["name"] == name), made["verifiers"][0])
    options = value_of(row.get("options", ""))
    if options:
        own["options"] = {**own.get("options", {}), **options}
    fields = {key: value_of(row[key]) for key in ("completion", "reference", "prompt") if key in row}
    item = {"id": "1", **{key: value for key, value in fields.items() if value is not None}}
    if row.get("tokens"):
        item["completion_tokens"] = int(row["tokens"])
    return {**made, "items": [item]}, own.get("id", name)


def near(cell):
    wanted = number_of(cell)
    return None if wanted is None else pytest.approx(wanted, abs=1e-12)


def named_by_others():
    """The pages that another test names."""
    found = set()
    for path in glob.glob(os.path.join(ROOT, "tests", "http", "test_*.py")):
        with open(path, encoding="utf-8") as file:
            found.update(re.findall(r'"verifiers", "(\w+)\.md"', file.read()))
    return found


ELSEWHERE = named_by_others()
PAGES = sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".md") and name != "README.md")
EXAMPLES = [(name, request, row) for name in PAGES if name not in ELSEWHERE for request, row in examples_of(name)]


@pytest.mark.parametrize("name, request_made, row", EXAMPLES, ids=[f"{name}-{index}" for index, (name, *_) in enumerate(EXAMPLES)])
def test_an_example_of_a_page(plain, name, request_made, row):
    body, identifier = asked(name, request_made, row)
    reply = plain.post("/v1/verify", body)
    assert reply.status == 200, reply
    found, = reply.json["items"]
    verdicts = {verdict["id"]: verdict for verdict in found["verdicts"]}
    if any(verdict["reason"] == "sandbox_unavailable" for verdict in verdicts.values()):
        pytest.skip("this machine has no sandbox: rolloutd sandbox-check says why")
    if "score" in row:
        assert verdicts[identifier]["score"] == near(row["score"]), (row, verdicts)
        assert value_of(row.get("reason", "")) in (None, verdicts[identifier]["reason"]), (row, verdicts)
    if "reward" in row:
        assert found["reward"] == near(row["reward"]), (row, found)
    for column, cell in row.items():
        if value_of(column) in verdicts:
            assert verdicts[value_of(column)]["score"] == near(cell), (row, verdicts)
