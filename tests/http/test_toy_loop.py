"""The whole loop: a policy learns because of the gradients that rolloutd returned."""
import os
import re
import subprocess
import sys


from harness import ROOT

TRAINER = os.path.join(ROOT, "deploy", "demo", "toy_trainer.py")
ROW = re.compile(r"^ *(\d+) +(\d\.\d+) +(\S+) +(\S+) +(\d+) +(\d+) +(\d+\.\d+)")


def test_the_reward_climbs_from_below_a_fifth_to_above_nine_tenths(start, toy):
    service = start(toy)
    done = subprocess.run([sys.executable, TRAINER, "--service", service.url, "--engine", toy.url, "--run", "demo"],
                          capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [match.groups() for match in map(ROW.match, done.stdout.splitlines()) if match]
    rewards = [float(row[1]) for row in rows]
    assert [int(row[0]) for row in rows] == list(range(len(rows))) and len(rows) >= 24, done.stdout
    assert rewards[0] < 0.2 and min(rewards[-3:]) > 0.9, rewards
    assert all(float(row[2]) >= 0 and 0 <= float(row[3]) <= 1 for row in rows), "KL and clip fraction"
    runs = {row["run"]: row for row in service.read("/v1/runs")["items"]}
    assert runs["demo"]["policy_revision"] == len(rows)


def test_the_trainer_knows_nothing_of_reinforcement_learning():
    """It sends log-probabilities and applies what comes back; advantage, ratio, clip and KL are the service's."""
    with open(TRAINER, encoding="utf-8") as file:
        code = "\n".join(line.partition("#")[0] for line in file.read().splitlines())
    for word in ("advantage", "ratio", "surrogate", "clip("):
        assert word not in code.lower(), f"{word!r} in the trainer"
    assert "dloss_dlogp" in code
