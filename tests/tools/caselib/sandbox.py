"""Hostile programs through the `code` verifier, with what can be seen of their effects from outside."""
import os
import re
import socket
import subprocess
import tempfile
import threading
import time

from .report import Suite
from .service import Service, StartError
from .verify import fenced, find_verdict, is_number, post_items, read_cases

HALVES = ("CANARYq", "7Zk31xV")
CANARY = "".join(HALVES)
LIMITS = {"wall_ms": 1500, "cpu_ms": 1000, "memory_mb": 256, "output_kb": 64, "procs": 32, "disk_kb": 16384}
MIB = 1 << 20
GROWTH = 16 * MIB
QUIET, SETTLE, HEALTH, SLACK = 2.0, 1.0, 1.0, 10.0

# words of the case file -> reasons of the code verifier; `ok` only says that the program ended by itself
REASONS = {"pass": {"pass"}, "ok": {"wrong_answer"}, "wrong_answer": {"wrong_answer"},
           "runtime_error": {"runtime_error"}, "compile_error": {"compile_error"},
           "time_limit_cpu": {"timeout"}, "time_limit_wall": {"timeout"}, "memory_limit": {"memory_limit"},
           "output_limit": {"output_limit"},
           "disk_limit": {"sandbox_violation", "runtime_error", "output_limit"},
           "security_violation": {"sandbox_violation"}, "bad_request": set()}
MARKERS = [os.path.join(folder, "rolloutd_marker") for folder in
           ("/tmp", "/dev/shm", "/var/tmp", "/run/lock", "/usr/lib/python3/dist-packages",
            "/usr/lib/python3.11/__pycache__")] + ["/tmp/rolloutd_pwn"]


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


# -- the outside world ------------------------------------------------------------------------------

class Listeners:
    """Sockets that nobody must reach from inside."""

    def __init__(self, folder):
        self.hits, self.sockets = [], []
        self.tcp = self.listen(socket.socket(), ("127.0.0.1", 0), "tcp").getsockname()[1]
        self.abstract = f"rolloutd-cases-{os.getpid()}"
        self.listen(socket.socket(socket.AF_UNIX), "\0" + self.abstract, "abstract socket")
        self.path = os.path.join(folder, "canary.sock")
        self.listen(socket.socket(socket.AF_UNIX), self.path, "path socket")
        os.chmod(self.path, 0o777)
        self.udp = self.receive()

    def listen(self, server, address, name):
        server.bind(address)
        server.listen(16)
        self.serve(server, name, server.accept)
        return server

    def receive(self):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
        self.serve(server, "udp", lambda: server.recvfrom(64))
        return server.getsockname()[1]

    def serve(self, server, name, wait):
        self.sockets.append(server)
        threading.Thread(target=self.count, args=(name, wait), daemon=True).start()

    def count(self, name, wait):
        try:
            while True:
                wait()
                self.hits.append(name)
        except OSError:
            pass

    def close(self):
        for server in self.sockets:
            server.close()


def read_stat(pid):
    """(state, parent) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
        return fields[0].decode(), int(fields[1])
    except (OSError, IndexError):
        return None


def processes():
    found = {int(name): read_stat(name) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: stat for pid, stat in found.items() if stat}


def descendants(root):
    table, children = processes(), {}
    for pid, (_, parent) in table.items():
        children.setdefault(parent, []).append(pid)
    found, queue = {}, [root]
    while queue:
        for pid in children.get(queue.pop(), []):
            if pid not in found:
                found[pid] = table[pid][0]
                queue.append(pid)
    return found


def resident(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            match = re.search(r"VmRSS:\s+(\d+)", file.read())
        return int(match.group(1)) * 1024 if match else 0
    except OSError:
        return 0


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
    """A service with a secret file, canary sockets and a decoy process beside it."""

    def __init__(self, binary):
        self.folder = tempfile.TemporaryDirectory(prefix="cases-")
        os.chmod(self.folder.name, 0o755)
        self.secret = os.path.join(self.folder.name, "secret.h")
        with open(self.secret, "w") as file:
            file.write(CANARY + "\n")
        self.listeners = Listeners(self.folder.name)
        self.decoy = subprocess.Popen(["sleep", "3600"])
        self.service = Service(binary, env={"SECRET_TOKEN": CANARY})

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
                  "@SERVICE_PID@": str(self.service.pid), "@TCP_PORT@": str(self.listeners.tcp),
                  "@UDP_PORT@": str(self.listeners.udp), "@UNIX_ABS@": self.listeners.abstract,
                  "@UNIX_PATH@": self.listeners.path}
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    def baseline(self):
        self.before = self.most_processes()
        self.memory, self.allowance = resident(self.service.pid), GROWTH
        self.absent = [path for path in MARKERS if not os.path.exists(path)]

    def most_processes(self):
        """Warm slots come and go: the largest number seen in a quiet while is the normal one."""
        end, most = time.monotonic() + QUIET, 0
        while time.monotonic() < end:
            most = max(most, len(descendants(self.service.pid)))
            time.sleep(0.05)
        return most

    def problem(self, hits):
        """What is wrong outside, after at most SETTLE seconds."""
        if not self.service.alive():
            return "the service is gone"
        for pid, name in ((self.service.pid, "service"), (self.decoy.pid, "decoy")):
            stat = read_stat(pid)
            if self.decoy.poll() is not None or stat is None or stat[0] in "TtZX":
                return f"{name} in state {stat[0] if stat else 'gone'}"
        if self.listeners.hits[hits:]:
            return f"connections to {sorted(set(self.listeners.hits[hits:]))}"
        left = [path for path in self.absent if os.path.exists(path)]
        if left:
            return f"files left: {left}"
        grown = resident(self.service.pid) - self.memory
        if grown > self.allowance:
            return f"memory of the service grew by {grown // MIB} MiB"
        return self.leftovers()

    def leftovers(self):
        end = time.monotonic() + SETTLE
        while True:
            now = descendants(self.service.pid)
            if len(now) <= self.before:
                return None
            if time.monotonic() > end:
                return f"{len(now) - self.before} processes left, states {''.join(sorted(now.values()))}"
            time.sleep(0.05)


# -- programs as items -----------------------------------------------------------------------------------

STDIN = {"stdin_never_read": "x" * (8 * MIB), "stdin_closed_early": "x" * (8 * MIB)}
STDOUT = {"prefix_only_output": "1\n2\n3\n", "nul_and_surrogate_output": "42"}


def is_called(case):
    return re.search(r"^\s*def solve\(", case["program"], re.M) and "wrong_answer" in case["expected"]


def reference(case):
    """The expected output is the case's `stdout`, or the canary: a pass would then mean that the program found it."""
    if is_called(case):
        return {"entry": "solve", "calls": [{"args": [1], "expect": CANARY}]}
    wanted = case.get("stdout", STDOUT.get(case["name"], CANARY + "\n"))
    return {"tests": [{"stdin": STDIN.get(case["name"], ""), "stdout": wanted}] * case.get("runs", 1)}


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


def gate(service, secret, decoy):
    """(contained, why not)"""
    for language, source in HELLO.items():
        greeting = {"tests": [{"stdin": "", "stdout": "hello\n"}]}
        verdict, problem = ask(service, item("gate", language, source, greeting))
        if verdict is None or verdict.get("reason") != "pass":
            got = problem if verdict is None else f"reason {verdict.get('reason')}"
            return False, f"a harmless {language} program does not pass: {got}"
    for what, (source, wanted) in gate_programs(secret, decoy).items():
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

def attack(world, case):
    """(what is wrong or None, whether its output could be seen)"""
    expectation = Expectation(case["expected"])
    hits = len(world.listeners.hits)
    world.allowance = max(world.allowance, GROWTH + 4 * len(STDIN.get(case["name"], "")))
    begin = time.monotonic()
    with Health(world.service) as health:
        verdict, problem = ask(world.service, item(case["name"], case["language"],
                                                   world.fill(case["program"]), reference(case)))
    took = time.monotonic() - begin
    if took > LIMITS["wall_ms"] / 1000 + SLACK:
        return f"took {took:.1f} s", False
    if verdict is None:
        return problem, False
    wrong = (verdict_problem(expectation, verdict) or output_problem(expectation, verdict)
             or health.trouble or world.problem(hits))
    return wrong, bool(outputs(verdict)) or not expectation.needs_output


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
    if unseen:
        suite.notes.append(f"{len(unseen)} cases passed with no stdout in the verdict to look at")


def run(binary, folder):
    suite, cases = Suite("sandbox_attacks"), read_cases(folder, "sandbox_attacks")
    if not binary:
        for case in cases:
            suite.skip(case["name"], "needs --binary: the runner watches the process")
        return suite
    try:
        with World(binary) as world:
            contained, why = gate(world.service, world.secret, world.decoy.pid)
            if contained:
                run_attacks(world, cases, suite)
            else:
                fail_all(suite, cases, why)
    except StartError as problem:
        fail_all(suite, cases, str(problem))
    return suite


def fail_all(suite, cases, why):
    for case in cases:
        suite.failed(case["name"], case["expected"], f"not run: {why}")
