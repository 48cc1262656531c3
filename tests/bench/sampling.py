#!/usr/bin/env python3
"""What sampling costs: rolloutd and an aiohttp client on the same fixed-latency engine, in one run. Compare ratios, not days.

    tests/bench/sampling.py [--binary build/rolloutd] [--peer-python VENV/bin/python] [--rollouts 4096] [--in-flight 64,1024]
                            [--delay 200] [--spread 0] [--repeats 3]

The engine (peers/fake_engine.c) holds each request for a known time and answers with 48 tokens. rolloutd samples one batch,
verifies each completion in its text workers, stores every rollout durably and renders the reply without arrays; the peer
(aiohttp, json) only fetches and parses. Figures: CPU seconds per 1,000 samples (rolloutd with all its processes; the loop's
process alone beside it), the time that rolloutd adds to the engine's own (the record's engine_us minus the delay; the engine's
own lateness is in it), rollouts per commit. Nothing is asserted.
"""
import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
TICK = os.sysconf("SC_CLK_TCK")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(HERE, "..", "..", "build", "rolloutd"))
    parser.add_argument("--peer-python", help="an interpreter with aiohttp; without it the peer's side is left out")
    parser.add_argument("--rollouts", type=int, default=4096)
    parser.add_argument("--in-flight", default="64,1024")
    parser.add_argument("--delay", type=int, default=200, help="ms")
    parser.add_argument("--spread", type=int, default=0, help="ms; 0: replies come in waves")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def family(pid):
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            for child in file.read().split():
                found += family(int(child))
    return found


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Engine:
    def __init__(self, folder, delay, spread):
        program = os.path.join(folder, "fake_engine")
        subprocess.run(["cc", "-O2", "-o", program, os.path.join(PEERS, "fake_engine.c"), "-lm"], check=True)
        self.process = subprocess.Popen([program, "-d", str(delay), "-j", str(spread)], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Service:
    def __init__(self, binary, folder, engine, in_flight):
        ready = os.path.join(folder, f"ready-{in_flight}")
        url = f"http://127.0.0.1:{engine.port}#kind=vllm&model=fake&in_flight={in_flight}"
        with open(os.path.join(folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [binary, "--listen", "127.0.0.1:0", "--database", os.path.join(folder, f"bench-{in_flight}.db"),
                 "--ready-file", ready, "--engine", url], stdout=log, stderr=log)
        while not os.path.exists(ready):
            time.sleep(0.02)
        with open(ready, encoding="utf-8") as file:
            self.port = int(file.read().strip().rpartition(":")[2])

    def call(self, method, path, body=None):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        link.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        reply = link.getresponse()
        data = reply.read()
        assert reply.status == 200, data[:500]
        return data

    def cpu(self):
        return cpu_seconds(self.process.pid), sum(map(cpu_seconds, family(self.process.pid)))

    def commits(self):
        text = self.call("GET", "/metrics").decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("rolloutd_commit_seconds_count"))

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def batch(count, seed):
    return {"run": "bench", "policy_revision": 1, "seed": seed, "deadline": "600s",
            "sampling": {"n": 8, "max_tokens": 48}, "verifiers": [{"name": "regex", "options": {"pattern": "a"}}],
            "groups": [{"task": f"t{index}", "prompt": "one plus one is " * 16} for index in range(count // 8)]}


def measure_service(options, folder, engine, in_flight):
    service = Service(options.binary, folder, engine, in_flight)
    best = None
    try:
        service.call("POST", "/v1/batches?arrays=none", batch(min(options.rollouts, 2 * in_flight), 1))  # warm: connections open
        for repeat in range(options.repeats):
            before, commits = service.cpu(), service.commits()
            began = time.perf_counter()
            reply = json.loads(service.call("POST", "/v1/batches?arrays=none", batch(options.rollouts, 2 + repeat)))
            wall, after = time.perf_counter() - began, service.cpu()
            rollouts = [rollout for group in reply["groups"] for rollout in group["rollouts"]]
            assert all(rollout["state"] == "scored" for rollout in rollouts), reply["summary"]
            added = [rollout["timing"]["engine_us"] / 1000 - options.delay for rollout in rollouts]
            row = {"cpu_s_per_1000_all": (after[1] - before[1]) * 1000 / len(rollouts),
                   "cpu_s_per_1000_service": (after[0] - before[0]) * 1000 / len(rollouts),
                   "added_ms_p50": quantile(added, 0.5), "added_ms_p99": quantile(added, 0.99), "wall_s": wall,
                   "rollouts_per_commit": len(rollouts) / max(1, service.commits() - commits)}
            if not best or row["cpu_s_per_1000_all"] < best["cpu_s_per_1000_all"]:
                best = row
    finally:
        service.close()
    return best


def measure_peer(options, in_flight):
    if not options.peer_python:
        return None
    out = subprocess.run([options.peer_python, os.path.join(PEERS, "client_asyncio.py"), "--clients", "aiohttp",
                          "--requests", str(options.rollouts), "--in-flight", str(in_flight), "--delay", str(options.delay),
                          "--spread", str(options.spread), "--repeats", str(options.repeats)],
                         capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def main():
    options = arguments()
    options.binary = os.path.abspath(options.binary)
    for in_flight in map(int, options.in_flight.split(",")):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            engine = Engine(folder, options.delay, options.spread)
            try:
                ours = measure_service(options, folder, engine, in_flight)
            finally:
                engine.close()
        print(json.dumps({"work": f"{options.rollouts} samples, {in_flight} in flight, engine {options.delay}+{options.spread} ms",
                          "who": "rolloutd", "load1": round(os.getloadavg()[0], 2),
                          **{name: round(value, 4) for name, value in ours.items()}}), flush=True)
        for line in measure_peer(options, in_flight) or []:
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
