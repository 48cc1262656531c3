"""A completion that crashes or hangs a verifier costs that one verdict; it is kept, counted for its run, and raises an alarm."""
import json
import os
import random
import signal
import stat
import threading

import pytest

from harness import descendants, eventually
from material import make_batch, make_group, rollouts, sampling
from test_metrics import metrics
from test_verify import verify

# No verifier of the service's own can be brought to this by a text: a build for the tests has one more.
ENDLESS_TEXT = "a" * 200_000
ENDLESS = {"name": "endless", "id": "endless", "options": {}}
# The worst that a pattern can do: it is given up after its allowance of work, some dozens of milliseconds.
SLOW_TEXT = "a" * 40 + "!"
SLOW = {"name": "regex", "id": "slow", "weight": 0, "options": {"pattern": "^(a+)+$"}}


def text_workers(service):
    """Those that live: one that was killed can be seen until it is reaped."""
    return [process for process in descendants(service.pid) if name_of(process) == "text-worker" and process.alive()]


def name_of(process):
    try:
        with open(f"/proc/{process.pid}/comm", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def kill(process):
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def incidents(service, **query):
    return service.read("/v1/pending", **query)["verifier_incidents"]


def kept(service):
    folder = service.database + ".crashes"
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []


def score(service, run, texts, verifiers, **fields):
    completions = [{"text": text} for text in texts]
    reply = service.post("/v1/score", {"run": run, "verifiers": verifiers, "groups": [{"task": "t", "prompt": "p", "reference": "x", "completions": completions}],
                                       "deadline": "2m", **fields})
    assert reply.status == 200, reply
    return rollouts(reply.json)


# -- one verdict ----------------------------------------------------------------------------------------------------------------

def test_a_verifier_that_hangs_takes_no_other_verdict_along(start_endless):
    service = start_endless(settings={"verify_timeout": "3s"})
    item = verify(service, [{"id": "1", "completion": ENDLESS_TEXT, "reference": ENDLESS_TEXT}],
                  [{"name": "exact"}, ENDLESS, {"name": "exact", "id": "held", "heldout": True}], missing="skip")[0]
    verdicts = {verdict["id"]: verdict for verdict in item["verdicts"]}
    assert verdicts["exact"]["score"] == verdicts["held"]["score"] == 1 and item["reward"] == 1 and item["heldout"]["held"]["score"] == 1
    lost = verdicts["endless"]
    assert (lost["verdict"], lost["score"], lost["failure"]["code"], lost["failure"]["retryable"]) == ("unscored", None, "verifier_timeout", True)


def test_a_hung_verifier_leaves_a_rollout_without_a_reward(start_endless):
    service = start_endless(settings={"verify_timeout": "2s"})
    first, second = score(service, "hangs", [ENDLESS_TEXT, "no"], [ENDLESS])
    assert first["reward"] is None and first["advantage"] is None and first["failure"]["code"] == "verifier_timeout"
    assert second["reward"] == 0 and second["failure"] is None


# -- for the operator -------------------------------------------------------------------------------------------------------------

def test_a_completion_that_hung_a_verifier_is_counted_kept_and_raises_an_alarm(start_endless):
    service = start_endless(settings={"verify_timeout": "2s", "crashes.keep": "2", "crashes.window": "20", "log.format": "json"})
    assert incidents(service) == [] and kept(service) == []
    lost = score(service, "learned", [ENDLESS_TEXT] * 3 + ["no"], [{"name": "exact"}, ENDLESS])
    row, = incidents(service)
    assert (row["run"], row["verifier"], row["crashed"], row["timed_out"], row["alarm"]) == ("learned", "endless", 0, 3, True)
    assert row["lately"]["lost"] == 3 and row["last_rollout"] in [rollout["id"] for rollout in lost[:3]]
    samples, _ = metrics(service)
    assert samples["rolloutd_verifier_incidents_total", (("code", "verifier_timeout"),)] == 3
    assert samples["rolloutd_verifier_incidents_total", (("code", "verifier_crashed"),)] == 0
    assert samples["rolloutd_verifier_alarms", ()] == 1
    lines = [json.loads(line) for line in service.log().splitlines()]
    assert [line["run"] for line in lines if line["level"] == "error" and "may be learning" in line["event"]] == ["learned"]
    files = eventually(lambda: row["last_file"] in kept(service) and kept(service), "the file")
    assert len(files) == 2, files
    # the run forgets it: what was judged lately has none
    score(service, "learned", ["no"] * 40, [{"name": "exact"}, ENDLESS])
    assert [row["alarm"] for row in incidents(service)] == [False] and incidents(service)[0]["timed_out"] == 3
    assert incidents(service, run="another") == []


def test_a_kept_file_has_all_that_was_judged_and_belongs_to_its_owner(start_endless):
    service = start_endless(settings={"verify_timeout": "2s"})
    rollout, = score(service, "kept", [ENDLESS_TEXT], [{"name": "exact"}, ENDLESS])
    path, = eventually(lambda: kept(service), "the file")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    verifier, = found["verifiers"]
    verdict = next(verdict for verdict in service.read(f"/v1/rollouts/{rollout['id']}")["verdicts"] if verdict["id"] == "endless")
    assert (verifier["name"], verifier["version"], verifier["options_sha256"]) == ("endless", verdict["version"], verdict["options_sha256"])
    assert verifier["options"] == ENDLESS["options"]
    assert (found["code"], found["run"], found["rollout"]) == ("verifier_timeout", "kept", rollout["id"])
    assert (found["completion"], found["reference"], found["prompt"]) == (ENDLESS_TEXT, "x", "p")


def test_files_that_an_earlier_service_left_half_written_are_removed(start_endless):
    service = start_endless(settings={"verify_timeout": "2s"})
    os.mkdir(service.database + ".crashes")
    for name in (".20260101T000000.000000Z-0000-math-crash.json.new", "notes.txt"):
        with open(os.path.join(service.database + ".crashes", name), "w", encoding="utf-8") as file:
            file.write("half")
    score(service, "after", [ENDLESS_TEXT], [ENDLESS])
    names = lambda: {os.path.basename(path) for path in kept(service)}
    eventually(lambda: any("endless" in name and name[0] != "." for name in names()), "the file of this incident")
    eventually(lambda: len(names()) == 2 and not any(name[0] == "." for name in names()), "the half file to go")
    assert "notes.txt" in names()


@pytest.mark.parametrize("settings, files", [({"crashes.keep": "0"}, 0), ({"crashes.keep_bytes": "100KiB"}, 0), ({"crashes.keep_bytes": "300KiB"}, 1)])
def test_kept_inputs_are_bounded(start_endless, settings, files):
    service = start_endless(settings={"verify_timeout": "2s", **settings})
    score(service, "bounded", [ENDLESS_TEXT] * 2, [ENDLESS])
    assert incidents(service)[0]["timed_out"] == 2
    assert service.terminate() == 0  # whatever is being written is written
    assert len(kept(service)) == files


# -- killed from outside -------------------------------------------------------------------------------------------------------------

def busy(process):
    """Processor time of a process, in ticks."""
    try:
        with open(f"/proc/{process.pid}/stat", encoding="latin-1") as file:
            return int(file.read().rpartition(")")[2].split()[11])
    except OSError:
        return 0


def test_a_worker_that_dies_twice_costs_one_verdict(start_endless):
    service = start_endless(settings={"text_workers": "1", "verify_timeout": "60s"})
    found = []
    asking = threading.Thread(target=lambda: found.extend(verify(
        service, [{"id": "1", "completion": ENDLESS_TEXT, "reference": ENDLESS_TEXT}], [{"name": "exact"}, ENDLESS, {"name": "exact", "id": "behind"}])))
    asking.start()
    for _ in range(2):
        victim = eventually(lambda: next((process for process in text_workers(service) if busy(process) >= 5), None), "a worker that judges")
        kill(victim)
        eventually(lambda victim=victim: not victim.alive(), "its end")
    asking.join()
    verdicts = {verdict["id"]: verdict for verdict in found[0]["verdicts"]}
    assert verdicts["exact"]["score"] == verdicts["behind"]["score"] == 1
    assert verdicts["endless"]["score"] is None and verdicts["endless"]["failure"]["code"] == "verifier_crashed"
    assert found[0]["reward"] is None
    row, = incidents(service)
    assert (row["run"], row["verifier"], row["crashed"], row["timed_out"], row["alarm"]) == (None, "endless", 1, 0, False)


class Killer:
    """Kills a text worker now and then, until told to stop."""

    def __init__(self, service, seed):
        self.service, self.random, self.killed, self.stop = service, random.Random(seed), 0, threading.Event()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while not self.stop.wait(0.01 * self.random.random()):
            workers = text_workers(self.service)
            if workers:
                kill(self.random.choice(workers))
                self.killed += 1

    def end(self):
        self.stop.set()
        self.thread.join()


def assert_right_or_nothing(reward, failure, right):
    if reward is None:
        assert failure["code"] == "verifier_crashed" and failure["retryable"], failure
    else:
        assert reward == (1 if right else 0) and failure is None


def test_workers_killed_at_random_lose_no_item_and_make_up_no_reward(start):
    service = start(settings={"text_workers": "4"})
    items = [{"id": str(index), "completion": f"{SLOW_TEXT} \\boxed{{{index % 7}}}", "reference": str(index % 5)} for index in range(100)]
    killer, rounds = Killer(service, 1), []
    try:
        while killer.killed < 20:
            rounds.append(verify(service, items, [{"name": "math"}, SLOW]))
    finally:
        killer.end()
    for found in rounds:
        assert [item["id"] for item in found] == [item["id"] for item in items]
        for index, item in enumerate(found):
            assert_right_or_nothing(item["reward"], item["failure"], index % 7 == index % 5)
    samples, _ = metrics(service)
    assert samples["rolloutd_text_workers_replaced_total", ()] > 0
    again = verify(service, items, [{"name": "math"}, SLOW])
    assert [item["reward"] for item in again] == [1 if index % 7 == index % 5 else 0 for index in range(100)]


def test_workers_killed_at_random_under_batches_cost_verdicts_and_no_batch(start, toy):
    service = start(toy, settings={"text_workers": "2"})
    killer, batches = Killer(service, 2), []
    groups = [make_group(f"t{index}", f"{index}+{index}=", str(2 * index)) for index in range(4)]
    try:
        while killer.killed < 20:
            batches.append(service.batch(make_batch(*groups, run=f"killed{len(batches)}", sampling=sampling(8), deadline="2m",
                                                    verifiers=[{"name": "math", "options": {"extract": "last_number"}}, SLOW])))
    finally:
        killer.end()
    for batch in batches:
        assert batch["state"] == "complete" and len(rollouts(batch)) == 32
        for rollout in rollouts(batch):
            again = verify(service, [{"id": "1", "completion": rollout["text"], "reference": reference_of(batch, rollout)}],
                           [{"name": "math", "options": {"extract": "last_number"}}])[0]
            assert_right_or_nothing(rollout["reward"], rollout["failure"], again["reward"] == 1)


def reference_of(batch, rollout):
    task = next(group["task"] for group in batch["groups"] if rollout in group["rollouts"])
    return str(2 * int(task[1:]))
