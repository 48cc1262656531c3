"""judge_injection: a scripted judge records what it is asked and answers by case. Its protocol: docs/verifiers/judge.md."""
import json
import os
import re
import threading
import time

from . import fake
from .report import Suite
from .service import RESTARTS, Service, StartError
from .verify import close, find_verdict, is_number, read_cases, reward_problem, seen

CASE_ID = re.compile(r"jw-\d+|st-\d+|jo-\d+")
PLACEHOLDER = re.compile(r"\{(prompt|completion|reference|step)\}")
CHAT, MODEL = "/v1/chat/completions", "judge"
SLOW = 2.5
TIMEOUT = 60


def expand(value):
    """A text, or {"prefix", "unit", "times", "suffix"}: long texts stay short in the case files."""
    if isinstance(value, dict) and "unit" in value:
        return value.get("prefix", "") + value["unit"] * value["times"] + value.get("suffix", "")
    return value


# -- what was sent ---------------------------------------------------------------------------------

class NotSent(Exception):
    pass


def need(fine, problem):
    if not fine:
        raise NotSent(problem)


def literal(text, start):
    """A JSON value that begins exactly at `start`."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        raise NotSent(f"no JSON value where a placeholder stood: {text[start:start + 60]!r}") from None


def walk(template, content):
    """The template's own text must stand there byte for byte, one JSON value in the place of each placeholder."""
    values, position, spot = {}, 0, 0
    for mark in PLACEHOLDER.finditer(template):
        piece = template[spot:mark.start()]
        need(content.startswith(piece, position), f"the template's text {piece[-40:]!r} is missing after {content[:position][-40:]!r}")
        value, position = literal(content, position + len(piece))
        need(values.setdefault(mark[1], value) == value, f"two values for {{{mark[1]}}}")
        spot = mark.end()
    need(content[position:] == template[spot:], f"after the last placeholder: {content[position:][:60]!r}")
    return values


def parts_of(template):
    return [{"role": "user", "content": template}] if isinstance(template, str) else template


def decode_asked(template, body):
    """The values of the placeholders over all messages."""
    wanted, messages = parts_of(template), body.get("messages")
    need(isinstance(messages, list) and len(messages) == len(wanted), f"{len(wanted)} messages wanted")
    values = {}
    for part, message in zip(wanted, messages):
        need(message.get("role") == part["role"], f"role {message.get('role')!r} in place of {part['role']!r}")
        need(isinstance(message.get("content"), str), "a message's content is no text")
        values.update(walk(part["content"], message["content"]))
    return values


def fill_raw(template, values):
    return PLACEHOLDER.sub(lambda mark: values[mark[1]], template)


def all_text(body):
    return "\n".join(f"{message.get('role')}: {message.get('content')}" for message in body.get("messages") or [])


def frame_of(body, values):
    """The built-in template: its text with each value's JSON literal taken out."""
    text, result, position, seen_values = all_text(body), [], 0, []
    while position < len(text):
        if text[position] == '"':
            try:
                value, end = json.JSONDecoder().raw_decode(text, position)
            except ValueError:
                value, end = None, None
            name = next((name for name in values if end and values[name] == value), None)
            if name:
                seen_values.append(name)
                result.append("{" + name + "}")
                position = end
                continue
        result.append(text[position])
        position += 1
    return "".join(result), seen_values


def pointer(value, path):
    for key in path.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return value


def check_chat(case, values, asked, frames):
    body = asked["body"]
    need(asked["path"] == CHAT, f"asked at {asked['path']}")
    need(body.get("model") == MODEL, f"model {body.get('model')!r}")
    need(body.get("temperature") == case["options"].get("temperature", 0), f"temperature {body.get('temperature')!r}")
    need(isinstance(body.get("seed"), int), "no seed")
    need(body.get("n", 1) == 1 and not body.get("stream"), "n or stream")
    text = all_text(body)
    for token in case.get("absent", []):
        need(token not in text, f"{token!r} reaches the judge as it is")
    template = case["options"].get("template")
    if template is None:
        frame, found = frame_of(body, values)
        need(sorted(found) == sorted(values), f"values found as JSON texts: {found}")
        usual = frames.setdefault(json.dumps(case["options"], sort_keys=True), frame)
        need(frame == usual, "the text around the values depends on the values")
    elif case["options"].get("values") == "raw":
        for part, message in zip(parts_of(template), body["messages"]):
            need(message["content"] == fill_raw(part["content"], values), "not the template filled in one pass")
    else:
        check_values(case, values, decode_asked(template, body))


def check_values(case, values, got):
    if case["options"].get("swap") and got.get("completion") == values["reference"] != values["completion"]:
        got = {**got, "completion": got.get("reference"), "reference": got["completion"]}
    for name, value in got.items():
        need(name == "step" or value == values.get(name), f"{{{name}}} holds {str(value)[:80]!r}")


def check_reward(case, asked):
    need(asked["path"] == case["asked_at"], f"asked at {asked['path']}")
    for path, value in case["sent"].items():
        got = pointer(asked["body"], path)
        need(got == expand(value), f"{path} is {str(got)[:80]!r}")


def check_asked(case, values, asked, frames):
    low, high = case["calls"] if isinstance(case["calls"], list) else [case["calls"]] * 2
    need(low <= len(asked) <= high, f"{len(asked)} calls in place of {case['calls']}")
    for one in asked:
        if "asked_at" in case:
            check_reward(case, one)
        else:
            check_chat(case, values, one, frames)
    if case["options"].get("votes", 1) > 1:
        seeds = [one["body"].get("seed") for one in asked]
        need(len(set(seeds)) >= min(case["options"]["votes"], len(seeds)), f"votes share seeds: {seeds}")


# -- the scripted judge ----------------------------------------------------------------------------

def chat_body(reply):
    message = {"role": "assistant", "content": reply.get("text")}
    for name in ("reasoning_content", "refusal"):
        if name in reply:
            message[name] = reply[name]
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1786900000, "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": reply.get("finish_reason", "stop")}],
            "usage": {"prompt_tokens": 8, "completion_tokens": 8, "total_tokens": 16}}


def as_answer(reply):
    """A text, or an object that says what goes wrong."""
    reply = {"text": reply} if isinstance(reply, str) else reply
    if reply.get("close"):
        raise ConnectionError("the judge hangs up")
    if reply.get("slow"):
        time.sleep(SLOW)
    if "raw" in reply:
        return reply.get("status", 200), {**fake.JSON, **reply.get("headers", {})}, reply["raw"].encode()
    return fake.reply_json(chat_body({**reply, "text": expand(reply.get("text"))}), reply.get("status", 200))


class Judge:
    def __init__(self, cases):
        self.cases = {case["id"]: case for case in cases}
        self.log, self.lock = {}, threading.Lock()

    def asked(self, name):
        with self.lock:
            return list(self.log.get(name, []))

    def forget(self, name):
        with self.lock:
            self.log.pop(name, None)

    def __call__(self, method, path, raw):
        if method == "GET":
            return self.probe(path)
        found = [name for name in CASE_ID.findall(raw.decode("utf-8", "replace")) if name in self.cases]
        if not found:
            return fake.reply_json({"error": {"message": "the request names no case", "code": 400}}, 400)
        case, body = self.cases[found[0]], fake.parse(raw)
        with self.lock:
            log = self.log.setdefault(case["id"], [])
            log.append({"path": path, "body": body})
            number = len(log) - 1
        return as_answer(self.choose(case, body, number))

    @staticmethod
    def choose(case, body, number):
        replies = case["replies"]
        if isinstance(replies, list):
            return replies[min(number, len(replies) - 1)]
        try:
            values = decode_asked(case["options"]["template"], body)
        except NotSent:
            return {"status": 400, "raw": '{"error":{"message":"not the form of the template","code":400}}'}
        if "straight" in replies:
            swapped = values.get("completion") == case["reference"] != expand(case["completion"])
            return replies["swapped" if swapped else "straight"]
        return replies.get(values.get("step"), {"status": 400, "raw": '{"error":{"message":"no such step","code":400}}'})

    @staticmethod
    def probe(path):
        if path == "/health":
            return 200, {}, b""
        if path == "/v1/models":
            return fake.reply_json({"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        return fake.not_found()


CONFIG = """engine:
  probe_samples: false
  attempts: 3
  backoff_min: 20ms
  backoff_max: 100ms
  down_timeout: 2s
engines:
"""


class Pools(Service):
    """A service with a settings file: pool name -> URL."""

    def __init__(self, binary, pools):
        super().__init__(binary, restarts=RESTARTS)
        self.pools = pools

    def command(self, ready):
        path = os.path.join(self.folder, "config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG)
            for name, url in self.pools.items():
                file.write(f"  - url: {url}\n    name: {name}\n    pool: {name}\n    kind: openai_compat\n    model: {MODEL}\n")
        return [*super().command(ready), "--config", path]


class Bench:
    """One judge for most cases, one of its own for each case that would open the breaker, and the policy's pool."""

    def __init__(self, binary, cases):
        self.cases = cases
        self.judges = {"judge": Judge(cases)}
        for case in cases:
            if case.get("own_engine"):
                self.judges[self.pool(case)] = Judge([case])
        self.judges["policy"] = Judge([])
        self.servers = {name: fake.FakeServer(judge) for name, judge in self.judges.items()}
        self.service = Pools(binary, {name: server.url for name, server in self.servers.items()})

    @staticmethod
    def pool(case):
        return f"own-{case['id']}" if case.get("own_engine") else "judge"

    def judge(self, case):
        return self.judges[self.pool(case)]

    def __enter__(self):
        for server in self.servers.values():
            server.__enter__()
        try:
            self.service.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        self.service.stop()
        for server in self.servers.values():
            server.close()

    def __exit__(self, *_):
        self.close()


# -- verdicts --------------------------------------------------------------------------------------

REFUSED = {"verifier_options", "missing_field", "invalid_field", "unknown_field"}


def known_verifiers(service):
    reply = service.get("/v1/verifiers")
    data = reply.data if isinstance(reply.data, dict) else {}
    rows = data.get("verifiers") or data.get("items") or []
    return {row.get("name") for row in rows if isinstance(row, dict)}


def absent_verifier(known, names):
    missing = [name for name in names if name not in known]
    return f"the service has no verifier called {', '.join(missing)}" if missing else None


def refusal(reply, item, verdict, codes=REFUSED):
    """(fine, got): the request, the item or the verdict says that an option cannot be meant."""
    if reply.status in (400, 422):
        return reply.code in codes, f"HTTP {reply.status} {reply.code}"
    failure = (verdict or {}).get("failure") or (item or {}).get("failure") or {}
    return failure.get("code") in codes, seen(verdict or {}) if verdict else f"failure {failure.get('code')}"


def compare(case, verdict):
    """(fine, got) for a number, "unscored" or "no_answer"."""
    wanted, got = case["expected"], seen(verdict)
    if wanted == "unscored":
        code = (verdict.get("failure") or {}).get("code")
        bare = verdict.get("verdict") == "unscored" and verdict.get("score") is None
        return bare and bool(code) and code in case.get("failure", [code]), got
    if wanted == "no_answer":
        return close(verdict.get("score"), 0.0) and verdict.get("reason") == "no_answer", got
    return verdict.get("verdict") != "unscored" and close(verdict.get("score"), wanted), got


def verifier_of(case, pool):
    options = {**case["options"]}
    if not case.get("no_engine"):
        options.setdefault("engine", pool)
    return {"name": "judge", "options": options}


def run_one(bench, case, frames):
    """None, or what is wrong."""
    values = {"prompt": case["prompt"], "completion": expand(case["completion"]), "reference": case.get("reference")}
    if values["reference"] is None:
        del values["reference"]
    item = {"id": case["id"], "prompt": values["prompt"], "completion": values["completion"],
            "verifiers": [verifier_of(case, bench.pool(case))]}
    if "reference" in values:
        item["reference"] = values["reference"]
    bench.service.revive()
    bench.judge(case).forget(case["id"])
    reply = bench.service.post("/v1/verify", {"items": [item]}, timeout=TIMEOUT)
    found = reply.data["items"][0] if reply.status == 200 and isinstance(reply.data, dict) and reply.data.get("items") else {}
    verdict = find_verdict(found, "judge")
    if case["expected"] == "refused":
        fine, got = refusal(reply, found, verdict)
        asked = bench.judge(case).asked(case["id"])
        return None if fine and not asked else got + (f", {len(asked)} calls" if asked else "")
    if verdict is None:
        return reply.describe() if reply.status != 200 else "no verdict with id judge"
    fine, got = compare(case, verdict)
    if not fine:
        return got
    trouble = reward_problem(found, verdict)
    if trouble:
        return trouble
    try:
        check_asked(case, values, bench.judge(case).asked(case["id"]), frames)
    except NotSent as problem:
        return f"{got}; sent: {problem}"
    if "asks" in case and len((verdict.get("detail") or {}).get("asks") or []) != case["asks"]:
        return f"{got}; detail.asks has not {case['asks']} entries"
    return None


def own_pool(bench, case):
    """A batch whose judge would be the policy."""
    verifier = {"name": "judge", "options": {**case["options"], "engine": "policy"}}
    body = {"run": "own-pool", "engine": "policy", "sampling": {"n": 1, "max_tokens": 4}, "deadline": "5s",
            "verifiers": [verifier], "groups": [{"task": case["id"], "prompt": case["prompt"], "reference": case.get("reference", "1")}]}
    reply = bench.service.post("/v1/batches", body, timeout=TIMEOUT)
    return None if reply.status == 422 else f"HTTP {reply.status} {reply.code}"


def run(binary, folder):
    cases = read_cases(folder, "judge_injection")
    suite = Suite("judge_injection")
    if not binary:
        for case in cases:
            suite.skip(case["id"], "needs --binary: the runner must be the judge's engine")
        return suite
    frames = {}
    try:
        with Bench(binary, cases) as bench:
            lacking = absent_verifier(known_verifiers(bench.service), ["judge"])
            for case in cases:
                problem = lacking or (own_pool(bench, case) if case["category"] == "own_pool" else run_one(bench, case, frames))
                suite.failed(case["id"], case["expected"], problem) if problem else suite.passed(case["id"])
    except (StartError, OSError) as problem:
        for case in cases[suite.total:]:
            suite.failed(case["id"], case["expected"], str(problem))
    return suite


__all__ = ["Bench", "absent_verifier", "expand", "is_number", "known_verifiers", "refusal", "run"]
