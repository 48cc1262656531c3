#!/usr/bin/env python3
"""The cost of several engines: rolloutd over a pool of fake ones. Compare ratios, not days.

    tests/bench/engines.py [--build build] [--binary build/rolloutd] [--engines 4] [--in-flight 64,1024,4096]
                           [--rollouts 4096] [--queued 16000] [--delay 200] [--spread 100] [--repeats 3]

The engines (peers/fake_engine.c) hold each request for --delay ms and a uniform draw up to --spread, and answer with 48 tokens.
  samples   CPU seconds per 1,000 (all processes; the service alone beside it), and the time added to what the engine took,
            p50 and p99 (what the engine says, where it does; otherwise the mean of its delay), the spread over the engines
  queue     --queued samples posted at once with 1,024 in flight, streamed: seconds to the first and to the last closed group
  memory    what the service's resident memory grows by for each of 4,096 samples that are all at the engines
  replies   ns per token for reading a reply of 1,024 tokens with their log-probabilities, by kind (BUILD/tests/bench/adapters)
The best of the repeats; nothing is asserted.
"""
import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time

from sampling import Engine, Service, cpu_seconds, family, quantile

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--binary", help="another rolloutd than the build's")
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--in-flight", default="64,1024,4096")
    parser.add_argument("--rollouts", type=int, default=4096)
    parser.add_argument("--queued", type=int, default=16000)
    parser.add_argument("--delay", type=int, default=200, help="ms")
    parser.add_argument("--spread", type=int, default=100, help="ms; 0: replies come in waves")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


class PoolService(Service):
    """A service over several engines that share the places in flight."""

    def __init__(self, binary, folder, engines, in_flight):  # pylint: disable=super-init-not-called
        ready = os.path.join(folder, f"ready-{in_flight}")
        command = [binary, "--listen", "127.0.0.1:0", "--database", os.path.join(folder, f"bench-{in_flight}.db"),
                   "--ready-file", ready]
        for engine in engines:
            command += ["--engine", f"http://127.0.0.1:{engine.port}#kind=vllm&model=fake&in_flight={in_flight // len(engines)}"]
        with open(os.path.join(folder, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "ROLLOUTD_MEMORY_BUDGET": "8GiB"})
        while not os.path.exists(ready):
            assert self.process.poll() is None, "the service did not start"
            time.sleep(0.02)
        with open(ready, encoding="utf-8") as file:
            self.port = int(file.read().strip().rpartition(":")[2])
        while not self.all_up(len(engines)):
            time.sleep(0.02)

    def all_up(self, count):
        metrics = self.call("GET", "/metrics").decode()
        return f'rolloutd_engines{{state="up"}} {count}' in metrics

    def cpu_of_all(self):
        return cpu_seconds(self.process.pid), sum(map(cpu_seconds, family(self.process.pid)))

    def post_without_waiting(self, body):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        link.request("POST", "/v1/batches?wait=0s", json.dumps(body), {"Content-Type": "application/json"})
        return link.getresponse().read()

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def batch(count, seed):
    return {"run": "bench", "policy_revision": 1, "seed": seed, "deadline": "600s",
            "sampling": {"n": 8, "max_tokens": 48}, "verifiers": [{"name": "regex", "options": {"pattern": "a"}}],
            "groups": [{"task": f"t{index}", "prompt": f"{index} plus one is " * 16} for index in range(count // 8)]}


def held_us(rollout, options):
    said = rollout.get("engine_revision") or ""
    return int(said) if said.isdigit() else options.delay * 1000 + options.spread * 500


def measure_samples(service, options, seed):
    before = service.cpu_of_all()
    reply = json.loads(service.call("POST", "/v1/batches?arrays=none", batch(options.rollouts, seed)))
    after = service.cpu_of_all()
    members = [rollout for group in reply["groups"] for rollout in group["rollouts"]]
    assert all(member["state"] == "scored" for member in members), reply["summary"]
    added = [(member["timing"]["engine_us"] - held_us(member, options)) / 1000 for member in members]
    shares = [sum(member["engine"] == name for member in members) for name in {member["engine"] for member in members}]
    return {"cpu_s_per_1000": (after[1] - before[1]) * 1000 / len(members),
            "cpu_s_per_1000_service": (after[0] - before[0]) * 1000 / len(members),
            "added_ms_p50": quantile(added, 0.5), "added_ms_p99": quantile(added, 0.99),
            "busiest_engine": max(shares) * options.engines / len(members)}


def measure_queue(service, options, seed):
    link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=600)
    began = time.perf_counter()
    link.request("POST", "/v1/batches?arrays=none", json.dumps(batch(options.queued, seed)),
                 {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
    reply = link.getresponse()
    assert reply.status == 200, reply.read()[:500]
    first = None
    for line in reply:
        if first is None and b'"rollouts"' in line:
            first = time.perf_counter() - began
    return {"first_s": first, "last_s": time.perf_counter() - began}


def measure_memory(service, count, seed):
    """Every sample is at an engine, and none has come back."""
    before = service.resident_bytes()
    identity = json.loads(service.post_without_waiting(batch(count, seed)))["id"]
    most = 0
    while True:
        running = json.loads(service.call("GET", f"/v1/batches/{identity}?wait=0s"))
        if running["state"] != "running" or running["counts"]["done"] > 0:
            return {"in_flight": most, "bytes_each": None}
        most = max(most, running["waiting"]["sampling"])
        if most == count:
            grown = service.resident_bytes() - before
            service.call("DELETE", f"/v1/batches/{identity}")
            return {"in_flight": most, "bytes_each": round(grown / count)}
        time.sleep(0.01)


def best(runs):
    return {name: round(min(run[name] for run in runs), 4) for name in runs[0]}


def say(what, **figures):
    print(json.dumps({"what": what, "load1": round(os.getloadavg()[0], 2), **figures}), flush=True)


def with_pool(options, in_flight, delay, spread, use):
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        engines = [Engine(folder, delay, spread) for _ in range(options.engines)]
        service = PoolService(options.binary, folder, engines, in_flight)
        try:
            return use(service)
        finally:
            service.close()
            for engine in engines:
                engine.close()


def samples(options, in_flight):
    def use(service):
        service.call("POST", "/v1/batches?arrays=none", batch(2 * in_flight, 1))  # warm: connections open
        return [measure_samples(service, options, 2 + repeat) for repeat in range(options.repeats)]

    say("samples", in_flight=in_flight, rollouts=options.rollouts, **best(with_pool(options, in_flight, options.delay, options.spread, use)))


def queue(options):
    def use(service):
        return [measure_queue(service, options, 2 + repeat) for repeat in range(options.repeats)]

    say("queue", queued=options.queued, in_flight=1024, **best(with_pool(options, 1024, options.delay, options.spread, use)))


def memory(options):
    say("memory", **with_pool(options, 4096, 60000, 0, lambda service: measure_memory(service, 4096, 2)))


def replies(options):
    out = subprocess.run([os.path.join(options.build, "tests", "bench", "adapters")], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in out.splitlines():
        say("replies", **json.loads(line))


def main():
    options = arguments()
    options.binary = os.path.abspath(options.binary or os.path.join(options.build, "rolloutd"))
    for in_flight in map(int, options.in_flight.split(",")):
        samples(options, in_flight)
    queue(options)
    memory(options)
    replies(options)


if __name__ == "__main__":
    sys.exit(main())
