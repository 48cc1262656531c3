"""math, choice, format, ifeval, countdown, code and judge, through POST /v1/verify."""
import base64
import json
import os
import re
import struct
import sys
import zlib

from . import fake
from .report import Suite
from .service import RESTARTS, Service, StartError

BATCH = {"code": 16}
TIMEOUT = {"code": 900, "judge": 300}
ABS, REL = 1e-12, 1e-9
JUDGE_KIND = "openai_compat"


class Mapped:
    """One case as an item of /v1/verify, and the rule that decides on the verdict."""

    def __init__(self, case, name, check, completion, reference=None, options=None, beside=(), **fields):
        verifier = {"name": name}
        if options:
            verifier["options"] = options
        self.id, self.case, self.name, self.check = case["id"], case, name, check
        self.item = {"id": case["id"], "completion": completion, "verifiers": [*beside, verifier], **fields}
        if reference is not None:
            self.item["reference"] = reference


def close(got, want):
    return is_number(got) and abs(got - want) <= max(ABS, REL * abs(want))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# -- rules: each returns (fine, expected, got) ------------------------------------------------

def seen(verdict):
    failure = verdict.get("failure") or {}
    parts = [str(verdict.get("verdict")), f"score {verdict.get('score')}", str(verdict.get("reason"))]
    if failure:
        parts.append(f"failure {failure.get('code')}")
    return ", ".join(parts)


def is_unscored(verdict):
    if "no verifier is called" in str((verdict.get("failure") or {}).get("message")):
        return False
    return verdict.get("verdict") == "unscored" and verdict.get("score") is None and bool(verdict.get("failure"))


def binary(case, verdict):
    right = case["expected"] == "correct"
    fine = verdict.get("verdict") == case["expected"] and close(verdict.get("score"), 1.0 if right else 0.0)
    return fine, case["expected"], seen(verdict)


def score(case, verdict):
    return close(verdict.get("score"), case["expected"]), case["expected"], seen(verdict)


def constraint(case, verdict):
    fine = close(verdict.get("score"), 1.0 if case["expected"] else 0.0)
    if case["ref"] is None:
        fine = fine or is_unscored(verdict)
    return fine, case["expected"], seen(verdict)


def accepted_reasons(case):
    return [case["expected"], *case["also_ok"]]


def code_outcome(case, verdict):
    """The reason; `unscored` for a verdict without a score and with a failure of a code that the case allows."""
    if not is_unscored(verdict):
        return verdict.get("reason")
    code = verdict["failure"].get("code")
    return "unscored" if code in case.get("failures", [code]) else f"unscored, {code}"


def score_fits(case, reason, got):
    if reason == "unscored":
        return got is None
    wanted = any(close(got, value) for value in case["scores"]) if "scores" in case else True
    return wanted and close(got, 1.0) == (reason == "pass")


def program(case, verdict):
    accepted, reason, got = accepted_reasons(case), code_outcome(case, verdict), verdict.get("score")
    wanted = " | ".join(accepted)
    if case["expected"] == "error_no_tests":
        return is_unscored(verdict), "unscored with a failure", seen(verdict)
    fine = reason in accepted and score_fits(case, reason, got)
    if case["malicious"] and not {"pass", "unscored"} & set(accepted):
        fine = verdict.get("verdict") == "incorrect" and not close(got, 1.0) and reason != "pass"
    return fine, wanted, seen(verdict)


def judged(case, verdict):
    if case["expected"] == "error":
        return is_unscored(verdict), "unscored with a failure", seen(verdict)
    return close(verdict.get("score"), case["expected"]), case["expected"], seen(verdict)


# -- mapping of the case files ------------------------------------------------------------------

def map_math(case):
    options = {"extract": case["extract"], **case.get("options", {})}
    return Mapped(case, "math", binary, case["completion"], case["gold"], options, **{key: case[key] for key in ("prompt",) if key in case})


def map_choice(case):
    if "policy" not in case:
        return map_own("choice")(case)
    options = {"mode": case["mode"], "letters": case["letters"], **case["policy"]}
    if case["texts"]:
        options["texts"] = case["texts"]
    return Mapped(case, "choice", binary, case["completion"], case["gold"], options)


def map_countdown(case):
    reference = {"numbers": case["numbers"], "target": case["target"]}
    return Mapped(case, "countdown", binary, case["completion"], reference, case["options"])


def map_ifeval(case):
    if "completion" in case:
        return map_own("ifeval")(case)
    reference = {"instruction_id_list": [case["kind"]], "kwargs": [case["kwargs"]]}
    return Mapped(case, "ifeval", constraint, case["text"], reference, {"mode": case["mode"]})


REGEX_MODES = {"full": "fullmatch", "search": "search", "absent": "absent"}


def map_regex(case):
    options = {"pattern": case["params"]["pattern"], "mode": REGEX_MODES[case["params"]["mode"]]}
    return Mapped(case, "regex", score, case["text"], None, options)


def map_schema(case):
    return Mapped(case, "json_schema", score, case["text"], None, case["params"])


def map_cosine(case):
    """An `exact` verifier of weight 0 decides what is correct; the text only serves to make it do so."""
    params = case["params"]
    truth = {"name": "exact", "id": "truth", "weight": 0, "reference": "yes" if params["correct"] else "no"}
    options = {"of": "truth", "max_length": params["max_len"]}
    return Mapped(case, "cosine_length", score, "yes", None, options, [truth], completion_tokens=params["length"])


def map_overlong(case):
    params = case["params"]
    options = {"max_length": params["max_len"], "cache": params["cache"]}
    return Mapped(case, "overlong", score, case["text"], None, options, completion_tokens=params["length"])


def map_repetition(case):
    return Mapped(case, "repetition", score, case["text"], None, case["params"])


def map_template(case):
    return Mapped(case, "format", score, case["text"], None, {"template": case["kind"], **case["params"]})


FORMAT_KINDS = {"json_schema": map_schema, "regex": map_regex, "cosine": map_cosine,
                "overlong": map_overlong, "repetition": map_repetition}


def map_format(case):
    return FORMAT_KINDS.get(case["kind"], map_template)(case)


def fenced(language, source):
    longest = max((len(run) for run in re.findall("`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{source}{'' if source.endswith(chr(10)) else chr(10)}{fence}\n"


BOMB = 512 << 20


def blank_bomb(tests):
    """base64(zlib(pickle)) of a text of BOMB blanks and the tests: small on the wire, large in memory."""
    text, blanks = tests.encode(), b" " * (1 << 20)
    packer = zlib.compressobj(9)
    parts = [packer.compress(b"\x80\x04\x8d" + struct.pack("<Q", BOMB + len(text)))]
    parts += [packer.compress(blanks) for _ in range(BOMB // len(blanks))]
    parts += [packer.compress(text + b"."), packer.flush()]
    return base64.b64encode(b"".join(parts)).decode()


def code_reference(case):
    if case["mode"] == "reference":
        reference = case["reference"]
        if case.get("build") == "blank_bomb":
            reference = {**reference, "private_test_cases": blank_bomb(reference["public_test_cases"])}
        return reference
    if case["mode"] == "stdio":
        checker = {"checker": case["checker"]} if "checker" in case else {}
        return {"tests": case["tests"], **checker}
    if case["mode"] == "assert":
        return {"asserts": case["asserts"]}
    return {"entry": case["entry"], "calls": case["calls"]}


def map_code(case):
    if "lang" not in case:
        return map_own("code")(case)
    options = {"language": case["lang"], "limits": case["limits"], "score": "all"}
    if "compare" in case:
        options["compare"] = case["compare"]
    options = {name: value for name, value in {**options, **case.get("options", {})}.items() if value is not None}
    completion = case["completion"] if "completion" in case else fenced(case["lang"], case["source"])
    return Mapped(case, "code", program, completion, code_reference(case), options)


def map_judge(case):
    """The case id stands in prompt, completion and reference, so that the fake engine knows which reply is due."""
    name = case["id"]
    parse = {"kind": case["kind"], **case["params"]}
    return Mapped(case, "judge", judged, f"The candidate answer of {name} is forty-two.", f"forty-two ({name})",
                  {"parse": parse, "engine": "default"}, prompt=f"Question {name}: what is six times seven?")


def outcome(case, verdict):
    """`expected` is correct, incorrect, unscored or a score; `reason`, where it is given, the verdict's."""
    wanted = case["expected"]
    fine = close(verdict.get("score"), wanted) if is_number(wanted) else verdict.get("verdict") == wanted
    fine = fine and is_unscored(verdict) == (wanted == "unscored") and case.get("reason", verdict.get("reason")) == verdict.get("reason")
    return fine, f"{wanted} {case.get('reason', '')}".strip(), seen(verdict)


def map_own(name):
    """A file without a format of its own is named after its verifier."""
    def map_case(case):
        missing = [key for key in ("id", "completion", "expected") if key not in case]
        if missing:
            refuse(f"{name}.jsonl: case {case.get('id', 'without an id')} has no {' and no '.join(missing)}")
        fields = {key: case[key] for key in ("prompt", "completion_tokens") if key in case}
        return Mapped(case, name, outcome, case["completion"], case.get("reference"), case.get("options"), case.get("beside", ()), **fields)
    return map_case


MAPPERS = {"math": map_math, "choice": map_choice, "format": map_format, "ifeval": map_ifeval,
           "countdown": map_countdown, "code": map_code, "judge": map_judge}


def read_cases(folder, name):
    with open(os.path.join(folder, name + ".jsonl"), encoding="utf-8") as file:
        return [case_of(f"{name}.jsonl, line {number}", line) for number, line in enumerate(file, 1) if line.strip()]


def case_of(where, line):
    try:
        return json.loads(line)
    except ValueError as problem:
        refuse(f"{where}: {problem}")


def refuse(sentence):
    """2: nothing was judged; 1 is a case that fails."""
    print(sentence, file=sys.stderr)
    sys.exit(2)


# -- running --------------------------------------------------------------------------------------

def post_items(service, items, timeout):
    """id -> (item of the reply or None, what went wrong). A refused batch is sent again item by item."""
    service.revive()
    reply = service.post("/v1/verify", {"items": items}, timeout=timeout)
    found = index_items(reply)
    if found is not None:
        return {item["id"]: (found.get(item["id"]), "item missing in the reply") for item in items}
    if len(items) == 1:
        return {items[0]["id"]: (None, reply.describe())}
    result = {}
    for item in items:
        result.update(post_items(service, [item], timeout))
    return result


def index_items(reply):
    items = reply.data.get("items") if reply.status == 200 and isinstance(reply.data, dict) else None
    if not isinstance(items, list):
        return None
    return {item["id"]: item for item in items if isinstance(item, dict) and isinstance(item.get("id"), str)}


def find_verdict(item, name):
    verdicts = item.get("verdicts")
    for verdict in verdicts if isinstance(verdicts, list) else []:
        if isinstance(verdict, dict) and verdict.get("id") == name:
            return verdict
    return None


def reward_problem(item, verdict):
    """With one verifier of weight 1 the reward is its score, and null without one."""
    if "reward" not in item:
        return "no reward field"
    reward, got = item["reward"], verdict.get("score")
    same = reward is None if got is None else is_number(got) and close(reward, got)
    return None if same else f"reward {reward} beside score {got}"


def decide(mapped, item, problem):
    """(fine, expected, got, verdict)"""
    if item is None:
        return False, mapped.case["expected"], problem, {}
    verdict = find_verdict(item, mapped.name)
    if verdict is None:
        return False, mapped.case["expected"], f"no verdict with id {mapped.name}", {}
    fine, expected, got = mapped.check(mapped.case, verdict)
    trouble = reward_problem(item, verdict)
    if fine and trouble:
        return False, expected, trouble, verdict
    return fine, expected, got, verdict


GRADED = {"math", "choice", "countdown", "code"}


def should_pay(name, case):
    return case["expected"] == ("pass" if name == "code" and "lang" in case else "correct")


def may_pay(name, case):
    return should_pay(name, case) or "pass" in case.get("also_ok", []) or is_number(case["expected"])


def is_paid(verdict):
    return is_number(verdict.get("score")) and verdict["score"] > 0


def grade(suite, mapped, fine, verdict):
    if "scores" in mapped.case:
        return
    paid = is_paid(verdict)
    if should_pay(suite.name, mapped.case):
        suite.grade(True, paid or fine)
    elif not may_pay(suite.name, mapped.case):
        suite.grade(False, paid)


def run_mapped(service, suite, mapped_cases):
    size, timeout = BATCH.get(suite.name, 64), TIMEOUT.get(suite.name, 120)
    for start in range(0, len(mapped_cases), size):
        part = mapped_cases[start:start + size]
        answers = post_items(service, [mapped.item for mapped in part], timeout)
        for mapped in part:
            fine, expected, got, verdict = decide(mapped, *answers[mapped.id])
            suite.passed(mapped.id) if fine else suite.failed(mapped.id, expected, got)
            if suite.name in GRADED:
                grade(suite, mapped, fine, verdict)


def run(service, name, folder):
    suite = Suite(name)
    map_case = MAPPERS.get(name) or map_own(name)
    run_mapped(service, suite, [map_case(case) for case in read_cases(folder, name)])
    return suite


def run_code(service, folder, contained):
    """`contained` says whether hostile programs may run: (True, "") or (False, why)."""
    suite = Suite("code")
    mapped = [map_code(case) for case in read_cases(folder, "code")]
    allowed = [entry for entry in mapped if contained[0] or not entry.case.get("malicious")]
    run_mapped(service, suite, allowed)
    for entry in mapped:
        if entry not in allowed:
            suite.failed(entry.id, " | ".join(accepted_reasons(entry.case)), f"not run: {contained[1]}")
    return suite


# -- judge: an engine that answers each case's reply ---------------------------------------------

def chat_reply(text):
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1786900000, "model": "judge",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16}}


def completion_reply(text):
    return {"id": "cmpl-1", "object": "text_completion", "created": 1786900000, "model": "judge",
            "choices": [{"index": 0, "text": text, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16}}


def judge_engine(cases):
    by_id = {case["id"]: case for case in cases}

    def respond(method, path, raw):
        if method == "GET":
            return judge_probe(path)
        found = [by_id[name] for name in re.findall(r"judge-\d+", raw.decode("utf-8", "replace")) if name in by_id]
        if not found:
            return fake.reply_json({"error": {"message": "the request names no case", "code": 400}}, 400)
        case = found[0]
        if case["kind"] == "reward_model":
            return 200, fake.JSON, case["reply"].encode()
        make = chat_reply if path.endswith("/chat/completions") else completion_reply
        return fake.reply_json(make(case["reply"]))
    return respond


def judge_probe(path):
    if path == "/health":
        return 200, {}, b""
    if path == "/v1/models":
        return fake.reply_json({"object": "list", "data": [{"id": "judge", "object": "model"}]})
    return fake.not_found()


def run_judge(binary, folder):
    cases = read_cases(folder, "judge")
    suite = Suite("judge")
    if not binary:
        for case in cases:
            suite.skip(case["id"], "needs --binary: the runner must be the judge's engine")
        return suite
    with fake.FakeServer(judge_engine(cases)) as engine:
        try:
            with Service(binary, engines=[f"{engine.url}#kind={JUDGE_KIND}&model=judge"], restarts=RESTARTS) as service:
                run_mapped(service, suite, [map_judge(case) for case in cases])
        except StartError as problem:
            for case in cases:
                suite.failed(case["id"], case["expected"], str(problem))
    return suite
