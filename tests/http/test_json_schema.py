"""json_schema: the official test suite of the draft, the page, options that are refused, numbers of any size, and bounded work."""
import json
import os
import re

import pytest

from harness import ROOT
from material import rollouts
from test_verify import one, verify

SUITE = os.path.join(ROOT, "tests", "fixtures", "json_schema_suite", "suite.jsonl")
PAGE = os.path.join(ROOT, "docs", "verifiers", "json_schema.md")
MIB = 1 << 20

# Groups of the suite that need another document: the draft's own schema, or one of the suite's server. They are refused.
OUTSIDE = {
    ("defs.json", "validate definition against metaschema"), ("ref.json", "remote ref, containing refs itself"),
    ("dynamicRef.json", "strict-tree schema, guards against misspelled properties"),
    ("dynamicRef.json", "tests for implementation dynamic anchor and reference link"),
    ("dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $defs first"),
    ("dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first"),
    ("dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor")}
# Their schema has a decimal of 32 digits: it is read as a double.
ROUNDED = {("optional/bignum.json", "float comparison with high precision"), ("optional/bignum.json", "float comparison with high precision on negative numbers")}


def groups():
    with open(SUITE, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def judged(service, schema, texts, **options):
    found = verify(service, [{"id": str(index), "completion": text} for index, text in enumerate(texts)], [{"name": "json_schema", "options": {"schema": schema, **options}}])
    return [item["verdicts"][0] for item in found]


# -- the official suite ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", sorted({group["file"] for group in groups()}))
def test_the_official_suite_passes(plain, name):
    wrong = []
    for group in groups():
        place = (group["file"], group["description"])
        if group["file"] != name or place in OUTSIDE | ROUNDED:
            continue
        verdicts = judged(plain, group["schema"], [test["text"] for test in group["tests"]])
        wrong += [(group["description"], test["description"], verdict) for test, verdict in zip(group["tests"], verdicts)
                  if (verdict["score"], verdict["reason"]) != ((1, "valid") if test["valid"] else (0, "invalid"))]
    assert wrong == []


def test_the_suite_is_there_and_what_is_left_out_of_it_is_refused(plain):
    known = groups()
    assert sum(len(group["tests"]) for group in known) > 1200
    assert OUTSIDE | ROUNDED <= {(group["file"], group["description"]) for group in known}
    for group in known:
        if (group["file"], group["description"]) in OUTSIDE:
            reply = plain.post("/v1/verify", {"verifiers": [{"name": "json_schema", "options": {"schema": group["schema"]}}], "items": [{"completion": "1"}]})
            assert (reply.status, reply.error["code"]) == (422, "verifier_options") and "nothing is fetched" in reply.error["message"]


# -- the page --------------------------------------------------------------------------------------------------------------------------

def read_page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def examples():
    return re.findall(r"^\| `(\S.*?)` \| `(.*?)` \| (\S+) \| `(\w+)` \|$", read_page().split("\n## Examples\n")[1].split("\n## ")[0], re.M)


@pytest.mark.parametrize("schema, completion, score, reason", examples())
def test_an_example_of_the_page(plain, schema, completion, score, reason):
    verdict, = one(plain, "json_schema", completion, json.loads(schema))["verdicts"]
    assert (verdict["score"], verdict["reason"]) == (None if score == "–" else int(score), reason)


def test_the_page_has_every_reason_and_option(plain):
    page, options = read_page(), next(row for row in plain.read("/v1/verifiers")["verifiers"] if row["name"] == "json_schema")["options"]
    assert len(examples()) >= 10 and set(options) == {"schema", "allow_fence"}
    assert options["schema"]["type"] == "any" and options["schema"]["default"] is None
    for name in (*options, "valid", "invalid", "not_json", "duplicate_key", "too_deep", "too_large", "work_limit"):
        assert f"| `{name}` |" in page


def test_every_keyword_of_the_page_is_offered_and_no_other(plain):
    with open(os.path.join(ROOT, "verifiers", "schema", "keywords.def"), encoding="utf-8") as file:
        offered = set(re.findall(r'^KEYWORD\(\w+, "(\S+)"', file.read(), re.M))
    part = read_page().split("\n## Keywords\n")[1].split("**Any other keyword**")[0]
    assert offered - {"$schema"} == set(re.findall(r"`([$\w]+)`", part))


# -- options and references ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("schema, said", [
    ({"typ": "integer"}, '"typ" is no keyword'), ({"properties": {"a": {"requried": []}}}, "at /properties/a"), ({"$ref": "#"}, "loop"), ({"$ref": "#/$defs/a"}, "no schema"),
    ({"$ref": "https://example.com/s"}, "nothing is fetched"), ({"pattern": "("}, "pattern"), ({"type": "int"}, "at /type"), ("{}", "a schema is an object"), ([], "a schema is an object"),
    (1, "a schema is an object"), ({"$schema": "http://json-schema.org/draft-07/schema#"}, "only the draft")])
def test_an_option_that_is_no_schema_is_refused_and_as_a_reference_leaves_no_score(plain, schema, said):
    body = {"verifiers": [{"name": "json_schema", "options": {"schema": schema}}], "items": [{"completion": "1"}]}
    reply = plain.post("/v1/verify", body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "verifier_options", "verifiers[0].options.schema") and said in reply.error["message"]
    failure = one(plain, "json_schema", "1", schema)["verdicts"][0]["failure"]
    assert failure["code"] == "reference_unreadable" and said in failure["message"]


def test_without_any_schema_there_is_no_score(plain):
    assert one(plain, "json_schema", "1")["failure"]["code"] == "reference_unreadable"


def test_the_option_wins_over_the_reference_and_a_broken_reference_does_not_matter_then(plain):
    assert one(plain, "json_schema", '"5"', {"typ": 1}, schema={"type": "string"})["reward"] == 1
    assert one(plain, "json_schema", "5", {"type": "integer"}, schema={"type": "string"})["reward"] == 0


@pytest.mark.parametrize("place", ["options", "reference"])
def test_whole_numbers_of_a_schema_have_any_size(plain, place):
    schema, texts = {"maximum": 2 ** 64 - 1, "not": {"const": 10 ** 30}}, {"18446744073709551615": 1, "18446744073709551616": 0, "-1e30": 1, "1.8446744073709551615e19": 1}
    for text, score in texts.items():
        verifier = {"name": "json_schema", **({"options": {"schema": schema}} if place == "options" else {})}
        item, = verify(plain, [{"id": "1", "completion": text, **({"reference": schema} if place == "reference" else {})}], [verifier])
        assert item["reward"] == score, item


def test_the_hash_of_options_with_such_numbers_is_the_same_after_a_restart(start):
    hashes = set()
    for _ in range(2):
        hashes.add(one(start(), "json_schema", "1", schema={"maximum": 2 ** 70})["verdicts"][0]["options_sha256"])
    assert len(hashes) == 1


def test_a_batch_of_scores_has_the_schema_of_each_group(plain):
    kept = [({"type": "integer"}, ["1.0", "1.5"], [1, 0]), ({"const": {"a": [2 ** 80]}}, [json.dumps({"a": [2 ** 80]}), json.dumps({"a": [2 ** 80 + 1]})], [1, 0]), ({"typ": 1}, ["1", "2"], [None, None])]
    reply = plain.post("/v1/score", {"run": "schemas", "store": False, "deadline": "30s", "verifiers": [{"name": "json_schema"}], "groups": [
        {"task": str(index), "prompt": "p", "reference": schema, "completions": [{"text": text} for text in texts]} for index, (schema, texts, _) in enumerate(kept)]})
    assert reply.status == 200, reply
    assert [rollout["reward"] for rollout in rollouts(reply.json)] == [reward for *_, rewards in kept for reward in rewards]


# -- work ------------------------------------------------------------------------------------------------------------------------------

NESTED = {"properties": {"a": {"$ref": "#"}}, "allOf": [{"properties": {"a": {"$ref": "#"}}}], "unevaluatedProperties": False}
HOSTILE = {
    "brackets": ({"items": {"$ref": "#"}}, "[" * MIB, "too_deep"), "closed brackets": ({"items": {"$ref": "#"}}, "[" * 5000 + "]" * 5000, "too_deep"),
    "zeros": ({"items": {"type": "integer"}}, "[" + "0," * (MIB // 2) + "0]", "valid"), "more values than are read": (True, "[" + "0," * MIB + "0]", "too_large"),
    "equal items": ({"uniqueItems": True}, "[" + "[0]," * (MIB // 4) + "1]", None), "a digit too many": ({"multipleOf": 7}, "1" * MIB, "invalid"),
    "keys": ({"unevaluatedProperties": {"type": "integer"}, "anyOf": [{"properties": {"k1": True}}] * 9}, "{" + ",".join(f'"k{index}":1' for index in range(MIB // 12)) + "}", "valid"),
    "doubling": (NESTED, '{"a":' * 100 + "{}" + "}" * 100, "work_limit"), "pattern": ({"pattern": "^(a|a?)+$"}, json.dumps("a" * MIB + "!"), "work_limit"),
    "many patterns": ({"patternProperties": {f"(x|x?)+[yz]{{{index + 1}}}": True for index in range(200)}}, json.dumps({"x" * 5000: 1}), "work_limit"),
    "names": ({"required": [str(index) for index in range(50000)]}, "{" + ",".join(f'"{index}":1' for index in range(50000)) + "}", "valid"),
    "half keys": (True, '{"' * (MIB // 2), "not_json"), "escapes": ({"maxLength": 1}, '"' + "\\u0041" * (MIB // 6) + '"', "invalid"),
}


@pytest.fixture(scope="module")
def patient(shared_factory):
    """The work is counted, not timed: what a busy machine makes of it is another thing."""
    return shared_factory(settings={"verify_timeout": "2m"})


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts_and_schemas_are_judged_the_same_each_time(patient, name):
    schema, text, reason = HOSTILE[name]
    found = {(verdict["reason"], verdict["score"], verdict["failure"] is None) for verdict in judged(patient, schema, [text] * 3)}
    assert len(found) == 1
    (said, score, fine), = found
    assert fine and score == (said == "valid") and reason in (None, said)


@pytest.mark.parametrize("schema", [
    {"$ref": "#/$defs/a0", "$defs": {**{f"a{index}": {"allOf": [{"$ref": f"#/$defs/a{index + 1}"}] * 2} for index in range(60)}, "a60": True}},
    {"$ref": "#/$defs/a0", "$defs": {**{f"a{index}": {"$ref": f"#/$defs/a{index + 1}"} for index in range(5000)}, "a5000": True}},
    {"patternProperties": {f"k{index}": True for index in range(1000)}}, {"pattern": "(" * 5000 + ")" * 5000}, {"pattern": "(abc){1,9999}"},
    {"enum": ["x" * 1000] * 1100}], ids=["doubling", "a chain", "patterns", "groups", "repeats", "size"])
def test_a_schema_beyond_its_limits_is_refused_by_name(patient, schema):
    reply = patient.post("/v1/verify", {"verifiers": [{"name": "json_schema", "options": {"schema": schema}}], "items": [{"completion": "1"}]})
    assert (reply.status, reply.error["code"]) == (422, "verifier_options"), reply
