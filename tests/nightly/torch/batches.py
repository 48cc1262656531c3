"""Random batches, as JSON for /v1/objective and as padded tensors."""
import random

import numpy as np
import torch

ARRAYS = ("logprobs", "old_logprobs", "ref_logprobs", "rollout_logprobs", "entropy")


class Batch:
    """`groups` of `size` sequences of 1 to 9 tokens, doubles. Some tokens are masked, some groups have equal rewards."""

    def __init__(self, seed, groups=4, size=5, masked=True):
        draw = random.Random(seed)
        self.size, self.count = size, groups * size
        self.group = [index // size for index in range(self.count)]
        self.lengths = [draw.randint(1, 9) for _ in range(self.count)]
        self.mask = [[1 if not masked or draw.random() < 0.8 else 0 for _ in range(length)] for length in self.lengths]
        for row in self.mask:
            row[draw.randrange(len(row))] = 1
        self.right = [float(draw.random() < 0.5) for _ in range(self.count)]
        self.form = [draw.randint(0, 4) / 4 for _ in range(self.count)]
        for index in range(size):
            self.right[index], self.form[index] = 1.0, 0.5  # a group without variance
        self.reward = [right + 0.5 * form for right, form in zip(self.right, self.form)]
        self.old_logprobs = [[-draw.expovariate(0.8) - 0.01 for _ in range(length)] for length in self.lengths]
        self.logprobs, self.ref_logprobs, self.rollout_logprobs = (
            [[min(value + draw.gauss(0, spread), -0.001) for value in row] for row in self.old_logprobs] for spread in (0.35, 0.5, 0.2))
        self.entropy = [[float(np.float32(draw.expovariate(1))) for _ in range(length)] for length in self.lengths]  # TRL compares floats

    def sequences(self, **fields):
        """fields: {name: one value for each sequence}, beside the arrays."""
        return [{"group": f"g{self.group[i]}", "mask": self.mask[i], **{name: getattr(self, name)[i] for name in ARRAYS},
                 **{name: values[i] for name, values in fields.items()}} for i in range(self.count)]

    def by_name(self):
        return [{"right": {"score": right, "weight": 1}, "form": {"score": form, "weight": 0.5}} for right, form in zip(self.right, self.form)]

    def padded(self, name):
        rows = getattr(self, name)
        out = torch.zeros(self.count, max(self.lengths), dtype=torch.float64)
        for i, row in enumerate(rows):
            out[i, :len(row)] = torch.tensor(row, dtype=torch.float64)
        return out

    def tensors(self):
        """lp with a gradient; padding is 0 and masked."""
        found = {name: self.padded(name) for name in (*ARRAYS, "mask")}
        found["logprobs"].requires_grad_(True)
        return found

    def flat(self, padded):
        return [padded[i, :length].tolist() for i, length in enumerate(self.lengths)]
