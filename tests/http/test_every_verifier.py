"""Rules for each row of the verifiers' table, new rows included: GET /v1/verifiers, a page, and `rolloutd verify`."""
import json
import os
import re
import subprocess

import pytest

from harness import BINARY
from test_commands import judge
from test_fingerprints import fingerprints
from test_verifier_pages import ELSEWHERE, EXAMPLES, FOLDER, LEAST, read_page

TABLE = json.loads(subprocess.run([BINARY, "--print-tables"], check=True, capture_output=True).stdout)["verifiers"]["verifiers"]
NAMES = [row["name"] for row in TABLE]
ROWS = {row["name"]: row for row in TABLE}
LINES = 4  # of a verifier, through the command


def is_plain(line):
    """Can be said on a command line: those beside it have neither ids nor references of their own."""
    return not any({"id", "reference", "heldout"} & set(entry) for entry in line.get("beside", []))


def lines_of(name):
    """Verdicts of different reasons, from the fingerprints."""
    found = {}
    for line in fingerprints.read():
        if line["verifier"] == name and is_plain(line) and "\0" not in line["completion"] and len(line["completion"]) < 10000:
            found.setdefault(line["reason"], line)
    return list(found.values())[:LINES]


def words_of(line):
    for entry in [*line.get("beside", []), {"name": line["verifier"], "options": line["options"]}]:
        yield from ("--verifier", entry["name"], "--options", json.dumps(entry.get("options", {})))
    if "reference" in line:
        yield from ("--reference-json", json.dumps(line["reference"]))
    if "completion_tokens" in line:
        yield from ("--completion-tokens", line["completion_tokens"])
    yield from ("--completion", "-")


def test_the_service_lists_the_table(plain):
    assert plain.read("/v1/verifiers")["verifiers"] == TABLE


@pytest.mark.parametrize("name", NAMES)
def test_an_option_says_its_type_its_default_and_what_it_is_for(name):
    for option in ROWS[name]["options"].values():
        assert option["help"] and option["type"] and not (option["required"] and option["default"] is not None)
        assert option["default"] in [None, *option.get("choices", [option["default"]])] and len(option.get("choices", "ab")) > 1


@pytest.mark.parametrize("name", [name for name in NAMES if lines_of(name)])
def test_the_command_gives_the_verdict_of_the_service(name):
    for line in lines_of(name):
        found, code = judge(*words_of(line), text=line["completion"])
        verdict = found[-1] if isinstance(found, list) else found
        assert (verdict["name"], verdict["verdict"], verdict["reason"]) == (name, line["verdict"], line["reason"]), (line, verdict)
        assert verdict["score"] == line["score"] and code == (3 if line["score"] is None else code), line


def has_page(name):
    """A page that names every option, with ten examples that are run, here or in a file that names the page."""
    if not os.path.exists(os.path.join(FOLDER, name + ".md")):
        return False
    if not all(re.search(rf"[`\"]{option}[`\"]", read_page(name)) for option in ROWS[name]["options"]):
        return False
    return name in ELSEWHERE or sum(page == name for page, *_ in EXAMPLES) >= LEAST


@pytest.mark.parametrize("name", NAMES)
def test_a_verifier_has_a_page_that_names_its_options_with_ten_examples_that_are_run(name):
    assert has_page(name)
