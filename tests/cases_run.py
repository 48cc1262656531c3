#!/usr/bin/env python3
"""Runs tests/tools/cases and holds the result against tests/cases/expected.txt: the cases that pass in this version, and
against tests/cases/own/failing.txt: the project's own cases that do not pass yet; all others of tests/cases/own must.

    tests/cases_run.py --binary build/rolloutd [--results FILE] [--update] [--show N]

A case of the list that fails is a failure. One that passes without being on the list is reported, so that the list grows:
--update adds it, and takes own cases that newly pass off theirs. A wrong answer that is paid fails in every suite, on the
list or not. Suites that nothing on the list belongs to are not run.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(FOLDER, "cases")
OWN = os.path.join(CASES, "own")
EXPECTED = os.path.join(CASES, "expected.txt")
FAILING = os.path.join(OWN, "failing.txt")


def read_list(path):
    """{suite: set of case ids}, from lines "suite id"."""
    expected = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            suite, _, case = line.partition("#")[0].strip().partition(" ")
            if suite:
                expected.setdefault(suite, set()).add(case.strip())
    return expected


def write_list(path, expected):
    """The head of the list as it is, then a line for each case; a line that was there keeps its reason."""
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    head = [line for line in lines if line.startswith("#")]
    had = {" ".join(line.partition("#")[0].split()): line for line in lines if line.partition("#")[0].strip()}
    wanted = [f"{suite} {case}" for suite in sorted(expected) for case in sorted(expected[suite])]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(head)
        file.writelines(had.get(name, name + "\n") for name in wanted)


def run_cases(binary, cases, suites, show):
    """The output of tests/tools/cases --json: {suite: record}."""
    with tempfile.TemporaryDirectory(prefix="cases-") as folder:
        found = os.path.join(folder, "cases.json")
        command = [sys.executable, os.path.join(FOLDER, "tools", "cases"), "--binary", binary, "--cases", cases,
                   "--only", ",".join(suites), "--json", found, "--show", str(show)]
        done = subprocess.run(command, stdout=None if show else subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            sys.exit(f"cases_run: the case runner ended with {done.returncode}")
        with open(found, encoding="utf-8") as file:
            return json.load(file)


def compare(suite, wanted, record, rows, whose=""):
    """Prints the suite's line; appends (test, outcome, reason) for each expected case and for the wrong ones that were paid."""
    passed = set(record.get("passes", []))
    details = {one["id"]: f"expected {one['expected']}, got {one['got']}" for one in record.get("failures", [])}
    skipped = {one["id"]: one["reason"] for one in record.get("skipped", [])}
    details.update(skipped)
    for case in sorted(wanted):
        reason = "" if case in passed else details.get(case, "the case file has no such case")
        rows.append((f"{whose}{suite} {case}", "passed" if case in passed else "skipped" if case in skipped else "failed", reason))
    paid = record.get("wrong_paid", 0)
    if record.get("wrongs"):
        rows.append((f"{whose}{suite}: no wrong answer is paid", "failed" if paid else "passed", f"{paid} of {record['wrongs']} are"))
    total, grown = len(passed) + len(details), passed - wanted
    print(f"{whose}{suite}: {len(wanted & passed)} of {len(wanted)} expected cases pass, {total} in the file"
          + (f", wrong paid {paid}" if record.get("wrongs") else "")
          + (f"; {len(grown)} more pass: {', '.join(sorted(grown)[:8])}{'…' if len(grown) > 8 else ''}" if grown else ""))
    for case in sorted(wanted - passed - set(skipped)):
        print(f"  FAILED {case}: {' '.join(str(details.get(case, 'no such case')).split())[:300]}")
    return grown


def read_ids(suite):
    with open(os.path.join(OWN, suite + ".jsonl"), encoding="utf-8") as file:
        return {json.loads(line)["id"] for line in file if line.strip()}


def own_suites():
    return sorted(name.partition(".")[0] for name in os.listdir(OWN) if name.endswith(".jsonl"))


def run_own(options, rows):
    """The project's own cases: all pass but those on the list of failing ones."""
    failing, suites = read_list(FAILING), own_suites()
    found = run_cases(options.binary, OWN, suites, options.show)
    for suite in suites:
        wanted = read_ids(suite) - failing.get(suite, set())
        grown = compare(suite, wanted, found.get(suite, {}), rows, "own ")
        failing[suite] = failing.get(suite, set()) - grown
    if options.update:
        write_list(FAILING, failing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--results", help="receives a line for each expected case: name, outcome, reason")
    parser.add_argument("--update", action="store_true", help="add the cases that newly pass")
    parser.add_argument("--show", type=int, default=0, help="failing cases of each suite to print, expected or not")
    options = parser.parse_args()
    expected, rows = read_list(EXPECTED), []
    suites = sorted({suite.partition(".")[0] for suite in expected})
    found = run_cases(options.binary, CASES, suites, options.show)
    for suite in sorted(set(found) | set(expected)):
        grown = compare(suite, expected.get(suite, set()), found.get(suite, {}), rows)
        if options.update:
            expected.setdefault(suite, set()).update(grown)
    if options.update:
        write_list(EXPECTED, expected)
    run_own(options, rows)
    if options.results:
        with open(options.results, "w", encoding="utf-8") as file:
            file.writelines("\t".join(" ".join(str(part).split()) for part in row) + "\n" for row in rows)
    failed = sum(row[1] == "failed" for row in rows)
    skipped = sum(row[1] == "skipped" for row in rows)
    print(f"{len(rows) - failed - skipped} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
