"""Asks the service and torch the same, and says how far apart they are. Fails beyond TOLERANCE."""
import argparse
import itertools
import os
import random
import sys
import tempfile
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "http")]

import formulas  # noqa: E402
import trainers  # noqa: E402
from batches import Batch  # noqa: E402
from harness import Rolloutd  # noqa: E402

TOLERANCE = 1e-11


def distance(got, want):
    """The largest difference, relative to the number or to a ten thousandth of the largest beside it."""
    got, want = ([value for row in rows for value in row] for rows in (got, want))
    floor = 1e-4 * max((abs(value) for value in want), default=0) or 1e-300
    return max((abs(a - b) / max(abs(b), floor) for a, b in zip(got, want, strict=True)), default=0.0)


class Table:
    def __init__(self):
        self.rows, self.failed = {}, 0

    def add(self, family, reply, loss, gradient, what, tolerance=TOLERANCE):
        worst = max(distance([[reply["loss"]]], [[loss]]), distance([row["dloss_dlogp"] for row in reply["sequences"]], gradient))
        self.note(family, worst, what, tolerance, f"loss {reply['loss']!r}, torch {loss!r}")

    def note(self, family, worst, what, tolerance, more):
        count, largest = self.rows.get(family, (0, 0.0))
        self.rows[family] = count + 1, max(largest, worst)
        if not worst <= tolerance:
            self.failed += 1
            print(f"FAILED {family}: {what}: {worst:.3g} apart; {more}", flush=True)

    def show(self):
        print(f"\n{'what':44s} {'comparisons':>11s}  largest relative difference")
        for family, (count, worst) in self.rows.items():
            print(f"{family:44s} {count:11d}  {worst:.1e}")
        print(f"\n{sum(count for count, _ in self.rows.values()) - self.failed} passed, {self.failed} failed")


def ask(service, objective, sequences, **more):
    reply = service.post("/v1/objective", {"objective": objective, "sequences": sequences, "return": ["dloss_dlogp"], **more})
    assert reply.status == 200, (objective, reply)
    return reply.json


def compare_formulas(service, table, seed):
    """Every loss x KL x aggregation, on a batch of its own."""
    for index, (loss, kl, mode) in enumerate(itertools.product(formulas.LOSSES, formulas.KLS, formulas.AGGREGATIONS)):
        batch = Batch(f"{seed}/{index}")
        draw = random.Random(f"{seed}/{index}/advantage")
        advantage = [0.0 if draw.random() < 0.1 else draw.gauss(0, 1) for _ in range(batch.count)]
        reply = ask(service, {"preset": "grpo", **formulas.objective(loss, kl, mode)}, batch.sequences(advantage=advantage))
        table.add("formulas: " + loss, reply, *formulas.evaluate(batch, advantage, loss, kl, mode), f"{kl}, {mode}")


def compare_trainers(service, table, seed):
    for index, case in enumerate(trainers.cases()):
        batch = Batch(f"{seed}/trainer/{index}", masked=case.masked)
        reply = ask(service, case.objective, case.sequences(batch))
        loss, gradient, advantages = case.run(batch)
        table.add(case.family, reply, loss, gradient, case.name, case.tolerance)
        if advantages is not None:
            worst = distance(trainers.advantages_of(reply, batch, advantages), advantages)
            table.note(case.family + ", advantages", worst, case.name, case.tolerance, "the advantages")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", default=time.strftime("%Y%m%d"))
    parser.add_argument("--only", choices=("formulas", "trainers"))
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    print(f"--seed {options.seed} repeats it; torch {torch.__version__}, {', '.join(trainers.versions())}")
    table = Table()
    with tempfile.TemporaryDirectory() as folder:
        service = Rolloutd(folder).start()
        try:
            for round_number in range(options.rounds):
                seed = f"{options.seed}/{round_number}"
                if options.only != "trainers":
                    compare_formulas(service, table, seed)
                if options.only != "formulas":
                    compare_trainers(service, table, seed)
        finally:
            code = service.terminate()
    table.show()
    return 1 if table.failed or code or not table.rows else 0


if __name__ == "__main__":
    sys.exit(main())
