"""SmolLM2-135M learns sums: deploy/examples/grpo.py as it is, against a real vLLM and the service, once for each seed; its first step once more;
and some steps of deploy/examples/trl_grpo.py.

Asserted of every seed: all steps happened, no rollout failed, reward and held-out correctness of the last steps are above those of the first by CLIMB_MIN.
The step that is repeated has the tokens of the first one. TRL was told the rewards that are on record. Printed: by how much reward and correctness
climbed, and rolloutd's share of a step, in time (the median step) and in processor time. The database, the lines of the programs, the reports and
the pictures of reward and correctness stay in FOLDER.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, "..", "vllm"), os.path.join(ROOT, "tests", "http")]
import figure  # noqa: E402
from harness import Process, Rolloutd, descendants, http_request, process_fields  # noqa: E402
from vllm_server import MODELS, Vllm  # noqa: E402

CLIMB_MIN = 0.2
ENDS = 5  # steps at either end whose mean is compared
NUMBERS = {"reward": "reward", "correct": "heldout"}  # in the program's lines, and its figure in the report


def processor_s(process):
    """Of a process and its children, so far."""
    ticks = 0
    for one in [Process(process), *descendants(process)]:
        with contextlib.suppress(OSError, IndexError):  # a child that has ended meanwhile
            fields = process_fields(one.pid)
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, options):
        self.options, self.failed = options, []
        self.vllm = Vllm(options.folder, "--max-num-seqs", "64")
        self.service = Rolloutd(options.folder, [self.vllm.as_kind("vllm")]).start()

    def close(self):
        try:
            if self.service.terminate():
                self.failed.append("rolloutd did not end well")
        finally:
            self.vllm.close()

    def program(self, name, run, *options):
        """An example as a user runs it. Gives the lines that it printed."""
        command = [os.environ["ROLLOUTD_VLLM_PYTHON"], "-W", "ignore", os.path.join(ROOT, "deploy", "examples", name), "--service", self.service.url, "--vllm", self.vllm.url,
                   "--model", MODELS["first"], "--run", run, "--prompts", str(self.options.prompts), *map(str, options)]
        path = os.pathsep.join([os.path.join(ROOT, "client", "python"), os.environ.get("PYTHONPATH", "")])
        file = os.path.join(self.options.folder, run + ".lines")
        with open(file, "wb") as out:
            subprocess.run(command, stdout=out, check=True, env={**os.environ, "PYTHONPATH": path})
        with open(file, encoding="utf-8") as lines:
            return lines.read().splitlines()

    def check(self, holds, message):
        if not holds:
            self.failed.append(message)
            print(f"FAILED {message}", flush=True)

    def learn(self, seed):
        run, before, began = f"sums-{seed}", processor_s(self.service.pid), time.monotonic()
        lines = [json.loads(line) for line in self.program("grpo.py", run, "--seed", seed, "--steps", self.options.steps)]
        whole_s = time.monotonic() - began
        used_s = processor_s(self.service.pid) - before
        self.check(len(lines) == self.options.steps, f"{run}: {len(lines)} steps")
        self.check(not any(line["failures"] for line in lines), f"{run}: rollouts failed")
        climbs = {}
        for name in NUMBERS:
            first, last = (statistics.mean(line[name] for line in some) for some in (lines[:ENDS], lines[-ENDS:]))
            climbs[name] = last - first
            print(f"{run}: {name} {first:.2f} in the first {ENDS} steps, {last:.2f} in the last: {last - first:+.2f}", flush=True)
            self.check(last - first > CLIMB_MIN, f"{run}: {name} climbed by {last - first:.2f} only")
        print(f"{run}: {statistics.median(line['step_s'] for line in lines):.1f} s a step, of which rolloutd {statistics.median(line['rolloutd_s'] for line in lines) * 1e3:.0f} ms, "
              f"{statistics.median(line['rolloutd_share'] for line in lines):.2%} (goal: below 1 %); {used_s / whole_s:.2%} of a processor; "
              f"log-probabilities at most {max(line['apart'] for line in lines):.1e} apart", flush=True)
        self.keep_report(run)
        return climbs

    def keep_report(self, run):
        page = http_request(self.service.url, "GET", f"/v1/runs/{run}/report", headers={"Accept": "text/html"}).body.decode()
        for name, text in [(".html", page), *((f"-{name}.svg", figure.figure_of(page, name)) for name in NUMBERS.values())]:
            with open(os.path.join(self.options.folder, run + name), "w", encoding="utf-8") as file:
                file.write(text)

    def tokens(self, run):
        """Of the first revision: {(task, draw, sample): ids}."""
        found, cursor = {}, None
        while cursor != "":
            more = {"cursor": cursor} if cursor else {}
            page = self.service.read("/v1/rollouts", run=run, revision=0, fields="task,draw,sample_index,completion_ids", **more)
            found.update(((one["task"], one["draw"], one["sample_index"]), one["completion_ids"]) for one in page["items"])
            cursor = page.get("next") or ""
        return found

    def repeat(self, seed):
        self.program("grpo.py", f"sums-{seed}-again", "--seed", seed, "--steps", 1)
        first, second = self.tokens(f"sums-{seed}"), self.tokens(f"sums-{seed}-again")
        same = sum(second.get(place) == ids for place, ids in first.items())
        print(f"sums-{seed}-again: {same} of {len(first)} completions have the same tokens", flush=True)
        self.check(first and first == second, "a second run with the same seed drew other tokens")

    def trl(self, steps):
        lines = [line.split() for line in self.program("trl_grpo.py", "sums-trl", "--steps", steps) if line[:1].isdigit()]
        told = [float(reward) for _, reward in lines]
        kept = [row["reward"]["mean"] for row in self.service.read("/v1/runs/sums-trl/report")["revisions"]]
        print(f"sums-trl: rewards {told} in TRL's log, {[round(reward, 3) for reward in kept]} on record", flush=True)
        self.check(len(told) == steps and all(abs(a - b) < 1e-3 for a, b in zip(told, kept, strict=True)), "TRL was told other rewards than are on record")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--trl-steps", type=int, default=3)
    parser.add_argument("--folder", required=True)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    bench = Bench(options)
    seeds, climbs = options.seeds.split(",") if options.seeds else [], []
    try:
        for seed in seeds:
            climbs.append(bench.learn(seed))
            if len(climbs) == 1:
                bench.repeat(seed)
        if options.trl_steps:
            bench.trl(options.trl_steps)
    finally:
        bench.close()
    for name in NUMBERS if climbs else ():
        values = [climb[name] for climb in climbs]
        print(f"{name} over {len(values)} seeds: {statistics.mean(values):+.2f}, {min(values):+.2f} to {max(values):+.2f}")
    print(f"\n{len(seeds)} seeds, {len(bench.failed)} failed")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
