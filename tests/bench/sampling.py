#!/usr/bin/env python3
"""The cost of sampling: rolloutd and an aiohttp client on the same fixed-latency engine, in one run. Compare ratios, not days.

    tests/bench/sampling.py [--build build] [--peer-python VENV/bin/python] [--rollouts 4096] [--in-flight 64,1024]
                            [--delay 200] [--spread 0] [--repeats 3]

The engine (peers/fake_engine.c) holds each request for a known time, says in its reply for how long, and answers with 48 tokens.
rolloutd samples one batch, verifies each completion in its text workers, stores every rollout durably and renders the reply
without arrays; client_lib (BUILD/tests/bench/client, ninja -C BUILD tests/bench/client) and the peer (aiohttp, json) only fetch and
parse. They take turns, --repeats times. Figures: CPU seconds per 1,000 samples (rolloutd with all its processes; the loop's process
alone beside it), the time added to what the engine took, from the decision to send to the parsed reply (warm: without the first of
each connection; of rolloutd, whose connections are open, without the first of the batch, which go out at once), rollouts per
commit: the best of the repeats, and the worst where it is named. Nothing is asserted.
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
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--binary", help="another rolloutd than the build's")
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


def latencies(added):
    return {"added_ms_p50": quantile(added, 0.5), "added_ms_p99": quantile(added, 0.99)}


def measure_service(service, rollouts, in_flight, seed):
    before, commits = service.cpu(), service.commits()
    began = time.perf_counter()
    reply = json.loads(service.call("POST", "/v1/batches?arrays=none", batch(rollouts, seed)))
    wall, after = time.perf_counter() - began, service.cpu()
    members = [rollout for group in reply["groups"] for rollout in group["rollouts"]]
    assert all(member["state"] == "scored" for member in members), reply["summary"]
    added = [member["timing"]["engine_us"] / 1000 - int(member["engine_revision"]) / 1000 for member in members]
    return {"cpu_s_per_1000": (after[1] - before[1]) * 1000 / len(members),
            "cpu_s_per_1000_service": (after[0] - before[0]) * 1000 / len(members), **latencies(added),
            "warm_ms_p50": quantile(added[in_flight:], 0.5), "warm_ms_p99": quantile(added[in_flight:], 0.99), "wall_s": wall,
            "rollouts_per_commit": len(members) / max(1, service.commits() - commits)}


def measure_client(build, engine, rollouts, in_flight):
    program = os.path.join(build, "tests", "bench", "client")
    out = subprocess.run([program, f"http://127.0.0.1:{engine.port}", str(rollouts), str(in_flight)],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    figures = json.loads(out)
    return {name: figures[name] for name in figures if name != "who"}


def measure_peer(python, engine, rollouts, in_flight):
    out = subprocess.run([python, os.path.join(PEERS, "client_asyncio.py"), "--clients", "aiohttp", "--requests", str(rollouts),
                          "--in-flight", str(in_flight), "--port", str(engine.port), "--repeats", "1"],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    added, cpu = [json.loads(line) for line in out.splitlines()][:2]
    return {"cpu_s_per_1000": cpu["value"], "added_ms_p50": added["value"], "added_ms_p99": added["p99"],
            "warm_ms_p99": added["p99_warm"], "wall_s": added["wall_s"]}


def report(options, in_flight, who, runs):
    figures = {name: round(min(run[name] for run in runs), 4) for name in runs[0]}
    figures["cpu_s_per_1000_worst"] = round(max(run["cpu_s_per_1000"] for run in runs), 4)
    if "rollouts_per_commit" in figures:
        figures["rollouts_per_commit"] = round(max(run["rollouts_per_commit"] for run in runs), 1)
    print(json.dumps({"work": f"{options.rollouts} samples, {in_flight} in flight, engine {options.delay}+{options.spread} ms",
                      "who": who, "load1": round(os.getloadavg()[0], 2), **figures}), flush=True)


def measure(options, in_flight, folder):
    engine = Engine(folder, options.delay, options.spread)
    service = Service(options.binary, folder, engine, in_flight)
    runs = {"rolloutd": [], "client_lib": [], "aiohttp": []}
    try:
        service.call("POST", "/v1/batches?arrays=none", batch(2 * in_flight, 1))  # warm: connections open
        for repeat in range(options.repeats):
            runs["rolloutd"].append(measure_service(service, options.rollouts, in_flight, 2 + repeat))
            runs["client_lib"].append(measure_client(options.build, engine, options.rollouts, in_flight))
            if options.peer_python:
                runs["aiohttp"].append(measure_peer(options.peer_python, engine, options.rollouts, in_flight))
    finally:
        service.close()
        engine.close()
    for who in runs:
        if runs[who]:
            report(options, in_flight, who, runs[who])
    if options.peer_python:
        pairs = list(zip(*runs.values()))
        for index, who in ((0, "rolloutd"), (1, "client_lib")):
            ratios = sorted(pair[index]["cpu_s_per_1000"] / pair[2]["cpu_s_per_1000"] for pair in pairs)
            print(json.dumps({"in_flight": in_flight, "ratio": f"CPU of {who} / aiohttp", "least": round(ratios[0], 3),
                              "median": round(ratios[len(ratios) // 2], 3), "most": round(ratios[-1], 3)}), flush=True)


def main():
    options = arguments()
    options.binary = os.path.abspath(options.binary or os.path.join(options.build, "rolloutd"))
    for in_flight in map(int, options.in_flight.split(",")):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            measure(options, in_flight, folder)


if __name__ == "__main__":
    sys.exit(main())
