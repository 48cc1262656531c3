#!/usr/bin/env python3
"""Processor time of the service for calls of verifiers: 1,000 completions of 2 KB to an external that answers after 200 ms, 256 in flight.

    ROLLOUTD_BINARY=build/rolloutd tests/bench/calls.py [COMPLETIONS]"""
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))
from harness import Rolloutd  # noqa: E402
from reward_server import RewardServer, answer  # noqa: E402


def act(_):
    time.sleep(0.2)
    return answer('{"score": 1}')


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    server = RewardServer(act)
    entry = {"name": "bench", "url": server.url, "in_flight": 256, "timeout": "60s"}
    with tempfile.TemporaryDirectory() as folder:
        service = Rolloutd(folder, settings={"externals": json.dumps([entry])}).start()
        body = {"verifiers": [{"name": "external", "options": {"name": "bench"}}], "items": [{"completion": "word " * 400 + str(number)} for number in range(count)]}
        for _ in range(3):
            before = processor_seconds(service.pid)
            reply = service.post("/v1/verify", body)
            assert all(item["reward"] == 1 for item in reply.json["items"]), reply
            print(f"{count} calls, at most {server.most_open} at once: {processor_seconds(service.pid) - before:.2f} s of the service")
        service.terminate()
    server.close()


if __name__ == "__main__":
    main()
