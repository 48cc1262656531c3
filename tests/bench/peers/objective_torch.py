#!/usr/bin/env python3
"""GRPO's token loss and its gradient with respect to the log-probabilities by torch's autograd: the expressions of TRL's GRPO trainer
(loss_type "grpo", beta 0, ratios by token) on padded float32 arrays, one thread. Nanoseconds of CPU for each token that is
no padding.

    objective_torch.py REPEATS

The shapes are those of tests/bench/objective.c.
"""
import json
import sys
import time

import torch

SHAPES = (("64 x 1000", 64, 1000, 1000), ("1024 x 1024, ragged", 1024, 512, 1536), ("1024 x 64 to 1024, ragged", 1024, 64, 1024))
LOW, HIGH = 0.8, 1.2


def loss_of(new, old, mask, advantages):
    ratio = torch.exp(new - old)
    clipped = torch.clamp(ratio, LOW, HIGH)
    terms = -torch.min(ratio * advantages, clipped * advantages)
    return ((terms * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    for name, rows, shortest, longest in SHAPES:
        lengths = torch.randint(shortest, longest + 1, (rows, 1))
        mask = (torch.arange(longest) < lengths).float()
        old = -3 * torch.rand(rows, longest)
        new = (old + torch.rand(rows, longest) - 0.5).requires_grad_()
        advantages = torch.randn(rows, 1)
        best = float("inf")
        for _ in range(int(sys.argv[1])):
            new.grad = None
            begun = time.process_time()
            loss_of(new, old, mask, advantages).backward()
            best = min(best, time.process_time() - begun)
        print(json.dumps({"shape": name, "tokens": int(lengths.sum()), "torch_ns_per_token": round(best / int(lengths.sum()) * 1e9, 2)}))


if __name__ == "__main__":
    main()
