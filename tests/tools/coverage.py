#!/usr/bin/env python3
"""Prints what gcovr --json found: coverage of each room, then every unreached line of the files that must not surprise."""
import json
import re
import sys

ROOMS = ["server/base", "server/objective", "server/store", "server", "client", "verifiers"]
READ = re.compile(r"(server/(runtime|http|batches|store)/.*\.c|client/.*\.c)$")


def room_of(path):
    return max((room for room in ROOMS if path.startswith(room + "/")), key=len, default=None)


def count(lines):
    """(lines reached, lines, branches reached, branches)"""
    code = [line for line in lines if not line.get("gcovr/noncode")]
    branches = [branch for line in code for branch in line["branches"]]
    return (sum(line["count"] > 0 for line in code), len(code), sum(branch["count"] > 0 for branch in branches), len(branches))


def share(reached, all_of_them):
    return f"{100 * reached / all_of_them:5.1f} %" if all_of_them else "      –"


def row(name, numbers):
    print(f"{name:34} {numbers[0]:6} of {numbers[1]:6} lines {share(*numbers[:2])} {numbers[2]:6} of {numbers[3]:6} branches {share(*numbers[2:])}")


def unreached(path, lines):
    missed = sorted({line["line_number"] for line in lines if not line.get("gcovr/noncode")}
                    - {line["line_number"] for line in lines if line["count"] > 0})
    if not missed:
        return
    with open(path, encoding="utf-8") as file:
        source = file.read().split("\n")
    print(f"\n{path}")
    for number in missed:
        print(f"{number:5}  {source[number - 1].rstrip()}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        files = {one["file"]: one["lines"] for one in json.load(file)["files"] if one["file"].endswith(".c")}
    for room in ROOMS:
        row(room, [sum(column) for column in zip(*(count(lines) for path, lines in files.items() if room_of(path) == room))])
    for path in sorted(files):
        if READ.match(path):
            unreached(path, files[path])


if __name__ == "__main__":
    main()
