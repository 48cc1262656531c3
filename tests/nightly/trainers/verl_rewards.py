"""verl's own loading of a reward function from its configuration, its reward managers `naive` and `batch`, and its client of SandboxFusion."""
import asyncio
import importlib
import os
import sys

import numpy
import torch
from omegaconf import OmegaConf

from common import MATH, SAMPLES, SOURCES, TOKEN, bare, check_record, client_of, done, route, service

sys.path.insert(0, os.path.join(SOURCES, "verl"))
PROMPT = "6*7="


class Tokenizer:
    """Characters are tokens; 0 is padding."""

    def decode(self, ids, skip_special_tokens):
        return "".join(chr(int(one)) for one in ids)


def data_of(samples):
    protocol = importlib.import_module("verl.protocol")
    longest = max(len(said) for said, _, _ in samples)
    responses = torch.zeros(len(samples), longest, dtype=torch.int64)
    mask = torch.zeros(len(samples), len(PROMPT) + longest, dtype=torch.int64)
    for number, (said, _, _) in enumerate(samples):
        responses[number, :len(said)] = torch.tensor([ord(letter) for letter in said])
        mask[number, :len(PROMPT) + len(said)] = 1
    prompts = torch.tensor([[ord(letter) for letter in PROMPT]] * len(samples))
    objects = {"data_source": ["sums"] * len(samples), "reward_model": [{"ground_truth": label} for _, label, _ in samples],
               "extra_info": [{"index": number, "split": "train"} for number in range(len(samples))]}
    return protocol.DataProto.from_dict(tensors={"prompts": prompts, "responses": responses, "attention_mask": mask},
                                        non_tensors={name: numpy.array(values, dtype=object) for name, values in objects.items()})


def function(made, name, **more):
    reward = importlib.import_module("verl.trainer.ppo.reward")
    config = OmegaConf.create({"reward": {"custom_reward_function": {"path": "pkg://rolloutd.verl", "name": name, "reward_kwargs": {
        "url": made.url, "token": TOKEN, "verifiers": MATH, **more}}}})
    return reward.get_custom_reward_fn(config)


async def naive(manager_class, compute, data):
    manager = manager_class(OmegaConf.create({}), Tokenizer(), compute)
    return await asyncio.gather(*(manager.run_single(data[number:number + 1]) for number in range(len(data))))


def check_naive(made, client, data):
    manager = importlib.import_module("verl.experimental.reward_loop.reward_manager.naive").NaiveRewardManager
    found = asyncio.run(naive(manager, function(made, "compute_score", run="naive", failed=-1.0), data))
    assert [one["reward_score"] for one in found] == [-1 if reward is None else reward for _, _, reward in SAMPLES], found
    assert [one["reward_extra_info"]["rolloutd_failed"] for one in found] == [float(reward is None) for _, _, reward in SAMPLES]
    rows = check_record(client, "naive", SAMPLES)
    assert {row["task"] for row in rows} == {f"sums-train-{number}" for number in range(len(SAMPLES))}
    try:
        asyncio.run(naive(manager, function(made, "compute_score"), data[4:5]))
        raise AssertionError("it was given a reward")
    except importlib.import_module("rolloutd").Error as problem:
        assert problem.code == "reference_unreadable"


def check_batch(made, client, data):
    manager = importlib.import_module("verl.workers.reward_manager.batch").BatchRewardManager(Tokenizer(), 0, function(made, "compute_scores", run="batch"))
    found = manager(data[:4], return_dict=True)
    assert found["reward_tensor"].sum(-1).tolist() == [reward for _, _, reward in SAMPLES[:4]], found
    assert found["reward_extra_info"]["rolloutd_failed"] == [0.0] * 4
    check_record(client, "batch", SAMPLES[:4])


def check_programs(made):
    fusion = importlib.import_module("verl.utils.reward_score.sandbox_fusion")
    tests = {"inputs": ["1\n", "2\n"], "outputs": ["2\n", "4\n"]}
    score, verdicts = fusion.compute_score(route(made, "/compat/sandbox_fusion/run_code"), None, 1024, "```python\nprint(2 * int(input()))\n```", tests, continuous=True)
    assert score == 1, verdicts
    score, verdicts = fusion.compute_score(route(made, "/compat/sandbox_fusion/run_code"), None, 1024, "```python\nprint(3)\n```", tests, continuous=True)
    assert score == 0, verdicts


def main():
    with service() as made:
        client = client_of(made)
        data = data_of(SAMPLES)
        check_naive(made, client, data)
        check_batch(made, client, data)
        check_programs(made)
    done("verl", "naive and batch on record", "a failure is `failed` or raises", "sandbox_fusion: 1 and 0")


if __name__ == "__main__":
    bare("verl.experimental.reward_loop", os.path.join(SOURCES, "verl", "verl", "experimental", "reward_loop"))  # its __init__ starts Ray's workers
    main()
