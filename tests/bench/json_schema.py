#!/usr/bin/env python3
"""json_schema against Python's jsonschema, on the same instances in the same run, and texts of 1 MiB alone.

    ninja -C build tests/bench/json_schema
    tests/bench/json_schema.py --peer-python VENV/bin/python [--rounds 5]

The peer is given its best case: json.loads() and is_valid() with a validator that is made once for each schema. The verifier
reads schema and completion anew for each verdict. Figures are CPU time; the two take turns.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITE = os.path.join(ROOT, "tests", "fixtures", "json_schema_suite", "suite.jsonl")
MIB = 1 << 20

PEER = """
import json, sys, time
from jsonschema import Draft202012Validator
cases, rounds = [json.loads(line) for line in open(sys.argv[1])], int(sys.argv[2])
made = [(case["id"], Draft202012Validator(case["options"]["schema"]), case["completion"]) for case in cases]
fastest = {}
for _ in range(rounds):
    for name, validator, text in made:
        before = time.thread_time_ns()
        try:
            valid = validator.is_valid(json.loads(text))
        except Exception as problem:
            valid = type(problem).__name__
        took = time.thread_time_ns() - before
        fastest[name] = (valid, min(took, fastest.get(name, (0, took))[1]))
for name, (valid, took) in fastest.items():
    print(json.dumps({"id": name, "valid": valid, "fastest_ns": took}))
"""

ORDER = {
    "type": "object", "required": ["id", "customer", "items"], "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4,8}$"}, "note": {"type": ["string", "null"], "maxLength": 200},
        "customer": {"type": "object", "required": ["name", "email"],
                     "properties": {"name": {"type": "string", "minLength": 1}, "email": {"type": "string", "pattern": "^[^@ ]+@[^@ ]+$"}, "age": {"type": "integer", "minimum": 0}}},
        "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}}},
    "$defs": {"item": {"type": "object", "required": ["sku", "quantity", "price"],
                       "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer", "minimum": 1}, "price": {"type": "number", "multipleOf": 0.01},
                                      "colour": {"enum": ["red", "green", "blue"]}}}}}
CALL = {"oneOf": [{"type": "object", "required": ["name", "arguments"], "additionalProperties": False,
                   "properties": {"name": {"const": name}, "arguments": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}
                  for name in ("weather", "forecast", "news", "traffic", "tides")]}
TREE = {"$defs": {"node": {"type": "object", "required": ["v"], "properties": {"v": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}, "$ref": "#/$defs/node"}


def order(count):
    return {"id": "AB-12345", "note": None, "customer": {"name": "Ada", "email": "ada@example.org", "age": 36},
            "items": [{"sku": f"s{i}", "quantity": i + 1, "price": 9.99, "colour": "red"} for i in range(count)]}


def tree(depth):
    return {"v": depth, "children": [tree(depth - 1)] * 2 if depth else []}


def ordinary():
    wrong = order(3)
    wrong["items"][2]["quantity"] = 0
    for name, schema, value in [("order of 3", ORDER, order(3)), ("order of 3, wrong", ORDER, wrong), ("order of 100", ORDER, order(100)),
                                ("call, the last of 5", CALL, {"name": "tides", "arguments": {"city": "Brest", "days": 2}}), ("tree of 127", TREE, tree(6)),
                                ("uniqueItems, 1000", {"uniqueItems": True}, list(range(1000)))]:
        yield {"id": name, "options": {"schema": schema}, "completion": json.dumps(value)}


def suite():
    """But the groups that need another document."""
    outside = ('"$ref": "https://json-schema.org/draft/2020-12/schema', "localhost:1234/draft2020-12/")
    with open(SUITE, encoding="utf-8") as file:
        groups = [group for group in map(json.loads, file) if not any(mark in json.dumps(group["schema"]) for mark in outside)]
    for index, group in enumerate(groups):
        for number, test in enumerate(group["tests"]):
            yield {"id": f"{group['file']} {index} {number}", "options": {"schema": group["schema"]}, "completion": test["text"]}


def large():
    def filled(unit, before="[", behind="]", between=","):
        return before + between.join([unit] * ((MIB - 2) // (len(unit) + len(between)))) + behind
    nested = {"type": ["array", "integer"], "items": {"$ref": "#"}}
    keys = "{" + ",".join(f'"k{i}":{i}' for i in range(MIB // 16)) + "}"
    rows = json.dumps([order(1)["items"][0] for _ in range(MIB // 70)])
    yield from ({"id": "1 MiB: " + name, "options": {"schema": schema}, "completion": text} for name, schema, text in [
        ("zeros", {"items": {"type": "integer"}}, filled("0")), ("brackets", nested, "[" * MIB), ("empty lists", nested, filled("[]")),
        ("open objects", nested, '{"a":' * (MIB // 5)), ("keys", {"additionalProperties": {"type": "integer"}, "propertyNames": {"maxLength": 9}}, keys),
        ("keys by a pattern", {"patternProperties": {"^k[0-9]+$": {"type": "integer"}}, "additionalProperties": False}, keys),
        ("rows", {"items": ORDER["$defs"]["item"]}, rows), ("one string, a pattern", {"pattern": "^(a+)+$"}, '"' + "a" * MIB + '!"'),
        ("strings by a pattern", {"items": {"pattern": "^a+$"}}, filled('"aaaa"')), ("digits", {"type": "integer", "multipleOf": 7}, "1" * MIB),
        ("digits, a long divisor", {"multipleOf": int("9" * 99)}, "1" * MIB), ("escapes", {"maxLength": 9999999}, '"' + "\\u00e9" * (MIB // 6) + '"'),
        ("unique numbers", {"uniqueItems": True}, "[" + ",".join(map(str, range(MIB // 8))) + "]"), ("equal lists", {"uniqueItems": True}, filled("[1,2,3]")),
        ("unevaluated", {"anyOf": [{"properties": {"k1": True}}, {"properties": {"k2": True}}], "unevaluatedProperties": {"type": "integer"}}, keys),
        ("contains", {"contains": {"const": 1}, "maxContains": 5}, filled("0")), ("anyOf", {"items": {"anyOf": [{"const": i} for i in range(20)]}}, filled("19")),
        ("a tree of two ways", {"properties": {"a": {"$ref": "#"}}, "allOf": [{"properties": {"a": {"$ref": "#"}}}]}, '{"a":' * 60 + "1" + "}" * 60),
    ])
    count = MIB // 80 // 100 * 100
    many = {"$defs": {f"d{i}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{i + 1 if i % 100 < 99 else i}"}}} for i in range(count)}}
    yield {"id": "1 MiB: a schema of references", "options": {"schema": many}, "completion": "{}"}
    yield {"id": "1 MiB: a schema of an enum", "options": {"schema": {"enum": [f"word {i}" for i in range(MIB // 15)]}}, "completion": '"word 5"'}
    yield {"id": "256 patterns", "options": {"schema": {"patternProperties": {f"(a{{1,{i + 1}}}){{1,90}}": True for i in range(256)}}}, "completion": '{"a":1}'}


def run(command, cases, rounds):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(case) + "\n" for case in cases)
        file.flush()
        done = subprocess.run([*command, file.name, str(rounds)], check=True, stdout=subprocess.PIPE, text=True)
    return {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "tests", "bench", "json_schema"))
    parser.add_argument("--peer-python", default=sys.executable, help="an interpreter with jsonschema")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for title, cases in (("ordinary", list(ordinary())), ("the suite", list(suite()))):
        ours = run([options.binary], cases, options.rounds * 4)
        peer = run([options.peer_python, "-c", PEER], cases, options.rounds)
        differ = [name for name in peer if peer[name]["valid"] != (ours[name]["verdict"] == "correct")]
        places = collections.Counter(name.split(" ")[0] for name in differ)
        print(f"{title}: {len(cases)} instances, judged otherwise: {', '.join(f'{count} in {place}' for place, count in places.items()) or 'none'}")
        for name in peer if title == "ordinary" else ():
            print(f"  {name:24} {ours[name]['fastest_ns'] / 1e3:9.1f} us  peer {peer[name]['fastest_ns'] / 1e3:9.1f} us  {peer[name]['fastest_ns'] / ours[name]['fastest_ns']:6.0f} times")
        total, other = (sum(row["fastest_ns"] for row in rows.values()) for rows in (ours, peer))
        print(f"  all: {total / 1e3 / len(cases):.2f} us a verdict, peer {other / 1e3 / len(cases):.2f} us, {other / total:.0f} times")
    for name, row in run([options.binary], list(large()), options.rounds).items():
        print(f"{name:32} {row['verdict']:10} {row['reason']:14} {row['fastest_ns'] / 1e6:7.1f} ms")


if __name__ == "__main__":
    main()
