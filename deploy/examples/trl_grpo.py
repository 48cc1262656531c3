#!/usr/bin/env python3
"""The task of grpo.py in TRL's GRPOTrainer: rolloutd samples from vLLM, judges and keeps the record; advantages, loss and steps are TRL's.

    pip install ./client/python trl
    deploy/examples/trl_grpo.py --model FOLDER --run sums-trl

The servers are started as grpo.py says. Without vLLM, where TRL samples by itself, docs/from-trl.md has the two lines.
"""
import argparse
import tempfile

import rolloutd.trl
import rolloutd.vllm
import torch
from datasets import Dataset
from sums import SAMPLES, SAMPLING, TASKS, VERIFIERS
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer


def config_of(options, folder):
    return GRPOConfig(
        output_dir=folder, per_device_train_batch_size=SAMPLES * options.prompts, num_generations=SAMPLES, max_completion_length=SAMPLING["max_tokens"],
        temperature=SAMPLING["temperature"], learning_rate=1e-5, lr_scheduler_type="constant", max_steps=options.steps, seed=options.seed, logging_steps=1,
        report_to=[], save_strategy="no", disable_tqdm=True, bf16=False, gradient_checkpointing=False, use_cpu=not torch.cuda.is_available())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", default="http://127.0.0.1:8787")
    parser.add_argument("--vllm", default="http://127.0.0.1:8000")
    parser.add_argument("--model", required=True)
    parser.add_argument("--run", default="sums-trl")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shared", default="/dev/shm", help="weights go through a folder of its own in here; a memory disk")
    options = parser.parse_args()
    dataset = Dataset.from_list([{"prompt": row["prompt"], "answer": row["reference"], "task": row["task"]} for row in TASKS])
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    with tempfile.TemporaryDirectory(dir=options.shared) as shared, tempfile.TemporaryDirectory() as folder:
        weights = rolloutd.vllm.Weights(options.vllm, shared, options.model)
        rollouts = rolloutd.trl.Rollouts(options.service, options.run, dataset, VERIFIERS, SAMPLING, push=weights.push, seed=options.seed)
        trainer = GRPOTrainer(model=model, processing_class=AutoTokenizer.from_pretrained(options.model), args=config_of(options, folder),
                              train_dataset=dataset, rollout_func=rollouts, reward_funcs=rollouts.reward)
        trainer.train()
    for row in trainer.state.log_history:
        if "reward" in row:
            print(row["step"], round(row["reward"], 3))


if __name__ == "__main__":
    main()
