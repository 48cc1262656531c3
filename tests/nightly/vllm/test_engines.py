"""Findings of probes about vLLM, and about one that was started otherwise."""
import pytest

from conftest import SETTINGS
from harness import eventually
from material import assert_failed_without_a_number, make_batch, make_group, rollouts, sampling
from test_samples import assert_is_plain
from vllm_server import CONTEXT, MODEL

ASKING = {**SETTINGS, "engine.probe_samples": "true"}


@pytest.fixture(scope="module")
def processed(tmp_path_factory, vllm):
    from vllm_server import Vllm
    made = Vllm(tmp_path_factory.mktemp("processed"), "--logprobs-mode", "processed_logprobs")
    yield made
    made.close()


def asked(service):
    """The engine as it is shown once all questions were answered; those that took too long are put again."""
    def check():
        item = service.read("/v1/engines")["items"][0]
        return item if item["state"] == "up" and item["capabilities"]["seeds"] != "unknown" else None
    return eventually(check, "the questions to be answered")


@pytest.mark.parametrize("given", ["", "#kind=vllm", "#kind=vllm_generate"])
def test_a_probe_finds_out_what_vllm_is(start, vllm, given):
    shown = asked(start(vllm.url + given, settings=ASKING))
    several = None if given.endswith("generate") else True
    assert (shown["kind"], shown["model"], shown["context_tokens"]) == (given[6:] or "vllm", MODEL, CONTEXT)
    assert shown["version"] == vllm.read("/version")["version"]
    assert shown["weight_version"] == vllm.read("/weight_info")["weight_version"]
    assert shown["capabilities"] == {"ids": True, "logprobs": True, "n": several, "seeds": "honoured", "note": None}, shown["capabilities"]
    assert shown["logprobs_mode"] == "raw" and len(shown["tokenizer_sha256"]) == 64 and shown["why"] is None


def test_new_weights_are_seen(start, vllm):
    service = start(vllm.as_kind("vllm"), settings=SETTINGS)
    vllm.post("/update_weight_version", {"new_version": "seen"})
    eventually(lambda: service.read("/v1/engines")["items"][0]["weight_version"] == "seen", "the new version to be shown")


def test_processed_log_probabilities_are_found_out_and_on_record(start, processed):
    service = start(processed.url, settings=ASKING)
    shown = asked(service)
    assert shown["logprobs_mode"] == "processed" and shown["capabilities"]["seeds"] == "honoured"
    options = {"max_tokens": 8, "temperature": 0.7, "top_k": 2}
    for rollout in rollouts(service.batch(make_batch(make_group("tale", "Once upon a time"), sampling={"n": 2, **options}, deadline="20m"))):
        assert rollout["logprobs_mode"] == "processed"
        assert_is_plain(rollout, processed.plain("Once upon a time", rollout["seed"], **options))


def test_without_enable_scale_out_the_kind_vllm_generate_is_a_typed_failure(start, processed):
    service = start(processed.as_kind("vllm_generate"), settings=SETTINGS)
    rollout = rollouts(service.batch(make_batch(make_group("t"), sampling=sampling(1, max_tokens=4), deadline="20m")))[0]
    assert_failed_without_a_number(rollout)
    assert (rollout["failure"]["code"], rollout["failure"]["retryable"]) == ("engine_error", False), rollout["failure"]


def test_engines_of_one_pool_that_tell_different_log_probabilities_are_both_shown(start, vllm, processed):
    service = start(vllm.url, processed.url, settings=ASKING)
    modes = eventually(lambda: (found := [item["logprobs_mode"] for item in service.read("/v1/engines")["items"]]) and "unknown" not in found and found, "both to be known")
    assert modes == ["raw", "processed"]
