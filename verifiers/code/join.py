#!/usr/bin/env python3
"""Puts Python files together into one: join.py OUTPUT FILE..."""
import sys

with open(sys.argv[1], "w", encoding="utf-8") as out:
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            out.write(file.read())
