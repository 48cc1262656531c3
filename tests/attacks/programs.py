"""The programs of programs/ as cases. Their first comment says what each does, and then in lines of their own:

expected: clauses as in tests/cases/sandbox_attacks.jsonl (verdict=a|b; stdout~TEXT; stdout!~TEXT; all!~TEXT)
stdout:   what its one test expects; without it the canary, which a program can only print if it has found it
stdin: / stdin_mb:    its input
runs:     how many tests, each in a fresh sandbox behind the other
again:    how many requests
calls: yes            solve(1) is called in place of a test
asserts: yes          two asserts about solve, in a process beside it, in place of a test
memory_mb:            what all of it may take at most, seen from outside
compiler_s:           how long the compiler may take beside it
wall_ms: / cpu_ms:    limits other than those of all programs (caselib/sandbox.py)

Names are in the order of the runs: NAME_1_plant, NAME_2_look.
"""
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
LANGUAGES = {"py": "python", "c": "c", "cpp": "cpp", "sh": "sh"}
KEYS = {"expected": str, "stdout": str, "stdin": str, "stdin_mb": int, "runs": int, "again": int, "calls": str, "asserts": str, "memory_mb": int, "wall_ms": int, "cpu_ms": int, "compiler_s": int}


def read_program(name):
    base, _, suffix = name.rpartition(".")
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        text = file.read()
    case = {"name": base, "language": LANGUAGES[suffix], "program": text}
    for line in text.splitlines():
        found = re.fullmatch(r"(?:#|//) ?(.*)", line)
        if not found:
            break
        key, colon, value = found[1].partition(": ")
        if colon and key in KEYS:
            case[key] = KEYS[key](value.replace("\\n", "\n"))
        else:
            case["proof"] = f"{case.get('proof', '')} {found[1]}".strip()
    if "stdin_mb" in case:
        case["stdin"] = "x" * (case.pop("stdin_mb") << 20)
    case["limits"] = {key: case.pop(key) for key in ("wall_ms", "cpu_ms") if key in case}
    if "expected" not in case:
        raise ValueError(f"{name} does not say what is expected")
    return case


def read_programs():
    cases = [read_program(name) for name in sorted(os.listdir(FOLDER)) if name.rpartition(".")[2] in LANGUAGES]
    return [{**case, "name": case["name"] + "_again" * number} for case in cases for number in range(case.get("again", 1))]
