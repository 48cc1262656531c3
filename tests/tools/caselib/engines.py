"""Replies of real engines: a fake engine gives the fixture's bytes, one batch is posted, the rollouts are compared."""
import concurrent.futures
import glob
import json
import os
import threading
import time

from . import fake
from .report import Suite
from .service import Service, StartError

PROMPT_IDS = [1, 411, 907, 23]
DEADLINE, PATIENCE = "10s", 40
PARALLEL = 4
MODEL = "demo-1b"
LOGPROB_TOLERANCE = 1e-6

# (engine of the fixture, path) -> kind of the adapter
KINDS = {("vllm", "/v1/completions"): "vllm", ("vllm", "/v1/chat/completions"): "vllm",
         ("vllm", "/inference/v1/generate"): "vllm_generate", ("proxy", "/v1/completions"): "vllm",
         ("sglang", "/generate"): "sglang", ("sglang", "/v1/completions"): "openai_compat",
         ("llamacpp", "/completion"): "llamacpp", ("llamacpp", "/health"): "llamacpp",
         ("llamacpp", "/v1/completions"): "openai_compat", ("llamacpppy", "/v1/completions"): "openai_compat",
         ("openai", "/v1/chat/completions"): "openai_compat", ("tgi", "/generate"): "tgi",
         ("tgi", "/generate_stream"): "tgi"}
OPTIONAL_KINDS = {"tgi"}

# error_class of the fixture -> accepted failure codes
FAILURE_CODES = {"too_long": {"context_overflow"}, "bad_request": {"engine_error"}, "auth": {"engine_error"},
                 "not_found": {"engine_error"}, "quota": {"engine_error"}, "capability_missing": {"engine_error"},
                 "overloaded": {"engine_overloaded"}, "not_ready": {"engine_overloaded", "engine_unreachable"},
                 "engine_fault": {"engine_error"}, "truncated_stream": {"invalid_reply"}}
LATE = {"deadline", "engine_timeout"}

# defect of an unusable sample -> accepted failure codes
DEFECT_CODES = {"ids_logprobs_length": {"invalid_reply"}, "logprobs_all_zero": {"invalid_reply"},
                "tokens_lost": {"invalid_reply"}, "no_token_ids": {"invalid_reply"}, "no_logprobs": {"invalid_reply"},
                "eos_missing": {"invalid_reply"}, "seed_unknown": {"invalid_reply"},
                "finish_inferred": {"invalid_reply"}, "logprob_null": {"non_finite_logprob"},
                "logprob_floor": {"non_finite_logprob"}, "nan_replaced": {"non_finite_logprob", "invalid_reply"},
                "aborted": {"engine_error", "engine_overloaded", "invalid_reply"} | LATE}
TEXT_ONLY = {"no_token_ids", "no_logprobs", "eos_missing", "seed_unknown"}


class Wrong(Exception):
    def __init__(self, expected, got):
        super().__init__(expected)
        self.expected, self.got = expected, got


class Undriven(Exception):
    pass


# -- what can be driven -----------------------------------------------------------------------------

def undriven_reason(fixture):
    if fixture["expect"]["outcome"] == "info":
        return "a probe's reply: nothing on the wire shows it"
    if (fixture["engine"], fixture["path"]) not in KINDS:
        return f"no adapter kind for {fixture['engine']} {fixture['path']}"
    if "best_of" in json.dumps(fixture.get("body")):
        return "best_of is never asked for"
    return None


# -- the fake engine ---------------------------------------------------------------------------------

def props(model):
    return {"default_generation_settings": {"n_ctx": 4096, "params": {}}, "total_slots": 4, "model_alias": model,
            "model_path": f"/models/{model}", "chat_template": "", "bos_token": "<s>", "eos_token": "</s>",
            "build_info": "b9999-abcdef123", "is_sleeping": False}


def models(model):
    return {"object": "list", "data": [{"id": model, "object": "model", "created": 1786900000, "owned_by": "x",
                                        "root": model, "parent": None, "max_model_len": 4096}]}


def model_info(model):
    return {"model_path": model, "tokenizer_path": model, "is_generation": True, "weight_version": "step-000042"}


def info(model):
    return {"model_id": model, "max_input_tokens": 4095, "max_total_tokens": 4096, "max_concurrent_requests": 128,
            "version": "3.3.6"}


EMPTY = (200, {}, b"")
PROBES = {
    "vllm": {"/health": lambda m: EMPTY, "/version": lambda m: fake.reply_json({"version": "0.30.1"}),
             "/v1/models": lambda m: fake.reply_json(models(m))},
    "sglang": {"/health": lambda m: EMPTY, "/health_generate": lambda m: EMPTY,
               "/model_info": lambda m: fake.reply_json(model_info(m)),
               "/get_model_info": lambda m: fake.reply_json(model_info(m)),
               "/v1/models": lambda m: fake.reply_json(models(m))},
    "llamacpp": {"/health": lambda m: fake.reply_json({"status": "ok"}), "/props": lambda m: fake.reply_json(props(m)),
                 "/v1/models": lambda m: fake.reply_json(models(m))},
    "tgi": {"/health": lambda m: EMPTY, "/info": lambda m: fake.reply_json(info(m))},
    "openai_compat": {"/health": lambda m: EMPTY, "/v1/models": lambda m: fake.reply_json(models(m))}}
PROBES["vllm_generate"] = PROBES["vllm"]

TOKEN_ROUTES = {"/v1/completions", "/inference/v1/generate"}
TEXT_ROUTES = {"/tokenize": {"count": 4, "max_model_len": 4096, "tokens": PROMPT_IDS},
                "/detokenize": {"prompt": "2+2=", "content": "2+2="}, "/apply-template": {"prompt": "2+2="}}


class FixtureEngine:
    def __init__(self, fixture):
        self.fixture, self.kind = fixture, KINDS[(fixture["engine"], fixture["path"])]
        self.model = model_of(fixture)
        self.samples = fixture["expect"].get("samples", [])
        self.turns, self.lock = {}, threading.Lock()
        self.unmet, self.served, self.asked = None, False, set()

    def respond(self, method, path, raw):
        fixture = self.fixture
        if fixture["method"] == "GET":
            return self.raw_reply()
        if method == "POST":
            self.asked.add(path)
        if method == "POST" and path == fixture["path"]:
            return self.generate(fake.parse(raw))
        if method == "POST" and path in TEXT_ROUTES:
            return fake.reply_json(TEXT_ROUTES[path])
        probe = PROBES[self.kind].get(path)
        return probe(self.model) if method == "GET" and probe else fake.not_found()

    def generate(self, asked):
        missing = self.missing_option(asked)
        if missing:
            self.unmet = missing
            return fake.reply_json({"error": {"message": missing, "code": 501}}, 501)
        self.served = True
        if "body" not in self.fixture or len(self.samples) < 2:
            return self.raw_reply()
        return self.fixture["status"], self.fixture["headers"], json.dumps(self.part(asked)).encode()

    def missing_option(self, asked):
        streams = self.fixture["headers"].get("content-type", "").startswith("text/event-stream")
        if streams and self.fixture["path"] != "/generate_stream" and not asked.get("stream"):
            return "the service does not ask for a stream"
        if "post_sampling_probs" in (self.fixture["request"] or {}) and not asked.get("post_sampling_probs"):
            return "the service does not ask for post_sampling_probs"
        return None

    def undriven(self):
        """A service may render chats to tokens itself; then it never asks the chat route."""
        other = self.asked & TOKEN_ROUTES
        if not self.unmet and "chat" in self.fixture["path"] and other:
            return f"the service asks {sorted(other)[0]} instead"
        return self.unmet

    def raw_reply(self):
        fixture = self.fixture
        text = fixture["body_text"] if "body_text" in fixture else json.dumps(fixture["body"])
        return fixture["status"], fixture["headers"], text.encode()

    def part(self, asked):
        """The samples of the prompt that was asked for, as many as asked for."""
        prompt = self.prompt_index(asked)
        places = [place for place, sample in enumerate(self.samples) if sample["prompt"] == prompt]
        count = asked_samples(asked)
        if count == 1 and len(places) > 1:
            with self.lock:
                turn = self.turns.get(prompt, 0)
                self.turns[prompt] = turn + 1
            return pick(self.fixture["body"], [places[turn % len(places)]], self.samples, single=True)
        if len(places) == len(self.samples):
            return self.fixture["body"]
        return pick(self.fixture["body"], places, self.samples, single=False)

    def prompt_index(self, asked):
        lists = prompt_lists(self.fixture)
        return lists.index(asked["prompt"]) if asked.get("prompt") in lists else 0


def asked_samples(asked):
    nested = asked.get("sampling_params")
    for place in (asked, nested if isinstance(nested, dict) else {}):
        for name in ("n", "n_cmpl"):
            if isinstance(place.get(name), int):
                return place[name]
    return 1


def pick(body, places, samples, single):
    if isinstance(body, list):
        chosen = [{**body[place], "index": index} if "index" in body[place] else body[place]
                  for index, place in enumerate(places)]
        return chosen[0] if single else chosen
    if "completion_ids" in body:
        sliced = {name: [body[name][place] for place in places]
                  for name in ("completion_ids", "logprobs", "logprob_token_ids")}
        return {**body, **sliced}
    choices = [{**body["choices"][place], "index": index} for index, place in enumerate(places)]
    return {**body, "choices": choices, "usage": usage(body, places, samples)}


def usage(body, places, samples):
    completion = sum(len(samples[place]["token_ids"]) for place in places)
    prompt = body["usage"]["prompt_tokens"]
    return {**body["usage"], "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt + completion}


# -- the batch that fits a fixture ---------------------------------------------------------------------

def model_of(fixture):
    request = fixture["request"]
    return request.get("model", MODEL) if isinstance(request, dict) else MODEL


def prompt_lists(fixture):
    """Several id prompts in one request become several groups."""
    prompt = (fixture["request"] or {}).get("prompt")
    several = isinstance(prompt, list) and prompt and isinstance(prompt[0], list)
    return prompt if several else []


def prompt_fields(fixture):
    """One dict per group."""
    request = fixture["request"] or {}
    if prompt_lists(fixture):
        return [{"prompt_ids": ids} for ids in prompt_lists(fixture)]
    if "chat" in fixture["path"]:
        return [{"messages": request.get("messages", [{"role": "user", "content": "2+2?"}])}]
    text = request.get("inputs", request.get("prompt"))
    if isinstance(text, str) or fixture["engine"] in ("tgi", "llamacpppy"):
        return [{"prompt": text or "2+2="}]
    ids = request.get("input_ids") or request.get("token_ids") or (request.get("prompts") or [None])[0] or text
    return [{"prompt_ids": ids or PROMPT_IDS}]


LIMIT_NAMES = ("max_tokens", "max_completion_tokens", "max_new_tokens", "n_predict")


def request_places(fixture):
    request = fixture["request"] or {}
    return [request, request.get("sampling_params") or {}, request.get("parameters") or {}]


def max_tokens(fixture):
    found = [place[name] for place in request_places(fixture) for name in LIMIT_NAMES if name in place]
    return found[0] if found and found[0] > 0 else 16


def sampling(fixture):
    samples = fixture["expect"].get("samples", [])
    groups = len(prompt_fields(fixture))
    made = {"n": max(1, len(samples) // groups), "max_tokens": max_tokens(fixture), "temperature": 1.0, "top_p": 1.0}
    for place in request_places(fixture):
        for name in ("stop", "stop_token_ids"):
            if name in place:
                made[name] = place[name]
    return made


def batch(fixture):
    groups = [{"task": f"{fixture['name']}-{index}", **fields} for index, fields in enumerate(prompt_fields(fixture))]
    return {"run": "engine-cases", "policy_revision": 1, "seed": 7, "sampling": sampling(fixture),
            "verifiers": [{"name": "regex", "options": {"pattern": "^", "mode": "search"}}],
            "deadline": DEADLINE, "groups": groups}


# -- comparing ---------------------------------------------------------------------------------------------

def expected_text(sample):
    return bytes.fromhex(sample["text_hex"]).decode() if "text_hex" in sample else sample["text"]


def describe(rollout):
    failure = rollout.get("failure")
    code = failure.get("code") if isinstance(failure, dict) else None
    return f"state {rollout.get('state')}, ids {rollout.get('completion_ids')}, reward {rollout.get('reward')}, failure {code}"


def same_logprobs(got, want):
    return isinstance(got, list) and len(got) == len(want) and all(
        isinstance(left, (int, float)) and abs(left - right) <= LOGPROB_TOLERANCE * max(1, abs(right))
        for left, right in zip(got, want))


def check_usable(sample, rollout):
    if rollout.get("state") != "scored" or rollout.get("failure") is not None:
        raise Wrong("a scored rollout", describe(rollout))
    if rollout.get("completion_ids") != sample["token_ids"]:
        raise Wrong(f"completion_ids {sample['token_ids']}", rollout.get("completion_ids"))
    if not same_logprobs(rollout.get("logprobs"), sample["logprobs"]):
        raise Wrong(f"logprobs {sample['logprobs']}", rollout.get("logprobs"))
    pairs = [("finish_reason", sample["finish"]), ("text", expected_text(sample)),
             ("engine_revision", sample["weight_version"])]
    for name, want in pairs:
        if want is not None and rollout.get(name) != want:
            raise Wrong(f"{name} {want!r}", rollout.get(name))


def failure_of(rollout):
    failure = rollout.get("failure")
    if rollout.get("state") != "failed" or rollout.get("reward", 0) is not None or not isinstance(failure, dict):
        raise Wrong("a failed rollout with reward null and a failure", describe(rollout))
    for name in ("advantage", "surrogates", "contributions"):
        if rollout.get(name) is not None:
            raise Wrong(f"{name} null on a failed rollout", rollout.get(name))
    return failure


def is_text_only(sample, rollout):
    nothing = rollout.get("completion_ids") in (None, []) and rollout.get("contributions") in (None, [])
    nothing = nothing and rollout.get("trainable") in (None, False)
    return set(sample["defects"]) <= TEXT_ONLY and rollout.get("state") == "scored" and nothing


def check_unusable(sample, rollout):
    if is_text_only(sample, rollout):
        return
    codes = set().union(*(DEFECT_CODES[defect] for defect in sample["defects"]))
    failure = failure_of(rollout)
    if failure.get("code") not in codes:
        raise Wrong(f"failure {' | '.join(sorted(codes))}", failure.get("code"))


def check_error(expect, rollout):
    failure = failure_of(rollout)
    codes = FAILURE_CODES[expect["error_class"]]
    if expect["retryable"] and failure.get("code") in LATE:
        return
    if failure.get("code") not in codes:
        raise Wrong(f"failure {' | '.join(sorted(codes))}", failure.get("code"))
    if "note" not in expect and failure.get("retryable") is not expect["retryable"]:
        raise Wrong(f"retryable {expect['retryable']}", failure.get("retryable"))


def body_ids(fixture):
    body = json.loads(fixture["body_text"])
    if "choices" in body:
        return body["choices"][0]["token_ids"]
    return [token["id"] for token in body["details"]["tokens"]]


def check_unreadable(fixture, rollout):
    """A reply that jansson refuses: a typed failure, or the right ids."""
    if rollout.get("state") == "scored" and rollout.get("completion_ids") == body_ids(fixture):
        return
    code = failure_of(rollout).get("code")
    if code != "invalid_reply":
        raise Wrong("failure invalid_reply, or the ids of the body", code)


def by_ids(entry):
    return entry.get("completion_ids") or entry.get("token_ids") or []


def check_samples(samples, rollouts):
    if len(rollouts) != len(samples):
        raise Wrong(f"{len(samples)} rollouts", len(rollouts))
    for sample, rollout in zip(sorted(samples, key=by_ids), sorted(rollouts, key=by_ids)):
        (check_usable if sample["usable"] else check_unusable)(sample, rollout)


def group_rollouts(reply, count):
    if reply.status != 200 or not isinstance(reply.data, dict):
        raise Wrong("HTTP 200 with a batch", reply.describe())
    groups = reply.data.get("groups")
    if not isinstance(groups, list) or len(groups) != count:
        raise Wrong(f"{count} groups", groups)
    return [group.get("rollouts") or [] for group in groups]


def check(fixture, reply):
    expect = fixture["expect"]
    groups = group_rollouts(reply, len(prompt_fields(fixture)))
    for index, rollouts in enumerate(groups):
        if expect["outcome"] == "samples":
            check_samples([sample for sample in expect["samples"] if sample["prompt"] == index], rollouts)
            continue
        if not rollouts:
            raise Wrong("a rollout", "none")
        for rollout in rollouts:
            check_unreadable(fixture, rollout) if expect["outcome"] == "parse_error" else check_error(expect, rollout)


# -- running --------------------------------------------------------------------------------------------------

def wait_until_ready(service, seconds=3):
    end = time.monotonic() + seconds
    while time.monotonic() < end and service.get("/readyz", timeout=2).status != 200:
        time.sleep(0.05)


def drive(binary, fixture):
    engine = FixtureEngine(fixture)
    with fake.FakeServer(engine.respond) as server:
        try:
            with Service(binary, engines=[f"{server.url}#kind={engine.kind}&model={engine.model}"]) as service:
                if fixture["method"] != "GET":
                    wait_until_ready(service)
                reply = service.post("/v1/batches", batch(fixture), timeout=PATIENCE)
        except StartError as problem:
            if engine.kind in OPTIONAL_KINDS:
                raise Undriven(f"the service does not take kind {engine.kind}") from None
            raise Wrong("a running service", str(problem)) from None
    if not engine.served and engine.undriven():
        raise Undriven(engine.undriven())
    check(fixture, reply)


def run_fixture(binary, fixture):
    reason = undriven_reason(fixture)
    if reason:
        return "skip", reason, None
    try:
        drive(binary, fixture)
    except Undriven as undriven:
        return "skip", str(undriven), None
    except Wrong as wrong:
        return "fail", wrong.expected, wrong.got
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as problem:
        return "fail", "a batch of the agreed shape", f"{type(problem).__name__}: {problem}"
    return "pass", None, None


def read_fixtures(folder):
    fixtures = []
    for path in sorted(glob.glob(os.path.join(folder, "engines", "*.json"))):
        with open(path, encoding="utf-8") as file:
            fixtures.append(json.load(file))
    return fixtures


def run(binary, folder):
    suite, fixtures = Suite("engines"), read_fixtures(folder)
    if not binary:
        for fixture in fixtures:
            suite.skip(fixture["name"], "needs --binary: the runner must be the engine")
        return suite
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        results = list(pool.map(lambda fixture: run_fixture(binary, fixture), fixtures))
    for fixture, (outcome, first, second) in zip(fixtures, results):
        if outcome == "pass":
            suite.passed(fixture["name"])
        elif outcome == "skip":
            suite.skip(fixture["name"], first)
        else:
            suite.failed(fixture["name"], first, second)
    return suite
