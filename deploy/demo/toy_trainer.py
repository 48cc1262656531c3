#!/usr/bin/env python3
"""Trains the toy policy through rolloutd.

    toy_trainer.py --service URL --engine URL [--revisions 36] [--run demo]

The trainer owns parameters and an optimiser, nothing else. For each revision it posts prompts to rolloutd, which samples
them from the engine, judges the completions and keeps the record; then it sends the log-probabilities that its parameters
give to the sampled tokens, gets back the derivative of the loss by each of them, and carries that through its softmax.
rolloutd alone decides the worth of a completion and the limits of a step.
"""
import argparse
import math
import sys
import time

from service import Service, ServiceError
from toy_policy import PRIOR, POSITIONS, TablePolicy

TASKS = [(a, b) for a in range(10) for b in range(10 - a)][::2]  # sums of one digit, every other one
SAMPLING = {"n": 16, "max_tokens": 12, "temperature": 1.0}
VERIFIERS = [{"name": "math", "weight": 0.8, "options": {"extract": "boxed"}},
             {"name": "format", "weight": 0.2, "options": {"template": "boxed_once"}}]
OBJECTIVE = {"preset": "grpo", "epsilon": 0.2, "beta": 0.01}
EPOCHS = 2           # steps on each batch: in the second one the policy has moved away from the samples
LEARNING_RATE = 0.15
GOAL = 0.9           # mean reward at the end of a full training
FULL_TRAINING = 36   # revisions


class TrainingFailed(Exception):
    pass


class Adam:
    """Kingma and Ba (arXiv 1412.6980), on rows of logits."""

    def __init__(self, learning_rate, decay_mean=0.9, decay_square=0.999, epsilon=1e-10):
        self.learning_rate, self.decay_mean, self.decay_square, self.epsilon = learning_rate, decay_mean, decay_square, epsilon
        self.step = 0
        self.moments = {}

    def update(self, policy, gradients):
        """gradients: {prompt: rows}, derivatives of the loss by the logits."""
        self.step += 1
        correct_mean = 1 - self.decay_mean ** self.step
        correct_square = 1 - self.decay_square ** self.step
        for prompt, rows in gradients.items():
            means, squares = self.moments.setdefault(prompt, (zero_rows(), zero_rows()))
            changed = [list(row) for row in policy.rows(prompt)]
            for logits, mean, square, gradient in zip(changed, means, squares, rows):
                for i, g in enumerate(gradient):
                    mean[i] = self.decay_mean * mean[i] + (1 - self.decay_mean) * g
                    square[i] = self.decay_square * square[i] + (1 - self.decay_square) * g * g
                    logits[i] -= self.learning_rate * (mean[i] / correct_mean) / (math.sqrt(square[i] / correct_square) + self.epsilon)
            policy.set_rows(prompt, changed)


def zero_rows():
    return [[0.0] * len(row) for row in PRIOR]


def backward(policy, gradients, prompt, ids, dloss_dlogp):
    """Chain rule through the softmax: d logp(token) / d logit(i) = [i is token] - p(i)."""
    rows = gradients.setdefault(prompt, zero_rows())
    for position, (token, derivative) in enumerate(zip(ids, dloss_dlogp)):
        row = rows[min(position, POSITIONS - 1)]
        for i, log_probability in enumerate(policy.log_row(prompt, position)):
            row[i] -= derivative * math.exp(log_probability)
        row[token] += derivative


class Trainer:
    def __init__(self, service, engine, run, seed):
        self.service, self.engine, self.run, self.seed = service, engine, run, seed
        weights = engine.get("/weights")
        self.policy = TablePolicy(weights["table"])
        self.reference = TablePolicy(weights["table"])
        self.revision = weights["revision"]
        self.optimizer = Adam(LEARNING_RATE)

    def train_revision(self):
        """One batch, EPOCHS steps, new weights. Gives what is shown of it."""
        started = time.monotonic()
        revision = self.revision
        batch = self.sample()
        samples = self.trainable_samples(batch)
        for epoch in range(EPOCHS):
            metrics = self.step(samples, revision, epoch)
        self.publish(revision + 1)
        summary = batch["summary"]
        return {"revision": revision, "reward": summary["reward_mean"], "kl": metrics["kl"], "clip": metrics["clip_fraction"],
                "zero_variance": summary["zero_variance_groups"], "tokens": summary["completion_tokens"],
                "seconds": time.monotonic() - started, "failures": summary["failures"]}

    def sample(self):
        groups = [{"task": f"sum-{a}-{b}", "prompt": f"{a}+{b}=", "reference": str(a + b)} for a, b in TASKS]
        batch = self.service.post("/v1/batches", {
            "run": self.run, "policy_revision": self.revision, "seed": self.seed, "sampling": SAMPLING, "verifiers": VERIFIERS,
            "objective": OBJECTIVE, "deadline": "60s", "groups": groups})
        if batch.get("state") != "complete":
            raise TrainingFailed(f"batch {batch.get('id')} ended as {batch.get('state')!r}; failures: {batch.get('summary', {}).get('failures')}")
        return batch

    def trainable_samples(self, batch):
        prompts = {f"sum-{a}-{b}": f"{a}+{b}=" for a, b in TASKS}
        samples = {rollout["id"]: (prompts[group["task"]], rollout["completion_ids"])
                   for group in batch["groups"] for rollout in group["rollouts"]
                   if rollout["reward"] is not None and rollout["trainable"]}
        if not samples:
            raise TrainingFailed(f"batch {batch['id']} has no rollout to learn from; failures: {batch['summary']['failures']}")
        return samples

    def step(self, samples, optimizer_step, epoch):
        sequences = [{"rollout": rollout, "logprobs": self.policy.log_probabilities(prompt, ids),
                      "ref_logprobs": self.reference.log_probabilities(prompt, ids)} for rollout, (prompt, ids) in samples.items()]
        reply = self.service.post("/v1/objective", {
            "objective": OBJECTIVE, "sequences": sequences, "optimizer_step": optimizer_step, "ppo_epoch": epoch,
            "return": ["dloss_dlogp"]})
        gradients = {}
        for sequence in reply["sequences"]:
            prompt, ids = samples[sequence["rollout"]]
            backward(self.policy, gradients, prompt, ids, sequence["dloss_dlogp"])
        self.optimizer.update(self.policy, gradients)
        return reply["metrics"]

    def publish(self, revision):
        """New weights for the engine, then word of it to rolloutd."""
        self.engine.post("/weights", {"revision": revision, "table": self.policy.table})
        self.service.put(f"/v1/runs/{self.run}/policy", {"revision": revision})
        self.revision = revision


# -- what a person sees -----------------------------------------------------------------------------

HEADER = "revision  reward      KL    clip  zero-variance  tokens  seconds"


def line(row):
    text = (f"{row['revision']:8d}  {row['reward']:6.3f}  {row['kl']:6.3f}  {row['clip']:6.3f}  {row['zero_variance']:13d}"
            f"  {row['tokens']:6d}  {row['seconds']:7.2f}")
    return text + (f"  failed: {row['failures']}" if row["failures"] else "")


class ProgressBar:
    """A line that is drawn over again; nothing where the output is not a terminal."""

    def __init__(self, total):
        self.total, self.shown = total, sys.stdout.isatty()

    def draw(self, done, reward):
        if self.shown:
            filled = 40 * done // self.total
            print(f"[{'#' * filled}{'.' * (40 - filled)}] {done}/{self.total}  mean reward {reward:.3f}", end="\r", flush=True)

    def clear(self):
        if self.shown:
            print(" " * 78, end="\r", flush=True)


def plot(rewards, height=10):
    """Mean reward by revision, one column for each."""
    rows = []
    for level in range(height, -1, -1):
        marks = "".join("*" if round(reward * height) == level else " " for reward in rewards)
        rows.append(f"{level / height:5.1f} |{marks}".rstrip())
    axis = "      +" + "-" * len(rewards)
    return "\n".join(["mean reward", *rows, axis, f"       revision 0 to {len(rewards) - 1}"])


def check_climb(rewards):
    last = rewards[-3:]
    end = sum(last) / len(last)
    if len(rewards) >= FULL_TRAINING and end <= GOAL:
        raise TrainingFailed(f"the mean reward did not climb above {GOAL}: it began at {rewards[0]:.3f} and ended at {end:.3f}")
    if len(rewards) > 1 and rewards[-1] <= rewards[0]:
        raise TrainingFailed(f"the mean reward did not climb: it began at {rewards[0]:.3f} and ended at {rewards[-1]:.3f}")


def train(options):
    trainer = Trainer(Service("rolloutd", options.service), Service("toy engine", options.engine), options.run, options.seed)
    print(f"{len(TASKS)} sums, {SAMPLING['n']} samples each, {EPOCHS} steps a revision, {options.revisions} revisions", flush=True)
    print(HEADER, flush=True)
    rewards = []
    bar = ProgressBar(options.revisions)
    for done in range(1, options.revisions + 1):
        row = trainer.train_revision()
        rewards.append(row["reward"])
        bar.clear()
        print(line(row), flush=True)
        bar.draw(done, row["reward"])
    bar.clear()
    print("\n" + plot(rewards), flush=True)
    check_climb(rewards)
    print(f"\nThe mean reward climbed from {rewards[0]:.3f} to {rewards[-1]:.3f}.", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains the toy policy through rolloutd.")
    parser.add_argument("--service", required=True, help="URL of rolloutd")
    parser.add_argument("--engine", required=True, help="URL of the toy engine")
    parser.add_argument("--run", default="demo")
    parser.add_argument("--revisions", type=int, default=FULL_TRAINING)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if options.revisions < 1:
        parser.error("--revisions must be at least 1")
    return options


if __name__ == "__main__":
    try:
        train(parse_arguments())
    except (TrainingFailed, ServiceError) as problem:
        sys.exit(f"\ntoy_trainer: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
