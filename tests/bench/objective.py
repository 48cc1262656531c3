#!/usr/bin/env python3
"""What an objective costs: the library alone, numpy beside it, and POST /v1/objective, in one run. Compare ratios, not days.

    tests/bench/objective.py [--build build] [--python PYTHON-WITH-NUMPY] [--tokens 1048576] [--repeats 5]

Library: BUILD/tests/bench/objective (ninja -C BUILD tests/bench/objective), one thread, nanoseconds of CPU for each token.
numpy: the same loss and gradient in float64 from float32, in an interpreter that has numpy (left out without one).
HTTP: 1.06 M tokens in completions of 512 to 1,536, as JSON arrays and as safetensors; the body is made once, the reply is read
and not parsed. Figures: wall milliseconds of the best request, the server's CPU in it, its peak resident memory with the size of
the body beside it. Nothing is asserted.
"""
import argparse
import array
import http.client
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = os.sysconf("SC_CLK_TCK")
MEMBERS = 8
RETURN = ["contributions", "dloss_dlogp"]

NUMPY = """
import json, sys, time, numpy as np
def objective(new, old, lens, adv):
    rows = np.repeat(np.arange(len(lens)), lens)
    q = np.exp(new.astype(np.float64) - old)
    a = adv[rows]
    s1, s2 = q * a, np.clip(q, 0.8, 1.2) * a
    w = (1.0 / (lens * len(lens)))[rows]
    contribution = -np.minimum(s1, s2) * w
    return contribution.sum(), contribution, np.where(s1 <= s2, -s1, 0.0) * w
for name, count, low, high in (("64 x 1000", 64, 1000, 1001), ("1024 x 1024, ragged", 1024, 512, 1537)):
    rng = np.random.default_rng(7)
    lens = rng.integers(low, high, count)
    total = int(lens.sum())
    old = (-3 * rng.random(total)).astype(np.float32)
    new = old + (rng.random(total).astype(np.float32) - np.float32(0.5))
    adv = rng.standard_normal(count)
    best = 1e9
    for _ in range(int(sys.argv[1])):
        begun = time.process_time()
        objective(new, old, lens, adv)
        best = min(best, time.process_time() - begun)
    print(json.dumps({"shape": name, "tokens": total, "numpy_ns_per_token": round(best / total * 1e9, 2)}))
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--python", default=sys.executable, help="an interpreter with numpy")
    parser.add_argument("--tokens", type=int, default=1 << 20)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def library(options):
    program = os.path.join(options.build, "tests", "bench", "objective")
    if os.path.exists(program):
        subprocess.run([program, str(options.repeats * 4)], check=True)
    if subprocess.run([options.python, "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([options.python, "-c", NUMPY, str(options.repeats * 4)], check=True, env=environment)


# -- bodies -----------------------------------------------------------------------------------------------------------

def material(tokens):
    draw = random.Random(7)
    lengths = [draw.randint(512, 1536) for _ in range(max(1, tokens // 1024))]
    old = array.array("f", (-3 * draw.random() for _ in range(sum(lengths))))
    new = array.array("f", (value + draw.random() - 0.5 for value in old))
    return lengths, new, old


def skeleton(lengths):
    draw = random.Random(8)
    return {"objective": {"preset": "grpo", "beta": 0}, "return": RETURN,
            "sequences": [{"group": str(i // MEMBERS), "reward": float(draw.random() < 0.5), "finish_reason": "stop"}
                          for i in range(len(lengths))]}


def as_json(lengths, new, old):
    request, at = skeleton(lengths), 0
    for sequence, length in zip(request["sequences"], lengths):
        sequence["logprobs"] = [float(f"{value:.8g}") for value in new[at:at + length]]
        sequence["old_logprobs"] = [float(f"{value:.8g}") for value in old[at:at + length]]
        at += length
    return json.dumps(request, separators=(",", ":")).encode()


def as_tensors(lengths, new, old):
    cuts = array.array("i", [0])
    for length in lengths:
        cuts.append(cuts[-1] + length)
    header, data = {"__metadata__": {"request": json.dumps(skeleton(lengths))}}, b""
    for name, kind, values in (("logprobs", "F32", new), ("old_logprobs", "F32", old), ("cu_seqlens", "I32", cuts)):
        piece = values.tobytes()
        header[name] = {"dtype": kind, "shape": [len(values)], "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


# -- the server -------------------------------------------------------------------------------------------------------

class Server:
    def __init__(self, binary, folder):
        ready = os.path.join(folder, "ready")
        self.process = subprocess.Popen(
            [binary, "--listen", "127.0.0.1:0", "--database", os.path.join(folder, "rolloutd.db"), "--ready-file", ready,
             "--set", "body_limit=512MiB"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not os.path.exists(ready) or not os.path.getsize(ready):
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit("rolloutd did not start")
            time.sleep(0.02)
        with open(ready, encoding="utf-8") as file:
            self.port = int(re.search(r"http://[^\s\"]*?:(\d+)", file.read()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def peak_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="latin-1") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) * 1024


def post(link, body, media_type):
    begun = time.perf_counter()
    link.request("POST", "/v1/objective", body, {"Content-Type": media_type, "Accept": media_type})
    answer = link.getresponse()
    received = answer.read()
    if answer.status != 200:
        sys.exit(f"{answer.status} {received[:500]!r}")
    return time.perf_counter() - begun, len(received)


def transport(options, name, media_type, body, tokens):
    with tempfile.TemporaryDirectory() as folder, Server(os.path.join(options.build, "rolloutd"), folder) as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        before, runs = server.cpu_seconds(), []
        for _ in range(options.repeats):
            runs.append(post(link, body, media_type))
        cpu = (server.cpu_seconds() - before) / options.repeats
        print(json.dumps({"http": name, "tokens": tokens, "wall_ms": round(min(runs)[0] * 1e3, 1), "server_cpu_ms": round(cpu * 1e3, 1),
                          "peak_mb": round(server.peak_bytes() / 1e6, 1), "body_mb": round(len(body) / 1e6, 1),
                          "reply_mb": round(runs[0][1] / 1e6, 1)}), flush=True)


def main():
    options = arguments()
    library(options)
    lengths, new, old = material(options.tokens)
    transport(options, "json", "application/json", as_json(lengths, new, old), len(new))
    transport(options, "safetensors", "application/x-safetensors", as_tensors(lengths, new, old), len(new))


if __name__ == "__main__":
    main()
