"""Programs in the sandbox beside everything else that the service does: queues, streams, zombies, bombs. tests/attacks has the hostile ones."""
import os
import shutil
import subprocess
import threading
import time

import pytest

from harness import PATIENCE, Rolloutd, eventually, list_or_nothing, process_fields
from programs import HELLO, family, judge, outcome, outcomes, program

SANITIZED = bool(os.environ.get("ROLLOUTD_SANITIZED"))
BOMBS = int(os.environ.get("ROLLOUTD_BOMBS", "10" if SANITIZED else "100"))
DOUBLE_FORK = """import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.2)
    os._exit(0)
print(1)
"""


@pytest.fixture(scope="module")
def sandbox(shared_factory):
    """A service whose sandbox works; a machine without one has nothing to test here."""
    service = shared_factory(settings={"verify_timeout": "4m", "sandbox.slots": "2"})
    got = outcome(service, HELLO)
    if got[1] == "sandbox_unavailable":
        pytest.skip("this machine has no sandbox: rolloutd sandbox-check says why")
    assert got == (1, "pass")
    outcomes(service, [program(number, "import time\ntime.sleep(0.5)\nprint(1)\n") for number in range(8)])  # both slots are there from now on
    return service


class Health(threading.Thread):
    """Asks GET /healthz all the time; remembers how often, and the longest answer."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.over, self.asked, self.longest, self.wrong = service, threading.Event(), 0, 0.0, None

    def run(self):
        while not self.over.is_set():
            begin = time.monotonic()
            reply = self.service.get("/healthz")
            self.longest = max(self.longest, time.monotonic() - begin)
            self.asked += 1
            self.wrong = self.wrong or (reply if reply.status != 200 else None)
            self.over.wait(0.05)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


# -- R46: the clock of a program starts with the program -----------------------------------------------

def test_waiting_for_a_slot_costs_no_program_its_time(sandbox):
    """R46. 40 programs of 0.4 s on two slots wait far longer than they may run."""
    items = [program(number, "import time\ntime.sleep(0.4)\nprint(1)\n", limits={"wall_ms": 4000 * (10 if SANITIZED else 1)}) for number in range(40)]
    assert outcomes(sandbox, items) == [(1, "pass")] * 40


def test_a_slow_machine_is_no_wrong_answer(sandbox):
    """R46. Every processor is busy three times over, and the wall clock leaves little more than the program needs: waiting is no part of it."""
    busy = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end:\n    pass\nprint(1)\n"
    load = [subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) for _ in range(3 * (os.cpu_count() or 1))]
    try:
        got = outcomes(sandbox, [program(number, busy, limits={"wall_ms": 300, "cpu_ms": 4000}) for number in range(8)])
    finally:
        for process in load:
            process.kill()
            process.wait()
    assert set(got) <= {(1, "pass"), (None, "verifier_timeout")} and (1, "pass") in got


# -- R47: both directions at once ------------------------------------------------------------------------

def test_much_input_and_much_output_do_not_wait_for_each_other(sandbox):
    """R47. Four megabytes in, 300 kB out before the first of them is read."""
    source = "import sys\nsys.stdout.write('x' * 300000 + chr(10))\nsys.stdout.flush()\nprint(len(sys.stdin.read()))\n"
    item = program("1", source, "x" * 300000 + "\n4000000\n", "a" * 4000000, limits={"output_kb": 1024})
    with Health(sandbox) as health:
        assert outcomes(sandbox, [item]) == [(1, "pass")]
    assert health.asked and health.wrong is None


def test_an_input_that_nobody_reads_is_no_fault_of_the_program(sandbox):
    """R47."""
    assert outcome(sandbox, HELLO, stdin="a" * 4000000) == (1, "pass")
    assert outcome(sandbox, "import os\nos.close(0)\nprint(1)\n", stdin="a" * 4000000) == (1, "pass")


def test_a_program_that_closes_its_input_and_sleeps_is_ended_by_its_wall_clock(sandbox):
    """R47."""
    assert outcome(sandbox, "import os, time\nos.close(0)\ntime.sleep(600)\n", stdin="a" * 4000000, limits={"wall_ms": 1000}) == (0, "timeout")


def test_a_mebibyte_of_output_is_compared_whole(sandbox):
    source = "import sys\nsys.stdout.write('y' * (1 << 20) + 'END')\n"
    assert outcome(sandbox, source, "y" * (1 << 20) + "END", limits={"output_kb": 2048}) == (1, "pass")
    assert outcome(sandbox, source, "y" * (1 << 20) + "EMD", limits={"output_kb": 2048}) == (0, "wrong_answer")


# -- R49: nothing is left behind ------------------------------------------------------------------------

def states(pid):
    """The states of all processes below one."""
    found, queue = [], [pid]
    while queue:
        parent = queue.pop()
        for task in list_or_nothing(f"/proc/{parent}/task"):
            try:
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as file:
                    children = file.read().split()
                found += [process_fields(child)[0] for child in children]
            except OSError:
                continue
            queue += children
    return found


def test_orphans_of_programs_are_reaped_where_the_service_is_process_1(as_nobody):
    """R49. In a process-id namespace of its own, as in a container."""
    user, folder = as_nobody
    wrapper = [*user, "unshare", "-Urpf", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no process-id namespace can be made here")
    service = Rolloutd(folder, wrapper=wrapper, settings={"sandbox.slots": "1", "verify_timeout": "4m"}).start()
    try:
        if outcome(service, HELLO)[1] == "sandbox_unavailable":
            pytest.skip("no sandbox within a namespace")
        before, count = len(states(service.pid)), 20 if SANITIZED else 100
        assert outcomes(service, [program(number, DOUBLE_FORK) for number in range(count)]) == [(1, "pass")] * count
        eventually(lambda: "Z" not in states(service.pid) and len(states(service.pid)) <= before, "the orphans to be gone")
    finally:
        service.kill()


def test_programs_leave_no_process_behind(sandbox):
    before = len(family(sandbox))
    leaves = ["import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint(1, flush=True)\nos._exit(0)\n",
              "import os, signal, time\nfor _ in range(5):\n    if os.fork() == 0:\n        os.kill(os.getpid(), signal.SIGSTOP)\n        time.sleep(600)\nprint(1, flush=True)\nos._exit(0)\n"]
    assert outcomes(sandbox, [program(f"{kind} {number}", source) for kind, source in enumerate(leaves) for number in range(10)]) == [(1, "pass")] * 20
    eventually(lambda: len(family(sandbox)) <= before, "what programs left behind to be gone")


def test_fork_bombs_in_a_row_leave_nothing_and_the_service_answers_throughout(sandbox):
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
    before = len(family(sandbox))
    with Health(sandbox) as health:
        for begin in range(0, BOMBS, 20):
            part = [program(number, bomb, limits={"wall_ms": 200, "cpu_ms": 200, "procs": 32})
                    for number in range(begin, min(begin + 20, BOMBS))]
            got = outcomes(sandbox, part, PATIENCE * 4)
            assert {score for score, _ in got} == {0} and {reason for _, reason in got} <= {"timeout", "runtime_error", "memory_limit"}, got
    assert health.wrong is None and health.asked > 0
    assert outcome(sandbox, HELLO) == (1, "pass")
    eventually(lambda: len(family(sandbox)) <= before, "the bombs to be gone")


# -- what the caller sees -------------------------------------------------------------------------------

def test_a_program_that_ends_every_process_it_can_see_is_judged_and_so_are_those_after_it(sandbox):
    kill = "import os\nprint(1, flush=True)\nfor pid in (-1, 1, os.getppid() or 1):\n    for number in range(1, 65):\n        try:\n            os.kill(pid, number)\n        except OSError:\n            pass\n"
    got = outcomes(sandbox, [program(number, kill if number % 2 else HELLO) for number in range(20)])
    assert [one for number, one in enumerate(got) if number % 2 == 0] == [(1, "pass")] * 10
    assert {score for score, _ in got} <= {0, 1}


def test_the_output_of_a_program_is_shown_and_the_expected_output_is_not(sandbox):
    item = program("1", "import sys\nprint('mine')\nprint('error text', file=sys.stderr)\n", "a secret of the reference\n", "an input of the reference\n")
    verdict = judge(sandbox, [item])[0]
    assert (verdict["score"], verdict["reason"]) == (0, "wrong_answer")
    first = verdict["detail"]["first_failed"]
    assert (first["index"], first["stdout"], first["stderr"]) == (0, "mine\n", "error text\n")
    assert "of the reference" not in str(verdict)


def test_programs_of_several_requests_run_beside_each_other(sandbox):
    wrong = []

    def ask(number):
        got = outcomes(sandbox, [program(f"{number} {index}", f"print({number} * 1000 + {index})\n", f"{number * 1000 + index}\n") for index in range(10)])
        wrong.extend(one for one in got if one != (1, "pass"))
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
