#!/usr/bin/env python3
"""Writes files as one C table: embed.py OUTPUT SYMBOL FILE..."""
import os
import sys


def literal(data):
    rows = [data[start:start + 20] for start in range(0, len(data), 20)]
    return ",\n    ".join(", ".join(str(byte if byte < 128 else byte - 256) for byte in row) for row in rows)


def main():
    output, symbol, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(output, "w", encoding="utf-8") as out:
        out.write('#include "schema/embedded.h"\n\n')
        for index, path in enumerate(paths):
            with open(path, "rb") as file:
                out.write(f"static const char bytes_{index}[] = {{\n    {literal(file.read())}, 0}};\n\n")
        out.write(f"const struct embedded_file {symbol}[] = {{\n")
        for index, path in enumerate(paths):
            out.write(f'    {{"{os.path.basename(path)}", bytes_{index}, sizeof(bytes_{index}) - 1}},\n')
        out.write("    {0, 0, 0}};\n")


main()
