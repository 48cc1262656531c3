"""See run."""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(os.path.dirname(HERE))
CASES = os.path.join(TESTS, "cases")
sys.path[:0] = [HERE, os.path.join(TESTS, "tools")]

from caselib.service import RESTARTS, Service  # noqa: E402
from caselib.verify import find_verdict, map_math, post_items  # noqa: E402
from peer import Peer  # noqa: E402

PART = 64


def arguments():
    parser = argparse.ArgumentParser(description="rolloutd's math verifier beside Math-Verify")
    parser.add_argument("cases", nargs="*", help="files of cases, or folders with a math.jsonl")
    parser.add_argument("--setup", default="documented", choices=["documented", "verl"])
    parser.add_argument("--hard", type=float, default=15, help="seconds after which Math-Verify is killed")
    parser.add_argument("--show", type=int, default=10000, help="disagreements to print")
    parser.add_argument("--json", help="every case with both verdicts")
    return parser.parse_args()


def read_cases(paths):
    found = []
    for path in paths or [CASES, os.path.join(CASES, "own")]:
        name = os.path.join(path, "math.jsonl") if os.path.isdir(path) else path
        with open(name, encoding="utf-8") as file:
            found += [json.loads(line) for line in file if line.strip()]
    return found


def ask_service(cases):
    """id -> (paid, reason, what was read)"""
    found = {}
    with Service(os.environ["ROLLOUTD_BINARY"], None, restarts=RESTARTS) as service:
        for start in range(0, len(cases), PART):
            mapped = [map_math(case) for case in cases[start:start + PART]]
            answers = post_items(service, [one.item for one in mapped], 120)
            for one in mapped:
                item, problem = answers[one.id]
                verdict = find_verdict(item, "math") if item else None
                if verdict is None:
                    found[one.id] = (False, problem, None)
                    continue
                reason = verdict["reason"] or (verdict["failure"] or {}).get("code")
                found[one.id] = (verdict["score"] == 1, reason, verdict.get("detail"))
    return found


def ask_peer(cases, options):
    peer, found = Peer(options.setup, options.hard), {}
    try:
        for case in cases:
            found[case["id"]] = peer.ask(case["gold"], case["completion"])
    finally:
        peer.stop()
    return found


def is_plain(case):
    """Math-Verify is told neither options nor where the answer is."""
    return case["extract"] == "auto" and not case.get("options")


def percent(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "none"


def summary(title, cases, said, errors):
    right = [case["id"] for case in cases if case["expected"] == "correct"]
    wrong = [case["id"] for case in cases if case["expected"] != "correct"]
    print(f"{title}: right refused {percent(sum(not said[one] for one in right), len(right))}, "
          f"wrong paid {percent(sum(said[one] for one in wrong), len(wrong))}" + (f"; {errors}" if errors else ""))


def count(words):
    return ", ".join(f"{word} {words.count(word)}" for word in sorted(set(words)))


def summaries(cases, ours, theirs):
    for title, some in (("all cases", cases), ("extract auto, no options", [case for case in cases if is_plain(case)])):
        print(f"\n{title}: {len(some)}")
        reasons = [ours[case["id"]][1] for case in some if case["expected"] == "correct" and not ours[case["id"]][0]]
        summary("  rolloutd   ", some, {name: one[0] for name, one in ours.items()}, f"refused as {count(reasons)}" if reasons else "")
        errors = [theirs[case["id"]][1] for case in some if theirs[case["id"]][1]]
        summary("  Math-Verify", some, {name: one[0] for name, one in theirs.items()}, count(errors))


def word(paid):
    return "paid" if paid else "refused"


def disagreements(cases, ours, theirs, show):
    apart = [case for case in cases if ours[case["id"]][0] != theirs[case["id"]][0]]
    lone = [case for case in apart if ours[case["id"]][0] != (case["expected"] == "correct")]
    both = [case for case in cases if case not in apart and ours[case["id"]][0] != (case["expected"] == "correct")]
    print(f"{len(apart)} disagreements; in {len(lone)} of them the label is with Math-Verify; both against the label: {len(both)}")
    for case in (lone + both + [case for case in apart if case not in lone])[:show]:
        name = case["id"]
        answer = case["answer"] if case.get("answer") is not None else case["completion"]
        mark = "!!" if ours[name][0] != (case["expected"] == "correct") else "  "
        print(f"{mark} {name} {case['expected']}: rolloutd {word(ours[name][0])} ({ours[name][1]}), Math-Verify {word(theirs[name][0])}"
              f"{' (' + theirs[name][1] + ')' if theirs[name][1] else ''}: {case['gold'][:60]!r} {answer[:80]!r}")


def write_json(path, cases, ours, theirs):
    rows = [{**case, "rolloutd": ours[case["id"]], "math_verify": theirs[case["id"]]} for case in cases]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def main():
    options = arguments()
    cases = read_cases(options.cases)
    ours, theirs = ask_service(cases), ask_peer(cases, options)
    if options.json:
        write_json(options.json, cases, ours, theirs)
    disagreements(cases, ours, theirs, options.show)
    summaries(cases, ours, theirs)
    paid = sum(ours[case["id"]][0] for case in cases if case["expected"] != "correct")
    return 1 if paid else 0


if __name__ == "__main__":
    sys.exit(main())
