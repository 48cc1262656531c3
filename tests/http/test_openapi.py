"""schema/openapi.yaml and the route table say the same, and replies have the shape that it promises."""
import os
import re
import subprocess

import pytest
import yaml

from contract import find, hold as check
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
    done = subprocess.run([BINARY, "--print-routes"], capture_output=True, text=True, check=True, timeout=120)
    assert {tuple(line.split()) for line in done.stdout.splitlines()} == set(operations(document))


LENIENT = {"/healthz", "/readyz", "/metrics", "/openapi.yaml"}  # probes and scrapers may add what they like


def test_a_parameter_that_a_route_does_not_know_is_refused(document, plain):
    for method, path in operations(document):
        if path in LENIENT:
            continue
        body = {} if "requestBody" in operations(document)[method, path] else None
        headers = {"Content-Type": "application/x-ndjson"} if path == "/v1/tasksets/{set}" and body is not None else {}
        reply = plain.request(method, re.sub(r"{\w+}", "x", path) + "?surely_unknown=1", body, headers)
        assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "unknown_field", "surely_unknown"), (method, path)


def test_every_reference_leads_somewhere(document):
    for reference in set(references(document)):
        resolve(document, {"$ref": reference})


def test_the_service_hands_out_this_document(plain):
    reply = plain.get("/openapi.yaml")
    with open(os.path.join(ROOT, "schema", "openapi.yaml"), "rb") as file:
        assert reply.status == 200 and reply.body == file.read() and "yaml" in reply.headers["content-type"]


def test_the_codes_of_the_document_are_those_of_the_table(document):
    with open(os.path.join(ROOT, "server", "http", "errors.h"), encoding="utf-8") as file:
        table = set(re.findall(r'ROW\(\w+, \d+, "(\w+)"\)', file.read()))
    assert set(document["components"]["schemas"]["ErrorCode"]["enum"]) == table


def test_path_parameters_are_declared(document):
    for (method, path), operation in operations(document).items():
        declared = [resolve(document, one) for one in [*document["paths"][path].get("parameters", []), *operation.get("parameters", [])]]
        assert {one["name"] for one in declared if one["in"] == "path"} == set(re.findall(r"{(\w+)}", path)), (method, path)


def test_replies_have_the_promised_shape(document, service, engine):
    engine.rules({"times": 3, "lp": None}, {"choices": [{"text": "\\boxed{42}"}, {"text": "\\boxed{41}"}]})
    posted = service.post("/v1/batches", make_batch(verifiers=[{"name": "math"}, {"name": "math", "id": "again", "heldout": True}], sampling={"n": 6, "max_tokens": 8}))
    check("POST", "/v1/batches", posted)
    batch = posted.json
    group, rollout = batch["groups"][0], next(one for one in batch["groups"][0]["rollouts"] if one["state"] == "scored")
    for path, arguments in [("/v1/batches/{id}", batch["id"]), ("/v1/batches/{id}/groups", batch["id"]), ("/v1/groups/{id}", group["id"]),
                            ("/v1/rollouts/{id}", rollout["id"]), ("/v1/rollouts", None), ("/v1/batches", None), ("/v1/runs", None), ("/v1/pending", None),
                            ("/v1/verifiers", None), ("/v1/presets", None), ("/healthz", None), ("/readyz", None)]:
        check("GET", path, service.get(path.replace("{id}", arguments or "")))
    check("GET", "/v1/rollouts/{id}", service.get("/v1/rollouts/r_nobody"))
    check("PUT", "/v1/runs/{run}/policy", service.put("/v1/runs/test/policy", {"revision": 8}))
    for step, fields in [("begin", {"revision": 9, "deadline": "5m"}), ("cancel", {}), ("begin", {"revision": 9}), ("commit", {"revision": 9})]:
        check("POST", f"/v1/runs/{{run}}/policy/{step}", service.post(f"/v1/runs/test/policy/{step}", fields))
        check("GET", "/v1/pending", service.get("/v1/pending"))
        check("GET", "/v1/runs", service.get("/v1/runs"))
    check("POST", "/v1/runs/{run}/policy/commit", service.post("/v1/runs/test/policy/commit", {"revision": 10}))
    check("POST", "/v1/objective", service.post("/v1/objective", {"objective": {"preset": "grpo"}, "sequences": [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]}]}))
    check("POST", "/v1/verify", service.post("/v1/verify", {"verifiers": [{"name": "math"}], "items": [{"id": "1", "completion": "x", "reference": "\\frac{"}]}))
    check("POST", "/v1/verify", service.post("/v1/verify", {"oops": 1}))
    check("POST", "/v1/batches", service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}))
    engine.rules({"delay": 30})
    running = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    check("GET", "/v1/batches/{id}", service.get(f"/v1/batches/{running}", wait="1ms"))
    check("GET", "/v1/pending", service.get("/v1/pending"))
    check("DELETE", "/v1/batches/{id}", service.delete(f"/v1/batches/{running}"))
    check("GET", "/v1/batches/{id}", service.get(f"/v1/batches/{running}", wait="10s"))


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


# -- what the document says of requests (F23) --------------------------------------------------------------------------------------


def arrays_without_items(node, where="#"):
    if isinstance(node, dict):
        kinds = node.get("type")
        if (kinds == "array" or isinstance(kinds, list) and "array" in kinds) and "items" not in node:
            yield where
        for name, inner in node.items():
            yield from arrays_without_items(inner, f"{where}/{name}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from arrays_without_items(inner, f"{where}/{index}")


def test_every_array_says_what_is_in_it(document):
    """A generated client returns None for an array without."""
    assert list(arrays_without_items(document["components"])) == []
    assert list(arrays_without_items(document["paths"])) == []

# Objects that the service stores or hands on without reading them, or that each verifier fills as it likes.
FREE = {"Metadata", "tools", "messages", "sampling", "chat_template_kwargs", "engine_options", "options", "detail", "ManifestPart", "leases", "settings", "TaskPrompt"}


def free_objects(node, name="#"):
    """Names of the objects of which neither the keys nor the values are declared."""
    if isinstance(node, list):
        for inner in node:
            yield from free_objects(inner, name)
    if not isinstance(node, dict):
        return
    if "object" in (node.get("type") or ()) and not {"properties", "additionalProperties", "allOf", "anyOf", "oneOf"} & set(node):
        yield name
    for key, inner in node.items():
        if key not in ("example", "examples", "default"):
            yield from free_objects(inner, name if key in ("items", "schema", "allOf", "anyOf", "oneOf") or isinstance(node, list) else key)


def test_only_what_nobody_reads_is_an_object_without_declared_keys(document):
    found = set(free_objects(document["components"])) | set(free_objects(document["paths"]))
    assert found <= FREE, found - FREE


def numbers_as_texts(node, where="#"):
    """Bounds and defaults that a reader of YAML 1.1 takes for texts: 1e-06, without a point."""
    if isinstance(node, dict):
        kinds = node.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if isinstance(kinds, list) and {"number", "integer"} & set(kinds) and not {"string"} & set(kinds):
            yield from (f"{where}/{name}" for name in ("default", "minimum", "maximum", "exclusiveMinimum") if isinstance(node.get(name), str))
        for name, inner in node.items():
            yield from numbers_as_texts(inner, f"{where}/{name}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from numbers_as_texts(inner, f"{where}/{index}")


def test_numbers_of_the_document_are_numbers_in_every_yaml(document):
    assert list(numbers_as_texts(document)) == []


def test_each_line_of_a_stream_is_declared(service, engine):
    engine.rules({"in": "FAIL", "status": 400, "json": {"error": "no"}}, {"choices": [{"text": "\\boxed{42}"}, {"text": "no"}]})
    groups = [{"task": "good", "prompt": "a", "reference": "42"}, {"task": "bad", "prompt": "FAIL", "reference": "42"}]
    for arrays in ("json", "base64", "none"):
        reply = service.post(f"/v1/batches?arrays={arrays}", make_batch(groups=groups, verifiers=[{"name": "math"}]), {"Accept": "application/x-ndjson"})
        check("POST", "/v1/batches", reply)
        assert reply.body.count(b"\n") == 3, reply
    reply.body = reply.body.replace(b'"notes":', b'"nodes":[],"notes":')
    with pytest.raises(AssertionError, match="fits no part"):
        check("POST", "/v1/batches", reply)


def test_advantages_per_token_go_with_the_arrays(plain):
    body = {"objective": {"preset": "reinforce_pp"}, "sequences": [{"group": "a", "reward": reward, "logprobs": [-1, -2]} for reward in (0, 1)]}
    for arrays, names in (("json", {"advantage"}), ("base64", {"advantage_f64"}), ("none", set())):
        reply = plain.post(f"/v1/objective?arrays={arrays}", body)
        assert reply.status == 200 and {"advantage", "advantage_f64"} & set(reply.json["sequences"][0]) == names


def test_a_foreign_host_is_refused_as_declared(plain):
    for path in ("/healthz", "/readyz"):
        reply = plain.get(path, headers={"Host": "evil.example"})
        assert reply.status == 403 and "403" in find("GET", path)["responses"]



BATCH = {"run": "nulls", "groups": [{"task": "t", "prompt": "p"}]}
SCORE = {"run": "nulls", "policy_revision": 1, "verifiers": [{"name": "exact"}],
         "groups": [{"task": "t", "prompt": "p", "reference": "a", "completions": [{"text": "a", "completion_ids": [1], "logprobs": [-1]}, {"text": "b"}]}]}
OBJECTIVE = {"objective": {"preset": "grpo"}, "sequences": [{"group": "a", "reward": 1, "logprobs": [-1]}, {"group": "a", "reward": 0, "logprobs": [-1]}]}
# Where a null means something of its own, or the field is needed.
MEANS_SOMETHING = {("/v1/objective", "sequences.0.reward"), ("/v1/objective", "sequences.0.logprobs")}


def nullable(document, schema):
    schema = resolve(document, schema)
    kinds = schema.get("type", [])
    return kinds == "null" or "null" in (kinds if isinstance(kinds, list) else []) or any(
        nullable(document, part) for name in ("anyOf", "oneOf") for part in schema.get(name, []))


def nulls(document, schema, body, where=()):
    """Every place of `body` at which the document lets a null stand."""
    schema = resolve(document, schema)
    if isinstance(body, list):
        yield from nulls(document, schema.get("items", {}), body[0], (*where, 0))
        return
    for name, inner in schema.get("properties", {}).items():
        if nullable(document, inner):
            yield (*where, name)
        if name in body and isinstance(body[name], (dict, list)) and body[name]:
            yield from nulls(document, inner, body[name], (*where, name))


def changed(body, where, change):
    """A copy of the body with `change(container, name)` made at a place."""
    copy = dict(body) if isinstance(body, dict) else list(body)
    if len(where) == 1:
        change(copy, where[0])
    else:
        copy[where[0]] = changed(body[where[0]], where[1:], change)
    return copy


def request_schema(document, path):
    return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]


@pytest.mark.parametrize("path, body", [("/v1/score", SCORE), ("/v1/objective", OBJECTIVE), ("/v1/batches", {**BATCH, "sampling": {"n": 1}})])
def test_null_where_it_is_declared_is_as_if_left_out(document, plain, path, body):
    tried = 0
    for where in nulls(document, request_schema(document, path), body):
        if (path, ".".join(map(str, where))) in MEANS_SOMETHING:
            continue
        with_null = plain.post(path, changed(body, where, lambda place, name: place.__setitem__(name, None)))
        without = plain.post(path, changed(body, where, lambda place, name: place.pop(name, None)))
        assert with_null.status == without.status, (where, with_null)
        assert with_null.status == 200 or with_null.error["code"] == without.error["code"], (where, with_null)
        tried += 1
    assert tried >= 5


@pytest.mark.parametrize("section, knobs", [("loss", {"kind": "real", "dual_c": None, "delta": None, "lo": None, "log_clamp": None}), ("loss", {"c": None, "kl_tau": None, "log_max": None}),
                                            ("importance", {"method": "none", "lo": None, "hi": None, "log_clamp": None}), ("importance", [{"method": "token", "lo": None}])])
def test_null_is_as_if_left_out_also_where_the_kind_does_not_use_the_knob(plain, section, knobs):
    without = [{"method": "token"}] if isinstance(knobs, list) else {name: value for name, value in knobs.items() if value is not None}
    rows = [{**row, "old_logprobs": [-1], "rollout_logprobs": [-1]} for row in OBJECTIVE["sequences"]]
    ask = lambda given: plain.post("/v1/objective", {"sequences": rows, "objective": {section: given}})
    assert ask(knobs).status == 200 and ask(knobs).json == ask(without).json, ask(knobs)
    with_number = {**(knobs[0] if isinstance(knobs, list) else knobs), "lo": 0.5}
    assert ask(with_number).error["path"] == f"objective.{section}.lo"


@pytest.mark.parametrize("written", ["8", "8.0", "8e0", "80e-1"])
def test_a_whole_number_is_an_integer_however_it_is_written(plain, written):
    body = ('{"run":"whole","policy_revision":%s,"pass_at":[1.0],"groups":[{"task":"t","draw":0.0,"completions":[{"text":"a","completion_ids":[%s],'
            '"logprobs":[-1],"seed":%s}]}]}' % (written, written, written)).encode()
    reply = plain.post("/v1/score", body, {"Content-Type": "application/json"})
    assert reply.status == 200, reply
    rollout = reply.json["groups"][0]["rollouts"][0]
    assert (reply.json["policy_revision"], rollout["completion_ids"], rollout["seed_sent"]) == (8, [8], 8)


@pytest.mark.parametrize("written", ["3.5", "1e300", "9007199254740993.0", "36893488147419103232.0"])
def test_a_number_that_is_not_certainly_whole_is_refused(plain, written):
    """A double beyond 2^53 no longer says which integer was meant."""
    body = ('{"run":"whole","policy_revision":%s,"groups":[{"task":"t","completions":[{"text":"a"}]}]}' % written).encode()
    reply = plain.post("/v1/score", body, {"Content-Type": "application/json"})
    assert (reply.status, reply.error["path"]) == (400, "policy_revision")


def test_whole_numbers_of_the_objective_and_of_verifiers_may_have_a_point(plain):
    body = b'{"objective":{"advantage":{"ddof":1.0}},"group_sizes":{"a":2.0},"optimizer_step":3.0,"sequences":[{"group":"a","reward":1,"logprobs":[-1]},{"group":"a","reward":0,"logprobs":[-1]}]}'
    assert plain.post("/v1/objective", body, {"Content-Type": "application/json"}).status == 200
    ask = lambda written: plain.post("/v1/verify", ('{"verifiers":[{"name":"math","options":{"max_depth":%s}}],"items":[{"completion":"\\\\boxed{1}","reference":"1"}]}' % written).encode(), {"Content-Type": "application/json"})
    assert ask("50.0").status == 200
    assert ask("50.0").json["items"][0]["verdicts"][0]["options_sha256"] == ask("50").json["items"][0]["verdicts"][0]["options_sha256"]
    assert ask("50.5").status == 422


def test_a_batch_is_not_cancelled_by_a_request_with_a_parameter(service, engine):
    engine.rules({"delay": 30})
    running = service.post("/v1/batches", make_batch(), {"Prefer": "respond-async"}).json["id"]
    reply = service.delete(f"/v1/batches/{running}?dry_run=true")
    assert (reply.status, reply.error["code"]) == (400, "unknown_field")
    assert service.get(f"/v1/batches/{running}", wait="1ms").json["state"] == "running"
    assert service.delete(f"/v1/batches/{running}").status == 200
