#!/usr/bin/env python3
"""The math verifier: verdicts per second, hostile inputs, memory; Math-Verify beside it on the same cases. Compare ratios, not days.

    ninja -C build tests/bench/math
    tests/bench/math.py [--build build] [--cases FILE …] [--rounds 20] [--peer-python VENV/bin/python] [--parts rate,worker,hostile,memory,peer]

rate: BUILD/tests/bench/math judges the cases of the ordinary categories in one process, one thread: verdicts per second of CPU, and the time
of one verdict (the fastest of its rounds: the machine's other work left out; the slowest beside it). worker: the same through a worker's
socket, one and eight at a time. hostile: CPU ms of each input of tests/tools/math_hostile.py, the fastest of three. memory: the largest
resident set of the service's processes over 100,000 verdicts through /v1/verify. peer: Math-Verify with its own time-outs in a process that is
killed after --hard seconds, each case once (its caches warm), in seconds of CPU, and the errors of both against the labels. Nothing is asserted.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TESTS, "tools"), os.path.join(TESTS, "nightly", "mathverify")]

from caselib.service import Service  # noqa: E402
from math_hostile import hostile  # noqa: E402

PEER = os.path.join(HERE, "peers", "mathverify.py")
EXTRAORDINARY = {"hack", "extract", "big", "bug", "form", "latex_noise"}
VERDICTS, PART = 100_000, 1000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(TESTS, "..", "build"))
    parser.add_argument("--cases", nargs="+", default=[os.path.join(TESTS, "cases", "math.jsonl")])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--peer-python", help="an interpreter with math-verify; without it the peer's side is left out")
    parser.add_argument("--hard", type=float, default=20)
    parser.add_argument("--parts", default="rate,worker,hostile,memory,peer")
    parser.add_argument("--slowest", type=int, default=8, help="how many of the slowest to name")
    return parser.parse_args()


def read_cases(paths):
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found += [json.loads(line) for line in file if line.strip()]
    return found


def line_of(case):
    return {"id": case["id"], "completion": case["completion"], "reference": case["gold"], "options": {"extract": case["extract"], **case.get("options", {})}}


def drive(options, lines, rounds, in_flight=(), timeout=None):
    """The output of the driver: (a record for each line, totals, a record for each number in flight)."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.flush()
        done = subprocess.run([os.path.join(options.build, "tests", "bench", "math"), file.name, str(rounds), *map(str, in_flight)], capture_output=True, timeout=timeout, check=True)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    count = len(lines)
    return said[:count], said[count], said[count + 1:]


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def errors(cases, paid):
    right = [case["id"] for case in cases if case["expected"] == "correct"]
    wrong = [case["id"] for case in cases if case["expected"] != "correct"]
    return f"right refused {sum(not paid[one] for one in right)} of {len(right)}, wrong paid {sum(paid[one] for one in wrong)} of {len(wrong)}"


def show_rate(options, cases):
    one, total, workers = drive(options, [line_of(case) for case in cases], options.rounds, (1, 8) if "worker" in options.parts else ())
    rate = total["verdicts"] / total["cpu_ns"] * 1e9
    fastest, slowest = [row["fastest_ns"] for row in one], [row["slowest_ns"] for row in one]
    print(f"rolloutd: {rate:,.0f} verdicts a second of CPU; one verdict p50 {quantile(fastest, .5) / 1e3:.1f} us, p99 {quantile(fastest, .99) / 1e3:.0f} us, "
          f"max {max(fastest) / 1e3:.0f} us (slowest rounds: p99 {quantile(slowest, .99) / 1e3:.0f}, max {max(slowest) / 1e3:.0f}); peak {total['peak_kib'] / 1024:.1f} MiB")
    print("  " + errors(cases, {row["id"]: row["paid"] for row in one}))
    for row in sorted(one, key=lambda row: -row["fastest_ns"])[:options.slowest]:
        print(f"    {row['fastest_ns'] / 1e3:8.0f} us  {row['id']} {row['reason']}")
    for worker in workers:
        print(f"  through a worker, {worker['in_flight']} in flight: {worker['wall_ns'] / worker['verdicts'] / 1e3:.1f} us a verdict, {worker['verdicts'] / worker['wall_ns'] * 1e9:,.0f} a second; "
              f"its peak {worker['worker_peak_kib'] / 1024:.1f} MiB")
    return rate


def show_hostile(options):
    rows = []
    for kind, completion, reference, extra in hostile():
        line = {"id": "1", "completion": completion, "reference": reference, "options": extra}
        try:
            one, total, _ = drive(options, [line], 3, timeout=60)
            rows.append((one[0]["fastest_ns"] / 1e6, kind, one[0]["reason"], total["peak_kib"] / 1024))
        except subprocess.TimeoutExpired:
            rows.append((60e3, kind, "killed after 60 s", 0))
        except subprocess.CalledProcessError as problem:
            rows.append((0, kind, f"the process ended with {problem.returncode}: {problem.stderr.decode()[-100:]!r}", 0))
    rows.sort(reverse=True)
    over = [row for row in rows if row[0] > 50]
    print(f"hostile inputs: {len(rows)}; above 50 ms: {len(over)}; slowest {rows[0][0]:.1f} ms, p50 {quantile([row[0] for row in rows], .5):.2f} ms; largest process {max(row[3] for row in rows):.1f} MiB")
    for took, kind, reason, peak in rows[:max(options.slowest, len(over))] + [row for row in rows if "ended" in row[2]]:
        print(f"    {took:9.2f} ms  {kind}: {reason} ({peak:.0f} MiB)")


def processes_of(pid):
    found = [pid]
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        for child in file.read().split():
            found += processes_of(int(child))
    return found


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def show_memory(options, cases):
    items = [{"id": str(at), **{key: value for key, value in line_of(case).items() if key in ("completion", "reference")},
              "verifiers": [{"name": "math", "options": line_of(case)["options"]}]} for at, case in enumerate(cases)]
    with Service(os.path.abspath(os.path.join(options.build, "rolloutd")), None) as service:
        asked = 0
        while asked < VERDICTS:
            some = [items[(asked + at) % len(items)] for at in range(PART)]
            reply = service.post("/v1/verify", {"items": some}, timeout=300)
            if reply.status != 200:
                sys.exit(reply.describe())
            asked += PART
        children = [peak_mib(pid) for pid in processes_of(service.process.pid)[1:]]
    print(f"memory after {asked:,} verdicts: spawner and workers at most {max(children):.1f} MiB each")


def show_peer(options, cases, rate):
    lines = "".join(json.dumps({"id": case["id"], "gold": case["gold"], "completion": case["completion"]}) + "\n" for case in cases)
    done = subprocess.run([options.peer_python, PEER, str(options.hard)], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    times, cpu = [row["seconds"] for row in rows], [row["cpu"] for row in rows]
    failed = [row for row in rows if row["error"]]
    theirs, quick = len(cpu) / sum(cpu), [one for one in cpu if one < 1]
    print(f"Math-Verify: {theirs:,.1f} verdicts a second of CPU ({len(quick) / sum(quick):,.0f} without the {len(cpu) - len(quick)} above 1 s), {len(times) / sum(times):,.1f} by the clock; "
          f"p50 {quantile(cpu, .5) * 1e3:.1f} ms, p99 {quantile(cpu, .99) * 1e3:.0f} ms, max {max(cpu):.1f} s; {', '.join(sorted({row['error'] for row in failed})) or 'errors'}: {len(failed)}")
    print("  " + errors(cases, {row["id"]: row["paid"] for row in rows}))
    if rate:
        print(f"rolloutd / Math-Verify: {rate / theirs:,.0f} times the verdicts; {rate / (len(quick) / sum(quick)):,.0f} times without its slowest")


def main():
    options = arguments()
    cases = read_cases(options.cases)
    ordinary = [case for case in cases if case["category"] not in EXTRAORDINARY]
    print(f"{len(ordinary)} of {len(cases)} cases are of ordinary categories; load {os.getloadavg()[0]:.1f}", flush=True)
    rate = show_rate(options, ordinary) if "rate" in options.parts else None
    if "peer" in options.parts and options.peer_python:
        show_peer(options, ordinary, rate)
        show_peer(options, cases, None)
    if "hostile" in options.parts:
        show_hostile(options)
    if "memory" in options.parts:
        show_memory(options, cases)


if __name__ == "__main__":
    main()
