"""Process supervision: advantages of tokens from the grades of steps, in scores and batches (DeepSeekMath 4.1.3). The formula is written
down here once more, from the paper."""
import base64
import json
import math
import os
import random
import re
import sqlite3
import struct
from fractions import Fraction

import pytest

from harness import ROOT
from material import close, make_batch, rollouts
from test_recompute import verify
from test_steps import OKS, body, cases, check, score

def normalised(value, pool, ddof=0, scale="group"):
    """grpo over the pool, in exact fractions up to the root: equal values give 0."""
    pool = [Fraction(entry) for entry in pool]
    if len(pool) == 1 or max(pool) == min(pool):
        return 0.0
    mean = sum(pool) / len(pool)
    centred = Fraction(value) - mean
    if scale == "none":
        return float(centred)
    if len(pool) <= ddof:
        return 0.0
    return float(centred) / math.sqrt(sum((entry - mean) ** 2 for entry in pool) / (len(pool) - ddof))


def process_advantages(members, coef=0.0, ddof=0, scale="group"):
    """DeepSeekMath 4.1.3 from its text. members: (tokens, [(end, reward)], outcome or None, mask), or None for one without a reward."""
    judged = [member for member in members if member]
    pool = [reward for _, steps, _, _ in judged for _, reward in steps]
    outcomes = [outcome for _, _, outcome, _ in judged if outcome is not None]
    found = []
    for member in members:
        if not member:
            found.append(None)
            continue
        tokens, steps, outcome, mask = member
        base = coef * normalised(outcome, outcomes, ddof, scale) if outcome is not None else 0.0
        found.append([base + math.fsum(normalised(reward, pool, ddof, scale) for end, reward in steps if end > t) if mask[t] else 0.0
                      for t in range(tokens)])
    return found


def process(**knobs):
    return {"advantage": {"estimator": "process", **knobs}}


@pytest.mark.parametrize("case", cases("process", "process_failed", "process_heldout", "process_knobs", "process_pooled", "process_rule",
                                       "process_weight", "outcome"))
def test_advantages_of_steps_as_the_case_says(plain, case):
    reply = plain.post("/v1/score", body(case["verifiers"], *case["completions"], store=False, objective=case["objective"]))
    assert reply.status == 200, reply
    for rollout, want in zip(rollouts(reply.json), case["expected"]):
        check(rollout, case, want)
        assert close(rollout["advantage"], want["advantage"], relative=1e-9, absolute=1e-9)


def test_the_example_of_the_documentation(plain):
    """The request of docs/steps.md gives the advantages that its table works out by hand."""
    with open(os.path.join(ROOT, "docs", "steps.md"), encoding="utf-8") as file:
        section = file.read().split("## Process supervision")[1]
    asked = json.loads(re.search(r"```json\n(.*?)```", section, re.S)[1])
    reply = plain.post("/v1/score", asked)
    assert reply.status == 200, reply
    found = [rollout["advantage"] for rollout in rollouts(reply.json)]
    rows = [[float(number) for number in cell.replace("\u2212", "-").split(", ")] for cell in re.findall(r"^\| \d \|.*\| ([^|]+) \|$", section, re.M)]
    assert len(rows) == 3 and close(found, rows, relative=0, absolute=1e-6)
    coef = asked["objective"]["advantage"]["outcome_coef"]
    members = [(4, [(2, 1), (4, 0)], 1, [1] * 4), (3, [(1, 0), (3, 0)], 0, [1] * 3), (2, [(2, 1)], 0, [1] * 2)]
    assert close(found, process_advantages(members, coef), relative=1e-12)


def draw_member(draw):
    """A completion with steps of two verdicts, one of them with a weight, an outcome, and what process has of it."""
    count = draw.randrange(1, 12)
    mask = [draw.choice([0, 1, 1, 1]) for _ in range(count)]
    grades = {name: sorted((draw.randrange(1, count + 1), draw.choice([0.0, 0.25, 0.5, 1.0, -1.0])) for _ in range(draw.randrange(5)))
              for name in ("prm", "style")}
    outcome = draw.choice([0.0, 1.0])
    rewards = {name: {"score": draw.random(), "weight": 1.0 if name == "prm" else 0.5, "steps": [{"end": end, "score": grade} for end, grade in grades[name]]}
               for name in grades}
    rewards["right"] = {"score": outcome, "weight": 2.0}
    steps = [(end, (1.0 if name == "prm" else 0.5) * grade) for name in grades for end, grade in grades[name]]
    entry = {"text": "x" * count, "completion_ids": list(range(count)), "completion_mask": mask, "rewards": rewards}
    return entry, (count, steps, 2.0 * outcome, mask)


@pytest.mark.parametrize("knobs", [{}, {"ddof": 1}, {"scale": "none"}, {"outcome_coef": 0.5}, {"outcome_coef": -2, "ddof": 1}])
def test_random_groups_have_the_advantages_of_the_formula(plain, knobs):
    draw = random.Random(41)
    for _ in range(12):
        drawn = [draw_member(draw) for _ in range(draw.randrange(1, 6))]
        found = score(plain, [], *(entry for entry, _ in drawn), store=False, objective=process(**knobs))
        want = process_advantages([member for _, member in drawn], knobs.get("outcome_coef", 0), knobs.get("ddof", 0), knobs.get("scale", "group"))
        for rollout, numbers in zip(found, want):
            assert close(rollout["advantage"], numbers, relative=1e-9, absolute=1e-9), (rollout["rewards"], numbers)


def two_rollouts(**more):
    return [{"text": "xxxx", "completion_ids": [1, 2, 3, 4], "completion_mask": [1, 1, 0, 1],
             "rewards": {"prm": {"score": 0.5, "steps": [{"end": 2, "score": 1.0}, {"end": 4, "score": 0.0}]}}, **more},
            {"text": "xx", "completion_ids": [1, 2], "rewards": {"prm": {"score": 1.0, "steps": [{"end": 2, "score": 1.0}]}}}]


def test_a_batch_of_steps_is_stored_and_its_loss_is_that_of_its_advantages(plain):
    batch = plain.post("/v1/score", body([], *two_rollouts(), objective=process())).json
    first, second = rollouts(batch)
    root = math.sqrt(0.5)  # rewards 1, 0, 1: mean 2/3, deviation sqrt(2)/3
    assert close(first["advantage"], [-root, -root, 0.0, -2 * root], relative=1e-12) and close(second["advantage"], [root, root], relative=1e-12)
    assert close(first["surrogates"], first["advantage"]) and close(batch["loss"], -(-4 * root / 3 + root) / 2, relative=1e-12)
    assert close(math.fsum(term for rollout in rollouts(batch) for term in rollout["contributions"]), batch["loss"], relative=1e-12)
    assert plain.read(f"/v1/batches/{batch['id']}") == batch
    assert plain.read(f"/v1/rollouts/{first['id']}")["advantage"] == first["advantage"]
    unstored = plain.post("/v1/score", body([], *two_rollouts(), objective=process(), store=False)).json
    assert [rollout["advantage"] for rollout in rollouts(unstored)] == [first["advantage"], second["advantage"]]
    assert close(unstored["loss"], batch["loss"], relative=1e-15)


def test_lists_and_replies_without_arrays_have_the_first_tokens_advantage(plain):
    batch = plain.post("/v1/score", body([], *two_rollouts(), objective=process(), run="short")).json
    first, second = rollouts(batch)
    rows = plain.read("/v1/rollouts", run="short", fields="advantage")["items"]
    assert sorted(row["advantage"] for row in rows) == [first["advantage"][0], second["advantage"][0]]
    bare = plain.read(f"/v1/rollouts/{first['id']}", arrays="none")
    assert bare["advantage"] == first["advantage"][0] and "surrogates" not in bare
    data = base64.b64decode(plain.read(f"/v1/rollouts/{first['id']}", arrays="base64")["advantage_f64"])
    assert list(struct.unpack("<4d", data)) == first["advantage"]


def test_the_objective_takes_the_advantages_of_tokens_from_the_record(plain):
    batch = plain.post("/v1/score", body([], *two_rollouts(), objective=process())).json
    named = [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in rollouts(batch)]
    reply = plain.post("/v1/objective", {"sequences": named})
    assert reply.status == 200 and close(reply.json["loss"], batch["loss"], relative=1e-12), reply
    assert [row["advantage"] for row in reply.json["sequences"]] == [rollout["advantage"] for rollout in rollouts(batch)]
    anew = plain.post("/v1/objective", {"sequences": named, "objective": process(scale="none")}).json
    assert close(anew["sequences"][1]["advantage"], [1 / 3, 1 / 3], relative=1e-12)
    plainly = plain.post("/v1/objective", {"sequences": named, "objective": {"preset": "grpo"}}).json
    assert [row["advantage"] for row in plainly["sequences"]] == [-1.0, 1.0]


def test_a_batch_by_outcome_gets_the_advantages_of_its_steps_from_an_objective_call(plain):
    batch = plain.post("/v1/score", body([], *two_rollouts())).json
    assert [rollout["advantage"] for rollout in rollouts(batch)] == [-1.0, 1.0]
    named = [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in rollouts(batch)]
    reply = plain.post("/v1/objective", {"sequences": named, "objective": process()})
    root = math.sqrt(0.5)
    assert reply.status == 200 and close(reply.json["sequences"][0]["advantage"], [-root, -root, 0.0, -2 * root], relative=1e-12), reply


def test_a_gate_that_is_shut_makes_the_grades_of_its_rollout_zero(plain):
    verifier = {"name": "exact", "reference": "xx", "gate": True, "weight": 0}
    first, second = score(plain, [verifier], *two_rollouts(), store=False, objective=process())
    assert first["rewards"]["exact"]["gate"] is True and first["reward"] == 0
    half = math.sqrt(0.5)  # rewards 0, 0, 1: mean 1/3, deviation sqrt(2)/3
    assert close(first["advantage"], [-2 * half, -2 * half, 0.0, -half], relative=1e-12) and close(second["advantage"], [2 * half, 2 * half], relative=1e-12)


def test_a_sampled_batch_by_steps_needs_a_verifier_that_grades_them(plain):
    asked = make_batch(objective=process())
    reply = plain.post("/v1/batches", asked)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "objective_options", "objective.advantage.estimator"), reply
    reply = plain.post("/v1/score", body([], *two_rollouts(), objective={**process(), "shaping": [{"kind": "no_eos_zero"}]}))
    assert (reply.status, reply.error["path"]) == (422, "objective.shaping"), reply


def test_a_rollout_without_tokens_has_one_advantage(plain):
    [first, second] = score(plain, [OKS], {"text": "ok"}, {"text": "no"}, store=False, objective=process(outcome_coef=1))
    assert (first["advantage"], second["advantage"], first["contributions"]) == (0.0, 0.0, None)


def test_an_outcome_stands_beside_step_rewards_in_the_stateless_form(plain):
    def sequence(steps, **reward):
        return {"group": "g", "logprobs": [-1.0, -1.0], "step_rewards": steps, **reward}

    made = [sequence([[2, 1.0]], reward=1.0), sequence([[2, 1.0]], reward=0.0)]
    reply = plain.post("/v1/objective", {"sequences": made, "objective": process(outcome_coef=0.5)}).json
    assert [row["advantage"] for row in reply["sequences"]] == [[0.5, 0.5], [-0.5, -0.5]]
    made = [sequence([[2, 1.0]], rewards={"a": {"score": 1.0}}), sequence([[2, 1.0]], rewards={"a": {"score": None}}), sequence([[2, 1.0]])]
    reply = plain.post("/v1/objective", {"sequences": made, "objective": process(outcome_coef=0.5, singleton="raw")}).json
    assert [row["advantage"] for row in reply["sequences"]] == [[0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]
    refused = plain.post("/v1/objective", {"sequences": [{"group": "g", "logprobs": [-1.0], "token_rewards": [1.0], "reward": 1.0}], "objective": process()})
    assert refused.status == 400


def test_verify_database_computes_the_advantages_of_tokens_anew(start):
    service = start()
    made = score(service, [], *two_rollouts(), objective=process(outcome_coef=0.25))
    service.terminate()
    assert verify(service)[0] == 0
    with sqlite3.connect(service.database) as link:
        [(seq, runs, sample)] = link.execute("SELECT rollout_seq, advantages, sample_index FROM rollout_advantages JOIN rollouts ON rollouts.seq = rollout_seq LIMIT 1").fetchall()
        link.execute("UPDATE rollout_advantages SET advantages = ? WHERE rollout_seq = ?", (runs[:-8] + struct.pack("<d", 17.0), seq))
    code, said = verify(service)
    assert code == 1 and f"g_{made[0]['id'][2:].rsplit('-', 1)[0]} sample {sample}: 17, not " in said, said
    with sqlite3.connect(service.database) as link:
        link.execute("DELETE FROM rollout_advantages WHERE rollout_seq = ?", (seq,))
    assert verify(service)[0] == 1
