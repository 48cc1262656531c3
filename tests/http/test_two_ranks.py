"""A trainer of two ranks with three micro-batches each: the parts of an optimiser step add up to the step.

Written against README.md, /openapi.yaml and /v1/presets alone. No torch: parameters are rows of logits, backward is
(dloss_dlogp * logprobs).sum().backward() carried out by hand.
"""
import math
import os
import random
import sys

import pytest

from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "deploy", "demo"))
from toy_policy import POSITIONS, PRIOR, TablePolicy  # noqa: E402

RANKS, MICRO_BATCHES = 2, 3
OBJECTIVE = {"preset": "grpo", "beta": 0.04}
TASKS = {f"sum-{a}-{b}": (f"{a}+{b}=", str(a + b)) for a, b in [(0, 2), (1, 1), (3, 4), (2, 5), (6, 1)]}
ULP = 2.0 ** -52

# Each divides by something else: sequences, tokens, nothing, sequences and a length.
AGGREGATIONS = [None, {"mode": "token_mean"}, {"mode": "token_sum"}, {"mode": "seq_mean_token_sum"},
                {"mode": "seq_mean_token_sum_norm", "max_len": 12}]


class Learner:
    """The state of which every rank holds a copy: parameters, and the frozen reference."""

    def __init__(self):
        noise = random.Random(3)
        self.policy, self.reference = TablePolicy(), TablePolicy()
        for prompt, _ in TASKS.values():
            self.policy.set_rows(prompt, [[logit + noise.gauss(0, 0.2) for logit in row] for row in PRIOR])

    def sequence(self, rollout, prompt):
        ids = rollout["completion_ids"]
        return {"rollout": rollout["id"], "logprobs": self.policy.log_probabilities(prompt, ids),
                "ref_logprobs": self.reference.log_probabilities(prompt, ids)}

    def backward(self, gradient, prompt, ids, dloss_dlogp):
        """gradient: {(prompt, row, logit): terms}; d logp(token) / d logit(i) = [i is token] - p(i)."""
        for position, (token, derivative) in enumerate(zip(ids, dloss_dlogp)):
            row = min(position, POSITIONS - 1)
            for i, logp in enumerate(self.policy.log_row(prompt, position)):
                gradient.setdefault((prompt, row, i), []).append(derivative * ((i == token) - math.exp(logp)))


class Step:
    """One optimiser step on one sampled batch."""

    def __init__(self, service, learner, objective):
        self.service, self.learner, self.objective = service, learner, objective
        reply = service.batch({
            "run": "ranks", "policy_revision": 0, "seed": 11, "sampling": {"n": 7, "max_tokens": 12}, "deadline": "30s",
            "verifiers": [{"name": "math", "weight": 0.8}, {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}}],
            "objective": objective,
            "groups": [{"task": task, "prompt": prompt, "reference": reference} for task, (prompt, reference) in TASKS.items()]})
        assert reply["state"] == "complete" and not reply["summary"]["failures"]
        self.totals = reply["totals"]
        self.samples = [(TASKS[group["task"]][0], rollout) for group in reply["groups"] for rollout in group["rollouts"]]
        random.Random(5).shuffle(self.samples)  # a trainer's sampler knows nothing of groups

    def call(self, samples, **more):
        reply = self.service.post("/v1/objective", {
            "objective": self.objective, "sequences": [self.learner.sequence(rollout, prompt) for prompt, rollout in samples],
            "return": ["dloss_dlogp"], **more})
        assert reply.status == 200, reply
        gradient, tokens = {}, {}
        for (prompt, rollout), sequence in zip(samples, reply.json["sequences"], strict=True):
            assert sequence["rollout"] == rollout["id"], "sequences keep the request's order"
            tokens[rollout["id"]] = sequence["dloss_dlogp"]
            self.learner.backward(gradient, prompt, rollout["completion_ids"], sequence["dloss_dlogp"])
        return {"json": reply.json, "tokens": tokens, "gradient": {key: math.fsum(terms) for key, terms in gradient.items()},
                "size": {key: math.fsum(map(abs, terms)) for key, terms in gradient.items()}}

    def parts(self):
        """[rank][micro-batch], of different sizes; each call says which part of which step it is."""
        cuts, size = [], len(self.samples)
        for part in range(RANKS * MICRO_BATCHES + 1):
            cuts.append(round(size * (part / (RANKS * MICRO_BATCHES)) ** 1.3))
        return [[self.call(self.samples[cuts[part]:cuts[part + 1]], totals=self.totals, optimizer_step=0, ppo_epoch=0, part=part)
                 for part in range(rank * MICRO_BATCHES, (rank + 1) * MICRO_BATCHES)] for rank in range(RANKS)]


@pytest.fixture(params=AGGREGATIONS, ids=lambda mode: mode["mode"] if mode else "preset")
def step(request, start, toy):
    objective = {**OBJECTIVE, **({"aggregation": request.param} if request.param else {})}
    return Step(start(toy), Learner(), objective)


def summed(gradients):
    return {key: math.fsum(gradient.get(key, 0.0) for gradient in gradients) for key in set().union(*gradients)}


def check_gradient(got, whole):
    """To a few ulps of what was added up."""
    assert set(got) == set(whole["gradient"])
    for key, value in whole["gradient"].items():
        assert abs(got[key] - value) <= 8 * ULP * whole["size"][key], (key, got[key], value)


def check_number(name, parts, whole):
    values = [part["json"][name] for part in parts]
    assert abs(math.fsum(values) - whole["json"][name]) <= 8 * ULP * max(math.fsum(map(abs, values)), abs(whole["json"][name])), name


def test_six_parts_add_up_to_one_call(step):
    whole = step.call(step.samples, store=False)
    parts = [part for rank in step.parts() for part in rank]
    assert whole["json"]["totals"] == step.totals, "the totals of the batch are those of the call that has all of it"
    assert any(value for value in whole["gradient"].values()) and whole["json"]["kl_loss"] > 0
    tokens = {rollout: values for part in parts for rollout, values in part["tokens"].items()}
    assert set(tokens) == set(whole["tokens"]) and len(parts) == RANKS * MICRO_BATCHES
    for rollout, values in whole["tokens"].items():
        assert all(math.isclose(a, b, rel_tol=4 * ULP, abs_tol=0) for a, b in zip(tokens[rollout], values, strict=True)), rollout
    for name in ("loss", "policy_loss", "kl_loss", "surrogate"):
        check_number(name, parts, whole)
    advantages = {s["rollout"]: s["advantage"] for s in whole["json"]["sequences"]}
    for part in parts:
        assert part["json"]["totals"] == step.totals
        assert all(s["advantage"] == advantages[s["rollout"]] for s in part["json"]["sequences"]), "a group cut in two keeps its mean"
    check_gradient(summed([part["gradient"] for part in parts]), whole)


def framework(ranks, factor, across_ranks, across_micro_batches):
    """The gradient at the optimiser if the trainer calls backward on factor times its sum, and the framework divides."""
    local = [summed([{key: factor * value / across_micro_batches for key, value in part["gradient"].items()} for part in rank]) for rank in ranks]
    return {key: value / across_ranks for key, value in summed(local).items()}


@pytest.mark.parametrize("across_ranks, across_micro_batches", [
    (RANKS, 1),              # DDP, FSDP: gradients are averaged over ranks, micro-batches are added
    (1, MICRO_BATCHES),      # an accumulating trainer divides each loss by K
    (RANKS, MICRO_BATCHES),  # both
])
def test_the_average_of_a_framework_is_multiplied_back(step, across_ranks, across_micro_batches):
    whole, ranks = step.call(step.samples, store=False), step.parts()
    factor = across_ranks * across_micro_batches
    check_gradient(framework(ranks, factor, across_ranks, across_micro_batches), whole)
    short = framework(ranks, 1, across_ranks, across_micro_batches)
    largest = max(whole["gradient"], key=lambda key: abs(whole["gradient"][key]))
    assert math.isclose(short[largest] * factor, whole["gradient"][largest], rel_tol=1e-9), "forgotten, the step is R or K times too small"


def test_without_totals_each_part_divides_by_itself(step):
    """The mistake that `totals` is there for. Only token_sum divides by nothing."""
    whole = step.call(step.samples, store=False)
    half = len(step.samples) // 3
    parts = [step.call(samples, store=False) for samples in (step.samples[:half], step.samples[half:])]
    wrong = math.fsum(part["json"]["kl_loss"] for part in parts)
    same = math.isclose(wrong, whole["json"]["kl_loss"], rel_tol=1e-9)
    assert same == (step.objective.get("aggregation", {}).get("mode") == "token_sum")
