"""Verifiers that run programs, through the service: queues, levels, slots. The limits of programs are tested elsewhere."""
import os
import signal
import subprocess

import pytest

from harness import BINARY, descendants, eventually
from material import make_batch, sampling
from material import make_group as batch_group
from test_incidents import name_of
from test_metrics import metrics
from test_score import completion, make_group, make_score, rollouts
from test_verify import one, verify

DOUBLE = {"tests": [{"stdin": "2\n", "stdout": "4\n"}, {"stdin": "5\n", "stdout": "10\n"}]}
RIGHT = "```python\nprint(2 * int(input()))\n```"
WRONG = "```python\nprint(3 * int(input()))\n```"
HANGS = "```python\nwhile True:\n    pass\n```"
CODE = {"name": "code", "options": {"language": "python"}}


@pytest.fixture(name="service")
def service_of_programs(start):
    service = start(settings={"sandbox.slots": "2"})
    if not eventually(lambda: sandbox(service)["level"], "the trial") == "full":
        pytest.skip("this machine offers no sandbox")
    return service


def sandbox(service):
    return service.get("/readyz").json["sandbox"]


def slots(service):
    return {slot["run"]: slot for slot in service.read("/v1/pending")["slots"]}


def hanging(wall_ms):
    return {"name": "code", "options": {"language": "python", "limits": {"wall_ms": wall_ms, "cpu_ms": wall_ms}}}


def named(service, name):
    return [process for process in descendants(service.pid) if name_of(process) == name and process.alive()]


# -- verdicts --------------------------------------------------------------------------------------------------------------

def test_a_right_program_is_paid_and_a_wrong_one_is_not(service):
    right, wrong, none = verify(service, [{"id": str(i), "completion": text, "reference": DOUBLE} for i, text in enumerate([RIGHT, WRONG, "no code"])], [CODE])
    assert (right["reward"], wrong["reward"], none["reward"]) == (1, 0, 0)
    assert [item["verdicts"][0]["reason"] for item in (right, wrong, none)] == ["pass", "wrong_answer", "no_code"]
    assert right["verdicts"][0]["detail"]["sandbox"] == wrong["verdicts"][0]["detail"]["sandbox"] == "full"
    assert "10" not in str(wrong["verdicts"][0]["detail"].get("first_failed", {}).get("expected", ""))


def test_a_list_may_have_texts_and_programs(service):
    item = verify(service, [{"id": "1", "completion": f"\\boxed{{4}}\n{HANGS}", "reference": "4"}],
                  [{"name": "math", "weight": 2}, {**hanging(200), "reference": DOUBLE}, {"name": "exact"}])[0]
    math, code, exact = item["verdicts"]
    assert (math["score"], code["score"], exact["score"]) == (1, 0, 0) and item["reward"] == 2
    assert (code["reason"], math["detail"].get("sandbox")) == ("timeout", None)


def test_a_large_reference_is_read(service):
    """Public sets have tests of 20 MB."""
    body = "x" * (10 << 20)
    item = one(service, "code", "```python\nprint(len(input()))\n```", {"tests": [{"stdin": body + "\n", "stdout": f"{len(body)}\n"}]}, language="python",
               limits={"memory_mb": 512})
    assert item["reward"] == 1, item


def test_beside_a_large_reference_a_text_verifier_fails_alone(service):
    body = "x" * (9 << 20)
    item = verify(service, [{"id": "1", "completion": "```python\nprint(len(input()))\n```", "reference": "1"}],
                  [{"name": "exact", "weight": 0}, {**CODE, "options": {"language": "python", "limits": {"memory_mb": 512}},
                                                    "reference": {"tests": [{"stdin": body + "\n", "stdout": f"{len(body)}\n"}]}}])[0]
    assert [verdict["reason"] for verdict in item["verdicts"]] == ["verifier_input_too_large", "pass"] and item["reward"] == 1


def test_a_score_has_verdicts_on_programs(service):
    reply = service.post("/v1/score", make_score(make_group("double", DOUBLE, [completion(RIGHT), completion(WRONG, [2])]), verifiers=[CODE]))
    assert reply.status == 200, reply
    assert [rollout["rewards"]["code"]["score"] for rollout in rollouts(reply.json)] == [1, 0]
    assert [rollout["verdicts"][0]["detail"]["sandbox"] for rollout in rollouts(reply.json)] == ["full", "full"]


def test_a_batch_is_sampled_and_its_programs_are_run_though_places_are_few(start, engine):
    engine.rules({"text": RIGHT})
    service = start(engine, settings={"sandbox.slots": "1", "sandbox.queue_limit": "1"})
    if eventually(lambda: sandbox(service)["level"], "the trial") != "full":
        pytest.skip("this machine offers no sandbox")
    bodies = [make_batch(batch_group("double", reference=DOUBLE), run=run, verifiers=[CODE], sampling=sampling(4)) for run in ("a", "b")]
    for identity in [service.post("/v1/batches", body, {"Prefer": "respond-async"}).json["id"] for body in bodies]:
        assert service.settled(identity)["summary"]["reward_mean"] == 1


# -- turns -----------------------------------------------------------------------------------------------------------------

def test_a_batch_of_programs_that_hang_holds_another_run_up_for_its_share(service):
    hogs = [completion(HANGS, [index + 1]) for index in range(60)]
    hog = service.post("/v1/score", make_score(make_group("hang", DOUBLE, hogs), run="hog", verifiers=[hanging(1000)]), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: slots(service).get("hog", {}).get("busy") == 2, "both slots to hang")
    assert slots(service)["hog"]["waiting"] > 0
    for number in range(2):
        reply = service.post("/v1/score", make_score(make_group(f"other-{number}", DOUBLE, [completion(RIGHT), completion(WRONG, [2])]), run="other", verifiers=[CODE]))
        assert reply.status == 200 and reply.json["summary"]["scored"] == 2
    assert slots(service)["hog"]["waiting"] > 0  # it was not waited for
    service.delete(f"/v1/batches/{hog}")
    eventually(lambda: not slots(service), "the hog to leave")


def test_a_cancelled_score_leaves_no_program(service):
    identity = service.post("/v1/score", make_score(make_group("hang", DOUBLE, [completion(HANGS), completion(HANGS, [2])]), verifiers=[hanging(60000)]),
                            {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: slots(service).get("score", {}).get("busy") == 2, "both slots to hang")
    service.delete(f"/v1/batches/{identity}")
    eventually(lambda: not slots(service) and not named(service, "code-worker") and not named(service, "sandbox-keeper") and
               not named(service, "sandbox-slot"), "the slots to end")
    assert one(service, "code", RIGHT, DOUBLE, language="python")["reward"] == 1


# -- what is lost ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("victim", ["sandbox-slot", "sandbox-keeper", "sandbox-holder", "code-worker"])
def test_a_process_that_is_killed_costs_another_try_and_no_verdict(service, victim):
    identity = service.post("/v1/score", make_score(make_group("hang", DOUBLE, [completion(HANGS), completion(RIGHT, [2])]), verifiers=[hanging(2000)]),
                            {"Prefer": "respond-async"}).json["id"]
    process = eventually(lambda: (named(service, victim) or [None])[0], "it to be there")
    os.kill(process.pid, signal.SIGKILL)
    batch = service.settled(identity)
    assert batch["summary"]["failed"] == 0 and batch["summary"]["scored"] == 2, batch["summary"]


def memory_group(limit_bytes):
    """A control group with so much memory, by its folder; None where none can be made."""
    for folder, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = f"{folder}/rolloutd-test-{os.getpid()}"
        try:
            os.mkdir(group)
            with open(f"{group}/{limit}", "w", encoding="ascii") as file:
                file.write(str(limit_bytes))
            return group
        except OSError:
            if os.path.isdir(group):
                os.rmdir(group)
    return None


def removed(group):
    try:
        os.rmdir(group)
        return True
    except OSError:
        return False


TAKES = "```python\nblock = bytearray(900 << 20)\nfor at in range(0, len(block), 4096):\n    block[at] = 1\n```"


@pytest.mark.skipif("ROLLOUTD_SANITIZED" in os.environ, reason="a sanitizer needs more memory than the group has")
def test_a_program_that_falls_to_a_machine_without_memory_gets_no_number(start):
    group = memory_group(300 << 20)
    if not group:
        pytest.skip("no control group can be made here")
    service = start(wrapper=["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"])
    try:
        if eventually(lambda: sandbox(service)["level"], "the trial") != "full":
            pytest.skip("this machine offers no sandbox")
        item = one(service, "code", TAKES, {"tests": [{"stdin": "", "stdout": ""}]}, language="python", limits={"memory_mb": 1024})
        assert item["reward"] is None and item["verdicts"][0]["failure"]["code"] == "sandbox_unavailable", item
        assert one(service, "code", RIGHT, DOUBLE, language="python")["reward"] == 1
    finally:
        service.kill()
        eventually(lambda: removed(group), "its processes to end")


# -- levels ------------------------------------------------------------------------------------------------------------------

def test_the_level_is_named(service):
    assert sandbox(service) == {"level": "full", "min_level": "full", "programs_run": True, "why": None}
    listed = service.read("/v1/verifiers")
    assert listed["sandbox"] == sandbox(service) and listed["limits"]["program_item_bytes"] == 32 << 20
    assert {row["name"] for row in listed["verifiers"] if row["runs_programs"]} >= {"code"}
    samples, _ = metrics(service)
    assert samples["rolloutd_sandbox_level", (("level", "full"),)] == 1


def test_verdicts_are_counted_by_reason(service):
    verify(service, [{"id": str(i), "completion": text, "reference": DOUBLE} for i, text in enumerate([RIGHT, RIGHT, WRONG])], [CODE])
    samples, _ = metrics(service)
    assert samples["rolloutd_code_verdicts_total", (("reason", "pass"),)] == 2
    assert samples["rolloutd_code_verdicts_total", (("reason", "wrong_answer"),)] == 1
    assert samples["rolloutd_code_jobs_total", ()] == 3 and samples["rolloutd_slots_started_total", ()] >= 1


# In their place: the service's pid stays the one that was started.
WITHOUT_NAMESPACES = ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"]


def without_namespaces(start, **settings):
    if subprocess.run([*WITHOUT_NAMESPACES, "true"], check=False, capture_output=True).returncode:
        pytest.skip("user namespaces cannot be taken away here")
    service = start(settings=settings, wrapper=WITHOUT_NAMESPACES)
    eventually(lambda: sandbox(service)["level"], "the trial")
    return service


def test_below_the_least_level_no_program_runs_and_texts_are_judged(start):
    service = without_namespaces(start)
    found = sandbox(service)
    assert found["level"] in ("none", "reduced") and not found["programs_run"] and found["why"]
    item = verify(service, [{"id": "1", "completion": f"\\boxed{{4}} {RIGHT}", "reference": "4"}], [{"name": "math"}, {**CODE, "reference": DOUBLE}])[0]
    math, code = item["verdicts"]
    assert math["score"] == 1 and (code["score"], code["failure"]["code"]) == (None, "sandbox_unavailable") and item["reward"] is None
    assert code["failure"]["message"].startswith(f"this machine offers level {found['level']}, and programs need full: ")
    assert service.get("/readyz").json["ready"]
    assert not named(service, "code-worker")


# -- commands ------------------------------------------------------------------------------------------------------------------

def command(*words):
    return subprocess.run([BINARY, *words], check=False, capture_output=True, text=True)


def test_sandbox_check_says_what_the_service_says(service):
    done = command("sandbox-check")
    assert done.returncode == 0 and done.stdout.startswith("level       full\nprograms    run (sandbox.min_level is full)\n")
    assert command("sandbox-check", "--config", "/nowhere").returncode == 2
    assert sandbox(service)["level"] == "full"


def test_verify_runs_programs_as_the_service_does(service):
    words = ["verify", "--verifier", "code", "--options", '{"language":"python"}', "--reference-json", '{"tests":[{"stdin":"2\\n","stdout":"4\\n"}]}', "--completion"]
    assert [command(*words, text).returncode for text in (RIGHT, WRONG)] == [0, 1]
    assert "sandbox     full" in command(*words, RIGHT).stdout
    assert sandbox(service)["level"] == "full"
