"""deploy/quickstart as a new user would run it, and the lines it prints as they stand."""
import os
import re
import signal
import subprocess
import time

import pytest

from toy_process import ROOT

BINARY = os.path.join(ROOT, "build", "rolloutd")
pytestmark = pytest.mark.skipif(
    not os.access(BINARY, os.X_OK) or os.path.abspath(os.environ.get("ROLLOUTD_BINARY", BINARY)) != BINARY,
    reason="belongs to build/rolloutd")
CURL = re.compile(r"^  (curl .*)$", re.MULTILINE)


def quickstart(*arguments):
    ended = subprocess.run([os.path.join(ROOT, "deploy", "quickstart"), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def lines_work(output, count):
    lines = CURL.findall(output)
    assert len(lines) == count
    for line in lines:
        answer = subprocess.run(["bash", "-c", f"{line} -f"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert answer.returncode == 0 and answer.stdout.startswith("{"), (line, answer)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids):
    end = time.monotonic() + 60
    while any(map(is_running, pids)):
        assert time.monotonic() < end, pids
        time.sleep(0.05)


def test_the_command_and_the_lines_it_prints_work_on_the_database_it_left():
    output = quickstart("--revisions", "2")
    start = re.search(r"^  (build/rolloutd .*)$", output, re.MULTILINE).group(1)
    service = subprocess.Popen(["bash", "-c", f"exec {start}"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = "http://" + re.search(r"--listen (\S+)", start).group(1)
        subprocess.run(["curl", "-s", "--retry", "50", "--retry-connrefused", "--retry-delay", "0", "-f", url + "/healthz"], check=True, timeout=60, capture_output=True)
        lines_work(output, 10)
    finally:
        service.terminate()
        assert service.wait(60) == 0


def test_with_keep_the_lines_work_as_they_are_printed_until_the_printed_processes_are_stopped():
    output = quickstart("--revisions", "1", "--keep")
    pids = [int(pid) for pid in re.search(r"^Stop them with: kill (.*)$", output, re.MULTILINE).group(1).split()]
    try:
        assert len(pids) == 2 and all(map(is_running, pids))
        lines_work(output, 9)  # nothing to compare one revision with
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
    gone(pids)


def test_an_interrupted_quickstart_leaves_no_process_behind():
    command = [os.path.join(ROOT, "deploy", "quickstart"), "--revisions", "100000"]  # it will not have ended by itself
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as script:
        for line in script.stdout:
            if line.startswith("revision"):
                break
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(script.pid)], capture_output=True, text=True, check=True).stdout.split()
        pids = [int(pid) for pid in children if is_running(int(pid))]
        assert len(pids) >= 3  # engine, service, trainer
        script.send_signal(signal.SIGTERM)
        script.stdout.read()
        assert script.wait(60) == 143
    gone(pids)


@pytest.mark.parametrize("arguments", [["--revisions", "0"], ["--revisions"], ["--fast"]])
def test_an_option_that_makes_no_sense_is_refused_before_anything_is_done(arguments):
    ended = subprocess.run([os.path.join(ROOT, "deploy", "quickstart"), *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2 and ended.stderr.startswith("quickstart: ")
    assert ended.stdout == ""
