"""A real language model in llama.cpp's server: whatever it does is believed only if it adds up."""
import json
import math

import pytest

from harness import eventually, http_request
from material import assert_failed_without_a_number, assert_sums_up, f32, make_batch, make_group, rollouts, sampling, seed_of

pytestmark = pytest.mark.model
QUESTIONS = [("What is 3 + 4?", "7"), ("What is 6 * 7?", "42"), ("What is 10 - 8?", "2"), ("What is 20 / 5?", "4"), ("How many days has a week?", "7"),
             ("What is half of 10?", "5"), ("What is 9 + 9?", "18"), ("How many legs has a spider?", "8"), ("Count to three.", "3"), ("Say hello with an emoji!", "x")]


def ten_prompts():
    groups = [make_group(f"q{index}", f"<|im_start|>user\n{question} Put the answer in \\boxed{{}}.<|im_end|>\n<|im_start|>assistant\n", reference)
              for index, (question, reference) in enumerate(QUESTIONS)]
    return make_batch(*groups, sampling=sampling(4, max_tokens=24), deadline="4m")


@pytest.fixture(scope="module")
def sampled(real_engine, shared_factory):
    service = shared_factory(real_engine)
    return service, service.batch(ten_prompts())


def test_ten_prompts_times_four(sampled):
    _, batch = sampled
    assert batch["state"] == "complete" and len(rollouts(batch)) == 40
    for group in batch["groups"]:
        for rollout in group["rollouts"]:
            assert rollout["seed"] == seed_of(7, 1, group["task"], 0, rollout["sample_index"], rollout["resample"])
            if rollout["state"] == "failed":  # ids and log-probabilities part by nature, at characters of several tokens
                assert_failed_without_a_number(rollout)
                assert rollout["failure"]["code"] == "invalid_reply", rollout["failure"]
                continue
            assert rollout["state"] == "scored" and rollout["finish_reason"] in ("stop", "length") and rollout["text"]
            assert len(rollout["completion_ids"]) == len(rollout["logprobs"]) <= 24
            assert all(isinstance(token, int) and token >= 0 for token in rollout["completion_ids"])
            assert all(math.isfinite(value) and value <= 0 for value in rollout["logprobs"])
            assert rollout["engine"] and rollout["logprobs_mode"] == "raw"
    assert batch["summary"]["scored"] >= 20, batch["summary"]
    assert_sums_up(batch)


def plain_answer(engine, prompt, seed):
    """Its own answer, without a stream and without the service: (ids, log-probabilities, text), or None where they part."""
    ids = engine.post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True}).json["tokens"]
    reply = http_request(engine.url, "POST", "/completion", {
        "prompt": ids, "n_predict": 24, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "samplers": ["temperature"], "seed": seed & 0x7fffffff,
        "n_probs": 1, "return_tokens": True})
    if reply.status == 500:  # no UTF-8
        return None
    assert reply.status == 200, reply
    entries = reply.json.get("completion_probabilities", [])
    if [entry["id"] for entry in entries] != reply.json["tokens"]:
        return None
    return reply.json["tokens"], [f32(entry["logprob"]) for entry in entries], reply.json["content"]


def test_ids_and_log_probabilities_are_those_of_its_own_answers(sampled, real_engine):
    """And what was refused, and sampled again, is what parts in its own answers, too: the stream loses nothing."""
    _, batch = sampled
    prompts = {group["task"]: group["prompt"] for group in ten_prompts()["groups"]}
    for group in batch["groups"]:
        for rollout in group["rollouts"][:2]:
            for resample in range(rollout["resample"] + 1):
                own = plain_answer(real_engine, prompts[group["task"]], seed_of(7, 1, group["task"], 0, rollout["sample_index"], resample))
                if resample == rollout["resample"] and rollout["state"] == "scored":
                    assert own == (rollout["completion_ids"], [f32(value) for value in rollout["logprobs"]], rollout["text"])
                else:
                    assert own is None


# -- it stops ---------------------------------------------------------------------------------------------------------------------

LONG = 900


def cancel(service, body):
    identity = service.post("/v1/batches", body, {"Prefer": "respond-async"}).json["id"]
    return lambda: service.delete(f"/v1/batches/{identity}")


def hang_up(service, body):
    wire, text = service.wire(), json.dumps(body)
    wire.send(f"POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}")
    return wire.close


def deadline(service, body):
    identity = service.post("/v1/batches", {**body, "deadline": "2s"}, {"Prefer": "respond-async"}).json["id"]
    return lambda: service.settled(identity)


@pytest.mark.parametrize("begin", [cancel, hang_up, deadline])
def test_the_engine_stops_when_nobody_waits_any_more(sampled, real_engine, begin):
    """The slots tell how far they are: a sample that went on to its end would be seen near LONG."""
    service, _ = sampled
    seen = []

    def busy():
        slots = [slot for slot in http_request(real_engine.url, "GET", "/slots").json if slot["is_processing"]]
        seen.extend(token["n_decoded"] for slot in slots for token in slot["next_token"])
        return len(slots)
    end = begin(service, make_batch(make_group(begin.__name__, "Once upon a time"), deadline="4m",
                                    sampling=sampling(2, max_tokens=LONG, engine_options={"ignore_eos": True})))
    if begin is not deadline:
        eventually(lambda: busy() == 2, "both samples to be under way")
    end()
    eventually(lambda: busy() == 0, "the slots to be free")
    assert max(seen, default=0) < LONG - 100, "they went on to their end"


def test_the_same_seeds_give_the_same_tokens(sampled):
    service, first = sampled
    second = service.batch(ten_prompts())
    for before, after in zip(rollouts(first), rollouts(second)):
        if before["state"] == after["state"] == "scored" and before["resample"] == after["resample"]:
            assert (before["seed_sent"], before["completion_ids"]) == (after["seed_sent"], after["completion_ids"])
            assert before["logprobs"] == after["logprobs"]


def test_its_rollouts_give_a_gradient(sampled):
    service, batch = sampled
    scored = [rollout for rollout in rollouts(batch) if rollout["state"] == "scored"]
    reply = service.post("/v1/objective", {"objective": {"preset": "grpo"}, "sequences": [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in scored]})
    assert reply.status == 200, reply
    for row, rollout in zip(reply.json["sequences"], scored):
        signs = {math.copysign(1, value) for value in row["dloss_dlogp"] if value}
        assert signs <= ({-1.0} if rollout["advantage"] > 0 else {1.0} if rollout["advantage"] < 0 else set())


def test_a_prompt_that_does_not_fit_is_a_typed_failure(sampled):
    service, _ = sampled
    batch = service.batch(make_batch(make_group("long", "word " * 3000), sampling=sampling(1, max_tokens=8), deadline="60s"))
    assert_failed_without_a_number(rollouts(batch)[0])
    assert rollouts(batch)[0]["failure"]["code"] == "context_overflow" and len(rollouts(batch)) == 1
