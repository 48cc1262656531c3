"""The record of the service agrees with vLLM's own answers."""
import math

from harness import eventually
from material import assert_failed_without_a_number, assert_sums_up, f32, make_batch, make_group, rollouts, sampling, seed_of
from vllm_server import CONTEXT, MODEL, PLACES

NEAR = 1e-4  # what a log-probability of 32 bits moves by when others are computed beside it (3e-5 was seen); alone, nothing moves
END = 2      # <|im_end|>
QUESTIONS = [("sum", "<|im_start|>user\nWhat is 3 + 4?<|im_end|>\n<|im_start|>assistant\n", "7"), ("tale", "Once upon a time", "x"),
             ("bytes", "Zürich, 漢字: emoji \U0001f999\U0001f999", "x")]


def three_prompts(**fields):
    return make_batch(*[make_group(*question) for question in QUESTIONS], **{"sampling": sampling(2, max_tokens=12), "deadline": "20m", **fields})


def farthest(values, others):
    return max(abs(value - other) for value, other in zip(values, others, strict=True))


def assert_is_plain(rollout, plain):
    ids, logprobs, _ = plain
    assert rollout["state"] == "scored" and rollout["completion_ids"] == ids, rollout
    assert len(rollout["logprobs"]) == len(ids) and all(math.isfinite(value) and value <= 0 for value in rollout["logprobs"])
    assert farthest(rollout["logprobs"], map(f32, logprobs)) <= NEAR


def test_ids_and_log_probabilities_are_those_of_plain_requests_with_the_same_seed(service, vllm, kind):
    batch = service.batch(three_prompts())
    assert batch["state"] == "complete" and len(rollouts(batch)) == 6
    for group, (task, prompt, _) in zip(batch["groups"], QUESTIONS):
        assert group["prompt_ids"] == vllm.tokens(prompt)
        for rollout in group["rollouts"]:
            assert rollout["seed_sent"] == rollout["seed"] == seed_of(7, 1, task, 0, rollout["sample_index"]) and rollout["seed_honoured"] is True
            plain = vllm.plain(prompt, rollout["seed"], max_tokens=12)
            assert_is_plain(rollout, plain)
            assert rollout["logprobs_mode"] == "raw" and rollout["attempts"] == 1 and rollout["trainable"] is True
            assert rollout["finish_reason"] == ("stop" if plain[0][-1] == END else "length")
            assert rollout["engine_revision"] == (vllm.read("/weight_info")["weight_version"] if kind == "vllm_generate" else None)
            assert rollout["text"] == (plain[2] if kind == "vllm" else vllm.text([token for token in plain[0] if token != END]))
    assert_sums_up(batch)


def test_the_same_batch_gives_the_same_tokens_all_at_once_and_one_by_one(start, vllm, kind):
    asked = three_prompts()
    at_once = start(vllm.as_kind(kind)).batch(asked)
    again = start(vllm.as_kind(kind)).batch(asked)
    alone = start()
    reply = alone.put("/v1/engines/alone", {"url": vllm.url, "kind": kind, "model": MODEL, "in_flight": 1})
    assert reply.status in (200, 201), reply
    one_by_one = alone.batch(asked)
    prompts = {task: prompt for task, prompt, _ in QUESTIONS}
    assert {rollout["engine"] for rollout in rollouts(one_by_one)} == {"alone"}
    for first, second, third in zip(rollouts(at_once), rollouts(again), rollouts(one_by_one)):
        assert first["state"] == "scored" and first["completion_ids"] == second["completion_ids"] == third["completion_ids"]
        assert max(farthest(first["logprobs"], second["logprobs"]), farthest(first["logprobs"], third["logprobs"])) <= NEAR
    for group in one_by_one["groups"]:
        for rollout in group["rollouts"]:
            own = vllm.plain(prompts[group["task"]], rollout["seed"], max_tokens=12)
            assert (rollout["completion_ids"], list(map(f32, rollout["logprobs"]))) == (own[0], list(map(f32, own[1]))), "alone, to the last bit"


def test_a_chat_goes_through_the_model_s_own_template(service, vllm):
    messages = [{"role": "user", "content": "Name a colour."}]
    group = {"task": "chat", "messages": messages, "reference": "x"}
    batch = service.batch(make_batch(group, sampling=sampling(2, max_tokens=12), deadline="20m"))
    rendered = vllm.post("/tokenize", {"model": MODEL, "messages": messages, "add_generation_prompt": True}).json["tokens"]
    assert batch["groups"][0]["prompt_ids"] == rendered and len(rendered) > 10
    for rollout in rollouts(batch):
        choice = vllm.post("/v1/chat/completions", {
            "model": MODEL, "messages": messages, "seed": rollout["seed"], "max_tokens": 12, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0,
            "logprobs": True, "return_token_ids": True}).json["choices"][0]
        assert_is_plain(rollout, (choice["token_ids"], [entry["logprob"] for entry in choice["logprobs"]["content"]], None))


def test_filters_and_temperature_are_the_engine_s_own(service, vllm):
    asked = {"max_tokens": 12, "temperature": 0.7, "top_k": 5, "top_p": 0.9}
    batch = service.batch(make_batch(make_group("tale", "Once upon a time"), sampling={"n": 2, **asked}, deadline="20m"))
    for rollout in rollouts(batch):
        assert_is_plain(rollout, vllm.plain("Once upon a time", rollout["seed"], **asked))
    assert batch["notes"], "log-probabilities that are not of what was sampled from are named"


def test_twenty_four_requests_on_eight_places_all_come_back(service, vllm):
    groups = [make_group(f"q{index}", f"Chapter {index}") for index in range(3)]
    identity = service.post("/v1/batches", make_batch(*groups, sampling=sampling(8, max_tokens=24, engine_options={"ignore_eos": True}), deadline="20m"),
                            {"Prefer": "respond-async"}).json["id"]
    seen = []

    def look():
        seen.append((vllm.running, vllm.waiting))
        return seen[-1]
    eventually(lambda: look()[1] > 0, "requests to wait for a place")
    eventually(lambda: look() and service.read(f"/v1/batches/{identity}")["state"] != "running", "the batch to end")
    batch = service.settled(identity)
    assert max(running for running, _ in seen) <= PLACES
    assert [rollout["state"] for rollout in rollouts(batch)] == ["scored"] * 24 and {rollout["attempts"] for rollout in rollouts(batch)} == {1}
    assert all(len(rollout["completion_ids"]) == 24 for rollout in rollouts(batch))
    for group in batch["groups"]:
        first = group["rollouts"][0]
        assert_is_plain(first, vllm.plain(f"Chapter {group['task'][1:]}", first["seed"], max_tokens=24, ignore_eos=True))


def test_a_prompt_that_does_not_fit_is_a_typed_failure_and_one_that_just_fits_is_not(service):
    groups = [{"task": "long", "prompt_ids": [1] * CONTEXT, "reference": "x"}, {"task": "fits", "prompt_ids": [1] * (CONTEXT - 4), "reference": "x"}]
    long, fits = service.batch(make_batch(*groups, sampling=sampling(1, max_tokens=8, engine_options={"ignore_eos": True}), deadline="20m"))["groups"]
    assert_failed_without_a_number(long["rollouts"][0])
    assert long["rollouts"][0]["failure"]["code"] == "context_overflow" and long["rollouts"][0]["attempts"] == 1
    assert fits["rollouts"][0]["state"] == "scored" and fits["rollouts"][0]["finish_reason"] == "length", fits
    assert len(fits["rollouts"][0]["completion_ids"]) == 4, "clipped at the end of the context"


def test_a_refusal_by_the_engine_is_a_typed_failure(service):
    refused = sampling(1, max_tokens=4, engine_options={"min_tokens": 99})
    rollout = rollouts(service.batch(make_batch(make_group("t"), sampling=refused, deadline="20m")))[0]
    assert_failed_without_a_number(rollout)
    assert (rollout["failure"]["code"], rollout["failure"]["retryable"]) == ("engine_error", False) and "min_tokens" in rollout["failure"]["message"], rollout["failure"]
