#!/usr/bin/env python3
"""GRPO of a language model: vLLM samples, rolloutd judges and differentiates, torch carries the gradient. The task: `3+4 is \\boxed{7}`.

    VLLM_SERVER_DEV_MODE=1 vllm serve FOLDER --served-model-name policy --dtype float32 --port 8000
    rolloutd --engine 'http://127.0.0.1:8000#kind=vllm&model=policy'
    pip install ./client/python numpy torch transformers
    deploy/examples/grpo.py --model FOLDER --run sums

FOLDER holds a model in the form of Hugging Face whose embeddings are not tied; this program and vLLM both read it. One line of JSON a step;
the whole record is in http://127.0.0.1:8787/v1/runs/sums/report. Run tests/nightly/train/run to see it with SmolLM2-135M.
"""
import argparse
import collections
import contextlib
import json
import random
import tempfile
import time

import rolloutd
import rolloutd.torch
import rolloutd.vllm
import torch
from sums import SAMPLES, SAMPLING, TASKS, VERIFIERS
from transformers import AutoModelForCausalLM

APART_MAX = 0.1  # of log-probabilities here and in the engine: beyond that it samples another model


class Client(rolloutd.Client):
    """Adds up the seconds that objectives take: rolloutd.torch.backward is one and the pass through the model behind it."""

    objective_s = 0.0

    def objective(self, **body):
        began = time.monotonic()
        reply = super().objective(**body)
        self.objective_s += time.monotonic() - began
        return reply


def log_probabilities(model, prompt_ids, completions):
    """Of each completion of one prompt a tensor, a number for each of its ids. The prompt is computed once for all of them."""
    longest = max(map(len, completions))
    ids = torch.tensor([[*completion, *[0] * (longest - len(completion))] for completion in completions])
    first = model(torch.tensor([prompt_ids]), use_cache=True, logits_to_keep=1)
    first.past_key_values.batch_repeat_interleave(len(completions))
    rest = model(ids, past_key_values=first.past_key_values, use_cache=True)
    logits = torch.cat([first.logits.expand(len(completions), -1, -1), rest.logits[:, :-1]], 1)
    values = logits.gather(2, ids.unsqueeze(2)).squeeze(2) - logits.logsumexp(2)
    return [row[:len(completion)] for row, completion in zip(values, completions)]


def backward(client, model, batch, step):
    """The gradient of the batch's objective, a group at a time. Gives (loss, rollouts trained on, how far log-probabilities are apart)."""
    loss, seen = 0.0, {}
    for part, group in enumerate(batch["groups"]):
        rollouts = [rollout for rollout in group["rollouts"] if rollout["trainable"] and rollout["advantage"]]  # 0 has no gradient without a KL
        if rollouts:
            values = log_probabilities(model, group["prompt_ids"], [rollout["completion_ids"] for rollout in rollouts])
            loss += rolloutd.torch.backward(client, rollouts, values, totals=batch["totals"], part=part, optimizer_step=step)
            seen.update((rollout["id"], value.detach()) for rollout, value in zip(rollouts, values))
    return loss, len(seen), rolloutd.vllm.worst_difference(batch, seen)


@contextlib.contextmanager
def timed(seconds, name):
    began = time.monotonic()
    yield
    seconds[name] += time.monotonic() - began


def train(options, client, model, weights):
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.99), weight_decay=0.0)
    incarnation = client.attach(options.run, step=0, revision=0)["incarnation"]
    weights.push(model, 0)  # whatever the engine had before
    draw = random.Random(options.seed)
    for step in range(options.steps):
        seconds, client.objective_s, began = collections.Counter(), 0.0, time.monotonic()
        with timed(seconds, "batch"):
            batch = client.batch(
                idempotency_key=f"{incarnation}-{step}", run=options.run, policy_revision=step, seed=options.seed, sampling={**SAMPLING, "n": SAMPLES}, verifiers=VERIFIERS,
                objective={"preset": "grpo"}, groups=draw.sample(TASKS, options.prompts), return_=["prompt_ids", "completion_ids", "logprobs"])
        with timed(seconds, "gradient"):
            optimizer.zero_grad(set_to_none=True)
            loss, trained, apart = backward(client, model, batch, step)
        if apart > APART_MAX:
            raise SystemExit(f"log-probabilities of engine and trainer are {apart:.2g} apart: the engine has other weights")
        with timed(seconds, "optimizer"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if trained:
                optimizer.step()
        with timed(seconds, "update"), client.policy(options.run, step + 1, mode="wait"):
            with timed(seconds, "push"):
                weights.push(model, step + 1)
        print(json.dumps(line(step, batch, seconds, client.objective_s, time.monotonic() - began,
                              {"loss": round(loss, 6), "trained": trained, "apart": apart})), flush=True)


def line(step, batch, seconds, objective_s, whole_s, more):
    """rolloutd_share: what a step takes beside the engine, the model and the weights, as a part of it."""
    engine_s = max(rollout["timing"]["engine_us"] for group in batch["groups"] for rollout in group["rollouts"]) / 1e6
    own_s = seconds["batch"] - engine_s + objective_s + seconds["update"] - seconds["push"]
    summary = batch["summary"]
    return {"step": step, "reward": summary["reward_mean"], "correct": summary["heldout"]["correct"]["mean"], "failures": summary["failures"], **more,
            "step_s": round(whole_s, 3), "engine_s": round(engine_s, 3), "rolloutd_s": round(own_s, 4), "rolloutd_share": round(own_s / whole_s, 5),
            **{f"{name}_s": round(value, 3) for name, value in seconds.items()}, "objective_s": round(objective_s, 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", default="http://127.0.0.1:8787")
    parser.add_argument("--vllm", default="http://127.0.0.1:8000")
    parser.add_argument("--model", required=True)
    parser.add_argument("--run", default="sums")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--rate", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shared", default="/dev/shm", help="weights go through a folder of its own in here; a memory disk")
    parser.add_argument("--out", help="a folder for the trained model")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).train()
    with tempfile.TemporaryDirectory(dir=options.shared) as folder, Client(options.service) as client:
        train(options, client, model, rolloutd.vllm.Weights(options.vllm, folder, options.model))
    if options.out:
        model.save_pretrained(options.out)


if __name__ == "__main__":
    main()
