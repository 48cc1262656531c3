"""Every reply that the tests get is held against schema/openapi.yaml: its status, its shape, and that each key is declared.

The part of JSON Schema that the document uses is checked here. An undeclared key is a fault, which JSON Schema alone does
not say; an array is followed through its first elements only, so that a reply of a million numbers costs nothing."""
import functools
import json
import os
import re

import yaml

DOCUMENT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "schema", "openapi.yaml")
METHODS = ("get", "put", "post", "delete", "patch")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}
ELEMENTS_LOOKED_AT = 40
# Statuses that any request may get, on any route: the front of the service decides before a route is known.
ANYWHERE = {"400", "401", "403", "404", "405", "406", "408", "411", "413", "414", "415", "417", "429", "431", "500", "501", "503", "505", "507"}


@functools.lru_cache(maxsize=1)
def document():
    with open(DOCUMENT, encoding="utf-8") as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@functools.lru_cache(maxsize=1)
def operations():
    return {(method.upper(), path): item[method] for path, item in document()["paths"].items() for method in METHODS if method in item}


@functools.lru_cache(maxsize=1)
def templates():
    """(pattern, path), those without parameters first."""
    paths = sorted({path for _, path in operations()}, key=lambda path: path.count("{"))
    return [(re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) + r"\Z"), path) for path in paths]


def resolve(node):
    while "$ref" in node:
        target = document()
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = {**target, **{name: value for name, value in node.items() if name != "$ref"}}
    return node


def declared(schema):
    """(properties, additional) of a schema and all its parts. additional: None where nothing is said of other keys."""
    schema = resolve(schema)
    properties, additional = dict(schema.get("properties", {})), schema.get("additionalProperties")
    for name in ("allOf", "oneOf", "anyOf"):
        for part in schema.get(name, []):
            more, other = declared(part)
            properties = {**more, **properties}
            additional = additional or other
    return properties, additional


def undeclared(schema, value, where):
    """Keys that no part of the schema declares. An object of which nothing is said at all (`metadata`) is free (test_openapi lists them)."""
    properties, additional = declared(schema)
    if not properties and additional is None:
        return
    for name in value:
        if name not in properties and not additional:
            yield f"{where}: {name} is not declared"


def typed(schema, value, where):
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number")) for kind in kinds):
        yield f"{where}: {value!r:.80} is no {kinds}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r:.80} is not in {schema['enum']}"
    elif "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r:.80} is not {schema['const']!r}"
    elif "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r:.80} does not match {schema['pattern']}"


def problems(schema, value, where="$", whole=True):
    """whole: other keys than those of this schema are faults; not so inside a part of `allOf`, which is one of several."""
    schema = {} if schema is True else resolve(schema)
    wrong = list(typed(schema, value, where))
    yield from wrong
    if wrong:
        return
    for part in schema.get("allOf", []):
        yield from problems(part, value, where, False)
    for name in ("oneOf", "anyOf"):
        tried = [list(problems(part, value, where, False)) for part in schema.get(name, [])]
        if tried and all(tried):
            yield f"{where}: fits no part of {name}: {min(tried, key=len)[:3]}"
    if isinstance(value, dict):
        yield from (f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value)
        if whole:
            yield from undeclared(schema, value, where)
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, inner in value.items():
            known = properties.get(name, additional if isinstance(additional, dict) else True)
            yield from problems(known, inner, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for index, inner in enumerate(value[:ELEMENTS_LOOKED_AT]):
            yield from problems(schema["items"], inner, f"{where}[{index}]")


def content_of(response, content_type):
    return response.get("content", {}).get(content_type.split(";")[0].strip())


def find(method, path):
    """The operation of a request, or None."""
    path = re.sub(r"^https?://[^/]*", "", path).split("?")[0]
    for pattern, template in templates():
        if pattern.match(path) and (method, template) in operations():
            return operations()[method, template]
    return None


def faults(method, path, status, headers, body):
    """The faults of a reply, as far as the document says."""
    operation = find("GET" if method == "HEAD" else method, path)
    content_type = headers.get("content-type", "")
    if status >= 400 and (not operation or str(status) not in operation["responses"]):
        if str(status) not in ANYWHERE:
            return [f"status {status} is not declared"]
        error = {"$ref": "#/components/schemas/Error"}
        return list(problems(error, json.loads(body))) if body and content_type.startswith("application/json") else []
    if not operation:
        return []
    if str(status) not in operation["responses"]:
        return [f"status {status} is not declared"]
    content = content_of(resolve(operation["responses"][str(status)]), content_type)
    if method == "HEAD" or not body:
        return []
    if content is None:
        return [f"{status} with {content_type} is not declared"]
    if content_type.startswith("application/x-ndjson"):
        lines = body.split(b"\n")[:-1]  # what follows the last line feed was cut off
        return [problem for line in lines for problem in problems(content.get("schema", {}), json.loads(line))]
    if not content_type.startswith("application/json"):
        return []
    return list(problems(content.get("schema", {}), json.loads(body)))


def hold(method, path, reply):
    """AssertionError where a reply is not as the document says."""
    try:
        found = faults(method, path, reply.status, reply.headers, reply.body)
    except ValueError:
        return  # not JSON: the test that asked will say so
    log = os.environ.get("ROLLOUTD_CONTRACT_LOG")
    if found and log:
        with open(log, "a", encoding="utf-8") as file:
            file.writelines(f"{method} {path.split('?')[0]} {reply.status}\t{fault}\n" for fault in found)
        return
    assert not found, (f"{method} {path}: {reply.status} is not as schema/openapi.yaml says", found[:5])
