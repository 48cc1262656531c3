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
from caselib.verify import MAPPERS, find_verdict, map_own, post_items, read_cases  # noqa: E402
from peers import PEERS, Peer  # noqa: E402

PART = 64
LABELS = {"correct": True, "incorrect": False, True: True, False: False}  # 1 and 0 are among them


def arguments():
    parser = argparse.ArgumentParser(description="rolloutd's verifiers beside the graders of other packages")
    parser.add_argument("--only", default=",".join(PEERS), help="verifiers, separated by commas")
    parser.add_argument("--show", type=int, default=10000, help="disagreements to print for each peer")
    parser.add_argument("--hard", type=float, default=15, help="seconds after which a peer is killed")
    return parser.parse_args()


def mapped_cases(name):
    """The labelled cases as items: those of tests/cases and the project's own."""
    for folder in (CASES, os.path.join(CASES, "own")):
        if os.path.exists(os.path.join(folder, name + ".jsonl")):
            for case in read_cases(folder, name):
                mapped = MAPPERS.get(name, map_own(name))(case)
                if case["expected"] in LABELS:
                    yield mapped


def ask_service(name, cases):
    """id -> (True, False or None, reason)"""
    found = {}
    with Service(os.environ["ROLLOUTD_BINARY"], None, restarts=RESTARTS) as service:
        for start in range(0, len(cases), PART):
            part = cases[start:start + PART]
            answers = post_items(service, [one.item for one in part], 120)
            for one in part:
                item, problem = answers[one.id]
                verdict = find_verdict(item, name) if item else None
                if verdict is None:
                    found[one.id] = (None, problem)
                    continue
                score = verdict["score"]
                found[one.id] = (None if score is None else score == 1, verdict["reason"])
    return found


def ask_peer(make, cases, hard):
    peer, found = Peer(make, hard), {}
    try:
        for one in cases:
            item = one.item
            found[one.id] = peer.ask({"completion": item["completion"], "reference": item.get("reference"), "prompt": item.get("prompt"), "options": item["verifiers"][-1].get("options") or {}})
    finally:
        peer.stop()
    return found


def word(said):
    return "unscored" if said is None else "paid" if said else "refused"


def what(one):
    reference = one.item.get("reference") or one.item["verifiers"][-1].get("options")
    if isinstance(reference, dict) and "instruction_id_list" in reference:
        reference = dict(zip(reference["instruction_id_list"], reference.get("kwargs") or reference["instruction_id_list"]))
    return f"{json.dumps(reference, ensure_ascii=False)[:160]} {one.item['completion'][:80]!r}"


def counts(cases, said):
    """Of the cases that it judged: right ones refused, wrong ones paid."""
    labels = {one.id: LABELS[one.case["expected"]] for one in cases if said[one.id][0] is not None}
    refused = sum(label and not said[name][0] for name, label in labels.items())
    paid = sum(not label and said[name][0] for name, label in labels.items())
    return f"right refused {refused} of {sum(labels.values())}, wrong paid {paid} of {len(labels) - sum(labels.values())}"


def compare(name, title, cases, ours, theirs, show):
    """Prints the disagreements; returns in how many the label is with the peer."""
    both = [one for one in cases if theirs[one.id][0] is not None]
    apart = [one for one in both if ours[one.id][0] != theirs[one.id][0]]
    lost = [one for one in apart if ours[one.id][0] is not None and ours[one.id][0] != LABELS[one.case["expected"]]]
    print(f"\n{name} beside {title}: {len(both)} of {len(cases)} cases are of its kind")
    print(f"  rolloutd: {counts(both, ours)}\n  {title}: {counts(both, theirs)}")
    errors = [theirs[one.id][1] for one in both if theirs[one.id][1]]
    if errors:
        print("  it raised or hung: " + ", ".join(f"{error} {errors.count(error)}" for error in sorted(set(errors))))
    print(f"  {len(apart)} disagreements, {len(lost)} in which the label is with {title}")
    for one in apart[:show]:
        label = LABELS[one.case["expected"]]
        right = "rolloutd" if ours[one.id][0] == label else "nobody: undecided" if ours[one.id][0] is None and theirs[one.id][0] != label else title
        error = f" ({theirs[one.id][1]})" if theirs[one.id][1] else ""
        print(f"  {one.id}: rolloutd {word(ours[one.id][0])} ({ours[one.id][1]}), {title} {word(theirs[one.id][0])}{error}; right is {right}: {what(one)}")
    return len(lost)


def main():
    options, lost = arguments(), 0
    with Service(os.environ["ROLLOUTD_BINARY"], None) as service:
        known = {row["name"] for row in service.request("GET", "/v1/verifiers").data["verifiers"]}
    for name in options.only.split(","):
        cases = list(mapped_cases(name)) if name in known else []
        if not cases:
            print(f"\n{name}: there is no such verifier, or it has no labelled cases")
            continue
        ours = ask_service(name, cases)
        for title, make in PEERS[name].items():
            lost += compare(name, title, cases, ours, ask_peer(make, cases, options.hard), options.show)
    print(f"\nin {lost} disagreements the label is with a peer")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
