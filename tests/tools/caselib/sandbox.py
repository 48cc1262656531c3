"""Hostile programs through the `code` verifier, with what can be seen of their effects from outside."""
import os
import re
import subprocess
import tempfile
import threading
import time

from .outside import GROWTH, MIB, PATIENCE, SANITIZED, Listeners, Memory, Watch, read_stat
from .report import Suite
from .service import Service, StartError
from .verify import fenced, find_verdict, is_number, post_items, read_cases

HALVES = ("CANARYq", "7Zk31xV")
CANARY = "".join(HALVES)
LIMITS = {"wall_ms": 1500, "cpu_ms": 1000, "memory_mb": 256, "output_kb": 64, "procs": 32, "disk_kb": 16384}
LARGEST_MB = 4096 if SANITIZED else 1536  # the 1 GiB of the compiler and what others do on the machine; less where a program's `memory_mb` says so
# what a sanitizer's own memory makes impossible to see: its shadow is neither limited nor quick to read
SHADOWED = {"rlimit_raise": "a sanitizer's shadow needs all addresses", "nb_shared_map_look": "a sanitizer's shadow counts as memory that is read"}
HEALTH, SLACK = 1.0 * PATIENCE, 10.0 * PATIENCE

# words of the case file -> reasons of the code verifier; `ok` only says that the program ended by itself
REASONS = {"pass": {"pass"}, "ok": {"wrong_answer"}, "wrong_answer": {"wrong_answer"},
           "runtime_error": {"runtime_error"}, "compile_error": {"compile_error"},
           "time_limit_cpu": {"timeout"}, "time_limit_wall": {"timeout"}, "memory_limit": {"memory_limit"},
           "output_limit": {"output_limit"},
           "disk_limit": {"sandbox_violation", "runtime_error", "output_limit"},
           "security_violation": {"sandbox_violation"}, "bad_request": set()}


# -- expectations ---------------------------------------------------------------------------------

class Expectation:
    def __init__(self, text):
        self.reasons, self.inside, self.absent, self.secret = set(), [], [], False
        for clause in (part.strip() for part in text.split(";")):
            self.add(clause)

    def add(self, clause):
        if clause.startswith("verdict="):
            for word in clause[8:].split("|"):
                self.reasons |= REASONS[word]
        elif clause.startswith("stdout~"):
            self.inside.append(clause[7:])
        elif clause.startswith("stdout!~"):
            self.absent.append(clause[8:])
        elif clause.startswith("all!~"):
            self.secret = True

    @property
    def needs_output(self):
        return bool(self.inside or self.absent or self.secret)


def outputs(value):
    """Everything under a key named stdout or stderr, anywhere in the verdict."""
    if isinstance(value, list):
        return [text for entry in value for text in outputs(entry)]
    if not isinstance(value, dict):
        return []
    found = [str(entry) for name, entry in value.items() if name in ("stdout", "stderr") and entry is not None]
    return found + [text for entry in value.values() if isinstance(entry, (dict, list)) for text in outputs(entry)]


def verdict_problem(expectation, verdict):
    reason, got = verdict.get("reason"), verdict.get("score")
    right = ("correct", 1) if reason == "pass" else ("incorrect", 0)
    if not is_number(got) or (verdict.get("verdict"), got) != right:
        failure = verdict.get("failure") or {}
        return f"{verdict.get('verdict')}, score {got}, {reason}, failure {failure.get('code')}"
    if reason not in expectation.reasons:
        return f"reason {reason}"
    return None


def output_problem(expectation, verdict):
    seen = outputs(verdict)
    text = "\n".join(seen)
    if expectation.secret and CANARY in text:
        return "the canary is in the output"
    for word in expectation.absent:
        if word in text:
            return f"output has {word}: {text[:80]}"
    for word in expectation.inside if seen else []:
        if word not in text:
            return f"output lacks {word}: {text[:80]}"
    return None


class Health(threading.Thread):
    """Asks GET /healthz all the time while a program runs; remembers the slowest answer."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.done, self.trouble = service, threading.Event(), None

    def run(self):
        while not self.done.is_set() and not self.trouble:
            begin = time.monotonic()
            reply = self.service.get("/healthz", timeout=5)
            took = time.monotonic() - begin
            if reply.status != 200:
                self.trouble = f"healthz: {reply.describe()}"
            elif took > HEALTH:
                self.trouble = f"healthz took {took:.1f} s"
            self.done.wait(0.1)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()


class World:
    """A service with a secret file, canary sockets and a decoy process beside it. `make` gives the service: bare.py has another one."""

    def __init__(self, make):
        self.folder = tempfile.TemporaryDirectory(prefix="cases-")
        os.chmod(self.folder.name, 0o755)
        self.secret = os.path.join(self.folder.name, "secret.h")
        with open(self.secret, "w") as file:
            file.write(CANARY + "\n")
        self.listeners = Listeners(self.folder.name)
        self.decoy = subprocess.Popen(["sleep", "3600"])
        self.service = make({"SECRET_TOKEN": CANARY})

    def __enter__(self):
        try:
            self.service.start()
        except (StartError, OSError):
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.service.stop()
        self.decoy.kill()
        self.decoy.wait()
        self.listeners.close()
        self.folder.cleanup()

    def fill(self, text):
        values = {"@CANARY@": CANARY, "@CANARY_HALF1@": HALVES[0], "@CANARY_HALF2@": HALVES[1],
                  "@SECRET_FILE@": self.secret, "@SERVICE_DB@": self.service.database,
                  "@SERVICE_PID@": str(self.service.pid), "@DECOY_PID@": str(self.decoy.pid),
                  "@TCP_PORT@": str(self.listeners.tcp), "@UDP_PORT@": str(self.listeners.udp),
                  "@UNIX_ABS@": self.listeners.abstract, "@UNIX_PATH@": self.listeners.path,
                  "@HOST@": os.uname().nodename, "@SERVICE_FOLDER@": os.path.dirname(self.service.database)}
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    def baseline(self):
        self.watch = Watch(self.service.pid, [self.folder.name, os.path.dirname(self.service.database)])

    def problem(self, hits):
        """The first trace outside, after a moment at most."""
        if not self.service.alive():
            return "the service is gone"
        for pid, name in ((self.service.pid, "service"), (self.decoy.pid, "decoy")):
            stat = read_stat(pid)
            if self.decoy.poll() is not None or stat is None or stat[0] in "TtZX":
                return f"{name} in state {stat[0] if stat else 'gone'}"
        if self.listeners.hits[hits:]:
            return f"connections to {sorted(set(self.listeners.hits[hits:]))}"
        return self.watch.problem()


# -- programs as items -----------------------------------------------------------------------------------

STDIN = {"stdin_never_read": "x" * (8 * MIB), "stdin_closed_early": "x" * (8 * MIB)}
STDOUT = {"prefix_only_output": "1\n2\n3\n", "nul_and_surrogate_output": "42"}


def is_called(case):
    return "calls" in case or re.search(r"^\s*def solve\(", case["program"], re.M) and "wrong_answer" in case["expected"]


def reference(case):
    """The expected output is the case's `stdout`, or the canary: a pass would then mean that the program found it."""
    if "asserts" in case:
        return {"asserts": [f"assert solve(1) == {CANARY!r}", "assert solve(2) == 3"]}
    if is_called(case):
        return {"entry": "solve", "calls": [{"args": [1], "expect": CANARY}]}
    wanted = case.get("stdout", STDOUT.get(case["name"], CANARY + "\n"))
    return {"tests": [{"stdin": STDIN.get(case["name"], case.get("stdin", "")), "stdout": wanted}] * case.get("runs", 1)}


def item(name, language, source, wanted, limits=None):
    options = {"language": language, "limits": limits or LIMITS}
    return {"id": name, "completion": fenced(language, source), "reference": wanted,
            "verifiers": [{"name": "code", "options": options}]}


def ask(service, made):
    """(verdict, problem)"""
    answer, problem = post_items(service, [made], 60)[made["id"]]
    if answer is None:
        return None, problem
    verdict = find_verdict(answer, "code")
    return verdict, "no verdict with id code"


# -- the gate: no hostile program runs before a few harmless ones have shown that there is a sandbox ------

FORKS = """import os, time
made = [pid for pid in (os.fork() for _ in range(100)) if pid == 0 and (time.sleep(1), os._exit(0)) or pid]
print('reached')
"""


def gate_programs(secret, decoy):
    return {"reads a file outside": (f"print(open({secret!r}).read().strip())", CANARY + "\n"),
            "may signal a process outside": (f"import os\nos.kill({decoy}, 0)\nprint('reached')", "reached\n"),
            "starts 100 processes": (FORKS, "reached\n"),
            "takes 1 GiB": ("block = b'x' * (1 << 30)\nprint('reached')", "reached\n"),
            "writes 256 MiB": ("open('big', 'wb').write(b'x' * (1 << 28))\nprint('reached')", "reached\n")}


HELLO = {"python": "print('hello')\n", "sh": "echo hello\n",
         "c": "#include <stdio.h>\nint main(void){puts(\"hello\");return 0;}\n"}


def gate(service, secret, decoy, leave_out=()):
    """(contained, why not)"""
    for language, source in HELLO.items():
        greeting = {"tests": [{"stdin": "", "stdout": "hello\n"}]}
        verdict, problem = ask(service, item("gate", language, source, greeting))
        if verdict is None or verdict.get("reason") != "pass":
            got = problem if verdict is None else f"reason {verdict.get('reason')}"
            return False, f"a harmless {language} program does not pass: {got}"
    for what, (source, wanted) in gate_programs(secret, decoy).items():
        if what in leave_out:
            continue
        verdict, problem = ask(service, item("gate", "python", source, {"tests": [{"stdin": "", "stdout": wanted}]}))
        if verdict is None or verdict.get("verdict") != "incorrect":
            return False, f"not contained: a program {what}"
    return True, ""


def open_gate(service):
    """The gate for a service without a World around it."""
    with tempfile.TemporaryDirectory(prefix="cases-") as folder:
        os.chmod(folder, 0o755)
        secret = os.path.join(folder, "secret")
        with open(secret, "w") as file:
            file.write(CANARY + "\n")
        decoy = subprocess.Popen(["sleep", "60"])
        try:
            return gate(service, secret, decoy.pid)
        finally:
            decoy.kill()
            decoy.wait()


# -- running ------------------------------------------------------------------------------------------------

def attack(world, case, answer=ask):
    """(what is wrong or None, whether its output could be seen)"""
    expectation = Expectation(case["expected"])
    hits = len(world.listeners.hits)
    world.watch.allowance = max(world.watch.allowance, GROWTH + 4 * len(STDIN.get(case["name"], case.get("stdin", ""))))
    limits = {**LIMITS, **case.get("limits", {})}
    begin = time.monotonic()
    with Health(world.service) as health, Memory(world.service.pid) as memory:
        verdict, problem = answer(world.service, item(case["name"], case["language"], world.fill(case["program"]), reference(case), limits))
    took = time.monotonic() - begin
    if took > case.get("runs", 1) * limits["wall_ms"] / 1000 + case.get("compiler_s", 0) * PATIENCE + SLACK:
        return f"took {took:.1f} s", False
    if verdict is None:
        return problem, False
    wrong = (verdict_problem(expectation, verdict), output_problem(expectation, verdict), health.trouble,
             memory.problem(case.get("memory_mb", LARGEST_MB)), world.problem(hits))
    return "; ".join(filter(None, wrong)) or None, bool(outputs(verdict)) or not expectation.needs_output


def run_attacks(world, cases, suite):
    unseen = []
    world.baseline()
    for case in cases:
        wrong, seen = attack(world, case)
        suite.passed(case["name"]) if wrong is None else suite.failed(case["name"], case["expected"], wrong)
        if wrong is None and not seen:
            unseen.append(case["name"])
        if not world.service.alive():
            world.service.start()
            world.baseline()
    wrong = world.watch.last_problem()
    suite.passed("afterwards") if wrong is None else suite.failed("afterwards", "the machine as it was", wrong)
    if unseen:
        suite.notes.append(f"{len(unseen)} cases passed with no stdout in the verdict to look at")


def shadowed(suite, name):
    if SANITIZED and name in SHADOWED:
        suite.skip(name, SHADOWED[name])
    return SANITIZED and name in SHADOWED


def run(binary, folder):
    """One slot: what a program leaves behind is looked for where it ran."""
    suite, cases = Suite("sandbox_attacks"), read_cases(folder, "sandbox_attacks")
    if not binary:
        for case in cases:
            suite.skip(case["name"], "needs --binary: the runner watches the process")
        return suite
    try:
        with World(lambda env: Service(binary, env=env, settings={"sandbox.slots": 1})) as world:
            contained, why = gate(world.service, world.secret, world.decoy.pid)
            if contained:
                run_attacks(world, [case for case in cases if not shadowed(suite, case["name"])], suite)
            else:
                fail_all(suite, cases, why)
    except StartError as problem:
        fail_all(suite, cases, str(problem))
    return suite


def fail_all(suite, cases, why):
    for case in cases:
        suite.failed(case["name"], case["expected"], f"not run: {why}")
