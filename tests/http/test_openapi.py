"""schema/openapi.yaml and the route table say the same, and replies have the shape that it promises."""
import os
import re
import subprocess

import pytest
import yaml

from harness import BINARY, ROOT
from material import make_batch

METHODS = ("get", "put", "post", "delete", "patch")


@pytest.fixture(scope="module")
def document():
    with open(os.path.join(ROOT, "schema", "openapi.yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


def operations(document):
    return {(method.upper(), path): item[method] for path, item in document["paths"].items() for method in METHODS if method in item}


def resolve(document, node):
    while "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def references(node):
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_document_lists_exactly_the_routes_of_the_binary(document):
    done = subprocess.run([BINARY, "--routes"], capture_output=True, text=True, check=True, timeout=120)
    assert {tuple(line.split()) for line in done.stdout.splitlines()} == set(operations(document))


def test_every_reference_leads_somewhere(document):
    for reference in set(references(document)):
        resolve(document, {"$ref": reference})


def test_the_service_hands_out_this_document(plain):
    reply = plain.get("/openapi.yaml")
    with open(os.path.join(ROOT, "schema", "openapi.yaml"), "rb") as file:
        assert reply.status == 200 and reply.body == file.read() and "yaml" in reply.headers["content-type"]


def test_the_codes_of_the_document_are_those_of_the_table(document):
    with open(os.path.join(ROOT, "server", "errors.h"), encoding="utf-8") as file:
        table = set(re.findall(r'ROW\(\w+, \d+, "(\w+)"\)', file.read()))
    assert set(document["components"]["schemas"]["ErrorCode"]["enum"]) == table


def test_path_parameters_are_declared(document):
    for (method, path), operation in operations(document).items():
        declared = [resolve(document, one) for one in [*document["paths"][path].get("parameters", []), *operation.get("parameters", [])]]
        assert {one["name"] for one in declared if one["in"] == "path"} == set(re.findall(r"{(\w+)}", path)), (method, path)


# -- replies against the document: the part of JSON Schema that it uses --------------------------------------------------------

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}


def problems(document, schema, value, where="$"):
    schema = resolve(document, schema) if schema is not True else {}
    for part in schema.get("allOf", []):
        yield from problems(document, part, value, where)
    for name in ("oneOf", "anyOf"):
        if name in schema and not any(not list(problems(document, part, value, where)) for part in schema[name]):
            yield f"{where}: {value!r:.80} fits no part of {name}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number")) for kind in kinds):
        yield f"{where}: {value!r:.80} is no {kinds}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r:.80} is not in {schema['enum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r:.80} does not match {schema['pattern']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: {name} is missing"
        for name, inner in value.items():
            known = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
            if known is False:
                yield f"{where}: {name} is not in the document"
            elif known is not True:
                yield from problems(document, known, inner, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for index, inner in enumerate(value):
            yield from problems(document, schema["items"], inner, f"{where}[{index}]")


def check(document, method, path, reply):
    response = resolve(document, operations(document)[method, path]["responses"][str(reply.status)])
    assert not (found := list(problems(document, response["content"]["application/json"]["schema"], reply.json))), (method, path, found[:5])


def test_replies_have_the_promised_shape(document, service, engine):
    engine.rules({"times": 3, "lp": None}, {"choices": [{"text": "\\boxed{42}"}, {"text": "\\boxed{41}"}]})
    posted = service.post("/v1/batches", make_batch(verifiers=[{"name": "math"}, {"name": "math", "id": "again", "heldout": True}], sampling={"n": 6, "max_tokens": 8}))
    check(document, "POST", "/v1/batches", posted)
    batch = posted.json
    group, rollout = batch["groups"][0], next(one for one in batch["groups"][0]["rollouts"] if one["state"] == "scored")
    for path, arguments in [("/v1/batches/{id}", batch["id"]), ("/v1/batches/{id}/groups", batch["id"]), ("/v1/groups/{id}", group["id"]),
                            ("/v1/rollouts/{id}", rollout["id"]), ("/v1/rollouts", None), ("/v1/batches", None), ("/v1/runs", None), ("/v1/pending", None),
                            ("/v1/verifiers", None), ("/v1/presets", None), ("/healthz", None), ("/readyz", None)]:
        check(document, "GET", path, service.get(path.replace("{id}", arguments or "")))
    check(document, "GET", "/v1/rollouts/{id}", service.get("/v1/rollouts/r_nobody"))
    check(document, "PUT", "/v1/runs/{run}/policy", service.put("/v1/runs/test/policy", {"revision": 8}))
    for step, fields in [("begin", {"revision": 9, "deadline": "5m"}), ("cancel", {}), ("begin", {"revision": 9}), ("commit", {"revision": 9})]:
        check(document, "POST", f"/v1/runs/{{run}}/policy/{step}", service.post(f"/v1/runs/test/policy/{step}", fields))
        check(document, "GET", "/v1/pending", service.get("/v1/pending"))
        check(document, "GET", "/v1/runs", service.get("/v1/runs"))
    check(document, "POST", "/v1/runs/{run}/policy/commit", service.post("/v1/runs/test/policy/commit", {"revision": 10}))
    check(document, "POST", "/v1/objective", service.post("/v1/objective", {"objective": {"preset": "grpo"}, "sequences": [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]}]}))
    check(document, "POST", "/v1/verify", service.post("/v1/verify", {"verifiers": [{"name": "math"}], "items": [{"id": "1", "completion": "x", "reference": "\\frac{"}]}))
    check(document, "POST", "/v1/verify", service.post("/v1/verify", {"oops": 1}))
    check(document, "POST", "/v1/batches", service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}))
    engine.rules({"delay": 30})
    running = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    check(document, "GET", "/v1/batches/{id}", service.get(f"/v1/batches/{running}", wait="1ms"))
    check(document, "GET", "/v1/pending", service.get("/v1/pending"))
    check(document, "DELETE", "/v1/batches/{id}", service.delete(f"/v1/batches/{running}"))
    check(document, "GET", "/v1/batches/{id}", service.get(f"/v1/batches/{running}", wait="10s"))


def test_the_examples_of_the_document_are_taken(document, start, engine):
    """A reader copies them."""
    service = start(engine)
    tried = 0
    for (method, path), operation in operations(document).items():
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        for name, example in body.get("examples", {}).items():
            reply = service.request(method, path.replace("{run}", "arith").replace("{name}", "another"), example["value"])
            assert reply.status in (200, 201), (method, path, name, reply)
            tried += 1
    assert tried >= 4
