#!/usr/bin/env python3
"""Writes files as one C table: embed.py [--depfile DEPFILE] OUTPUT SYMBOL FILE-OR-FOLDER...

A folder stands for its migrations: 0001_name.sql and so on, each number once and none left out. The depfile names it, too: a file that comes or goes changes the folder's time, so the
build sees it."""
import os
import re
import sys


def literal(data):
    rows = [data[start:start + 20] for start in range(0, len(data), 20)]
    return ",\n    ".join(", ".join(str(byte if byte < 128 else byte - 256) for byte in row) for row in rows)


def files_of(path):
    if not os.path.isdir(path):
        return [path]
    names = sorted(name for name in os.listdir(path) if re.fullmatch(r"\d{4}_\w+\.sql", name))
    for number, name in enumerate(names, 1):
        if int(name[:4]) != number:
            sys.exit(f"{path}: {name} should be number {number:04}: two files have one number, or one is missing")
    return [os.path.join(path, name) for name in names]


def write_table(output, symbol, paths):
    with open(output, "w", encoding="utf-8") as out:
        out.write('#include "schema/embedded.h"\n\n')
        for index, path in enumerate(paths):
            with open(path, "rb") as file:
                out.write(f"static const char bytes_{index}[] = {{\n    {literal(file.read())}, 0}};\n\n")
        out.write(f"const struct embedded_file {symbol}[] = {{\n")
        for index, path in enumerate(paths):
            out.write(f'    {{"{os.path.basename(path)}", bytes_{index}, sizeof(bytes_{index}) - 1}},\n')
        out.write("    {0, 0, 0}};\n")


def main():
    arguments = sys.argv[1:]
    depfile = arguments[1] if arguments[0] == "--depfile" else None
    output, symbol, *given = arguments[2:] if depfile else arguments
    paths = [path for one in given for path in files_of(one)]
    write_table(output, symbol, paths)
    if depfile:
        with open(depfile, "w", encoding="utf-8") as out:
            out.write(f"{output}: {' '.join([*given, *paths])}\n".replace("\\", "/"))


main()
