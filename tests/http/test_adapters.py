"""The requests to each kind of engine, and the record of its answers."""
import pytest

from engines import ScriptedEngine
from harness import eventually
from material import make_batch, make_group, rollouts, sampling

MESSAGES = [{"role": "user", "content": "What is 6*7?"}]
TOOLS = [{"type": "function", "function": {"name": "multiply", "parameters": {"type": "object"}}}]


@pytest.fixture
def engine_of():
    made = []

    def make(kind):
        made.append(ScriptedEngine(kind))
        return made[-1]
    yield make
    for engine in made:
        engine.close()


def chat(**fields):
    group = make_group("chat", messages=MESSAGES, **fields)
    del group["prompt"]
    return group


# -- chats --------------------------------------------------------------------------------------------------------------------

def test_tools_and_messages_reach_the_engines_template(service, engine):
    engine.rules({"in": '"add_generation_prompt"', "json": {"tokens": [5, 6, 7], "count": 3}}, {"prompt_ids": [5, 6, 7]})
    batch = service.batch(make_batch(chat(tools=TOOLS), sampling=sampling(1, chat_template_kwargs={"enable_thinking": False})))
    rendered, sampled = engine.samples
    assert (rendered["path"], sampled["path"]) == ("/tokenize", "/v1/completions")
    assert (rendered["body"]["messages"], rendered["body"]["tools"]) == (MESSAGES, TOOLS)
    assert rendered["body"]["chat_template_kwargs"] == {"enable_thinking": False}
    assert sampled["body"]["prompt"] == [5, 6, 7] and "tools" not in sampled["body"]
    assert rollouts(batch)[0]["trainable"]


@pytest.mark.parametrize("group,path", [
    (make_group("t", tools=TOOLS), "groups[0].tools"),
    (make_group("t", prompt=None, prompt_ids=[1], tools=TOOLS), "groups[0].tools"),
    (chat(tools=["multiply"]), "groups[0].tools[0]"),
    (chat(tools={}), "groups[0].tools"),
])
def test_tools_are_objects_beside_messages(service, group, path):
    reply = service.post("/v1/batches", make_batch({name: value for name, value in group.items() if value is not None}))
    assert reply.status == 400 and reply.json["error"]["path"] == path, reply


def test_a_chat_that_calls_tools_keeps_its_text_apart(start, engine_of):
    """Without ids the sample cannot be put together again from text and calls: it is judged by its text, and trained on by nobody."""
    engine = engine_of("openai_compat")
    engine.rules({"in": "6*7", "text": None, "finish": "tool_calls", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "multiply"}}]})
    batch = start(engine).batch(make_batch(chat(tools=TOOLS), sampling=sampling(1)))
    (asked,), (rollout,) = engine.samples, rollouts(batch)
    assert asked["path"] == "/v1/chat/completions" and asked["body"]["tools"] == TOOLS
    assert (rollout["finish_reason"], rollout["text"], rollout["trainable"]) == ("tool_calls", "", False)
    assert rollout["state"] == "scored" and rollout["completion_ids"] is None


# -- log-probabilities --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind,fields,mode,words", [
    ("vllm", {}, "raw", None),
    ("vllm", {"temperature": 0.7}, "unknown", "nobody knows"),
    ("vllm", {"engine_options": {"repetition_penalty": 1.1}}, "unknown", "nobody knows"),
    ("sglang", {}, "raw", None),
    ("sglang", {"temperature": 0.7}, "processed", "divides by it"),
    ("llamacpp", {}, "raw", None),
    ("llamacpp", {"temperature": 0.7}, "raw", "temperature other than 1"),
    ("llamacpp", {"top_k": 5}, "raw", "top_k"),
    ("llamacpp", {"engine_options": {"logit_bias": [[5, -1]]}}, "raw", "bias"),
])
def test_log_probabilities_that_make_ratios_wrong_are_named(start, engine_of, kind, fields, mode, words):
    batch = start(engine_of(kind)).batch(make_batch(sampling=sampling(2, **fields)))
    assert [rollout["logprobs_mode"] for rollout in rollouts(batch)] == [mode] * 2
    notes = [note for note in batch["notes"] if "importance ratios" in note or "ratios are right" in note]
    assert [note.startswith("2 rollouts") and words in note for note in notes] == ([True] if words else []), batch["notes"]


def test_only_the_groups_that_ask_for_it_are_named(start, engine_of):
    batch = start(engine_of("llamacpp")).batch(make_batch(make_group("plain"), make_group("warm", sampling={"temperature": 0.5})))
    assert [note for note in batch["notes"] if note.startswith("2 rollouts have raw")], batch["notes"]


# -- giving up ----------------------------------------------------------------------------------------------------------------

def aborted(engine):
    return [entry["body"]["rid"] for entry in engine.requests if entry["path"] == "/abort_request"]


def test_sglang_is_told_to_stop_what_nobody_waits_for(start, engine_of):
    engine = engine_of("sglang")
    engine.rules({"in": "sampling_params", "hold": True})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(sampling=sampling(2)), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: len(engine.samples) == 2, "both samples to be asked for")
    service.delete(f"/v1/batches/{identity}")
    eventually(lambda: len(aborted(engine)) == 2, "both to be aborted")
    assert sorted(aborted(engine)) == sorted(entry["body"]["rid"] for entry in engine.samples)
    eventually(lambda: all(entry["aborted"] for entry in engine.samples), "the connections to be closed")


def test_sglang_is_told_to_stop_at_a_deadline(start, engine_of):
    engine = engine_of("sglang")
    engine.rules({"in": "sampling_params", "hold": True})
    batch = start(engine).batch(make_batch(sampling=sampling(1), deadline="1s"))
    assert rollouts(batch)[0]["failure"]["code"] in ("deadline", "engine_timeout")
    eventually(lambda: aborted(engine), "it to be aborted")
    assert set(aborted(engine)) == {entry["body"]["rid"] for entry in engine.samples}


def test_a_sample_that_was_answered_is_not_aborted(start, engine_of):
    engine = engine_of("sglang")
    batch = start(engine).batch(make_batch())
    assert batch["summary"]["scored"] == 2 and not aborted(engine)
    assert {rollout["engine_revision"] for rollout in rollouts(batch)} == {"default"}


def test_llamacpp_streams_so_that_a_hang_up_stops_it(start, engine_of):
    engine = engine_of("llamacpp")
    engine.rules({"in": '"n_predict"', "hold": True})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(sampling=sampling(1)), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: [entry for entry in engine.samples if "n_predict" in entry["body"]], "the sample to be asked for")
    assert engine.samples[-1]["body"]["stream"] is True
    service.delete(f"/v1/batches/{identity}")
    eventually(lambda: engine.samples[-1]["aborted"], "the engine to see it")
