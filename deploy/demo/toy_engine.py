#!/usr/bin/env python3
"""A toy inference engine: a softmax table policy behind the HTTP interface of vLLM. It is a fixture, not a language model.

    toy_engine.py [--port 0] [--ready-file F] [--context 4096] [--pace 0] [--seed N]

As vLLM:   GET /health /version /v1/models /weight_info, POST /tokenize /detokenize /v1/completions
Its own:   GET|POST /weights   the policy and its revision: {"revision":13,"table":{prompt: rows}} replaces the table,
                               "rows" replaces some prompts' rows, "deltas" adds to them; rows are 5 x 16 logits
           GET|POST|DELETE /misbehave   see toy_faults.py
           GET|DELETE /_log    counters, for tests; GET /_log/requests  the bodies of the last completion requests

Sampling is real, log-probabilities are those of the policy at temperature 1 (as vLLM's raw ones), and a seed gives the same
tokens whatever else runs; sample i of n uses seed + i. A request is sampled with the weights that are there when it arrives
(header X-Weight-Version); `--pace` seconds per token only hold its reply back. Standard library only.
"""
import argparse
import asyncio
import collections
import itertools
import json
import math
import os
import resource
import secrets
import signal
import sys
import time
from dataclasses import dataclass

import toy_faults
import toy_http
import toy_policy
from toy_http import Reply, json_reply
from toy_policy import EOS, FIRST_BYTE, POSITIONS, VOCABULARY_SIZE

MODEL = "toy-table"
VERSION = "0.32.0"  # of the interface that is imitated
MAX_N = 16384
MAX_LOGPROBS = 20
LOG_KEPT = 4096


class Refusal(Exception):
    """An error in vLLM's shape."""

    def __init__(self, message, param=None, status=400, kind="BadRequestError"):
        super().__init__(message)
        self.param, self.status, self.kind = param, status, kind

    def reply(self):
        return error_reply(self.status, str(self), self.kind, self.param)


def error_reply(status, message, kind="BadRequestError", param=None, **headers):
    return json_reply({"error": {"message": message, "type": kind, "param": param, "code": status}}, status, **headers)


def value_refusal(message, param, value):
    return Refusal(f"{message} (parameter={param}, value={value})", param)


# -- reading a request ------------------------------------------------------------------------------

@dataclass
class Sampling:
    n: int
    max_tokens: int
    min_tokens: int
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: int
    logprobs: int
    stop: list
    stop_token_ids: set
    allowed: set
    ignore_eos: bool
    include_stop: bool

    @property
    def is_plain(self):
        """Samples from the policy itself."""
        return (self.temperature == 1 and self.top_p == 1 and self.top_k == 0 and self.min_p == 0
                and self.allowed is None and self.min_tokens == 0)


def field(ask, name, kinds, default):
    value = ask.get(name)
    if value is None:
        return default
    if not isinstance(value, kinds) or isinstance(value, bool) and kinds is not bool:
        wanted = getattr(kinds, "__name__", "number")
        raise Refusal(f"1 validation error:\n  {{'loc': 'body.{name}', 'msg': 'Input should be a valid {wanted}'}}",
                      f"body.{name}", kind="Bad Request")
    return value


def number_field(ask, name, default, low, high, low_open=False):
    value = field(ask, name, (int, float), default)
    if not low <= value <= high or (low_open and value == low):
        raise value_refusal(f"{name} must be in {'(' if low_open else '['}{low}, {high}], got {float(value)}.", name, float(value))
    return value


def list_field(ask, name, kind):
    value = field(ask, name, list, None)
    if value is None:
        return None
    for item in value:
        if not isinstance(item, kind) or isinstance(item, bool):
            raise Refusal(f"1 validation error:\n  {{'loc': 'body.{name}', 'msg': 'Input should be a valid list'}}", f"body.{name}", kind="Bad Request")
    return value


def read_sampling(ask):
    n = field(ask, "n", int, 1)
    max_tokens = field(ask, "max_tokens", int, 16)
    temperature = number_field(ask, "temperature", 1.0, 0, 2)
    logprobs = field(ask, "logprobs", int, None)
    stop = ask.get("stop")
    allowed = list_field(ask, "allowed_token_ids", int)
    if n < 1:
        raise Refusal(f"n must be at least 1, got {n}.")
    if n > MAX_N:
        raise Refusal(f"n must be at most {MAX_N}, got {n}.")
    if temperature == 0 and n > 1:
        raise Refusal(f"n must be 1 when using greedy sampling, got {n}.")
    if max_tokens < 1:
        raise value_refusal(f"max_tokens must be at least 1, got {max_tokens}.", "max_tokens", max_tokens)
    if logprobs is not None and logprobs > MAX_LOGPROBS:
        raise value_refusal(f"Requested sample logprobs of {logprobs}, which is greater than max allowed: {MAX_LOGPROBS}", "logprobs", logprobs)
    if ask.get("stream"):
        raise Refusal("This engine does not stream.", "stream")
    if allowed is not None and not any(0 <= token < FIRST_BYTE for token in allowed):
        raise Refusal("allowed_token_ids contains no id that can be sampled", "allowed_token_ids")
    return Sampling(
        n=n, max_tokens=max_tokens, min_tokens=field(ask, "min_tokens", int, 0),
        temperature=temperature, top_p=number_field(ask, "top_p", 1.0, 0, 1, low_open=True),
        top_k=max(0, field(ask, "top_k", int, 0)), min_p=number_field(ask, "min_p", 0.0, 0, 1),
        seed=field(ask, "seed", int, None), logprobs=logprobs,
        stop=[stop] if isinstance(stop, str) else list_field(ask, "stop", str) or [],
        stop_token_ids=set(list_field(ask, "stop_token_ids", int) or []),
        allowed=None if allowed is None else set(allowed),
        ignore_eos=field(ask, "ignore_eos", bool, False), include_stop=field(ask, "include_stop_str_in_output", bool, False))


def read_prompts(ask):
    """Lists of ids: one for each prompt of the request."""
    prompt = ask.get("prompt")
    if isinstance(prompt, str):
        return [toy_policy.tokenize(prompt)]
    if isinstance(prompt, list) and prompt:
        if all(isinstance(item, str) for item in prompt):
            return [toy_policy.tokenize(item) for item in prompt]
        if all(isinstance(item, list) for item in prompt):
            return [check_ids(item) for item in prompt]
        return [check_ids(prompt)]
    raise Refusal("1 validation error:\n  {'loc': 'body.prompt', 'msg': 'Input should be a valid string or list'}", "body.prompt", kind="Bad Request")


def check_ids(ids, param=None):
    for token in ids:
        if not isinstance(token, int) or isinstance(token, bool) or token < 0:
            raise Refusal("1 validation error:\n  {'loc': 'body.prompt', 'msg': 'Input should be greater than or equal to 0'}", param, kind="Bad Request")
        if token >= VOCABULARY_SIZE:
            raise Refusal(f"Token id {token} is out of vocabulary", param)
    return ids


def chat_prompt(messages):
    """The chat template: one line a message, then the assistant's turn."""
    if not isinstance(messages, list) or not all(isinstance(m, dict) and isinstance(m.get("content"), str) for m in messages):
        raise Refusal("messages must be a list of {role, content}", "messages")
    return "".join(f"{m.get('role', 'user')}: {m['content']}\n" for m in messages) + "assistant: "


# -- sampling ---------------------------------------------------------------------------------------

def filtered_weights(log_row, sampling, position):
    """Weights of the words after temperature and filters, in the order of vLLM: allowed ids, temperature, top_k, top_p, min_p."""
    allowed = set(range(FIRST_BYTE)) if sampling.allowed is None else sampling.allowed
    if position < sampling.min_tokens:
        allowed = allowed - {EOS} - sampling.stop_token_ids or allowed
    if sampling.temperature == 0:
        best = max((token for token in range(FIRST_BYTE) if token in allowed), key=lambda token: log_row[token])
        return [float(token == best) for token in range(FIRST_BYTE)]
    scaled = [value / sampling.temperature if token in allowed else -math.inf for token, value in enumerate(log_row)]
    top = max(scaled)
    weights = [math.exp(value - top) for value in scaled]
    order = sorted(range(FIRST_BYTE), key=lambda token: -weights[token])
    if sampling.top_k:
        order = order[:sampling.top_k]
    mass, total, kept = 0.0, sum(weights[token] for token in order), set()
    for token in order:
        if mass < sampling.top_p * total and weights[token] >= sampling.min_p:
            kept.add(token)
        mass += weights[token]
    return [weight if token in kept else 0.0 for token, weight in enumerate(weights)]


def stop_hit(text, stops):
    """(start, stop string) of the earliest one in the text, or None."""
    found = [(text.find(stop), stop) for stop in stops if stop and stop in text]
    return min(found) if found else None


@dataclass
class Sample:
    ids: list
    text: str
    finish_reason: str
    stop_reason: object


def sample(policy, prompt, sampling, max_tokens, seed):
    """One completion. The only state is the generator, which the seed makes."""
    generator = toy_policy.generator_of(seed)
    ids = []
    while len(ids) < max_tokens:
        position = len(ids)
        if sampling.is_plain:
            cumulative = policy.cumulative(prompt, position)
        else:
            cumulative = list(itertools.accumulate(filtered_weights(policy.log_row(prompt, position), sampling, position)))
        token = toy_policy.draw(cumulative, generator)
        ids.append(token)
        if token == EOS and not sampling.ignore_eos:
            return Sample(ids, toy_policy.detokenize(ids), "stop", None)
        if len(ids) < sampling.min_tokens:
            continue
        if token in sampling.stop_token_ids:
            return Sample(ids, toy_policy.detokenize(ids if sampling.include_stop else ids[:-1]), "stop", token)
        if sampling.stop:
            text = toy_policy.detokenize(ids)
            hit = stop_hit(text, sampling.stop)
            if hit:
                return Sample(ids, text[:hit[0] + (len(hit[1]) if sampling.include_stop else 0)], "stop", hit[1])
    return Sample(ids, toy_policy.detokenize(ids), "length", None)


def recite(text, max_tokens):
    """The same completion whatever was asked."""
    ids = [*toy_policy.tokenize(text), EOS][:max_tokens]
    return Sample(ids, toy_policy.detokenize(ids), "stop" if ids[-1] == EOS else "length", None)


def logprobs_object(policy, prompt, ids, count, name):
    log_rows = [policy.log_row(prompt, position) for position in range(len(ids))]
    values = [log_row[token] for log_row, token in zip(log_rows, ids)]
    tops = []
    for log_row, token, value in zip(log_rows, ids, values):
        top = {name(token): value}
        for other in sorted(range(FIRST_BYTE), key=lambda t: -log_row[t])[:count] if count else ():
            top[name(other)] = log_row[other]
        tops.append(top)
    names = [name(token) for token in ids]
    offsets = [0, *itertools.accumulate(map(len, names))][:len(names)]
    return {"text_offset": offsets, "token_logprobs": values, "tokens": names, "top_logprobs": tops}


# -- the engine -------------------------------------------------------------------------------------

class Engine:
    def __init__(self, context, pace, seed):
        self.context = context
        self.pace = pace
        self.policy = toy_policy.TablePolicy()
        self.revision = 0
        self.weight_version = "0"
        self.faults = toy_faults.Faults()
        self.counters = toy_http.Counters()
        self.seeds = None if seed is None else toy_policy.generator_of(seed)
        self.created = int(time.time())
        self.clear_log()
        self.routes = {
            ("GET", "/health"): lambda request: Reply(),
            ("GET", "/version"): lambda request: json_reply({"version": VERSION}),
            ("GET", "/v1/models"): self.get_models,
            ("GET", "/weight_info"): lambda request: json_reply({"weight_version": self.weight_version}),
            ("POST", "/tokenize"): self.post_tokenize,
            ("POST", "/detokenize"): self.post_detokenize,
            ("POST", "/v1/completions"): self.post_completions,
            ("GET", "/weights"): self.get_weights,
            ("POST", "/weights"): self.post_weights,
            ("GET", "/misbehave"): self.get_misbehave,
            ("POST", "/misbehave"): self.post_misbehave,
            ("DELETE", "/misbehave"): self.delete_misbehave,
            ("GET", "/_log"): self.get_log,
            ("DELETE", "/_log"): self.delete_log,
            ("GET", "/_log/requests"): lambda request: json_reply({"requests": list(self.requests)}),
        }
        self.paths = {path for _, path in self.routes}

    def handle(self, request):
        route = self.routes.get((request.method, request.path))
        if not route:
            if request.path in self.paths:
                return json_reply({"detail": "Method Not Allowed"}, 405)
            return json_reply({"detail": "Not Found"}, 404)
        try:
            return route(request)
        except Refusal as refusal:
            return refusal.reply()

    def body_of(self, request):
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal("1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed", kind="Bad Request")
        try:
            ask = json.loads(request.body)
        except (ValueError, RecursionError) as problem:
            raise Refusal(f"1 validation error:\n  {{'type': 'json_invalid', 'msg': '{problem}'}}", kind="Bad Request") from None
        if not isinstance(ask, dict):
            raise Refusal("1 validation error:\n  {'loc': 'body', 'msg': 'Input should be an object'}", kind="Bad Request")
        return ask

    # as vLLM

    def get_models(self, request):
        return json_reply({"object": "list", "data": [{"id": MODEL, "object": "model", "created": self.created, "owned_by": "toy",
                                                       "root": MODEL, "parent": None, "max_model_len": self.context}]})

    def check_model(self, ask):
        model = field(ask, "model", str, MODEL)
        if model != MODEL:
            raise Refusal(f"The model `{model}` does not exist. Valid aliases: {MODEL}.", "model", 404, "NotFoundError")

    def post_tokenize(self, request):
        ask = self.body_of(request)
        self.check_model(ask)
        text = chat_prompt(ask["messages"]) if "messages" in ask else field(ask, "prompt", str, None)
        if text is None:
            raise Refusal("prompt or messages is required", "prompt")
        tokens = toy_policy.tokenize(text)
        return json_reply({"count": len(tokens), "max_model_len": self.context, "tokens": tokens, "token_strs": None})

    def post_detokenize(self, request):
        ask = self.body_of(request)
        self.check_model(ask)
        return json_reply({"prompt": toy_policy.detokenize(check_ids(list_field(ask, "tokens", int) or []))})

    def post_completions(self, request):
        ask = self.body_of(request)
        self.log["completions"] += 1
        self.requests.append(ask)
        self.check_model(ask)
        prompts = read_prompts(ask)
        effects = self.effects_for(prompts)
        reply, tokens = self.completions_reply(ask, prompts, effects)
        if effects:
            self.log["misbehaved"] += 1
            if "body" in effects:
                reply.body = toy_faults.spoil_body(reply.body, effects["body"])
        reply.transport = toy_faults.transport_of({**({"delay": self.pace * tokens} if self.pace else {}), **effects}, self.faults.released)
        reply.close = reply.close or "close" in effects or "stall" in effects
        self.log["by_status"][reply.status] += 1
        return reply

    def effects_for(self, prompts):
        try:
            return self.faults.effects_for("\n".join(map(toy_policy.detokenize, prompts)), self.revision)
        except toy_faults.BadRule as problem:
            raise Refusal(str(problem), "prompt") from None

    def completions_reply(self, ask, prompts, effects):
        """(reply, tokens of its longest completion)"""
        if "status" in effects:
            headers = {"Retry-After": effects["retry_after"]} if "retry_after" in effects else {}
            return error_reply(int(effects["status"]), toy_faults.message_of(effects), "InternalServerError", **headers), 0
        sampling = read_sampling(ask)
        choices = []
        for prompt_ids in prompts:
            choices += self.choices_of(ask, prompt_ids, sampling, len(choices), effects.get("say"))
        tokens = [len(choice["token_ids"]) for choice in choices]
        if not ask.get("return_token_ids"):
            for choice in choices:
                choice["token_ids"] = choice["prompt_token_ids"] = None
        toy_faults.spoil_choices(choices, effects)
        prompt_tokens = sum(map(len, prompts))
        name = ask.get("request_id") or secrets.token_hex(8)
        return json_reply({
            "id": f"cmpl-{name}", "object": "text_completion", "created": int(time.time()), "model": MODEL, "choices": choices,
            "service_tier": None, "system_fingerprint": f"toy-{VERSION}",
            "usage": {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens + sum(tokens), "completion_tokens": sum(tokens),
                      "prompt_tokens_details": None},
            "kv_transfer_params": None}, **{"X-Weight-Version": self.weight_version}), max(tokens)

    def choices_of(self, ask, prompt_ids, sampling, first_index, said):
        if len(prompt_ids) > self.context:
            raise value_refusal(f"This model's maximum context length is {self.context} tokens. However, your prompt contains "
                                f"{len(prompt_ids)} input tokens, which exceeds this limit even without any output tokens. "
                                "Please reduce the length of the input prompt.", "input_tokens", len(prompt_ids))
        room = min(sampling.max_tokens, self.context - len(prompt_ids))
        if room < 1:
            raise value_refusal("max_tokens must be at least 1, got 0.", "max_tokens", 0)
        prompt = toy_policy.detokenize(prompt_ids)
        as_ids = ask.get("return_tokens_as_token_ids")
        name = (lambda token: f"token_id:{token}") if as_ids else (lambda token: toy_policy.WORDS[token])
        seed = self.fresh_seed() if sampling.seed is None else sampling.seed
        choices = []
        for i in range(sampling.n):
            one = sample(self.policy, prompt, sampling, room, seed + i) if said is None else recite(said, room)
            choices.append({
                "index": first_index + i, "text": one.text,
                "logprobs": None if sampling.logprobs is None else logprobs_object(self.policy, prompt, one.ids, sampling.logprobs, name),
                "finish_reason": one.finish_reason, "stop_reason": one.stop_reason, "token_ids": one.ids,
                "prompt_logprobs": None, "prompt_token_ids": prompt_ids})
        return choices

    def fresh_seed(self):
        return (self.seeds.getrandbits if self.seeds else secrets.randbits)(62)

    # weights

    def get_weights(self, request):
        return json_reply({"revision": self.revision, "words": toy_policy.WORDS, "positions": POSITIONS,
                           "prior": toy_policy.PRIOR, "table": self.policy.table})

    def post_weights(self, request):
        ask = self.body_of(request)
        revision = field(ask, "revision", int, None)
        given = [name for name in ("table", "rows", "deltas") if name in ask]
        if revision is None or revision < 0 or len(given) != 1:
            raise Refusal("give a revision (an integer from 0) and one of table, rows, deltas", "revision")
        changes = {prompt: check_rows(prompt, rows) for prompt, rows in field(ask, given[0], dict, {}).items()}
        if given[0] == "table":
            self.policy = toy_policy.TablePolicy(changes)
        for prompt, rows in changes.items():
            if given[0] == "deltas":
                rows = [[a + b for a, b in zip(old, new)] for old, new in zip(self.policy.rows(prompt), rows)]
            self.policy.set_rows(prompt, rows)
        self.revision, self.weight_version = revision, str(revision)
        return json_reply({"revision": revision})

    # misbehaviour and the log

    def get_misbehave(self, request):
        return json_reply({"rules": self.faults.rules})

    def post_misbehave(self, request):
        ask = self.body_of(request)
        try:
            self.faults.set_rules(field(ask, "rules", list, []), field(ask, "seed", int, 0))
        except toy_faults.BadRule as problem:
            raise Refusal(str(problem), "rules") from None
        return self.get_misbehave(request)

    def delete_misbehave(self, request):
        self.faults.set_rules([], 0)
        return self.get_misbehave(request)

    def clear_log(self):
        self.log = {"completions": 0, "misbehaved": 0, "by_status": collections.Counter()}
        self.requests = collections.deque(maxlen=LOG_KEPT)
        for name in ("requests", "aborted"):
            setattr(self.counters, name, 0)
        self.counters.max_in_flight = self.counters.in_flight

    def get_log(self, request):
        counters = {**vars(self.counters), "in_flight": self.counters.in_flight - 1}  # without this request
        return json_reply({**counters, **self.log})

    def delete_log(self, request):
        self.clear_log()
        return json_reply({})


def check_rows(prompt, rows):
    good = isinstance(rows, list) and len(rows) == POSITIONS and all(
        isinstance(row, list) and len(row) == FIRST_BYTE and all(
            isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) for value in row) for row in rows)
    if not good:
        raise Refusal(f"the rows of {prompt!r} are not {POSITIONS} x {FIRST_BYTE} finite numbers", "table")
    return [list(map(float, row)) for row in rows]


# -- start ------------------------------------------------------------------------------------------

def raise_file_limit():
    """A connection is a file: a thousand clients do not fit in the usual soft limit of 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def write_ready_file(path, url):
    """Whole or not at all: who waits for the file may read it at once."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(url + "\n")
    os.replace(path + ".new", path)


async def serve(options):
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    engine = Engine(options.context, options.pace, options.seed)
    server, port = await toy_http.listen(engine.handle, engine.counters, options.host, options.port)
    url = f"http://{options.host}:{port}"
    print("READY", url, flush=True)
    if options.ready_file:
        write_ready_file(options.ready_file, url)
    await stop.wait()
    server.close()


def parse_arguments():
    parser = argparse.ArgumentParser(description="A toy inference engine: a softmax table policy behind the HTTP interface of vLLM.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--ready-file", help="receives the URL once the engine answers")
    parser.add_argument("--context", type=int, default=4096, help="prompt and completion, in tokens")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds per token")
    parser.add_argument("--seed", type=int, help="makes requests without a seed repeatable")
    return parser.parse_args()


if __name__ == "__main__":
    raise_file_limit()
    try:
        asyncio.run(serve(parse_arguments()))
    except OSError as problem:
        sys.exit(f"toy_engine: {problem}")
