"""The pages: every decision is listed and has its four headings, every relative link leads somewhere, every path of the program and every
test that a page names exists."""
import re
from pathlib import Path

import pytest

from engines import ENGINE_KINDS

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"
DECISION_PAGES = sorted(page for page in DECISIONS.glob("*.md") if page.name != "README.md")
LINKED_PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "tests" / "README.md", ROOT / "tests" / "faults.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM_PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FAULTS = ROOT / "tests" / "faults.md"
FAULT_KINDS = [f"F{number:02}" for number in range(1, 27)]
HEADINGS = ["Context", "Decision", "Evidence", "Reasons to change it"]


def prose(page):
    """Without code: brackets there are no links, and a # is no heading."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def links(page):
    inline = re.findall(r"\]\(\s*<?([^)>\s]+)", re.sub(r"\\\]", "", prose(page)))
    return inline + re.findall(r"^ {0,3}\[[^\]]+\]:\s*(\S+)", prose(page), flags=re.M)


def anchors(page):
    """The names of a page's headings, as GitHub makes them (repeated headings aside)."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    titles = re.findall(r"^#+ +(.*?)\s*$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_nowhere(page, link):
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", link):  # a URL: not ours to answer for
        return False
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return True
    return bool(anchor) and target.suffix == ".md" and anchor not in anchors(target)


def test_the_list_of_decisions_names_each_page_once():
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", (DECISIONS / "README.md").read_text(encoding="utf-8"), flags=re.M)
    assert DECISION_PAGES and sorted(listed) == [page.name for page in DECISION_PAGES]


def test_the_list_of_decisions_has_each_page_s_own_title():
    titles = dict(re.findall(r"^- \[([^\]]+)\]\(([^)]+)\)", (DECISIONS / "README.md").read_text(encoding="utf-8"), flags=re.M))
    assert titles == {page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# "): page.name for page in DECISION_PAGES}


@pytest.mark.parametrize("page", DECISION_PAGES, ids=lambda page: page.stem)
def test_a_decision_has_its_four_headings_in_order_and_something_under_each(page):
    title, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.M)
    assert title.startswith("# ")
    assert [section.partition("\n")[0] for section in sections] == HEADINGS
    assert all(section.partition("\n")[2].strip() for section in sections)


@pytest.mark.parametrize("page", LINKED_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page):
    assert [link for link in links(page) if leads_nowhere(page, link)] == []


# -- paths of the program ------------------------------------------------------------------------------------------------------------

def program_paths(page):
    """Each `server/…`, `client/…` or `verifiers/…`, in prose or in a block; NAME and KIND stand for a name of the reader's own."""
    found = re.findall(r"(?<![\w./<-])(?:\.\./)*((?:server|client|verifiers)/[\w./*-]*)", page.read_text(encoding="utf-8"))
    return sorted({re.sub(r"NAME|KIND", "*", path.rstrip(".")) for path in found})


@pytest.mark.parametrize("page", PROGRAM_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_of_the_program_that_a_page_names_exists(page):
    assert [path for path in program_paths(page) if not any(ROOT.glob(path))] == []


def test_paths_of_the_program_are_found_in_prose_and_in_blocks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Read `server/main.c`, client/gone.c.\n```\nverifiers/\n```\n`tests/unit/server/x.c` `verifiers/graders/NAME.c`\n", encoding="utf-8")
    assert program_paths(page) == ["client/gone.c", "server/main.c", "verifiers/", "verifiers/graders/*.c"]


# -- engines -------------------------------------------------------------------------------------------------------------------------

def tables_that_begin_with(heading):
    """The first column of each table of docs/engines.md under that heading."""
    blocks = re.split(r"\n\n+", (ROOT / "docs" / "engines.md").read_text(encoding="utf-8"))
    return [re.findall(r"\n\| `(\w+)` \|", block) for block in blocks if block.startswith(f"| {heading} |")]


def test_the_page_of_engines_has_a_row_for_each_kind():
    [kinds] = tables_that_begin_with("`kind`")
    assert kinds == ENGINE_KINDS


def test_the_page_of_engines_has_a_row_for_each_state():
    words = (ROOT / "server" / "base" / "words.h").read_text(encoding="utf-8").partition("#define ENGINE_STATE_WORDS(WORD)")[2]
    states = re.findall(r'WORD\(\w+, "(\w+)"\)', words.partition("\n\n")[0])
    tables = tables_that_begin_with("state")
    assert len(tables) == 2
    for table in tables:
        assert sorted(table) == sorted(states)


# -- kinds of faults -----------------------------------------------------------------------------------------------------------------

def fault_rows():
    rows = [line.strip("| ").split(" | ") for line in FAULTS.read_text(encoding="utf-8").splitlines() if re.match(r"\| F\d", line)]
    return [(kind, re.findall(r"`([^`]+::[^`]+)`", tests)) for kind, _, _, tests in rows]


def is_a_test(file, name):
    """A C test is defined and listed: the name stands there twice."""
    path = ROOT / "tests" / file
    if not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return bool(re.search(rf"^def {re.escape(name)}\(", text, flags=re.M))
    return len(re.findall(rf"\b{re.escape(name)}\b", text)) >= 2 and f"static void {name}(" in text


def test_each_kind_of_fault_has_one_row():
    assert [kind for kind, _ in fault_rows()] == FAULT_KINDS


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_each_test_of_a_kind_exists(kind):
    tests = dict(fault_rows())[kind]
    assert len(tests) >= 3
    assert [test for test in tests if not is_a_test(*test.split("::"))] == []
