"""No sandbox at all, in the place of the service: what the checks must see is seen here. Harmless programs only."""
import os
import signal
import subprocess
import sys
import tempfile

from caselib.outside import descendants, marked_files, sysv
from caselib.service import Reply

COMMANDS = {"python": ["/usr/bin/python3", "-I", "solution.py"], "sh": ["/bin/sh", "solution.sh"], "c": ["./solution"]}
SUFFIX = {"python": "py", "sh": "sh", "c": "c"}


class Bare:
    """As caselib's Service, as far as a World needs one."""

    def __init__(self, env):
        self.env, self.pid = {**os.environ, **env}, os.getpid()
        self.folder = tempfile.mkdtemp(prefix="cases-")
        self.database = os.path.join(self.folder, "rolloutd.db")
        with open(self.database, "w", encoding="utf-8") as file:
            file.write("a database")

    def start(self):
        pass

    def stop(self):
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def alive(self):
        return True

    def get(self, _path, **_options):
        return Reply(200)


def clean(before, objects):
    """Removes the remains of a control: processes of ours, shared memory, marked files."""
    for pid in descendants(os.getpid()):
        if pid not in before:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    for line in sysv() - objects:
        _, _, kind, _, number = line.split()
        subprocess.run(["ipcrm", {"shm": "-m", "msg": "-q", "sem": "-s"}[kind], number], check=True)
    for line in marked_files():
        subprocess.run(["rm", "-rf", line.removeprefix("file ")], check=False)


def run_program(service, language, source, tests, folder):
    """The first test that does not give what it should, as the service would say it."""
    name = "solution." + SUFFIX[language]
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(source)
    if language == "c":
        made = subprocess.run(["gcc", "-w", "-O1", "-pthread", "-o", "solution", name], cwd=folder, capture_output=True, text=True)
        if made.returncode:
            return {"reason": "compile_error", "detail": {"stderr": made.stderr}}
    for test in tests:
        with tempfile.TemporaryFile() as out:
            done = subprocess.run(COMMANDS[language], cwd=folder, input=test["stdin"].encode(), stdout=out, stderr=subprocess.DEVNULL, env=service.env, timeout=20)
            out.seek(0)
            got = out.read().decode("utf-8", "replace")
        if done.returncode or got != test["stdout"]:
            return {"reason": "runtime_error" if done.returncode else "wrong_answer", "detail": {"first_failed": {"stdout": got}}}
    return {"reason": "pass", "detail": {}}


def answer(service, made):
    """As caselib.sandbox.ask."""
    language = made["verifiers"][0]["options"]["language"]
    source = made["completion"].split("\n", 1)[1].rsplit("```", 1)[0]
    with tempfile.TemporaryDirectory(prefix="bare-") as folder:
        verdict = run_program(service, language, source, made["reference"]["tests"], folder)
    right = verdict["reason"] == "pass"
    return {"verdict": "correct" if right else "incorrect", "score": 1 if right else 0, **verdict}, None


def become_reaper():
    """Daemons of a program become children of ours, as they would become the service's."""
    import ctypes
    if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0):
        sys.exit("attacks: PR_SET_CHILD_SUBREAPER is refused")
