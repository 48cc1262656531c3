#!/usr/bin/env python3
"""Holds every include, and every symbol that one object takes from another, against the arrows between rooms.

    tests/rooms/rooms.py [BUILD]      without a build: includes alone

ROOMS is the law. A room may know base/, the rooms that its row names, and what those may know. exceptions.txt lists the arrows
that still run against it: it may only get shorter, so that a line there that nothing needs is a failure, too.

Each folder has its doors, the headers that others may include; the rest are *_private.h (DOORS has the few exceptions).

Inside a room files may use each other, but a ring of many files is one file in disguise: RINGS says how many there may be. No symbol is
defined by two files."""
import ctypes
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
# From the ground up: a row names only rooms above it. "header" stands for that header alone.
ROOMS = {
    "server/base": [],
    "server/objective": [],
    "server/statistics": [],
    "server/store": [],
    "client": [],
    "verifiers": [],
    "server/settings": ["client"],
    "server/runtime": ["server/settings", "server/store"],
    "server/http": ["server/runtime"],
    "server/input": ["server/http/call.h"],
    "server/record": ["server/runtime", "server/store", "server/objective"],
    "server/verify": ["server/input", "server/runtime", "verifiers", "client"],
    "server/spec": ["server/input", "server/verify", "server/objective"],
    "server/engines": ["server/settings", "server/runtime", "server/record", "client"],
    "server/batches": ["server/spec", "server/engines", "server/record", "server/verify"],
    "server/reverify": ["server/spec", "server/record", "server/verify"],
    "server/render": ["server/spec", "server/record", "server/http/call.h"],
    "server/delivery": ["server/batches", "server/record"],
    "server/objective_call": ["server/input", "server/spec", "server/record"],
    "server/reports": ["server/input", "server/spec", "server/record", "server/statistics"],
    "server/api": ["server/batches", "server/reverify", "server/render", "server/delivery", "server/objective_call", "server/reports", "server/http"],
    "server/commands": ["server/batches", "server/render", "server/objective_call"],
    "server": ["server/api", "server/commands"],
}
# Folders whose headers are all private, save these: the suffix on each of them would say nothing.
DOORS = {
    "server/api": ["alarms.h", "compat_rewards.h", "routes.h", "server.h", "service.h"],
    "server/store/sqlite": [],
    "verifiers/math": ["compare.h", "parse.h"],
}
# How many files of a room may be in one ring, each using the next. 1: none may be.
RING_MAX = 8
RINGS = {"server/batches": 1, "server/store": 15, "verifiers": 12}
# Headers that call.h itself needs, and those behind it in the archive.
HEADERS = {"server/http/call.h": ["server/http/errors.h"]}


def room_of(path):
    return max((room for room in ROOMS if path.startswith(room + "/")), key=len, default=None)


def known(room):
    """Every room and single header that `room` may include."""
    found = {"server/base"}
    for name in ROOMS[room]:
        found.add(name)
        found.update(known(name) if name in ROOMS else HEADERS[name])
    return found


def includes(tops=("server", "client", "verifiers")):
    for path in sorted(path for top in tops for path in glob.glob(f"{top}/**/*.[ch]", recursive=True)):
        with open(path, encoding="utf-8") as file:
            for header in re.findall(r'^#include "((?:server|client|verifiers)/[^"]+)"', file.read(), re.MULTILINE):
                yield path, header


def source_of(object_path, build):
    """`server/http/libhttp.a.p/body.c.o` is server/http/body.c; meson writes a slash as `_`."""
    folder, name = os.path.split(os.path.relpath(object_path, build))
    top = os.path.dirname(folder)
    at = os.path.join(top, name[:-2])
    if os.path.exists(at):
        return at
    for path in glob.glob(f"{top}/**/*.c", recursive=True):
        if os.path.relpath(path, top).replace("/", "_") == name[:-2]:
            return path
    return None


def sources_of(build):
    """{object of a room: its source}"""
    found = {path: source_of(path, build) for path in sorted(glob.glob(f"{build}/*/**/lib*.a.p/*.o", recursive=True))}
    return {path: source for path, source in found.items() if source and room_of(source)}


def tables(build):
    """({symbol: files that use it}, {symbol: files that define it}), each file once and in order. A weak symbol is defined by nobody."""
    used, defined = {}, {}
    sources = sources_of(build)
    for line in subprocess.run(["nm", "-A", "-P", *sources], check=True, capture_output=True, text=True).stdout.splitlines():
        path, _, rest = line.partition(": ")
        name, kind = rest.split()[:2]
        if kind == "U":
            used.setdefault(name, set()).add(sources[path])
        elif kind.isupper() and kind not in "WV":
            defined.setdefault(name, set()).add(sources[path])
    return ({name: sorted(files) for name, files in sorted(found.items())} for found in (used, defined))


def symbols(used, defined):
    """(file that uses, file that defines, symbol) for every symbol that one file takes from another. A use of a function of libc means libc's,
    also where a file puts its own in front of it for a library (recv() in server/http/gate.c)."""
    libc = ctypes.CDLL("libc.so.6")
    for name, sources in used.items():
        for source in sources:
            if name in defined and source not in defined[name] and not hasattr(libc, name):
                yield source, defined[name][0], name


def doubled(defined):
    """The linker takes either of two objects of archives that define one symbol, without a word: such a name is static, or it gets a prefix."""
    for name, files in defined.items():
        if len(files) > 1:
            yield f"two files define {name}: {' '.join(files)}"


def refused(source, target):
    room, other = room_of(source), room_of(target)
    allowed = known(room)
    return other != room and other not in allowed and target not in allowed and re.sub(r"\.c$", ".h", target) not in allowed


def door_faults(pairs):
    """A header that its own folder alone uses is named *_private.h, and used there alone. A new door may wait for its first user outside
    in a unit test."""
    pairs, tested = list(pairs), {header for _, header in includes(("tests",))}
    doors = {header for source, header in pairs if os.path.dirname(source) != os.path.dirname(header)}
    outside = doors.copy()
    while more := {header for source, header in pairs if source in doors} - doors:  # headers that a door includes are a part of it
        doors |= more
    for header in sorted(path for top in ("server", "client", "verifiers") for path in glob.glob(f"{top}/**/*.h", recursive=True)):
        folder, name = os.path.split(header)
        if folder in DOORS:
            if header in outside and name not in DOORS[folder]:
                yield f"no door of {folder}/, but used outside: {name}"
        elif name.endswith("_private.h") and header in doors:
            yield f"private, but used outside of {folder}/ (or by a header that is): {name}"
        elif not name.endswith("_private.h") and header not in doors | tested:
            yield f"{folder}/ alone uses {name}: call it {name[:-2]}_private.h"


def rings(arrows):
    """Sets of files of which each can be reached from each other one, with more than one file (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in sorted(arrows.get(file, ())):
            if other not in number:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == number[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for file in sorted(arrows):
        if file not in number:
            visit(file)
    return found


def ring_faults(arrows):
    for ring in rings(arrows):
        if len({room_of(file) for file in ring}) > 1:
            yield f"a ring crosses rooms: {' '.join(ring)}"
            continue
        if len(ring) > RINGS.get(room_of(ring[0]), RING_MAX):
            yield f"a ring of {len(ring)} files: {' '.join(ring)}"


def read_exceptions():
    with open(os.path.join(ROOT, "tests/rooms/exceptions.txt"), encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def main():
    os.chdir(ROOT)
    found = {f"{source} -> {target}" for source, target in includes() if refused(source, target)}
    symbol_lines = []
    if len(sys.argv) > 1:
        arrows = {}
        used, defined = tables(os.path.abspath(sys.argv[1]))
        for source, target, name in symbols(used, defined):
            arrows.setdefault(source, set()).add(target)
            if refused(source, target):
                found.add(f"{source} -> {target} {name}()")
        symbol_lines = [*ring_faults(arrows), *doubled(defined)]
    faults = [*symbol_lines, *door_faults(includes())]
    for line in faults:
        print(line)
    exceptions = read_exceptions()
    for line in sorted(found - exceptions):
        print("against the order of rooms:", line)
    for line in sorted(exceptions - found if len(sys.argv) > 1 else []):
        print("no longer needed in exceptions.txt:", line)
    backward = [(room, name) for room, names in ROOMS.items() for name in names
                if name in ROOMS and list(ROOMS).index(name) > list(ROOMS).index(room)]
    for room, name in backward:
        print(f"the table itself has a ring: {room} -> {name}")
    wrong = len(found - exceptions) + len(backward) + len(faults) + (len(exceptions - found) if len(sys.argv) > 1 else 0)
    print(f"rooms: {len(found)} exceptions, {wrong} faults")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
