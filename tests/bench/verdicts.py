#!/usr/bin/env python3
"""Every verifier that needs neither programs nor calls: verdicts a second of CPU, and a mebibyte of what is hard to read.

    ninja -C build rolloutd tests/bench/math
    tests/bench/verdicts.py [--build build] [--rounds 50] [--only NAME,…]

rate: the verifier's lines of tests/fingerprints/verdicts.jsonl in one process, one thread (BUILD/tests/bench/math): verdicts a second of CPU, and the time of
one, fastest of its rounds, median and largest. mebibyte: the options and the reference of its first line against 1 MiB of each kind: the slowest, CPU ms, fastest
of three. Nothing is asserted.
"""
import argparse
import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FINGERPRINTS = os.path.join(os.path.dirname(HERE), "fingerprints", "verdicts.jsonl")
MIB = 1 << 20
HALF = "".join(chr(97 + (index * index * 2654435761 >> 16) % 26) + " " for index in range(MIB // 4))
HARD = {"letters": "a" * MIB, "words": "w " * (MIB // 2), "words at random, twice": HALF + HALF, "lines": "\n" * MIB, "numbers": "1 " * (MIB // 2), "braces": "{" * MIB, "lists": "[" * MIB,
        "quotes": '"' * MIB, "tags": "<answer>" * (MIB // 8), "ends of tags": "</think>" * (MIB // 8), "boxes": "\\boxed{" * (MIB // 7), "fences": "```\n" * (MIB // 4),
        "sentences": "It is so. " * (MIB // 10), "commas": "a," * (MIB // 2), "stars": "*" * MIB, "accents": "e\u0301" * (MIB // 3), "spaces": " " * MIB, "choices": "The answer is (A). " * (MIB // 19)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", help="names, separated by commas")
    return parser.parse_args()


def drive(options, lines, rounds):
    """(a record for each line, the totals)"""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": str(index), **line}) + "\n" for index, line in enumerate(lines))
        file.flush()
        done = subprocess.run([os.path.join(options.build, "tests", "bench", "math"), file.name, str(rounds)], capture_output=True, check=True)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return said[:-1], said[-1]


def names(options):
    tables = json.loads(subprocess.run([os.path.join(options.build, "rolloutd"), "--print-tables"], check=True, capture_output=True).stdout)
    for verifier in tables["verifiers"]["verifiers"]:
        if not verifier["runs_programs"] and not verifier.get("makes_calls") and (not options.only or verifier["name"] in options.only.split(",")):
            yield verifier["name"]


def main():
    options = arguments()
    with open(FINGERPRINTS, encoding="utf-8") as file:
        kept = [json.loads(line) for line in file if line.strip()]
    for name in names(options):
        lines = [{key: line[key] for key in ("verifier", "options", "reference", "completion", "completion_tokens") if key in line} for line in kept if line["verifier"] == name]
        if not lines:
            print(f"{name}: no fingerprints")
            continue
        each, total = drive(options, lines, options.rounds)
        times = sorted(one["fastest_ns"] for one in each)
        hard = {kind: drive(options, [{**lines[0], "completion": text}], 3)[0][0]["fastest_ns"] / 1e6 for kind, text in HARD.items()}
        worst = max(hard, key=hard.get)
        print(f"{name}: {total['verdicts'] / total['cpu_ns'] * 1e9:,.0f} verdicts/s of CPU over {len(lines)} lines, p50 {times[len(times) // 2] / 1e3:.1f} max {times[-1] / 1e3:.1f} us; "
              f"1 MiB: slowest {hard[worst]:.1f} ms ({worst})", flush=True)


if __name__ == "__main__":
    main()
