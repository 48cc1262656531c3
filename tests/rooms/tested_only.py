#!/usr/bin/env python3
"""Finds functions of the program that only tests use, or that are unused.

    tests/rooms/tested_only.py BUILD

A helper of tests belongs to the tests. EXCEPTIONS names functions that stay, each with its reason. A file that the program does not use yet
is listed, and is no fault."""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rooms  # noqa: E402

EXCEPTIONS = {
    "store_read_pacing": "the operation that stores a pacing is tested with it; no route shows one yet",
    "task_means": "reports of cells are compared by the means of their tasks",
}


def read_symbols(build):
    """({function: (source, object)}, {name, also of data: source}, {source: names that it takes}); "" is the program itself."""
    sources = rooms.sources_of(build)
    functions, homes, taken = {}, {}, {}
    for line in subprocess.run(["nm", "-A", "-P", *sources, *glob.glob(f"{build}/rolloutd.p/*.o")], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        path, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        if kind == "U":
            taken.setdefault(sources.get(path, ""), set()).add(name)
        elif kind.isupper() and path in sources:
            homes[name] = sources[path]
            if kind == "T":
                functions[name] = (sources[path], path)
    return functions, homes, taken


def reach(homes, taken):
    """The files of which the program uses something."""
    files, more = set(), {""}
    while more:
        files |= more
        names = set().union(*(taken.get(file, set()) for file in more))
        more = {homes[name] for name in names if name in homes} - files
    return files


def is_used_at_home(name, source, path):
    """In the file that defines it: by its text, as a compiler may inline a call, or by a relocation, as a macro may write one."""
    with open(source, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.DOTALL)
    if len(re.findall(rf"\b{re.escape(name)}\b", text)) > 1:
        return True
    relocations = subprocess.run(["readelf", "-rW", path], check=True, capture_output=True, text=True).stdout
    return re.search(rf"\s{re.escape(name)}(?:\s|$)", relocations) is not None


def main():
    os.chdir(rooms.ROOT)
    functions, homes, taken = read_symbols(os.path.abspath(sys.argv[1]))
    wired, used = reach(homes, taken), set().union(*taken.values())
    unused = {name for name, (source, path) in functions.items() if name not in used and not is_used_at_home(name, source, path)}
    for source in sorted({source for source, _ in functions.values()} - wired):
        print(f"the program uses nothing of {source} yet")
    faults = sorted(name for name in unused - set(EXCEPTIONS) if functions[name][0] in wired)
    for name in faults:
        print(f"only tests use {name}() of {functions[name][0]}: move it into the test, or remove it")
    for name in sorted(set(EXCEPTIONS) - unused):
        print(f"an exception no more: {name}")
    print(f"functions: {len(functions)}, {len(unused)} of them used by tests alone, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
