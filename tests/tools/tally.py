#!/usr/bin/env python3
"""Counts what the stages of tests/run found: tally.py FOLDER.

KIND.BUILD.xml    JUnit, from pytest or meson
KIND.BUILD.json   meson's log: a program that died or hung has no failed test in the file above
KIND.BUILD.tsv    lines of: test, passed|failed|skipped, reason
stages.tsv        lines of: stage, passed|failed

A test that ran in several builds is one test: failed if it failed in one, passed if it passed in one, else skipped. A stage
without tests of its own (a build, the format check) is one test; so is a stage that failed although none of its tests did.
"""
import collections
import glob
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

SEVERITY = {"skipped": 0, "passed": 1, "failed": 2}


def from_junit(path):
    try:
        cases = ElementTree.parse(path).iter("testcase")
        return [(f"{case.get('classname') or ''}::{case.get('name')}", *outcome(case)) for case in cases]
    except (ElementTree.ParseError, OSError) as problem:
        return [(f"results in {os.path.basename(path)}", "failed", str(problem))]


def outcome(case):
    for child in case:
        if child.tag in ("failure", "error"):
            return "failed", child.get("message") or ""
        if child.tag == "skipped":
            return "skipped", child.get("message") or ""
    return "passed", ""


def from_meson_log(path):
    with open(path, encoding="utf-8") as file:
        runs = [json.loads(line) for line in file]
    return [(f"{run['name']} runs to its end", "failed", "") for run in runs if run["result"] in ("ERROR", "TIMEOUT")]


def from_lines(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in rows]


READERS = {"xml": from_junit, "json": from_meson_log, "tsv": from_lines}


class Tally:
    def __init__(self):
        self.outcomes, self.failures, self.reasons = {}, {}, {}

    def add(self, kind, build, name, result, reason):
        key = (kind, name)
        if SEVERITY[result] >= SEVERITY[self.outcomes.get(key, "skipped")]:
            self.outcomes[key] = result
        if result == "failed":
            self.failures[f"{kind}, {build}: {name}"] = None
        if result == "skipped":
            self.reasons[key] = reason

    def count(self, result):
        return sum(one == result for one in self.outcomes.values())

    def skip_reasons(self):
        return collections.Counter(reason for key, reason in self.reasons.items() if self.outcomes[key] == "skipped")


def main():
    folder, tally = sys.argv[1], Tally()
    seen = collections.defaultdict(list)
    for path in sorted(glob.glob(os.path.join(folder, "*.*.*"))):
        kind, build, suffix = os.path.basename(path).split(".")
        for name, result, reason in READERS[suffix](path):
            tally.add(kind, build, name, result, reason)
            seen[kind, build].append(result)
    for stage, result, _ in from_lines(os.path.join(folder, "stages.tsv")):
        build, _, kind = stage.rpartition("-")
        found = seen.get((kind, build or "gcc"))
        if not found or (result == "failed" and "failed" not in found):
            tally.add("stage", build or "gcc", stage, result, "")
    for failure in tally.failures:
        print(f"failed: {failure}")
    for reason, count in sorted(tally.skip_reasons().items()):
        print(f"skipped: {count} times: {reason}")
    print(f"{tally.count('passed')} passed, {tally.count('failed')} failed, {tally.count('skipped')} skipped")
    return 1 if tally.count("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
