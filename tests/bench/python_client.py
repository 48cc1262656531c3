#!/usr/bin/env python3
"""The cost of the Python client: the same requests by `requests`, and a large objective by curl, in turn in one run. Compare ratios, not days.

    tests/bench/python_client.py [--binary build/rolloutd] [--rounds 300] [--tokens 1048576] [--repeats 15]        (an interpreter with requests and numpy)

Requests: a verdict of 8 completions, a score of 8 groups of 8, a page of 100 rollouts. Both sides make JSON of the body and objects of the reply, over a
connection that stays open. Microseconds of wall and of this process's CPU, median; the service takes the same time for either.
Objective: completions of 512 to 1,536 tokens, float32; the client begins with arrays and ends with arrays, curl sends a file that is there and
writes one. Milliseconds, median and best; the ratio is the median of those of the pairs. Nothing is asserted.
"""
import sys

sys.path.pop(0)  # math.py stands beside this file
import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import numpy  # noqa: E402
import requests  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "client", "python"), os.path.join(ROOT, "tests", "http")]
import rolloutd  # noqa: E402
from rolloutd import _arrays  # noqa: E402

VERIFIERS = [{"name": "math"}]
COMPLETIONS = ["the answer is \\boxed{%d}" % number for number in range(8)]
ITEMS = [{"id": str(number), "completion": text, "reference": "7"} for number, text in enumerate(COMPLETIONS)]
GROUPS = [{"task": str(task), "prompt": "3+4=", "reference": "7", "completions": [{"text": text} for text in COMPLETIONS]} for task in range(8)]
MEMBERS = 8


def pairs(client, url):
    """(name, by the client, by requests)"""
    session = requests.Session()
    numbers = iter(range(10**9))

    def post(path, body, **headers):
        reply = session.post(url + path, json=body, headers=headers)
        reply.raise_for_status()
        return reply.json()

    score = {"run": "bench", "policy_revision": 0, "verifiers": VERIFIERS, "groups": GROUPS}
    yield "verify", lambda: client.verify(VERIFIERS, ITEMS), lambda: post("/v1/verify", {"verifiers": VERIFIERS, "items": ITEMS})["items"]
    yield ("score", lambda: client.score(idempotency_key=f"a{next(numbers)}", **score),
           lambda: post("/v1/score?wait=1s", score, **{"Idempotency-Key": f"b{next(numbers)}"}))
    yield ("rollouts", lambda: client.get("/v1/rollouts", run="bench", limit=100), lambda: session.get(f"{url}/v1/rollouts?run=bench&limit=100").json())


def timed(action):
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return (time.perf_counter() - wall) * 1e6, (time.process_time() - cpu) * 1e6


def small(client, url, rounds):
    for name, ours, theirs in pairs(client, url):
        found = {"client": [], "requests": []}
        for number in range(rounds):
            both = [("client", ours), ("requests", theirs)]
            for side, action in both[::-1] if number % 2 else both:
                found[side].append(timed(action))
        figures = {side: [statistics.median(column) for column in zip(*rows[2:])] for side, rows in found.items()}
        wall, cpu = (figures["client"][i] / figures["requests"][i] for i in (0, 1))
        print(json.dumps({"request": name, **{f"{side}_us": round(values[0]) for side, values in figures.items()},
                          **{f"{side}_cpu_us": round(values[1]) for side, values in figures.items()},
                          "wall_ratio": round(wall, 3), "cpu_ratio": round(cpu, 3)}), flush=True)


def material(tokens):
    draw, found = numpy.random.default_rng(7), []
    lengths = [random.Random(number).randint(512, 1536) for number in range(max(1, tokens // 1024))]
    for number, length in enumerate(lengths):
        old = (-3 * draw.random(length) - 0.5).astype(numpy.float32)
        new = old + (draw.random(length).astype(numpy.float32) - numpy.float32(0.5))
        found.append({"group": str(number // MEMBERS), "advantage": float(draw.standard_normal()), "logprobs": new, "old_logprobs": old})
    return {"objective": {"preset": "grpo"}, "sequences": found, "return": ["dloss_dlogp"], "dtype": "f32"}


def large(client, url, tokens, repeats, folder):
    body = material(tokens)
    file, out = os.path.join(folder, "body"), os.path.join(folder, "reply")
    with open(file, "wb") as sent:
        sent.write(_arrays.objective_body(body))
    command = ["curl", "-sS", "--fail", "-H", f"Content-Type: {_arrays.TENSORS}", "-H", f"Accept: {_arrays.TENSORS}", "-H", "Expect:", "--data-binary", f"@{file}",
               "-o", out, "-w", "%{time_total}", f"{url}/v1/objective"]
    rows = []
    for _ in range(repeats):
        began = time.perf_counter()
        reply = client.objective(**body)
        ours = time.perf_counter() - began
        began = time.perf_counter()
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append((ours, time.perf_counter() - began, float(said)))
    with open(out, "rb") as file:
        assert _arrays.objective_reply(file.read())["loss"] == reply["loss"]
    rows = rows[1:]
    figures = [round(statistics.median(column) * 1e3, 1) for column in zip(*rows)]
    best = [round(min(column) * 1e3, 1) for column in zip(*rows)]
    print(json.dumps({"objective_tokens": sum(len(one["logprobs"]) for one in body["sequences"]), "client_ms": figures[0], "curl_process_ms": figures[1], "curl_ms": figures[2],
                      "best_ms": best, "ratio": round(statistics.median(a / b for a, b, _ in rows), 3), "ratio_without_start": round(statistics.median(a / c for a, _, c in rows), 3)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "rolloutd"))
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--tokens", type=int, default=1 << 20)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    from harness import Rolloutd
    with tempfile.TemporaryDirectory() as folder:
        service = Rolloutd(folder, settings={"body_limit": "256MiB"}, binary=os.path.abspath(options.binary)).start()
        try:
            with rolloutd.Client(service.url) as client:
                small(client, service.url, options.rounds)
                large(client, service.url, options.tokens, options.repeats, folder)
        finally:
            service.terminate()


if __name__ == "__main__":
    main()
