"""docs/trainers.md is true where it says how seeds are made: its one-liners are read from the page and run."""
import os
import re
import subprocess
import sys

from harness import ROOT
from material import make_batch, make_group, rollouts

PAGE = os.path.join(ROOT, "docs", "trainers.md")
SHELLS = [shell for shell in ("/bin/sh", "/bin/bash", "/bin/dash") if os.path.exists(shell)]


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read().split("\n## Seeds\n")[1]


def block(language):
    return re.search(rf"```{language}\n(.*?)```", page(), re.S)[1]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def by_python(batch_seed, revision, task, draw, index):
    code = block("python")
    call = re.search(r"seed\(7.*?\)", code)[0]
    return run(sys.executable, "-c", code.replace(call, f"seed({batch_seed}, {revision}, {task!r}, {draw}, {index}, 0)"))


def by_shell(shell, batch_seed, revision, task, draw, index):
    return run(shell, "-c", block("sh").replace("7/1/gsm8k-17/0/3/0", f"{batch_seed}/{revision}/{task}/{draw}/{index}/0"))


def test_the_lines_print_what_the_page_says():
    said = re.search(r"Both print `(\d+)`", page())[1]
    assert run(sys.executable, "-c", block("python")) == said
    assert {run(shell, "-c", block("sh")) for shell in SHELLS} == {said}


def test_the_lines_print_the_seeds_of_a_batch(service):
    """Those above 2^62 too, where a shell would saturate."""
    body = make_batch(*(make_group(f"t{i}", draw=i) for i in range(4)), policy_revision=3, seed=2**63 - 1)
    seen = []
    for group in service.batch(body)["groups"]:
        for rollout in group["rollouts"]:
            parts = (2**63 - 1, 3, group["task"], group["draw"], rollout["sample_index"])
            assert by_python(*parts) == str(rollout["seed"])
            assert {by_shell(shell, *parts) for shell in SHELLS} == {str(rollout["seed"])}
            seen.append(rollout["seed"])
    assert max(seen) > 2**62 > min(seen)


def test_the_line_for_old_readers_of_json_takes_seeds_whole(service, tmp_path):
    line = re.search(r"`(grep -o .*?)`", page())[1]
    batch = service.batch(make_batch())
    (tmp_path / "batch.json").write_bytes(service.get(f"/v1/batches/{batch['id']}").body)
    found = run("/bin/sh", "-c", f"{line} < {tmp_path}/batch.json").splitlines()
    assert {f'"seed":{rollout["seed"]}' for rollout in rollouts(batch)} < set(found)
