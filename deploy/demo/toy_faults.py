"""How the toy engine misbehaves when it is told to.

Two ways to tell it. In the prompt, for every request with that prompt: `<<status=500>> 3+4=`, `<<delay=0.2 logprobs=nan>>`.
Or by rules, POST /misbehave: {"seed": 1, "rules": [{"in": "3+4=", "times": 2, "probability": 0.5, "skip": 1, "status": 429}]}.
The first rule that fits a request is applied: `in` is a part of the prompt's text (absent: any), `from_revision` the first
revision of the weights at which it goes wrong, the first `skip` fitting requests are spared, at most `times` are hit, each with
`probability`. Both ways may name several effects.
"""
import asyncio
import json
import random
import re

from toy_http import Transport
from toy_policy import FIRST_BYTE, VOCABULARY_SIZE, tokenize

TAG = re.compile(r"<<([a-z_]+(?:=[^\s<>]+)?(?: +[a-z_]+(?:=[^\s<>]+)?)*)>>")
DEFAULT_MESSAGE = {429: "Too many requests.", 503: "The model is currently scaling. Please try again later."}


class BadRule(ValueError):
    pass


def number(low, high):
    def check(value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise BadRule(f"a number from {low} to {high}")
    return check


def one_of(*values):
    def check(value):
        if value not in values:
            raise BadRule("one of " + ", ".join(map(json.dumps, values)))
    return check


def text(value):
    if not isinstance(value, str):
        raise BadRule("a text")


def words(value):
    if not isinstance(value, str) or any(token >= FIRST_BYTE for token in tokenize(value)):
        raise BadRule("a text of the policy's words")


# name -> (what values it takes, value of a bare name in a prompt)
EFFECTS = {
    "delay": (number(0, 3600), 1),            # seconds before the first byte
    "hang": (one_of(True), True),             # never a byte
    "hold": (one_of(True), True),             # no byte until there are other rules
    "close": (number(0, 1), 0.5),             # this part of the reply, then the connection is closed
    "stall": (number(0, 1), 0.5),             # this part of the reply, then nothing more
    "slow": (number(1, 1e9), 200),            # bytes a second
    "status": (number(400, 599), 500),        # an error reply
    "retry_after": (number(0, 3600), 1),      # its Retry-After header, seconds
    "message": (text, ""),                    # its message
    "logprobs": (one_of("nan", "infinity", "null", "floor", "positive", "short", "missing"), "nan"),
    "ids": (one_of("wrong", "out_of_vocabulary", "short", "missing"), "wrong"),
    "choices": (number(-1024, 1024), -1),     # so many more or fewer than asked
    "say": (words, "\\boxed{1}"),             # every completion, in words of the policy: a collapse
    "body": (one_of("half", "not_json", "empty"), "not_json"),  # under a Content-Length that is true
}
SELECTORS = {"in": text, "from_revision": number(0, 1 << 31), "times": number(0, 1 << 31), "skip": number(0, 1 << 31), "probability": number(0, 1)}


def check_rule(rule):
    if not isinstance(rule, dict):
        raise BadRule("a rule is an object")
    for name, value in rule.items():
        if name in SELECTORS:
            check = SELECTORS[name]
        elif name in EFFECTS:
            check = EFFECTS[name][0]
        else:
            raise BadRule(f"unknown key {name!r}; effects are " + ", ".join(EFFECTS))
        try:
            check(value)
        except BadRule as wanted:
            raise BadRule(f"{name}: {wanted}") from None


class Faults:
    def __init__(self):
        self.released = asyncio.Event()
        self.set_rules([], 0)

    def release(self):
        """Lets the requests go that `hold` keeps; later ones wait again."""
        self.released.set()
        self.released = asyncio.Event()

    def set_rules(self, rules, seed):
        for rule in rules:
            check_rule(rule)
        self.release()
        self.rules = [dict(rule, seen=0, hits=0) for rule in rules]
        self.generator = random.Random(seed)

    def effects_for(self, prompt, revision):
        effects = prompt_effects(prompt)
        for rule in self.rules:
            if self._fits(rule, prompt, revision):
                rule["hits"] += 1
                return {**{name: value for name, value in rule.items() if name in EFFECTS}, **effects}
        return effects

    def _fits(self, rule, prompt, revision):
        if revision < rule.get("from_revision", 0) or rule.get("in", "") not in prompt or rule["hits"] >= rule.get("times", rule["hits"] + 1):
            return False
        rule["seen"] += 1
        return rule["seen"] > rule.get("skip", 0) and self.generator.random() < rule.get("probability", 1)


def prompt_effects(prompt):
    effects = {}
    for tag in TAG.findall(prompt):
        for word in tag.split():
            name, equals, value = word.partition("=")
            if name not in EFFECTS:
                raise BadRule(f"unknown effect {name!r} in the prompt; effects are " + ", ".join(EFFECTS))
            effects[name] = _value(value) if equals else EFFECTS[name][1]
    check_rule(effects)
    return effects


def _value(word):
    try:
        return json.loads(word)
    except ValueError:
        return word


# -- what is done to a reply ------------------------------------------------------------------------

def transport_of(effects, released):
    how = Transport(delay=effects.get("delay", 0.0), hang=effects.get("hang", False), close_after=effects.get("close"),
                    until=released if effects.get("hold") else None, stall_after=effects.get("stall"), bytes_per_second=effects.get("slow"))
    return None if how == Transport() else how


def message_of(effects):
    status = effects["status"]
    return effects.get("message") or DEFAULT_MESSAGE.get(status, "EngineCore encountered an issue.")


def spoil_choices(choices, effects):
    """Changes the list of choices in place."""
    for choice in choices:
        if "logprobs" in effects:
            _spoil_logprobs(choice, effects["logprobs"])
        if "ids" in effects:
            _spoil_ids(choice, effects["ids"])
    extra = int(effects.get("choices", 0))
    if extra < 0:
        del choices[max(0, len(choices) + extra):]
    for _ in range(extra):
        choices.append({**choices[0], "index": len(choices)})


_SPOILED_LOGPROB = {"nan": float("nan"), "infinity": float("-inf"), "null": None, "floor": -9999.0, "positive": 0.5}


def _spoil_logprobs(choice, how):
    if how == "missing" or not choice["logprobs"]:
        choice["logprobs"] = None
        return
    values = choice["logprobs"]["token_logprobs"]
    if how == "short":
        for array in choice["logprobs"].values():
            del array[-1:]
    elif values:
        values[-1] = _SPOILED_LOGPROB[how]


def _spoil_ids(choice, how):
    """`wrong`: another id than the one beside its log-probability."""
    ids = choice["token_ids"]
    if how == "missing":
        choice["token_ids"] = None
    elif ids and how == "short":
        del ids[-1]
    elif ids:
        ids[-1] = VOCABULARY_SIZE if how == "out_of_vocabulary" else (ids[-1] + 1) % FIRST_BYTE


def spoil_body(body, how):
    return {"half": body[:len(body) // 2], "not_json": b"<html><body>upstream error</body></html>", "empty": b""}[how]
