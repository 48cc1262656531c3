"""Pages of curl lines (docs/audits.md …): each line is run unchanged, and its output must be that of the page."""
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import ROOT
from material import close

PAGES = ("audits", "experiments", "history", "labels", "manifest", "report", "reverify", "stats", "tasksets")
BLOCK = re.compile(r"^```sh\n(curl .*?)\n```\n(?:\n```\n(.*?)\n```$)?", re.M | re.S)


def blocks(page):
    with open(os.path.join(ROOT, "docs", f"{page}.md"), encoding="utf-8") as file:
        return BLOCK.findall(file.read())


def printed(service, line):
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], env={**os.environ, "U": service.url}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (line, done)
    return [json.loads(row) for row in done.stdout.splitlines()]


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="there is no jq or no curl")
@pytest.mark.parametrize("page", PAGES)
def test_each_line_prints_the_output_on_the_page(start, page):
    service = start()
    training(service)
    found = blocks(page)
    assert len(found) >= 3
    for line, shown in found:
        got = printed(service, line)
        assert got, line
        if shown:
            want = [json.loads(row) for row in shown.splitlines()]
            assert len(got) == len(want) and all(same(*pair) for pair in zip(got, want)), (line, got)


def same(got, want):
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(same(*pair) for pair in zip(got, want))
    return close(got, want, absolute=1e-14) if isinstance(want, (int, float)) and not isinstance(want, bool) else got == want


def training(service):
    """A run as deploy/quickstart leaves one: math and format, named `demo`."""
    reply = service.post("/v1/score", {"run": "demo", "policy_revision": 0, "verifiers": [{"name": "math", "weight": 0.8}, {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}}],
                                       "groups": [{"task": f"{number}+4=", "reference": str(number + 4), "completions": [{"text": text} for text in ("\\boxed{7}", "7", "\\boxed{8}", "no")]} for number in (3, 4)]})
    assert reply.status == 200, reply


def test_the_line_on_the_record_says_what_the_record_has(plain):
    training(plain)
    line, = [line for line, _ in blocks("audits") if '"run": "demo"' in line]
    rows = printed(plain, line)
    assert [row[0] for row in rows] == [0.2, 0, 0.2, 3] and rows[0] == rows[2] and all(row[3] == 0.25 for row in rows)
    assert rows[3][4] > rows[1][4] == 0
