"""A program that a real language model writes, judged by `code`: whatever it scores, the verdict is the right one."""
import re
import shutil
import subprocess

import pytest

from material import make_batch, make_group, rollouts, sampling

pytestmark = pytest.mark.model
TESTS = [("1\n", "2"), ("41\n", "42"), ("-1\n", "0")]
QUESTIONS = ["Write a Python program that reads a number n from standard input and prints n + 1.",
             "Write Python code: n = int(input()), then print(n + 1)."]
JAIL = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc",
        "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp", "/usr/bin/python3", "-I", "-S", "-c"]


def by_hand(text):
    """Reward of a completion: its last python block under bubblewrap, each test by itself."""
    blocks = re.findall(r"^```(?:python|py|python3)[ \t]*\n(.*?)^```[ \t]*$", text, re.M | re.S)
    if not blocks:
        return None
    for given, wanted in TESTS:
        try:
            done = subprocess.run([*JAIL, blocks[-1]], input=given, capture_output=True, text=True, timeout=20)
        except subprocess.TimeoutExpired:
            return 0
        if done.returncode or done.stdout.strip() != wanted:
            return 0
    return 1


def test_the_verdict_on_a_real_model_s_program_is_what_running_it_by_hand_gives(real_engine, start):
    if not shutil.which("bwrap") or subprocess.run([*JAIL, "print(1)"], capture_output=True).returncode:
        pytest.skip("bubblewrap cannot run anything here")
    service = start(real_engine, settings={"verify_timeout": "4m"})
    groups = [make_group(f"p{index}", f"<|im_start|>user\n{question} Answer with one ```python block.<|im_end|>\n<|im_start|>assistant\n",
                         {"tests": [{"stdin": given, "stdout": wanted + "\n"} for given, wanted in TESTS]}) for index, question in enumerate(QUESTIONS)]
    batch = service.batch(make_batch(*groups, sampling=sampling(4, max_tokens=160, temperature=0.5), deadline="4m",
                                     verifiers=[{"name": "code", "options": {"language": "python", "limits": {"wall_ms": 20000, "cpu_ms": 10000}}}]))
    seen = 0
    for rollout in rollouts(batch):
        if rollout["state"] != "scored":
            assert rollout["failure"]["code"] in ("invalid_reply", "sandbox_unavailable"), rollout["failure"]
            continue
        seen += 1
        verdict, = rollout["verdicts"]
        reward = by_hand(rollout["text"])
        if reward is None:  # no closed block of the language: an open one may be run, too, but is not worth more than it does
            assert verdict["score"] == 0 or verdict["reason"] == "pass"
        else:
            assert (verdict["score"], verdict["reason"] == "pass") == (reward, reward == 1), (rollout["text"], verdict)
    if any(rollout["failure"] and rollout["failure"]["code"] == "sandbox_unavailable" for rollout in rollouts(batch)):
        pytest.skip("this machine has no sandbox")
    assert seen
