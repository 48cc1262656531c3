"""F04: whatever `sampling` says is sent, or refused with its path, or named in the notes: each field of the contract, for each kind of
engine and each form of a prompt. The fields are those of /openapi.yaml, so that a new one cannot be forgotten."""
import contextlib
import os
import socket

import pytest
import yaml

from engines import SAMPLED_KINDS, ScriptedEngine
from harness import ROOT, eventually
from material import make_batch, make_group, rollouts

PROMPTS = {"prompt": "What is 6*7?", "prompt_ids": [1, 411, 907], "messages": [{"role": "user", "content": "What is 6*7?"}]}
with open(os.path.join(ROOT, "schema", "openapi.yaml"), encoding="utf-8") as file:
    FIELDS = list(yaml.safe_load(file)["components"]["schemas"]["Sampling"]["properties"])

# field: a value that is no default, how it is spelled where it is sent, the kinds that cannot be asked for it
TABLE = {
    "n": (3, None, ()),
    "max_tokens": (13, {"max_tokens", "max_new_tokens", "n_predict"}, ()),
    "temperature": (0.75, {"temperature"}, ()),
    "top_p": (0.875, {"top_p"}, ()),
    "top_k": (17, {"top_k"}, ()),
    "min_p": (0.0625, {"min_p"}, ()),
    "stop": (["END"], {"stop"}, ("vllm_generate",)),
    "stop_token_ids": ([77, 78], {"stop_token_ids"}, ("llamacpp",)),
    "chat_template_kwargs": ({"enable_thinking": False}, {"chat_template_kwargs"}, ()),
    "engine_options": ({"zzz_option": [1, "x"]}, None, ()),
}
# what asks for tokens is answered as ever, the rest is rendering, tokens and text
RULES = [*({"in": f'"{name}"'} for name in ("sampling_params", "max_tokens", "n_predict")), {"json": {"tokens": [5, 6, 7], "count": 3, "prompt": "<user>What is 6*7?"}}]


def test_the_table_has_every_field_of_the_contract():
    assert set(TABLE) == set(FIELDS)


@pytest.fixture(scope="module", params=SAMPLED_KINDS)
def served(request, shared_factory):
    engine = ScriptedEngine(request.param)
    service = shared_factory(engine)
    eventually(lambda: service.get("/readyz").status == 200, "the engine to be up")
    yield request.param, engine, service
    service.terminate()
    engine.close()


def post(engine, service, batch_sampling, group_sampling, form):
    engine.rules(*RULES)
    group = make_group("t", **{form: PROMPTS[form]}, **({"sampling": group_sampling} if group_sampling else {}))
    if form != "prompt":
        del group["prompt"]
    return service.post("/v1/batches", make_batch(group, sampling={"n": 1, "max_tokens": 8, **batch_sampling}))


def find(value, name):
    """Everything that stands under a name, at whatever depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == name:
                yield inner
            yield from find(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from find(inner, name)


def was_sent(field, value, requests):
    bodies = [entry["body"] for entry in requests]
    if field == "n":
        samples = [body for body in bodies if set(body) & {"n", "sampling_params", "n_predict"}]
        return len(samples) == value
    if field == "engine_options":
        return all(any(inner == sent for body in bodies for inner in find(body, name)) for name, sent in value.items())
    return any(inner == value for body in bodies for name in TABLE[field][1] for inner in find(body, name))


@pytest.mark.parametrize("form", PROMPTS)
@pytest.mark.parametrize("place", ["batch", "group"])
@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_sent_or_refused_with_its_path(served, field, place, form):
    kind, engine, service = served
    value, _, lacking = TABLE[field]
    said = {field: value}
    reply = post(engine, service, said if place == "batch" else {}, said if place == "group" else {}, form)
    if kind in lacking or (field == "chat_template_kwargs" and form != "messages"):
        assert reply.status == 400, reply
        assert (reply.error["code"], reply.error["path"]) == ("invalid_field", ("" if place == "batch" else "groups[0].") + f"sampling.{field}")
        assert not engine.samples
        return
    assert reply.status == 200, reply
    assert all(rollout["state"] == "scored" for rollout in rollouts(reply.json)), reply.json
    assert was_sent(field, value, engine.requests), engine.requests


@pytest.mark.parametrize("form", PROMPTS)
def test_every_form_of_a_prompt_is_sent_as_it_was_said(served, form):
    _, engine, service = served
    assert post(engine, service, {}, {}, form).status == 200
    names = {"prompt": ("prompt", "text", "content"), "prompt_ids": ("prompt", "input_ids", "token_ids"), "messages": ("messages",)}[form]
    assert any(inner == PROMPTS[form] for entry in engine.requests for name in names for inner in find(entry["body"], name)), engine.requests


def test_tools_are_sent_beside_messages(served):
    _, engine, service = served
    engine.rules(*RULES)
    tools = [{"type": "function", "function": {"name": "multiply", "parameters": {"type": "object"}}}]
    chat = make_group("chat", messages=PROMPTS["messages"], tools=tools)
    del chat["prompt"]
    service.batch(make_batch(chat, sampling={"n": 1, "max_tokens": 8}))
    assert any(inner == tools for entry in engine.requests for inner in find(entry["body"], "tools")), engine.requests


OTHER = {"n": 2, "max_tokens": 11, "temperature": 0.5, "top_p": 0.5, "top_k": 5, "min_p": 0.25, "stop": ["OTHER"], "stop_token_ids": [9],
         "chat_template_kwargs": {"other": 1}, "engine_options": {"yyy_option": 2}}


@pytest.mark.parametrize("field", FIELDS)
def test_a_groups_own_wins_over_the_batchs_key_by_key(served, field):
    """A key that the group has not is the batch's; a key that it has takes the place of the batch's."""
    kind, engine, service = served
    value, _, lacking = TABLE[field]
    if kind in lacking:
        pytest.skip("refused, see above")
    rest = {"temperature": 0.375} if field != "temperature" else {"top_p": 0.625}
    reply = post(engine, service, {field: OTHER[field], **rest}, {field: value}, "messages")
    assert reply.status == 200, reply
    assert was_sent(field, value, engine.requests) and not (field != "n" and was_sent(field, OTHER[field], engine.requests))
    assert all(was_sent(name, said, engine.requests) for name, said in rest.items())
    assert reply.json["sampling"][field] == OTHER[field]


@pytest.mark.parametrize("field", ["stop", "stop_token_ids"])
def test_an_empty_list_of_a_group_takes_the_batchs_away(served, field):
    kind, engine, service = served
    reply = post(engine, service, {field: OTHER[field]}, {field: []}, "prompt")
    assert reply.status == 200, reply
    assert not was_sent(field, OTHER[field], engine.requests) and engine.samples, kind


def test_options_of_the_template_are_for_the_groups_that_have_messages(served):
    """Said for all groups they cannot be refused: the notes name those for which they changed nothing."""
    _, engine, service = served
    engine.rules(*RULES)
    chat = make_group("chat", messages=PROMPTS["messages"])
    del chat["prompt"]
    sampling = {"n": 2, "max_tokens": 8, "chat_template_kwargs": {"enable_thinking": False}}
    batch = service.batch(make_batch(chat, make_group("plain"), sampling=sampling))
    assert was_sent("chat_template_kwargs", {"enable_thinking": False}, engine.requests)
    assert "2 rollouts have no messages: the batch's sampling.chat_template_kwargs changed nothing for them" in batch["notes"]
    assert batch["summary"]["failed"] == 0


def test_empty_options_of_the_template_are_none(served):
    _, engine, service = served
    assert post(engine, service, {"chat_template_kwargs": {}}, {}, "prompt").status == 200


@pytest.mark.parametrize("name", ["tools", "chat_template_kwargs", "add_generation_prompt", "prompt", "n", "seed", "logprobs"])
def test_fields_that_the_service_sends_are_no_engine_options(served, name):
    _, engine, service = served
    reply = post(engine, service, {"engine_options": {name: 1}}, {}, "messages")
    assert (reply.status, reply.error["path"]) == (400, "sampling.engine_options") and name in reply.error["message"]
    assert not engine.samples


def test_options_for_the_template_reach_it_where_it_is_asked_for_by_itself(served):
    kind, engine, service = served
    option = {"chat_template": "{{ messages }}"}
    assert post(engine, service, {"engine_options": option}, {}, "messages").status == 200
    rendering = [entry for entry in engine.requests if "messages" in entry["body"]]
    assert rendering and all(entry["body"]["chat_template"] == option["chat_template"] for entry in rendering), kind


def test_a_request_that_one_engine_can_serve_is_not_refused(start):
    able, unable = ScriptedEngine("vllm"), ScriptedEngine("llamacpp")
    try:
        service = start(able, unable)
        eventually(lambda: len(service.read("/readyz")["engines"]) == 2, "both to be known")
        batch = service.batch(make_batch(sampling={"n": 4, "max_tokens": 8, "stop_token_ids": [77]}))
        assert batch["summary"]["scored"] == 4 and not unable.samples
    finally:
        able.close()
        unable.close()


# --- F26: a model that nobody serves --------------------------------------------------------------------------------

def test_a_model_that_the_probe_did_not_find_is_refused_with_those_that_are_served(start, engine):
    service = start(engine)
    eventually(lambda: service.get("/readyz").status == 200, "the engine to be up")
    reply = service.post("/v1/batches", make_batch(model="demo-2b"))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "model")
    assert reply.error["message"] == 'no engine of pool "default" serves this model; did you mean "demo-1b"? known are: demo-1b' and not engine.samples
    assert service.batch(make_batch(model="demo-1b"))["summary"]["scored"] == 2


def test_a_model_that_was_loaded_meanwhile_is_taken(start, engine):
    """An adapter for each step: the refusal has the engine looked at."""
    service = start(engine, settings={"engine.check_interval": "1h"})
    eventually(lambda: service.get("/readyz").status == 200, "the engine to be up")
    models = engine.module.PROBES["/v1/models"]["data"]
    engine.module.PROBES["/v1/models"]["data"] = [*models, {"id": "step-7", "object": "model", "parent": "demo-1b"}]
    eventually(lambda: service.post("/v1/batches", make_batch(model="step-7")).status == 200, "the new adapter to be known")


def test_the_name_that_the_settings_give_a_model_is_taken(start):
    engine = ScriptedEngine(model="demo-1b")
    try:
        service = start(engine)
        eventually(lambda: service.get("/readyz").status == 200, "the engine to be up")
        assert service.batch(make_batch(model="demo-1b"))["summary"]["scored"] == 2
    finally:
        engine.close()


@pytest.mark.parametrize("kind", ["llamacpp"])
def test_where_nobody_knows_what_an_engine_serves_nothing_is_refused(start, kind):
    """llama.cpp takes any name."""
    engine = ScriptedEngine(kind)
    try:
        service = start(engine)
        eventually(lambda: service.get("/readyz").status == 200, "the engine to be up")
        assert service.batch(make_batch(model="anything"))["summary"]["scored"] == 2
    finally:
        engine.close()


@contextlib.contextmanager
def away(*probes):
    """Engines that are not there yet, each with what it will answer to probes. Gives their URLs, and what starts them."""
    places, engines = [], []
    for _ in probes:
        places.append(socket.socket())
        places[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the engine binds it, too, before it is closed: no other program can
        places[-1].bind(("127.0.0.1", 0))  # bound and not listening: a connection is refused
    ports = [place.getsockname()[1] for place in places]

    def come():
        for port, place, answers in zip(ports, places, probes):
            engines.append(ScriptedEngine(port=port, probes=answers))
            place.close()
        return engines
    try:
        yield [f"http://127.0.0.1:{port}" for port in ports], come
    finally:
        for place in places:
            place.close()
        for scripted in engines:
            scripted.close()


def models(*names):
    return {"/v1/models": {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}}


PATIENT = {"engine.down_timeout": "10m"}  # engines that come one after the other on a slow machine are still waited for


def post_early(service, body):
    reply = service.post("/v1/batches", {**body, "deadline": "10m"}, headers={"Prefer": "respond-async"})
    assert reply.status == 202, reply
    return reply.json["id"]


def test_a_model_that_turns_out_not_to_be_served_fails_with_those_that_are_and_is_not_sent(start):
    with away(models("demo-1b", "step-6")) as (urls, come):
        service = start(urls[0] + "#kind=vllm", settings=PATIENT)
        identity = post_early(service, make_batch(model="step-7"))
        engine, = come()
        batch = service.settled(identity)
        assert [rollout["failure"] for rollout in rollouts(batch)] == [
            {"stage": "sample", "code": "engine_error", "retryable": False, "attempts": 0,
             "message": 'no engine of pool "default" serves the model "step-7"; did you mean "step-6"? known are: demo-1b, step-6'}] * 2
        assert not engine.samples
        item = service.read("/v1/engines/e1")
        assert (item["state"], item["requests"], item["failures"]) == ("up", 0, {})
        assert service.batch(make_batch(model="step-6"))["summary"]["scored"] == 2


def test_of_several_engines_those_that_turn_out_to_serve_the_model_get_it(start):
    with away(models("demo-1b"), models("demo-1b", "step-7"), models("demo-1b")) as (urls, come):
        service = start(*[url + "#kind=vllm" for url in urls], settings=PATIENT)
        identity = post_early(service, make_batch(*[make_group(f"t{index}", f"What is {index}+0?") for index in range(8)], model="step-7"))
        first, able, last = come()
        assert service.settled(identity)["summary"]["scored"] == 16
        assert len(able.samples) == 16 and not first.samples and not last.samples


LLAMACPP = {"/version": None, "/model_info": None, "/v1/models": None}  # and /props


def test_an_option_that_the_engine_turns_out_not_to_know_fails_with_its_name(start):
    with away(LLAMACPP) as (urls, come):
        service = start(urls[0], settings=PATIENT)
        identity = post_early(service, make_batch(sampling={"n": 2, "max_tokens": 8, "stop_token_ids": [77]}))
        engine, = come()
        batch = service.settled(identity)
        assert [rollout["failure"]["message"] for rollout in rollouts(batch)] == ["stop_token_ids: an engine of kind llamacpp cannot stop at token ids"] * 2
        assert {rollout["failure"]["code"] for rollout in rollouts(batch)} == {"engine_error"} and not engine.samples


def test_an_engine_that_is_away_may_serve_any_model(start):
    service = start("http://127.0.0.1:9#kind=vllm")
    assert service.post("/v1/batches", make_batch(model="x"), headers={"Prefer": "respond-async"}).status == 202
