"""Habits that a newcomer relies on: scripts run as the pages call them, lists keep what was written beside them."""
import glob
import importlib.util
import os
import re
import subprocess

import pytest

from harness import ROOT

PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "tests/README.md", *sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))]


def files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("this is no clone")
    return [name for name in listed.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, name))]


def has_shebang(name):
    with open(os.path.join(ROOT, name), "rb") as file:
        return file.read(2) == b"#!"


def runs(name):
    return os.access(os.path.join(ROOT, name), os.X_OK)


def test_a_file_can_be_run_exactly_if_it_has_a_shebang():
    wrong = [name for name in files() if has_shebang(name) != runs(name)]
    assert not wrong, f"chmod +x, or a first line #!/usr/bin/env …: {wrong}"


def called(text):
    """Paths that stand where a command does: at the beginning of a line of a block, or of something in backticks."""
    blocks = "\n".join(re.findall(r"```\w*\n(.*?)```", text, re.S))
    starts = [line.strip() for line in blocks.splitlines()] + re.findall(r"`([^`\n]+)`", text)
    for start in starts:
        words = [word for word in re.split(r"\s*&&\s*|\s+", start) if "=" not in word]
        if words and (len(words) > 1 or "." not in os.path.basename(words[0])):
            yield words[0]


@pytest.mark.parametrize("page", PAGES)
def test_every_script_that_a_page_calls_can_be_run(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        names = {name for name in called(file.read()) if re.match(r"(tests|deploy|server|schema|client|verifiers)/", name) and os.path.isfile(os.path.join(ROOT, name))}
    wrong = sorted(name for name in names if not (runs(name) and has_shebang(name)))
    assert not wrong, f"{page} calls what cannot be run: {wrong}"


def test_calls_are_found_in_the_pages():
    with open(os.path.join(ROOT, "docs", "benchmarks.md"), encoding="utf-8") as file:
        assert "tests/bench/sampling.py" in set(called(file.read()))


def test_an_update_of_the_lists_keeps_the_reasons(tmp_path):
    spec = importlib.util.spec_from_file_location("cases_run", os.path.join(ROOT, "tests", "cases_run.py"))
    cases_run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases_run)
    path = tmp_path / "failing.txt"
    path.write_text("# head\nmath own-2 # why it fails\nmath own-1\nformat own-9   # another why\n", encoding="utf-8")
    cases_run.write_list(path, {"math": {"own-2", "own-3"}, "format": {"own-9"}})
    assert path.read_text(encoding="utf-8") == "# head\nformat own-9   # another why\nmath own-2 # why it fails\nmath own-3\n"
    assert cases_run.read_list(path) == {"math": {"own-2", "own-3"}, "format": {"own-9"}}


def test_the_license_is_the_one_that_the_build_names():
    with open(os.path.join(ROOT, "LICENSE"), encoding="utf-8") as text, open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as build:
        assert "Apache License" in text.read()[:200] and "license: 'Apache-2.0'" in build.read()
