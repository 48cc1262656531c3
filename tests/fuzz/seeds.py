#!/usr/bin/env python3
"""Writes inputs for the fuzz targets from tests/cases and tests/fixtures, and a dictionary of the words that the sources know.

    tests/fuzz/seeds.py FOLDER      FOLDER/<target>/… and FOLDER/words.dict
"""
import base64
import glob
import hashlib
import json
import os
import re
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = os.path.join(ROOT, "tests", "cases")
RECORDED = os.path.join(ROOT, "tests", "fixtures", "recorded")
PART = b"\x1e"
LONGEST = 4096  # larger inputs make a fuzzer slow and find the same

# Their order is that of the tables in client/adapters/kinds.def and verifiers/rows.def. A scorer samples nothing.
ENGINES = re.findall(r"^ENGINE_KIND\((\w+)\)", open(os.path.join(ROOT, "client", "adapters", "kinds.def"), encoding="utf-8").read(), re.M)
ENGINES.remove("scorer")
VERIFIERS = re.findall(r"^VERIFIER\((\w+)\)", open(os.path.join(ROOT, "verifiers", "rows.def"), encoding="utf-8").read(), re.M)
STATUSES = [200, 400, 401, 404, 413, 422, 429, 500, 502, 503, 504, 204, 302, 100, 0, 999]


def text(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def lines(name, step):
    with open(os.path.join(CASES, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file][::step]


def numbers():
    yield from (b"0", b"-0", b"-0.0", b"1e308", b"4.9e-324", b"9007199254740993", b"-9223372036854775808", b"18446744073709551616",
                b"0.1", b"123456789012345678901234567890.5e-20", b"2.2250738585072011e-308", b"1e-400", b"1E+5", b"NaN", b"[-Infinity]")
    yield text([-0.5, None, 1e-9, -0.00012345678901234567, 3, 4294967295])
    yield text([151643, 0, 4294967295])
    yield b'{"a": [1, [2.5, {"b": [null, true, "x\\u00e9\\ud83d\\ude00"]}]], "c": -1e5}'


def lift():
    long = [round(-0.013 * i, 5) for i in range(12)]
    yield text({"mask": [1] * 20, "logprobs": long, "rest": {"m": long + [None]}})
    yield json.dumps({"a": {"logprobs": long}, "mask": [0, 1] * 20}, indent=1).encode()
    yield b'{"m": [1,2,3,4,5,6,7,8,9,10,11,\n\n12,13,14,15,16,17,18,19,20,\n21,22,23,24,25,26,27,28,29,30] "b": 1}'
    yield b'{"m": [1,2,3,4,5,6,7,8,9,10,9007199254740993,12,13], "mask": [1.0,2,3e2,4,5,6,7,8,9,10,11,12,13,1]} x'


def batches():
    group = {"task": "t1", "prompt": "What is 6*7?", "reference": "42"}
    yield text({"run": "arith", "policy_revision": 12, "seed": 7, "sampling": {"n": 8, "max_tokens": 64, "temperature": 1.0},
                "verifiers": [{"name": "math", "weight": 1.0}, {"name": "math", "id": "correct", "heldout": True}],
                "objective": {"preset": "grpo", "epsilon": 0.2, "beta": 0.0}, "deadline": "120s", "groups": [group]})
    yield text({"run": "r", "policy_revision": 0, "purpose": "eval", "model": "m", "max_staleness": 2, "rollout_timeout": "5s",
                "missing": "skip", "strict_references": True, "metadata": {"a": [1]}, "return": ["logprobs"],
                "sampling": {"n": 1, "max_tokens": 4, "temperature": 0, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "stop": ["\n"],
                             "stop_token_ids": [2], "chat_template_kwargs": {"x": 1}, "engine_options": {"y": 2}},
                "groups": [{"task": "a", "draw": 1, "first_sample_index": 3, "sampling": {"n": 2}, "prompt_ids": list(range(30)),
                            "verifiers": [{"name": "exact", "reference": "x"}], "metadata": {}},
                           {"task": "b", "messages": [{"role": "user", "content": "hi"}], "sampling": {"max_tokens": 9}}]})
    yield text({"run": "r", "groups": [{**group, "task": f"t{i}"} for i in range(3)], "verifiers": [{"name": "format", "gate": True,
                "options": {"template": "think_answer"}}, {"name": "regex", "options": {"pattern": "^[0-9]+$"}}]})


    yield text({"run": "arith", "policy_revision": 12, "verifiers": [{"name": "math"}], "objective": {"preset": "grpo"}, "store": False, "groups": [
        {"task": "t", "prompt": "What is 6*7?", "reference": "42", "metadata": {}, "completions": [
            {"text": "\\boxed{42}", "completion_ids": [11, 12, 2], "logprobs": [-0.5, -0.25, -0.125], "finish_reason": "stop", "seed": 3,
             "rewards": {"env": {"score": 1.0, "weight": 0.5}}, "engine": "e", "sampling": {}},
            {"text": "x", "completion_ids_u32": "CwAAAA0AAAACAAAA", "logprobs": [-0.5, None, -0.125], "completion_mask": [1, 0, 1]},
            {"messages": [{"role": "assistant", "content": "y"}], "metadata": {"a": 1}},
            {"failure": {"stage": "sample", "code": "engine_timeout", "message": "m", "retryable": True, "attempts": 2}}]}]})


def verify():
    yield text({"verifiers": [{"name": "math"}], "missing": "skip", "items": [
        {"id": "1", "completion": "So the answer is \\boxed{\\frac{1}{2}}", "reference": "0.5", "completion_tokens": 9, "prompt": "x"},
        {"completion": "", "verifiers": [{"name": "regex", "options": {"pattern": "a|b"}}, {"name": "exact", "weight": -1, "reference": 3}]}]})
    for row in lines("math.jsonl", 60):
        yield text({"verifiers": [{"name": "math", "options": {"extract": row["extract"], **row.get("options", {})}}],
                    "items": [{"completion": row["completion"], "reference": row["gold"]}]})


def objective():
    one = {"group": "a", "reward": 1.0, "logprobs": [-0.5, -1.25], "old_logprobs": [-0.625, -1.25], "ref_logprobs": [-0.5, -1.0]}
    other = {"group": "a", "reward": 0.0, "logprobs": [-2.0], "rollout_logprobs": [-2.0], "ref_logprobs": [-1.75], "mask": [1]}
    presets = re.findall(r'\{"(\w+)"', open(os.path.join(ROOT, "server", "objective", "presets.c"), encoding="utf-8").read())
    for preset in presets:
        yield text({"objective": {"preset": preset}, "sequences": [one, other]})
    yield text({"objective": {"preset": "grpo", "aggregation": {"mode": "token_mean"}}, "sequences": [one, other], "group_sizes": {"a": 2},
                "totals": {"tokens": 12000, "sequences": 64, "groups": 8}, "pass_at": [1]})
    yield text({"sequences": [{"group": "g", "advantage": -1.5, "logprobs_f32": "AACAvwAAAL8="},
                              {"group": "g", "advantage": 1, "logprobs": [-0.25] * 16, "mask": [0, 1] * 8}]})
    yield text({"optimizer_step": 3, "ppo_epoch": 1, "part": 0, "sequences": [{"rollout": "r_0197a3c0-0000-7000-8000-000000000001", "logprobs": [-1]}]})


def tensors(header, data, metadata=None):
    """A safetensors file: header of name: (dtype, shape, begin, end)."""
    names = {name: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]} for name, (dtype, shape, begin, end) in header.items()}
    if metadata is not None:
        names["__metadata__"] = {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()}
    head = text(names)
    return len(head).to_bytes(8, "little") + head + data


def objective_tensors():
    floats = bytes(8) + b"\x00\x00\x80\xbf"
    yield tensors({"logprobs": ("F32", [3], 0, 12), "cu_seqlens": ("I64", [3], 12, 36), "mask": ("U8", [3], 36, 39)},
                  floats + b"".join(n.to_bytes(8, "little") for n in (0, 1, 3)) + bytes([1, 0, 1]),
                  {"request": {"sequences": [{"group": "a", "reward": 1}, {"group": "a", "reward": 0}]}})
    yield tensors({"mask": ("U8", [3], 0, 3), "x": ("BOOL", [1, 1], 3, 4)}, bytes(4), {})


def reply_parts(status, body):
    return bytes([STATUSES.index(status) if status in STATUSES else 1]) + body


def replies():
    for path in sorted(glob.glob(os.path.join(CASES, "engines", "*.json"))):
        with open(path, encoding="utf-8") as file:
            case = json.load(file)
        body = case.get("body", "")
        body = body.encode() if isinstance(body, str) else text(body)
        kind = next((i for i, name in enumerate(ENGINES) if name.split("_")[0] == case.get("engine", "").split("_")[0]), 0)
        yield bytes([kind, 0]) + reply_parts(case.get("status", 200), body)
    kinds = {"/completion": "llamacpp", "/v1/completions": "vllm", "/inference/v1/generate": "vllm_generate"}
    for path in sorted(glob.glob(os.path.join(RECORDED, "*.jsonl"))):
        with open(path, encoding="utf-8") as file:
            for recorded in map(json.loads, file):
                reply, kind = recorded["reply"], kinds.get(recorded["request"]["path"], "openai_compat")
                body = reply["body_text"].encode() if "body_text" in reply else text(reply["body"])
                yield bytes([ENGINES.index(kind), 1]) + reply_parts(reply["status"], body)
    sample = text({"content": "4", "tokens": [5], "stop_type": "eos", "tokens_evaluated": 2, "stop": True,
                   "completion_probabilities": [{"id": 5, "logprob": -0.5}]})
    for request in (1, 2, 4 | 1, 8 | 2):  # by prompt and by chat: render, tokenize, sample
        for steps in ([b'{"prompt":"hi"}', b'{"tokens":[1,2]}', sample], [b'{"tokens":[1,2]}', sample, b'{"prompt":"x"}']):
            for kind in range(len(ENGINES)):
                yield bytes([kind, request]) + PART.join(reply_parts(200, step) for step in steps)
    probe = [b'{"version":"0.9"}', b'{"model_path":"m","weight_version":"1"}', b'{"total_slots":4,"build_info":"b1","model_alias":"m"}',
             b'{"data":[{"id":"m","max_model_len":4096},{"id":"a"}]}']
    yield bytes([len(ENGINES), 0]) + PART.join(reply_parts(200, step) for step in probe)
    yield bytes([len(ENGINES), 0]) + PART.join(reply_parts(404, step) for step in probe)


def settings():
    with open(os.path.join(ROOT, "config", "rolloutd.yaml"), "rb") as file:
        yield file.read()
    yield b"listen: 127.0.0.1:0\nworkers: 3\nlog: {level: debug}\n" + PART + PART.join(
        [b"--engine=http://127.0.0.1:1#kind=vllm&model=m&in_flight=3", b"--set", b"durability=normal", b"ROLLOUTD_SAMPLING_N=3", b"--check"])
    yield b"engines:\n  - {url: 'http://[::1]:8000', name: a, pool: p, kind: sglang, shared: true, in_flight: 9}\n  - url: http://h:1/v1\n"
    yield PART + b"ROLLOUTD_ENGINES=http://a:1 http://b:2#name=x" + PART + b"--listen" + PART + b"[::1]:0" + PART + b"--set=body_limit=64MiB"
    yield b"- a\n- b: [1, {c: d}]\n" + PART + b"--lissten=1"


def grade():
    for row in lines("math.jsonl", 5):
        options = {"extract": row["extract"], **row.get("options", {})}
        yield bytes([VERIFIERS.index("math")]) + PART.join([text(options), text(row["gold"]), row["completion"].encode()])
    for row in lines("format.jsonl", 3):
        if row["kind"] == "regex":
            yield bytes([VERIFIERS.index("regex")]) + PART.join([text(row["params"]), b"null", row["text"].encode()])
        else:
            yield bytes([VERIFIERS.index("format")]) + PART.join([text({"template": row["kind"], **row["params"]}), b"null", row["text"].encode()])
    for row in lines("countdown.jsonl", 2):
        yield bytes([VERIFIERS.index("countdown")]) + PART.join([text(row["options"]), text({"numbers": row["numbers"], "target": row["target"]}),
                                                                 row["completion"].encode()])
    yield bytes([VERIFIERS.index("countdown")]) + PART.join([text({"allow_equals": True, "unary_minus": True}), b'{"numbers":[7,2],"target":"-7/2"}',
                                                             b"<answer>-\\frac{7}{2}=-3.5</answer>"])
    yield bytes([VERIFIERS.index("exact")]) + PART.join([b"{}", b'["a","b"]', b"<answer>b</answer>"])
    for name in set(VERIFIERS) - {"math", "format", "countdown", "code"}:  # cases of a format of their own, above and below
        path = os.path.join(CASES, "own", name + ".jsonl")
        for row in lines(path, 4) if os.path.exists(path) else []:
            yield bytes([VERIFIERS.index(name)]) + PART.join([text(row.get("options", {})), text(row.get("reference")), row["completion"].encode()])
    for row in lines(os.path.join("own", "json_schema.jsonl"), 9):
        yield bytes([VERIFIERS.index("json_schema")]) + PART.join([text(row["options"]), text(row.get("reference")), row["completion"].encode()])
    for row in lines("code.jsonl", 2):
        reference = row.get("reference", {key: row[key] for key in ("tests", "asserts", "entry", "calls", "checker") if key in row})
        options = {"language": row["lang"], **{key: value for key, value in row.get("options", {}).items() if value is not None}}
        yield bytes([VERIFIERS.index("code")]) + PART.join([text(options), text(reference), row.get("completion", f"```{row['lang']}\n{row.get('source')}\n```").encode()])


def said_by(reply):
    """The words of the judge of a case, or the body of its engine."""
    if isinstance(reply, dict):
        return reply.get("raw") or reply.get("text") or ""
    return reply


def asks():
    for row in lines("judge_injection.jsonl", 1):
        if any(isinstance(row.get(key), dict) and "unit" in row[key] for key in ("prompt", "completion")):
            continue
        replies = row["replies"].values() if isinstance(row["replies"], dict) else row["replies"]
        for reply in map(said_by, replies):
            if isinstance(reply, str):
                yield PART.join([text({"engine": "judge", **row["options"]}), row["prompt"].encode(), text(row.get("reference")),
                                 row["completion"].encode(), reply.encode()])
    for row in lines("judge.jsonl", 1):
        options = {"engine": "judge", "parse": {"kind": row["kind"], **row["params"]}}
        yield PART.join([text(options), b"Q", b'"R"', b"C <s>[INST] {reference}", row["reply"].encode()])


def math():
    for row in lines("math.jsonl", 1):
        yield from (b"\0" + row[key].encode() for key in ("gold", "answer") if row.get(key))
    for name in glob.glob(os.path.join(ROOT, "tests", "unit", "verifiers", "test_math_read*.c")):
        with open(name, encoding="utf-8") as file:
            for answer in re.findall(r'^        \{"(.+?)", ', file.read(), re.M):
                yield b"\0" + json.loads('"' + answer.replace("\\x", "\\u00") + '"').encode()


def compare():
    for row in lines("math.jsonl", 2):
        if row.get("answer"):
            yield b"\0" + row["gold"].encode() + PART + row["answer"].encode()


def verdicts():
    good = {"score": 1.0, "verdict": "correct", "reason": "equal", "detail": {"extracted": "4", "start": 0, "end": 1}, "failure": None, "duration_us": 12}
    bad = {"score": None, "verdict": "unscored", "reason": "x", "detail": None, "failure": {"code": "reference_unreadable", "message": "m"}, "duration_us": 1}
    scored = {**good, "score": 0.5, "verdict": "scored"}
    graded = {**scored, "reason": "steps", "detail": None, "steps": [[3, 1.0], [6, 0.0]]}
    yield text({"verdicts": [good, bad, scored, scored, good, graded]})
    yield text({"verdicts": [good, scored, {**scored, "score": 1e308}, scored, bad, bad]})
    yield text({"verdicts": [scored, {**good, "score": 0.0, "verdict": "incorrect"}, scored, bad, bad, {**graded, "steps": [[6, 1.0], [3, 0.0]]}]})
    yield text({"completion": "is \\boxed{42}", "prompt": "x", "completion_tokens": 3, "reference": "42",
                "verifiers": [{"name": "math", "options": {}}, {"name": "exact", "options": {}, "reference": "b"}]})
    yield text({"completion": "b\n\nis \\boxed{42}\n", "reference": "42",
                "verifiers": [{"name": "math", "options": {}, "steps": "per_line"}, {"name": "exact", "options": {}, "reference": "b", "steps": "per_paragraph"}]})


def paths():
    identifier = "b_0197a3c0-0000-7000-8000-000000000001"
    yield from (f"GET {path}".encode() for path in (
        "/v1/rollouts?run=x&limit=3&state=scored&min_reward=0.5&order=desc&cursor=abc", f"/v1/batches/{identifier}/groups?limit=1",
        f"/v1/batches/{identifier}/request", "/v1/batches?run=a%20b+c&state=running", f"/v1/rollouts/{identifier}?arrays=base64",
        f"/v1/groups/{identifier}?arrays=none", "/v1/runs?limit=1", "/v1/runs/a%2Fb", "/v1/presets", "/v1/verifiers", "/nothing/%C3%A9",
        "/v1/runs/%ff", "//v1/runs/", "/healthz?a=1&a=2&&=&b"))
    yield b"PUT /v1/runs/r/policy"


def heads():
    line, host = "GET /v1/runs?run=a&limit=1 HTTP/1.1\r\n", "Host: localhost\r\n"
    post = "POST /v1/verify HTTP/1.1\r\n" + host + "Content-Type: application/json\r\n"
    for cut in (0, 100, 255):
        for head in (line + host + "X-Request-Id: a.b\r\nCookie: a=b; c=d\r\nConnection: keep-alive, close\r\n\r\n", line + "\r\n",
                     post + "Content-Length: 12\r\n\r\n{\"a\": false}", post + "Transfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
                     post + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                     line + host + "X-A : b\r\n\r\n", line + host + "X-A: b\r\n c\r\n\r\n", line.replace("\r", "") + host + "\r\n", "PRI * HTTP/2.0\r\n\r\n"):
            yield bytes([cut]) + head.encode()


def wire_program(language, source, given, arguments=(), files=(), output=4096):
    """struct wire_program of verifiers/sandbox/wire_private.h and its texts."""
    words, names = [argument + b"\0" for argument in arguments], [name + b"\0" for name, _ in files]
    head = struct.pack("=4I6q2Q", language, 1, len(words), len(files), 1000, 1000, 1 << 26, output, 1 << 20, 8, len(source), len(given))
    head += struct.pack("=16I", *[len(word) for word in words], *[0] * (16 - len(words)))
    head += struct.pack("=4I4Q", *[len(name) for name in names], *[0] * (4 - len(names)), *[len(data) for _, data in files], *[0] * (4 - len(files)))
    return head + source + given + b"".join(words) + b"".join(name + data for name, (_, data) in zip(names, files))


def wire_result(outcome, output, error, records, message=b""):
    return struct.pack("=IiiI3q3Q200s", outcome, 0, 0, 1, 100, 100, 100, len(output), len(error), len(records), message) + output + error + records


def slot():
    yield b"\0" + wire_program(0, b"print(1)", b"1 2\n")
    yield b"\0" + wire_program(4, b"", b"{}", (b"/bin/sh", b"-c", b"true"), ((b"input", b"1\n"), (b"answer", b"2\n")))
    yield b"\0" + wire_program(2, b"int main(void){}", b"", (b"input",), ((b"..", b"1"), (b"a/b", b"")))
    for count in (1, 2):
        for outcome, output in ((0, b"1\n"), (3, b"x" * 1024), (3, b"x" * 1025), (7, b"")):
            yield bytes([count]) + wire_result(outcome, output, b"e", b"r") * count
    yield b"\1" + wire_result(5, b"", b"e" * 3000, b"", b"m" * 200)
    yield b"\1" + wire_result(6, b"", b"", b"", b"mount: EPERM")


def lean():
    """Two completions with their arrays, and a body that has them."""
    for count, separator, packed in ((3, ",", False), (20, ", ", False), (5, ",", True), (1, ", ", False), (40, ",", False)):
        ids, mask = [i * 7919 % 50000 for i in range(count)], [i % 2 for i in range(count)]
        logprobs = struct.unpack(f"<{count}f", struct.pack(f"<{count}f", *[-0.0131 * i * i for i in range(count)]))
        one = bytes([count]) + b"".join(struct.pack(">IfB", *values) for values in zip(ids, logprobs, mask))
        arrays = {"completion_ids": ids, "logprobs": logprobs, "completion_mask": mask}
        if packed:
            arrays = {"completion_ids_u32": base64.b64encode(struct.pack(f"<{count}I", *ids)).decode(), "logprobs_f32": base64.b64encode(struct.pack(f"<{count}f", *logprobs)).decode(),
                      "completion_mask_u8": base64.b64encode(bytes(mask)).decode()}
        yield one + one + json.dumps({"completions": [arrays, {"text": "\"logprobs\": [1]", **arrays}]}, separators=(separator, ":")).encode()


def code():
    def end(output=b"", records=b"", outcome=0, exit_code=0, signal=0):
        return bytes([outcome, exit_code + 1, signal]) + PART.join([output, records, b""])
    for way in range(0, 32, 8):
        yield bytes([way]) + end(b"expected-4f1c 2\n") + end(b"3\n")
        yield bytes([way]) + end(b"3\n\xff\0") + end(outcome=1)
        values = [b"i2", b"[i1,i2]", b"2", b"1.5", b"null", b'["a"]', b"i-7", b"f0x1p0"]
        yield from (bytes([way + 1]) + end(b"said", b"".join(b"v%d:%d:%s\n" % (index, len(value), value) for index in range(3))) for value in values)
        yield bytes([way + 1]) + end(b"", b"e0:3:abc\nl1:0:\n") + end(b"", b"v1:9999999999:x\n", 3) + end(exit_code=1)
        yield bytes([way + 2]) + end(b"", b"0p\n1w\n2p\n") + end(b"said", b"")
        yield bytes([way + 2]) + end(b"", b"0p\n1g\n") + end(signal=9) + end(b"", b"2r\n", 6) + end()
        yield bytes([way + 3]) + end(b"7") + end(exit_code=1) + end(exit_code=3)
        yield bytes([way + 4]) + end(b"7") + end(b"0.5\n") + end(b"nan\n") + end(b"1\n")


def ngrams():
    for row in lines(os.path.join("own", "repetition.jsonl"), 2):
        yield bytes([min(row["options"]["ngram"] - 1, 31)]) + row["completion"].encode()


def schema():
    """Of the official suite and of the own cases; patterns alone."""
    with open(os.path.join(ROOT, "tests", "fixtures", "json_schema_suite", "suite.jsonl"), encoding="utf-8") as file:
        for group in list(map(json.loads, file))[::3]:
            yield from (PART.join([text(group["schema"]), test["text"].encode()]) for test in group["tests"][:2])
    for row in lines(os.path.join("own", "json_schema.jsonl"), 4):
        reference = row.get("reference", row["options"].get("schema"))
        yield PART.join([text(reference), row["completion"].encode()])
        if isinstance(reference, dict) and isinstance(reference.get("pattern"), str):
            yield PART.join([reference["pattern"].encode(), row["completion"].encode()])


# The name of the target is that of its function up to the first underscore.
def choice():
    modes = ["auto", "lenient", "strict_box", "answer_tag", "marker"]
    for row in lines(os.path.join(CASES, "own", "choice.jsonl"), 3):
        options = row["options"]
        texts = options.get("texts", {})
        how = modes.index(options.get("mode", "auto")) | 8 * options.get("multi", False) | 16 * ("unicode_letters" in options) | 32 * ("strip_zero_width" in options) | 64 * bool(texts)
        yield bytes([how]) + PART.join([texts.get("A", "").encode(), texts.get("B", "").encode(), row["completion"].encode()])


def ifeval():
    with open(os.path.join(ROOT, "verifiers", "ifeval", "instructions.c"), encoding="utf-8") as file:
        ids = re.findall(r'^    \{"([a-z_]+:[a-z0-9_-]+)"', file.read(), re.M)
    for index, row in enumerate(lines(os.path.join(CASES, "own", "ifeval.jsonl"), 2)):
        named = row["reference"].get("instruction_id_list") if isinstance(row["reference"], dict) else None
        if isinstance(named, list) and named and named[0] in ids:
            yield bytes([ids.index(named[0]), index % 256]) + row["completion"].encode()


def pieces():
    """As characters, and with each token a byte longer than the one before it."""
    for row in lines("steps.jsonl", 1):
        said = row["completions"][0]
        whole, ends = said["text"].encode(), said.get("token_ends") or []
        lengths = [min(max(end - before, 0), 255) for before, end in zip([0, *ends], ends)][:255]
        for kind in (0, 1):
            yield bytes([kind, max(len(lengths) - 1, 0), *lengths[:-1]]) + whole
            yield bytes([kind, 7, *range(7)]) + whole


TARGETS = [objective_tensors, numbers, lift, batches, verify, objective, replies, settings, grade, asks, math, compare, verdicts, paths, heads, slot, code, lean, ngrams, choice, schema, ifeval, pieces]


def write_words(path):
    """Everything in quotes in the files that know a word of the outside."""
    words = set()
    for pattern in ("server/*.c", "server/objective/*.c", "client/*.c", "verifiers/*.c", "verifiers/math/*.c"):
        for name in glob.glob(os.path.join(ROOT, pattern)):
            with open(name, encoding="utf-8") as file:
                words.update(re.findall(r'"([a-z][a-z0-9_./:-]{1,30})"', file.read()))
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f'"{word}"\n' for word in sorted(words))
        file.write('"\\x1e"\n')
        with open(os.path.join(ROOT, "verifiers", "math", "words.c"), encoding="utf-8") as source:
            commands = source.read().split("commands[]")[1].split("};")[0]
        file.writelines(f'"\\\\{command}"\n' for command in re.findall(r'\{"(\w+)"', commands))


def main():
    folder = sys.argv[1]
    for target in TARGETS:
        place = os.path.join(folder, target.__name__.partition("_")[0])
        os.makedirs(place, exist_ok=True)
        for seed in target():
            if len(seed) <= LONGEST:
                with open(os.path.join(place, hashlib.sha1(seed).hexdigest()), "wb") as file:
                    file.write(seed)
    write_words(os.path.join(folder, "words.dict"))
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8"):
            pass


if __name__ == "__main__":
    main()
