#!/usr/bin/env python3
"""Programs in the sandbox, beside a Python by hand and bubblewrap in the same run. Compare ratios, not days.

    tests/bench/sandbox.py [--binary build/rolloutd] [--rounds 5] [--count 100]

A round runs each way in turn, one program at a time: --count items in one POST /v1/verify on one slot, and as many calls of
each peer. The figure of a way is the best of its rounds, per program, the request included; a ratio is the median over the
rounds. Then in the service alone: the same with two slots, 20 tests of one program, 20 calls in one process, 4 MiB in and 1 MiB
out. Every answer counts only if it is right. Nothing is asserted.
"""
import argparse
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "tools"), os.path.join(HERE, "peers")]

import sandbox as peers  # noqa: E402
from caselib.service import Service  # noqa: E402
from caselib.verify import fenced  # noqa: E402

PROGRAMS = {"python": ("import sys\nprint(int(sys.stdin.readline()) + 1)\n", peers.python, "subprocess.run(python3 -c)"),
            "python, 6 imports": ("import collections, heapq, itertools, json, math, re\nimport sys\nprint(int(sys.stdin.readline()) + 1)\n", peers.python, None),
            "sh": ("read n\necho $((n + 1))\n", peers.shell, None),
            "c": ("#include <stdio.h>\nint main(void)\n{\n    int n;\n    scanf(\"%d\", &n);\n    printf(\"%d\\n\", n + 1);\n    return 0;\n}\n", peers.compiled, None)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(TESTS, "..", "build", "rolloutd"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=100)
    return parser.parse_args()


def item(name, language, source, reference):
    return {"id": str(name), "completion": fenced(language, source), "reference": reference,
            "verifiers": [{"name": "code", "options": {"language": language, "limits": {"wall_ms": 20000, "cpu_ms": 10000, "output_kb": 4096}}}]}


def increment(language, source, count):
    return [item(number, language, source, {"tests": [{"stdin": f"{number}\n", "stdout": f"{number + 1}\n"}]}) for number in range(count)]


def seconds(service, items):
    begin = time.perf_counter()
    reply = service.post("/v1/verify", {"items": items}, timeout=600)
    took = time.perf_counter() - begin
    wrong = [one for one in (reply.data or {}).get("items", [{"verdicts": [reply.describe()]}]) if not (isinstance(one["verdicts"][0], dict) and one["verdicts"][0]["score"] == 1)]
    if wrong:
        sys.exit(f"bench: {str(wrong[0])[:500]}")
    return took


def peer_seconds(way, count):
    begin = time.perf_counter()
    for number in range(count):
        if way(f"{number}\n") != f"{number + 1}\n":
            sys.exit("bench: a peer is wrong")
    return time.perf_counter() - begin


def beside_peers(service, options):
    for name, (source, make, _) in PROGRAMS.items():
        language, ways = name.partition(",")[0], {way: call for way, call in make(source).items() if call}
        items, times = increment(language, source, options.count), {"rolloutd": [], **{way: [] for way in ways}}
        seconds(service, items[:2])
        for _ in range(options.rounds):
            times["rolloutd"].append(seconds(service, items) / options.count)
            for way, call in ways.items():
                times[way].append(peer_seconds(call, max(options.count // 4, 5)) / max(options.count // 4, 5))
        print(f"{name}: rolloutd {1e3 * min(times['rolloutd']):.2f} ms, {1 / min(times['rolloutd']):.0f}/s", flush=True)
        for way in ways:
            ratio = statistics.median(theirs / ours for theirs, ours in zip(times[way], times["rolloutd"]))
            print(f"    {way}: {1e3 * min(times[way]):.2f} ms, {ratio:.1f} times as long")


def best(service, items, rounds):
    seconds(service, items)
    return min(seconds(service, items) for _ in range(rounds))


def alone(service, options):
    source = "import sys\nprint(int(sys.stdin.readline()) + 1)\n"
    one = best(service, [item(1, "python", source, {"tests": [{"stdin": "1\n", "stdout": "2\n"}]})], options.rounds * 4)
    twenty = best(service, [item(1, "python", source, {"tests": [{"stdin": f"{n}\n", "stdout": f"{n + 1}\n"} for n in range(20)]})], options.rounds)
    print(f"one item in one request: {1e3 * one:.2f} ms; 20 tests of it, a sandbox each: {1e3 * twenty:.1f} ms (goal: below 35)")
    calls = [[{"args": [n], "expect": n + 1} for n in range(count)] for count in (1, 20)]
    single, many = (best(service, [item(1, "python", "def f(n):\n    return n + 1\n", {"entry": "f", "calls": made})], options.rounds * 2) for made in calls)
    print(f"one call: {1e3 * single:.2f} ms; 20 calls in one process: {1e3 * many:.2f} ms, {many / single:.2f} times as long (goal: below 3)")
    stream = "import sys\nn = len(sys.stdin.buffer.read())\nsys.stdout.write('y' * (1 << 20))\nprint(n)\n"
    took = best(service, [item(1, "python", stream, {"tests": [{"stdin": "x" * (4 << 20), "stdout": "y" * (1 << 20) + f"{4 << 20}\n"}]})], options.rounds)
    print(f"4 MiB in, 1 MiB out: {1e3 * took:.0f} ms")


def main():
    options = arguments()
    with Service(os.path.abspath(options.binary), settings={"sandbox.slots": 1}) as service:
        beside_peers(service, options)
        alone(service, options)
    with Service(os.path.abspath(options.binary), settings={"sandbox.slots": os.cpu_count()}) as service:
        items = increment("python", PROGRAMS["python"][0], options.count * 2)
        took = best(service, items, options.rounds) / len(items)
        print(f"python, {os.cpu_count()} slots: {1 / took:.0f}/s")


if __name__ == "__main__":
    main()
