#!/usr/bin/env python3
"""Leases: the time of one with 64 groups of 8 rollouts of 1,024 tokens in each form, and lease and ack pairs of one group a second.

    tests/bench/leases.py [--binary build/rolloutd] [--rounds 5] [--pairs 2000] [--clients 8]

The groups are sampled at tests/tools/canned_engine.py. A lease is timed from the request to the last byte of its reply, which
nobody parses, and is released again; the arrays are those that a trainer needs (`return` without surrogates and contributions).
Pairs: each client has a connection of its own and takes one group after the other. Nothing is asserted.
"""
import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "http"))
ARRAYS = ["completion_ids", "logprobs", "completion_mask", "prompt_ids"]
FORMS = (("JSON, arrays=base64", "?arrays=base64", "application/json"), ("JSON lines, arrays=base64", "?arrays=base64", "application/x-ndjson"),
         ("JSON", "", "application/json"), ("safetensors", "", "application/x-safetensors"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(HERE, "..", "..", "build", "rolloutd"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    return parser.parse_args()


class Connection:
    def __init__(self, url):
        self.link = http.client.HTTPConnection(url.rpartition("/")[2])

    def post(self, path, body, accept="application/json"):
        self.link.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Accept": accept})
        reply = self.link.getresponse()
        content = reply.read()
        assert reply.status in (200, 202), content[:300]
        return content


def submit(service, connection, run, groups, n, tokens):
    body = {"run": run, "policy_revision": 1, "sampling": {"n": n, "max_tokens": tokens}, "verifiers": [{"name": "regex", "options": {"pattern": "4"}}],
            "deliver": "lease", "return": ARRAYS, "groups": [{"task": f"t{i}", "prompt": "What is 2+2?"} for i in range(groups)]}
    service.settled(json.loads(connection.post("/v1/batches?arrays=none", body))["id"])


def cpu_ms(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def forms(options, service, connection):
    body, path = {"groups": 64, "wait": "0s"}, "/v1/runs/large/leases"
    for name, query, accept in FORMS:
        times, size, cpu = [], 0, cpu_ms(service.pid)
        for _ in range(options.rounds):
            began = time.perf_counter()
            size = len(connection.post(path + query, body, accept))
            times.append(1000 * (time.perf_counter() - began))
            connection.link.request("GET", path)
            lease = json.loads(connection.link.getresponse().read())["items"][0]["lease"]
            connection.post(f"{path}/{lease}/release", {})
        cpu = (cpu_ms(service.pid) - cpu) / options.rounds
        print(f"{name:28} {min(times):7.1f} ms best, {statistics.median(times):7.1f} ms median, {cpu:5.1f} ms of CPU with the release, {size / 1e6:6.2f} MB")


def take_all(url, count):
    connection = Connection(url)
    for _ in range(count):
        lease = json.loads(connection.post("/v1/runs/small/leases?arrays=none", {"groups": 1, "wait": "0s"}))
        connection.post(f"/v1/runs/small/leases/{lease['lease']}/ack", {"optimizer_step": 1})


def pairs(options, service, clients):
    each = options.pairs // clients
    submit(service, Connection(service.url), "small", each * clients, 1, 1024)
    threads = [threading.Thread(target=take_all, args=(service.url, each)) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{clients} clients: {each * clients / (time.perf_counter() - began):.0f} lease and ack pairs of one group a second")


def main():
    options = arguments()
    os.environ["ROLLOUTD_BINARY"] = os.path.abspath(options.binary)
    from harness import Rolloutd
    engine = subprocess.Popen([sys.executable, os.path.join(HERE, "..", "tools", "canned_engine.py"), "--tokens", "1024"], stdout=subprocess.PIPE, text=True)
    url = engine.stdout.readline().split()[1]
    with tempfile.TemporaryDirectory(prefix="leases-") as folder:
        service = Rolloutd(folder, [f"{url}#kind=vllm"]).start()
        try:
            connection = Connection(service.url)
            submit(service, connection, "large", 64, 8, 1024)
            forms(options, service, connection)
            for clients in (1, options.clients):
                pairs(options, service, clients)
        finally:
            service.terminate()
            engine.terminate()


if __name__ == "__main__":
    main()
