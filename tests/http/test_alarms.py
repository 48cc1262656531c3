"""Alarms: raised when a run goes wrong, gone when it does not, with the evidence beside them."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from urllib.parse import parse_qsl, urlsplit

import pytest

from engines import ToyEngine
from harness import ROOT, eventually
from material import make_batch, make_group
from test_curl_pages import printed, same

DEMO = os.path.join(ROOT, "deploy", "demo")


def score(service, run, revision, tasks, verifiers=None, purpose="train"):
    """tasks: {task: texts}; the reference is 7."""
    groups = [{"task": task, "reference": "7", "completions": [text if isinstance(text, dict) else {"text": text} for text in texts]} for task, texts in tasks.items()]
    reply = service.post("/v1/score", {"run": run, "policy_revision": revision, "purpose": purpose, "verifiers": verifiers or [{"name": "math"}], "groups": groups})
    assert reply.status == 200, reply
    return reply.json


def raised(service, run):
    return {item["alarm"]: item for item in service.read("/v1/pending", run=run)["alarms"]}


def wait_for(service, run, *alarms):
    """These alarms and no others."""
    def check():
        found = raised(service, run)
        return [found] if set(found) == set(alarms) else None
    return eventually(check, f"{alarms} of {run}")[0]


def evidence(service, item):
    parts = urlsplit(item["evidence"])
    return service.read(parts.path, **dict(parse_qsl(parts.query)))["items"]


EVEN = {f"t{index}": ["\\boxed{7}", "\\boxed{8}"] * 4 for index in range(5)}
FLAT = {f"t{index}": ["\\boxed{7}"] * 8 for index in range(5)}


def test_zero_variance_is_raised_and_ends_with_its_cause(start):
    service = start()
    score(service, "flat", 1, EVEN)
    score(service, "flat", 2, FLAT)
    item = wait_for(service, "flat", "zero_variance")["zero_variance"]
    assert (item["revision"], item["value"], item["threshold"], item["engine"]) == (2, 1, 0.8, None)
    found = evidence(service, item)
    assert len(found) == 5 and all(row["zero_variance_groups"] == row["groups"] == 1 for row in found)
    assert re.search(r'^rolloutd_alarms\{alarm="zero_variance"\} 1$', service.get("/metrics").body.decode(), re.M)
    score(service, "flat", 3, EVEN)
    wait_for(service, "flat")
    lines = [line for line in service.log().splitlines() if "alarm=zero_variance" in line]
    assert len(lines) == 2 and " warning alarm " in lines[0] and " info alarm ended " in lines[1] and "evidence=" in lines[0]
    assert re.search(r'^rolloutd_alarms\{alarm="zero_variance"\} 0$', service.get("/metrics").body.decode(), re.M)


def test_alarms_of_recent_runs_are_there_after_a_start_and_end_with_their_cause(start):
    service = start()
    for run, tasks in (("old", FLAT), ("even", EVEN), ("flat", FLAT), ("evaluated", EVEN)):
        score(service, run, 1, tasks)
    score(service, "evaluated", 1, FLAT, purpose="eval")
    wait_for(service, "flat", "zero_variance")
    wait_for(service, "old", "zero_variance")
    service.terminate()
    with sqlite3.connect(service.database) as link:
        link.execute("UPDATE batches SET created_at_us = created_at_us - 8 * 86400000000 WHERE run_seq = (SELECT seq FROM runs WHERE name = 'old')")
    again = start(database=service.database)
    item = wait_for(again, "flat", "zero_variance")["zero_variance"]
    assert (item["revision"], item["value"]) == (1, 1) and evidence(again, item)
    score(again, "last", 1, FLAT)
    wait_for(again, "last", "zero_variance")  # looked at behind the others
    assert [one["run"] for one in again.read("/v1/pending")["alarms"]] == ["flat", "last"]
    score(again, "flat", 2, EVEN)
    wait_for(again, "flat")


def test_completions_that_are_cut_off_are_an_alarm(start):
    service = start()
    cut = {f"t{index}": [{"text": "\\boxed{7}", "finish_reason": "length"}, {"text": "\\boxed{8}", "finish_reason": "stop"}] * 4 for index in range(5)}
    score(service, "cut", 1, cut)
    item = wait_for(service, "cut", "truncated")["truncated"]
    assert item["value"] == 0.5 and sum(row["n"] for row in evidence(service, item) if row["key"]["finish_reason"] == "length") == 20


def test_failures_are_an_alarm_with_their_engine(service, engine):
    engine.rules({"in": "LOST", "lp": None}, {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]})
    groups = [make_group(f"t{index}", "LOST" if index < 5 else "6*7") for index in range(20)]
    service.batch(make_batch(*groups, run="lost"))
    found = wait_for(service, "lost", "failed")["failed"]
    assert (found["revision"], found["value"], found["threshold"]) == (1, 0.25, 0.2)
    assert [(row["key"]["failure"], row["n"], row["key"]["engine"] is None) for row in evidence(service, found) if row["key"]["failure"]] == [("invalid_reply", 10, False)]


def test_a_reward_that_rises_while_the_truth_falls_is_a_divergence_until_it_is_not(start):
    """`format` is rewarded, `exact` is held out. By hand: 20 tasks of 2, all alike, so the errors are 0 and any change is beyond them."""
    service = start()
    verifiers = [{"name": "format", "options": {"template": "boxed_once"}}, {"name": "exact", "heldout": True}]
    # rewards 0 and 1, truth 1 and 0 in each task; then rewards 1, truth 0
    before = {f"t{index}": ["7", "\\boxed{8}"] for index in range(20)}
    after = {f"t{index}": ["\\boxed{8}", "\\boxed{9}"] for index in range(20)}
    score(service, "gamed", 1, before, verifiers)
    score(service, "gamed", 2, after, verifiers)
    item = wait_for(service, "gamed", "divergence", "zero_variance")["divergence"]
    assert (item["from_revision"], item["revision"]) == (1, 2) and item["value"] == 0.5
    means = {(row["key"]["revision"], row["key"]["verifier"]): row["score"]["mean"] for row in evidence(service, item)}
    assert means[1, "format"] < means[2, "format"] and means[1, "exact"] > means[2, "exact"]
    score(service, "gamed", 3, before, verifiers)
    wait_for(service, "gamed")


def test_few_rollouts_evaluations_and_alarms_that_are_off_say_nothing(start):
    service = start(settings={"alarms.truncated": "0"})
    score(service, "few", 1, {"t": ["\\boxed{7}"] * 8})
    score(service, "eval", 1, FLAT, purpose="eval")
    score(service, "off", 1, {f"t{index}": [{"text": text, "finish_reason": "length"} for text in ("\\boxed{7}", "\\boxed{8}") * 4] for index in range(5)})
    score(service, "flat", 1, FLAT)
    wait_for(service, "flat", "zero_variance")  # looked at after the others
    assert {item["run"] for item in service.read("/v1/pending")["alarms"]} == {"flat"}


def test_the_alarms_of_a_run_go_with_it(start):
    service = start()
    score(service, "flat", 1, FLAT)
    wait_for(service, "flat", "zero_variance")
    assert service.delete("/v1/runs/flat").status == 202
    assert service.read("/v1/pending")["alarms"] == []


def test_an_engine_that_missed_an_update_is_named(start):
    service = start()
    groups = [{"task": f"t{index}", "reference": "7", "completions": [
        {"text": text, "completion_ids": [1, 2], "logprobs": [-0.5, -0.5], "engine": "stale", "finish_reason": "stop"} for text in ("\\boxed{7}", "\\boxed{8}")]} for index in range(20)]
    reply = service.post("/v1/score", {"run": "gap", "policy_revision": 1, "verifiers": [{"name": "math"}], "groups": groups})
    if reply.status == 400:
        pytest.skip("completions that are given name no engine")
    ids = [rollout["id"] for group in reply.json["groups"] for rollout in group["rollouts"]]
    call = {"objective": {"preset": "grpo"}, "optimizer_step": 1, "sequences": [{"rollout": identity, "logprobs": [-1.0, -1.0], "old_logprobs": [-1.0, -1.0]} for identity in ids]}
    assert service.post("/v1/objective", call).status == 200
    score(service, "gap", 1, EVEN)
    item = wait_for(service, "gap", "logprob_gap")["logprob_gap"]
    assert (item["value"], item["engine"]) == (0.5, "stale")


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="there is no jq or no curl")
def test_the_quickstart_s_run_collapses_when_the_toy_engine_goes_wrong_and_the_page_shows_it(start, tmp_path):
    engine = ToyEngine(tmp_path)
    try:
        service = start(engine)
        engine.post("/misbehave", {"rules": [{"from_revision": 3, "say": "\\boxed{1}"}]})
        done = subprocess.run([sys.executable, os.path.join(DEMO, "toy_trainer.py"), "--service", service.url, "--engine", engine.url, "--revisions", "4"],
                              capture_output=True, text=True, timeout=600, check=False)
        assert "3" in done.stdout, done
        wait_for(service, "demo", "zero_variance")
        with open(os.path.join(ROOT, "docs", "alarms.md"), encoding="utf-8") as file:
            found = re.findall(r"^```sh\n(.*?)\n```\n(?:\n```\n(.*?)\n```$)?", file.read(), re.M | re.S)
        assert len(found) == 3
        shown = [printed(service, line) for line, _ in found]
        assert same(shown[0], [json.loads(row) for row in found[0][1].splitlines()]), shown[0]
        means = {(row[0], row[1]): row[4] for row in shown[1]}
        assert means[3, "format"] == 1 and means[3, "math"] < means[2, "math"] and all(row[2] for row in shown[1])
        assert len(shown[2]) == 3 and all(row[1:] == [1, True] for row in shown[2])
    finally:
        engine.close()
