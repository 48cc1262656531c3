#!/usr/bin/env python3
"""The cost of an objective: the library alone, numpy beside it, and POST /v1/objective beside FastAPI, in one run. Compare
ratios, not days.

    tests/bench/objective.py [--build build] [--python PYTHON-WITH-NUMPY] [--peer-python PYTHON] [--torch-python PYTHON]
                             [--tokens 1048576] [--repeats 5] [--library-only] [--tensors-only]

Library: BUILD/tests/bench/objective (ninja -C BUILD tests/bench/objective), one thread, nanoseconds of CPU for each token.
numpy: the same loss and gradient in float64 from float32, in an interpreter that has numpy (left out without one).
torch: peers/objective_torch.py, autograd in float32 on padded arrays (left out without an interpreter that has it).
HTTP: 1.06 M tokens in completions of 512 to 1,536, with advantages, as JSON arrays and as safetensors; bodies are made once, replies
read and not parsed, except the losses, which must agree. Peers: peers/objective_fastapi.py in an interpreter with fastapi,
uvicorn, numpy, orjson and safetensors (left out without one). The servers take turns, one request each. Figures: milliseconds of wall
and of the server's CPU, of the best request and the median; the server's peak resident memory, what it had when idle, and the
size of the bodies. Nothing is asserted.
"""
import argparse
import array
import http.client
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
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
for name, count, low, high in (("64 x 1000", 64, 1000, 1001), ("1024 x 1024, ragged", 1024, 512, 1537),
                               ("1024 x 64 to 1024, ragged", 1024, 64, 1025)):
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
    parser.add_argument("--peer-python", help="one with fastapi, uvicorn, numpy, orjson and safetensors")
    parser.add_argument("--torch-python", help="one with torch")
    parser.add_argument("--library-only", action="store_true")
    parser.add_argument("--tensors-only", action="store_true", help="HTTP with safetensors, nothing else")
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
    if options.torch_python:
        peer = os.path.join(HERE, "peers", "objective_torch.py")
        subprocess.run([options.torch_python, peer, str(options.repeats * 4)], check=True)


# -- bodies -----------------------------------------------------------------------------------------------------------

class Material:
    def __init__(self, tokens):
        draw = random.Random(7)
        self.lengths = [draw.randint(512, 1536) for _ in range(max(1, tokens // 1024))]
        self.old = array.array("f", (-3 * draw.random() - 0.5 for _ in range(sum(self.lengths))))
        self.new = array.array("f", (value + draw.random() - 0.5 for value in self.old))
        self.advantages = [draw.gauss(0, 1) for _ in self.lengths]

    def request(self):
        return {"objective": {"preset": "grpo", "beta": 0}, "return": RETURN,
                "sequences": [{"group": str(i // MEMBERS), "advantage": advantage, "finish_reason": "stop"}
                              for i, advantage in enumerate(self.advantages)]}

    def arrays(self):
        at = 0
        for length in self.lengths:  # float32 as the doubles they are, which is what tolist() gives
            yield {"logprobs": list(self.new[at:at + length]), "old_logprobs": list(self.old[at:at + length])}
            at += length

    def as_json(self):
        request = self.request()
        for sequence, arrays in zip(request["sequences"], self.arrays()):
            sequence.update(arrays)
        return json.dumps(request, separators=(",", ":")).encode()

    def as_peer_json(self):
        rows = [{**arrays, "advantage": advantage} for arrays, advantage in zip(self.arrays(), self.advantages)]
        return json.dumps({"sequences": rows}, separators=(",", ":")).encode()

    def as_tensors(self, request=None):
        cuts = array.array("i", [0])
        for length in self.lengths:
            cuts.append(cuts[-1] + length)
        columns = [("logprobs", "F32", self.new), ("old_logprobs", "F32", self.old), ("cu_seqlens", "I32", cuts)]
        header, data = {}, b""
        if request:
            header["__metadata__"] = {"request": json.dumps(request)}
        else:
            columns.insert(0, ("advantages", "F64", array.array("d", self.advantages)))
        for name, kind, values in columns:
            piece = values.tobytes()
            header[name] = {"dtype": kind, "shape": [len(values)], "data_offsets": [len(data), len(data) + len(piece)]}
            data += piece
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + data


# -- the servers ------------------------------------------------------------------------------------------------------

class Server:
    def __init__(self, name, media_type, body, command):
        self.name, self.media_type, self.body, self.runs = name, media_type, body, []
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def connect(self, port):
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"{self.name} did not start")
                time.sleep(0.02)
        self.link = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.idle_bytes = self.peak_bytes()

    def stop(self):
        self.link.close()  # uvicorn waits for open connections
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def cpu_seconds(self):
        folder, spent = f"/proc/{self.process.pid}/task", 0
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/schedstat", encoding="latin-1") as file:
                spent += int(file.read().split()[0])
        return spent / 1e9

    def peak_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="latin-1") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) * 1024

    def post(self):
        cpu, begun = self.cpu_seconds(), time.perf_counter()
        self.link.request("POST", "/v1/objective", self.body, {"Content-Type": self.media_type, "Accept": self.media_type})
        answer = self.link.getresponse()
        received = answer.read()
        wall = time.perf_counter() - begun
        if answer.status != 200:
            sys.exit(f"{answer.status} {received[:500]!r}")
        self.runs.append((wall * 1e3, (self.cpu_seconds() - cpu) * 1e3))
        self.reply_bytes = len(received)
        self.loss = float(re.search(rb'"loss\\*": ?\\*"?(-?[0-9.e+-]+)', received).group(1))

    def figures(self):
        walls, cpus = (sorted(column) for column in zip(*self.runs))
        middle = len(walls) // 2
        return {"server": self.name, "wall_ms": round(walls[0], 1), "wall_ms_median": round(walls[middle], 1),
                "cpu_ms": round(cpus[0], 1), "cpu_ms_median": round(cpus[middle], 1),
                "peak_mb": round(self.peak_bytes() / 1e6, 1), "idle_mb": round(self.idle_bytes / 1e6, 1),
                "body_mb": round(len(self.body) / 1e6, 1), "reply_mb": round(self.reply_bytes / 1e6, 1)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_rolloutd(options, folder, media_type, body, name=""):
    port = free_port()
    server = Server("rolloutd" + name, media_type, body,
                    [os.path.join(options.build, "rolloutd"), "--listen", f"127.0.0.1:{port}", "--database",
                     os.path.join(folder, "rolloutd.db"), "--set", "body_limit=512MiB"])
    server.connect(port)
    return server


def start_peer(options, mode, media_type, body):
    port = free_port()
    server = Server("fastapi " + mode, media_type, body,
                    [options.peer_python, os.path.join(HERE, "peers", "objective_fastapi.py"), mode, str(port)])
    server.connect(port)
    return server


def over_http(options, name, servers):
    for _ in range(options.repeats):
        for server in servers:
            server.post()
    for server in servers:
        if abs(server.loss - servers[0].loss) > 1e-6 * abs(servers[0].loss):
            sys.exit(f"{server.name} says {server.loss}, {servers[0].name} {servers[0].loss}")
        print(json.dumps({"http": name, **server.figures()}), flush=True)
    for server in servers:
        server.stop()


def main():
    options = arguments()
    if not options.tensors_only:
        library(options)
    if options.library_only:
        return
    material = Material(options.tokens)
    peers = ["orjson", "pydantic"] if options.peer_python else []
    with tempfile.TemporaryDirectory() as folder:
        if not options.tensors_only:
            over_http(options, "json", [start_rolloutd(options, folder, "application/json", material.as_json())] +
                      [start_peer(options, mode, "application/json", material.as_peer_json()) for mode in peers])
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        kind = "application/x-safetensors"  # the peer answers in floats
        over_http(options, "safetensors", [
            start_rolloutd(options, folder, kind, material.as_tensors({**material.request(), "dtype": "f32"}), " f32"),
            start_rolloutd(options, other, kind, material.as_tensors(material.request()), " f64")] +
                  [start_peer(options, "safetensors", kind, material.as_tensors()) for _ in peers[:1]])


if __name__ == "__main__":
    main()
