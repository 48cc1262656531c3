"""The ten lines of docs/leases.md, as they stand there."""
import os
import re
import sys
import types

from harness import ROOT
from leasing import RIGHT, counts
from material import make_group

sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import rolloutd  # noqa: E402


def lines_of_the_page():
    with open(os.path.join(ROOT, "docs", "leases.md"), encoding="utf-8") as file:
        return re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)


def test_the_ten_lines_train_on_every_group_once(service, engine):
    engine.rules(RIGHT)
    code = lines_of_the_page().replace("http://127.0.0.1:8787", service.url)
    assert len(code.splitlines()) == 10
    trained = []
    names = {"rolloutd": rolloutd, "checkpoint": types.SimpleNamespace(step=0), "steps": 3, "next_prompts": lambda: [make_group(f"t{i}") for i in range(4)],
             "train": lambda group: trained.append(group["id"]), "push_weights": lambda: None}
    exec(code, names)  # pylint: disable=exec-used
    assert len(trained) == len(set(trained)) == 12
    left = {state: count for state, count in counts(service, "arith").items() if state in ("acked", "leased", "stale", "failed")}
    assert left == {"acked": 12} and service.read("/v1/runs/arith")["policy_revision"] == 3


def test_a_trainer_that_dies_in_a_step_goes_on_from_its_checkpoint(service, engine):
    engine.rules(RIGHT)
    code = lines_of_the_page().replace("http://127.0.0.1:8787", service.url)
    trained, died = [], []

    def train(group):
        if len(trained) == 6 and not died:
            died.append(group["id"])
            raise KeyboardInterrupt
        trained.append(group["id"])

    names = {"rolloutd": rolloutd, "checkpoint": types.SimpleNamespace(step=0), "steps": 3, "next_prompts": lambda: [make_group(f"t{i}") for i in range(4)],
             "train": train, "push_weights": lambda: None}
    try:
        exec(code, names)  # pylint: disable=exec-used
    except KeyboardInterrupt:
        del trained[4:]  # of the step that was not finished
    names["checkpoint"] = types.SimpleNamespace(step=1)
    exec(code, names)  # pylint: disable=exec-used
    assert died and len(trained) == len(set(trained)) == 12 and died[0] in trained
    assert counts(service, "arith")["acked"] == 12
