"""Engines behind a proxy that lies (tools/fault_proxy.py): whatever comes back, a reward is of the tokens that the engine really sampled, or there is none."""
import contextlib
import importlib.util
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

from harness import PATIENCE, ROOT, descendants, eventually, http_request
from material import assert_failed_without_a_number, assert_sums_up, f32, make_batch, make_group, rollouts, sampling, seed_of

ROLLOUTS = int(os.environ.get("ROLLOUTD_FAULT_ROLLOUTS", "1000"))
SEED = int(os.environ.get("ROLLOUTD_FAULT_SEED", "1"))
ROUNDS, MEMBERS, LISTENERS = 4, 5, 16
PATTERN = r"^\\boxed\{[0-5]\}"
VERIFIERS = [{"name": "regex", "options": {"pattern": PATTERN}}]
QUICK = {"engine.backoff_min": "5ms", "engine.backoff_max": "50ms", "engine.connect_timeout": "3s", "rollout_timeout": "2s"}
TOOL = os.path.join(ROOT, "tests", "tools", "fault_proxy.py")


class FaultProxy:
    def __init__(self, folder, upstream, *args):
        self.log_file = os.path.join(str(folder), "proxy.log")
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen([sys.executable, TOOL, "--upstream", upstream, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.urls = eventually(self.ready, "the proxy to say READY")

    def log(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as file:
            return file.read()

    def ready(self):
        assert self.process.poll() is None, self.log()
        return self.log().split()[1:] if self.log().endswith("\n") else None

    def said(self):
        return http_request(self.urls[0], "GET", "/_faults").json

    def engines(self, in_flight=64, kind="vllm"):
        return [f"{url}#kind={kind}&in_flight={in_flight}" for url in self.urls]

    def drop_idle(self):
        http_request(self.urls[0], "GET", "/_drop")

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        said = self.log()
        assert "Traceback" not in said, said


@pytest.fixture
def proxy_of(tmp_path):
    made = []

    def make(upstream, *args):
        made.append(FaultProxy(tmp_path, upstream.url, *args))
        return made[-1]
    yield make
    for proxy in made:
        proxy.close()


def tool(path):
    """A module of deploy/demo or tests/tools by its path."""
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def toy_modules():
    folder = os.path.join(ROOT, "deploy", "demo")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return tool(os.path.join(folder, "toy_engine.py"))


class Truth:
    """The answers of the toy engine, computed without asking it."""

    def __init__(self):
        self.engine = toy_modules()
        self.policy = self.engine.toy_policy.TablePolicy()

    def sample(self, prompt, seed, max_tokens):
        wanted = self.engine.read_sampling({"n": 1, "max_tokens": max_tokens, "temperature": 1.0, "seed": seed})
        one = self.engine.sample(self.policy, prompt, wanted, max_tokens, seed)
        return one, [f32(value) for value in self.policy.log_probabilities(prompt, one.ids)]

    def check(self, rollout, task, prompt, max_tokens=16, batch_seed=7):
        """A scored rollout is the engine's to the last bit; any other has no number and says why."""
        assert rollout["seed"] == seed_of(batch_seed, 1, task, 0, rollout["sample_index"], rollout["resample"]), rollout
        if rollout["state"] != "scored":
            assert_failed_without_a_number(rollout)
            return False
        one, logprobs = self.sample(prompt, rollout["seed"], max_tokens)
        assert (rollout["completion_ids"], rollout["text"], rollout["finish_reason"]) == (one.ids, one.text, one.finish_reason), rollout
        assert [f32(value) for value in rollout["logprobs"]] == logprobs, rollout
        assert rollout["reward"] == (1.0 if re.search(PATTERN, one.text) else 0.0), rollout
        return True


# -- each fault by itself -----------------------------------------------------------------------------------------------------

# The names that each may have. A time limit may always come first where the engine was taken down meanwhile.
UNREACHABLE, BROKEN = {"engine_unreachable"}, {"engine_error", "invalid_reply", "engine_unreachable"}
NAMES = {"hang": {"engine_timeout"}, "byte_a_second": {"engine_timeout"}, "stalled_body": {"engine_timeout"}, "empty": {"invalid_reply"},
         "status_400": {"engine_error"}, "status_401": {"engine_error"}, "status_404": {"engine_error"}, "aborted": {"engine_error"}, "error_in_200": {"engine_error"},
         "status_504": {"engine_timeout"}, "no_ids_no_logprobs": {"empty_completion"}, "fewer_ids": {"invalid_reply", "empty_completion"}}


def names_of(kind):
    if kind in NAMES:
        return NAMES[kind]
    if kind.startswith(("status_429", "status_503", "status_502")):
        return {"engine_overloaded"}
    if kind.startswith("status_5"):
        return {"engine_error"}
    if kind.startswith("logprob_"):
        return {"non_finite_logprob", "invalid_reply"}
    if kind in ("more_ids", "index_1", "two_choices", "fewer_ids", "fewer_names", "fewer_logprobs", "no_logprobs", "wrong_count", "no_finish", "odd_finish", "half_json",
                "two_jsons", "html", "no_text", "nul_json") or kind.startswith("id_"):
        return {"invalid_reply"}
    return BROKEN | UNREACHABLE


def test_each_fault_has_its_name_and_costs_no_more_than_its_time(start, toy, proxy_of):
    kinds = [kind for kind in subprocess.run([sys.executable, TOOL, "--kinds"], capture_output=True, text=True, check=True).stdout.split()]
    proxy, truth = proxy_of(toy, "--listeners", "64"), Truth()
    service = start(*proxy.engines(), settings={**QUICK, "engine.attempts": 2, "rollout_timeout": "8s"})
    prompts = {kind: f"[[{kind}]] 1+1=" for kind in kinds}
    batch = service.batch(make_batch(*[make_group(kind, prompts[kind]) for kind in kinds], verifiers=VERIFIERS, sampling=sampling(1), deadline="30s"))
    assert batch["state"] == "complete"
    wrong = {}
    for group in batch["groups"]:
        kind, rollout = group["task"], group["rollouts"][0]
        scored = truth.check(rollout, kind, prompts[kind])
        got = "scored" if scored else rollout["failure"]["code"]
        if got not in ({"scored"} if kind in ("wrong_type", "delay") else names_of(kind) | ({"scored"} if kind == "two_lengths" else set())):
            wrong[kind] = (got, rollout["failure"])
    assert not wrong, "\n".join(f"{kind}: {got}" for kind, got in wrong.items())
    said = proxy.said()
    assert set(said["injected"]) == set(kinds) and said["followed"] == 0, "a redirect was followed"
    assert_sums_up(batch)


SLOW = ("hang", "byte_a_second", "stalled_body")  # the same for every kind, and each costs its time


@pytest.mark.parametrize("kind", ["vllm_generate", "sglang", "llamacpp", "openai_compat"])
def test_every_kind_of_engine_may_fail_in_every_way_that_knows_no_form(start, engine, proxy_of, kind):
    """The fault's name travels in engine_options, which every kind is handed."""
    listed = subprocess.run([sys.executable, TOOL, "--any-form"], capture_output=True, text=True, check=True).stdout.split()
    faults = [fault for fault in listed if fault not in SLOW]
    proxy = proxy_of(engine, "--listeners", "64")
    service = start(*proxy.engines(kind=kind), settings={**QUICK, "engine.attempts": 2})
    groups = [make_group(fault, prompt=None, prompt_ids=[1, 411, 907, 23], sampling={"engine_options": {"fault": f"[[{fault}]]"}}) for fault in faults]
    batch = service.batch(make_batch(*[{name: value for name, value in group.items() if value is not None} for group in groups],
                                     verifiers=VERIFIERS, sampling=sampling(1), deadline="30s"))
    wrong = {}
    for group in batch["groups"]:
        fault, rollout = group["task"], group["rollouts"][0]
        if rollout["state"] == "scored":
            assert (rollout["completion_ids"], rollout["text"]) == ([812, 13, 2], " 4."), rollout
            if fault not in ("wrong_type", "delay", "two_lengths"):
                wrong[fault] = "scored"
            continue
        assert_failed_without_a_number(rollout)
        if rollout["failure"]["code"] not in names_of(fault):
            wrong[fault] = rollout["failure"]
    assert not wrong and set(proxy.said()["injected"]) == set(faults), wrong
    assert_sums_up(batch)


# -- all together -------------------------------------------------------------------------------------------------------------

def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"RssAnon:\s+(\d+)", file.read())[1]) << 10


def size_of_record(service):
    """Its pages, wherever they are: in the file, or still in the log."""
    with contextlib.closing(sqlite3.connect(f"file:{service.database}?mode=ro", uri=True)) as database:
        return database.execute("PRAGMA page_count").fetchone()[0] * database.execute("PRAGMA page_size").fetchone()[0]


def footprint(service):
    return {"descriptors": len(os.listdir(f"/proc/{service.pid}/fd")), "children": len(descendants(service.pid)), "bytes": memory_of(service.pid),
            "record": size_of_record(service)}


def settled_footprint(service, proxy):
    """Idle connections to engines are no leak: the next use of one finds the dead ones, at most once a second."""
    def let_go():
        proxy.drop_idle()
        service.batch(make_batch(sampling=sampling(2)))
        return len(os.listdir(f"/proc/{service.pid}/fd")) < 48
    eventually(let_go, "the engines' connections to be closed")
    service.post("/v1/verify", b" " * (5 << 20))  # after a large body what the allocator keeps is given back
    return footprint(service)


def is_flat(first, last):
    """The record's pages are cached by the writer and each reader until the caches are full."""
    cached = (1 + os.cpu_count()) * (last["record"] - first["record"])
    return last["children"] <= first["children"] and (os.environ.get("ROLLOUTD_SANITIZED") or last["bytes"] <= first["bytes"] + (8 << 20) + cached)


def post_round(service, number, count, deadline):
    """Batches of several sizes at once; {task: prompt} and the finished batches."""
    prompts = {f"r{number}-{index}": f"{index % 10}+{index // 10 % 10}=" for index in range(count // MEMBERS)}
    tasks, ids = list(prompts), []
    for first in range(0, len(tasks), 40):
        groups = [make_group(task, prompts[task]) for task in tasks[first:first + 40]]
        reply = service.post("/v1/batches", make_batch(*groups, verifiers=VERIFIERS, sampling=sampling(MEMBERS), deadline=deadline), {"Prefer": "respond-async"})
        assert reply.status == 202, reply
        ids.append(reply.json["id"])
    return prompts, ids


def test_random_mixtures_of_faults_make_no_reward_no_hang_and_no_leak(start, toy, proxy_of):
    proxy, truth = proxy_of(toy, "--listeners", str(LISTENERS), "--seed", str(SEED), "--rate", "0.7"), Truth()
    service = start(*proxy.engines(), settings={**QUICK, "engine.attempts": 3, "rollout_timeout": "1500ms"})
    eventually(lambda: service.batch(make_batch(verifiers=VERIFIERS, sampling=sampling(8)))["summary"]["scored"], "a first reward")
    before, footprints, scored, failures = settled_footprint(service, proxy), [], 0, {}
    for number in range(ROUNDS):
        prompts, ids = post_round(service, number, ROLLOUTS // ROUNDS, "30s")
        end = time.monotonic() + 30 + PATIENCE / 2
        for identity in ids:
            batch = service.settled(identity)
            assert time.monotonic() < end, "a batch did not end by its deadline"
            assert batch["state"] in ("complete", "expired")
            for group in batch["groups"]:
                for rollout in group["rollouts"]:
                    if truth.check(rollout, group["task"], prompts[group["task"]]):
                        scored += 1
                    else:
                        failures[rollout["failure"]["code"]] = failures.get(rollout["failure"]["code"], 0) + 1
            assert_sums_up(batch)
        footprints.append(settled_footprint(service, proxy))
    said = proxy.said()
    print(f"scored {scored}, failed {failures}, injected {sum(said['injected'].values())} of {len(said['injected'])} kinds; {footprints}")
    assert scored + sum(failures.values()) == ROLLOUTS // ROUNDS // MEMBERS * MEMBERS * ROUNDS
    assert scored and failures and said["followed"] == 0 and sum(said["injected"].values()) > ROLLOUTS / 2
    eventually(lambda: is_flat(before, footprint(service)), f"memory and children to be as before: {before}, now {footprints[-1]}", 20)


def test_siblings_whose_prompt_was_read_differently_are_refused(service, engine):
    """The advantage compares answers to one prompt, and the record has one prompt for a group."""
    engine.rules({"in": '"prompt"', "hold": True, "times": 1}, {"prompt_ids": [9, 9, 9], "times": 1}, {"hold": True})
    identity = service.post("/v1/batches", make_batch(sampling=sampling(3)), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: service.read(f"/v1/batches/{identity}", wait="0s")["counts"]["done"] == 1, "the first answer to be on record")
    engine.release()
    batch = service.settled(identity)
    (group,) = batch["groups"]
    assert [rollout["state"] for rollout in group["rollouts"]] == ["scored"] * 3, "another attempt is made, with the ids that are known"
    assert sorted(rollout["attempts"] for rollout in group["rollouts"]) == [1, 2, 2]
    assert [entry["body"]["prompt"] for entry in engine.samples[3:]] == [[9, 9, 9]] * 2


def test_a_connection_that_is_never_taken_is_a_typed_failure(start, tmp_path):
    """The engine's queue of connections is full: the handshake hangs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        service = start(f"http://127.0.0.1:{port}#kind=vllm", settings={**QUICK, "engine.connect_timeout": "200ms", "engine.attempts": 2, "engine.down_timeout": "1s"})
        rollout = rollouts(service.batch(make_batch(sampling=sampling(1), deadline="20s")))[0]
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] in ("engine_unreachable", "engine_timeout")
        for filler in fillers:
            filler.close()
