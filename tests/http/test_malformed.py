"""F24: replies that two readers would read differently, and counts that are none, give no score, whatever kind of engine wrote them."""
import json
import re

import pytest

from engines import ScriptedEngine
from material import assert_failed_without_a_number, make_batch, make_group, rollouts, sampling

KINDS = {"vllm": "/v1/completions", "vllm_generate": "/inference/v1/generate", "sglang": "/generate", "llamacpp": "/completion", "openai_compat": "/v1/completions"}
RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125], "finish": "stop"}
COUNTS = {"vllm": ["completion_tokens", "prompt_tokens", "total_tokens"], "vllm_generate": ["start", "end"], "sglang": ["completion_tokens"],
          "llamacpp": ["tokens_predicted", "tokens_evaluated", "tokens_cached"], "openai_compat": ["completion_tokens", "prompt_tokens", "total_tokens"]}
DOUBLED = {"vllm": ["choices", "text", "token_ids", "finish_reason", "logprobs", "token_logprobs", "usage", "completion_tokens", "index"],
           "vllm_generate": ["choices", "token_ids", "finish_reason", "logprobs", "content", "weight_versions", "token_id", "logprob"],
           "sglang": ["text", "output_ids", "meta_info", "finish_reason", "type", "output_token_logprobs", "completion_tokens"],
           "llamacpp": ["content", "tokens", "completion_probabilities", "tokens_predicted", "stop_type", "logprob", "id", "seed"],
           "openai_compat": ["choices", "text", "finish_reason", "usage", "logprobs"]}
ONCE = {"engine.attempts": "1"}


@pytest.fixture(scope="module", params=KINDS)
def served(request, shared_factory):
    engine = ScriptedEngine(request.param)
    service = shared_factory(engine, settings=ONCE)
    yield request.param, engine, service
    service.terminate()
    engine.close()


def whole(kind, engine):
    """The answer of this kind of engine, as text."""
    return json.dumps(engine.module.MAKERS[KINDS[kind]](RIGHT, {"seed": 0, "prompt": [1, 2], "input_ids": [1, 2]}))


def ask(kind, engine, service, raw):
    engine.rules({"in": '"sampling_params"' if kind == "vllm_generate" else "", "raw": raw}, RIGHT)  # not what /detokenize says
    group = make_group("t", prompt_ids=[1, 2])
    del group["prompt"]
    return rollouts(service.batch(make_batch(group, sampling=sampling(1))))[0]


def assert_invalid(rollout, raw):
    assert_failed_without_a_number(rollout)
    assert rollout["failure"]["code"] == "invalid_reply", (rollout["failure"], raw)


def test_sound_samples_are_scored(served):
    kind, engine, service = served
    assert ask(kind, engine, service, whole(kind, engine))["state"] == "scored"


def test_a_doubled_name_is_an_invalid_reply(served):
    """As the report has it (morluto/jacobian#762): also with an escape in it."""
    kind, engine, service = served
    text = whole(kind, engine)
    for name in DOUBLED[kind]:
        place = text.index(f'"{name}": ')
        value = json.JSONDecoder().raw_decode(text, place + len(name) + 4)
        for spelling in (name, f"\\u{ord(name[0]):04x}{name[1:]}"):
            raw = f'{text[:place]}"{spelling}": {json.dumps(value[0])}, {text[place:]}'
            rollout = ask(kind, engine, service, raw)
            assert_invalid(rollout, raw)
            assert f'"{name}" stands twice' in rollout["failure"]["message"]


@pytest.mark.parametrize("value", ["-5", "-1", "1.5", '"3"', "true", "[3]", "{}", "1e300", "99999999999"])
def test_a_count_that_is_no_whole_number_from_0_is_an_invalid_reply(served, value):
    kind, engine, service = served
    text = whole(kind, engine)
    for name in COUNTS[kind]:
        raw = re.sub(rf'"{name}": \d+', f'"{name}": {value}', text, count=1)
        assert raw != text
        assert_invalid(ask(kind, engine, service, raw), raw)


@pytest.mark.parametrize("value", ["17", "1000000"])
def test_more_tokens_than_were_asked_for_are_an_invalid_reply(served, value):
    kind, engine, service = served
    text = whole(kind, engine)
    raw = re.sub(r'"(completion_tokens|tokens_predicted|end)": \d+', rf'"\1": {value}', text, count=1)
    assert raw != text
    assert_invalid(ask(kind, engine, service, raw), raw)


def test_text_without_ids_is_held_against_its_counts_too(start):
    engine = ScriptedEngine("openai_compat")
    try:
        service = start(engine, settings=ONCE)
        for usage, state in ({"completion_tokens": 16}, "scored"), ({"completion_tokens": 17}, "failed"), ({"completion_tokens": -5}, "failed"), \
                ({"completion_tokens": None, "prompt_tokens": None}, "scored"), ({"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}, "failed"):
            engine.rules({"json": {"choices": [{"index": 0, "text": "\\boxed{42}", "finish_reason": "stop"}], "usage": usage}})
            assert rollouts(service.batch(make_batch(sampling=sampling(1))))[0]["state"] == state, usage
    finally:
        engine.close()
