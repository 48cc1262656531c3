"""`"dtype": "f32"`: the arrays of a safetensors reply as floats, each the nearest to its double."""
import json
import math

import pytest

from material import f32
from tensors import MEDIA_TYPE, pack, unpack
from test_safetensors import OUTPUTS, make_request, make_sequences, make_tensors, post


def tensors_of(reply):
    assert reply.status == 200 and reply.headers["content-type"] == MEDIA_TYPE, reply
    metadata, tensors = unpack(reply.body)
    return json.loads(metadata["reply"]), tensors, reply.body


def kinds(body):
    length = int.from_bytes(body[:8], "little")
    return {name: entry["dtype"] for name, entry in json.loads(body[8:8 + length]).items() if name != "__metadata__"}


def ask(service, sequences, **more):
    return tensors_of(post(service, pack(make_request(sequences, **more), make_tensors(sequences)), accept=MEDIA_TYPE))


@pytest.mark.parametrize("lengths", [(3, 5, 1, 7), (300, 2, 257), (1,)])
def test_floats_are_the_nearest_to_the_doubles_and_the_rest_is_the_same(plain, lengths):
    sequences = make_sequences(lengths)
    scalars, wide, wide_body = ask(plain, sequences, dtype="f64")
    narrow_scalars, narrow, body = ask(plain, sequences, dtype="f32")
    assert narrow_scalars == scalars and set(narrow) == set(wide)
    for name, values in wide.items():
        assert narrow[name] == ([f32(value) for value in values] if name in OUTPUTS[:6] else values), name
    assert kinds(body) == {**{name: "F32" for name in OUTPUTS[:6]}, "clipped": "I8", "selected": "U8", "cu_seqlens": "I64"}
    assert abs(len(wide_body) - len(body) - 6 * 4 * sum(lengths)) <= 16  # the headers differ by a few digits
    assert ask(plain, sequences)[2] == wide_body


def test_the_arrays_that_are_asked_for_take_half_the_bytes(plain):
    sequences = make_sequences((1000, 1000))
    lengths = {dtype: len(ask(plain, sequences, dtype=dtype, **{"return": ["dloss_dlogp", "contributions"]})[2]) for dtype in ("f32", "f64")}
    assert lengths["f64"] - lengths["f32"] >= 2 * 4 * 2000 - 64


def test_an_advantage_for_each_token_is_narrowed_too(plain):
    sequences = make_sequences((4, 300, 3))
    objective = {"preset": "grpo", "advantage": {"estimator": "reward_to_go", "gamma": 0.9}}
    _, wide, _ = ask(plain, sequences, objective=objective)
    _, narrow, body = ask(plain, sequences, objective=objective, dtype="f32")
    assert kinds(body)["advantage"] == "F32" and narrow["advantage"] == [f32(value) for value in wide["advantage"]]
    assert narrow["dloss_dlogp"] == [f32(value) for value in wide["dloss_dlogp"]]


def test_masked_and_unjudged_sequences_carry_0(plain):
    sequences = make_sequences((4, 4, 4))
    sequences[1]["reward"] = None
    sequences[2]["mask"] = [0, 0, 0, 0]
    _, narrow, _ = ask(plain, sequences, dtype="f32")
    for name in OUTPUTS:
        assert narrow[name][4:] == [0] * 8


def test_a_number_that_no_float_holds_is_refused_with_its_path(plain):
    body = {"dtype": "f32", "objective": {"preset": "grpo", "aggregation": {"mode": "token_sum"}},
            "sequences": [{"group": "a", "advantage": 1, "logprobs": [-1]}, {"group": "a", "advantage": 1e39, "logprobs": [-1, -1]}]}
    reply = plain.post("/v1/objective", body, {"Accept": MEDIA_TYPE})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "non_finite", "sequences[1].surrogates[0]"), reply
    assert plain.post("/v1/objective", {**body, "dtype": "f64"}, {"Accept": MEDIA_TYPE}).status == 200


def test_a_ratio_beyond_float_that_is_not_in_the_loss_is_infinite_with_a_note(plain):
    body = {"dtype": "f32", "objective": {"preset": "grpo"}, "return": ["ratios"],
            "sequences": [{"group": "a", "reward": 1, "logprobs": [-1], "old_logprobs": [-101]}, {"group": "a", "reward": 0, "logprobs": [-1]}]}
    scalars, tensors, _ = tensors_of(plain.post("/v1/objective", body, {"Accept": MEDIA_TYPE}))
    assert tensors["ratios"] == [math.inf, 1] and any("beyond float" in note for note in scalars["notes"])


@pytest.mark.parametrize("query", ["", "?arrays=base64", "?arrays=none"])
def test_json_has_no_such_type_and_says_so(plain, query):
    reply = plain.post(f"/v1/objective{query}", {"dtype": "f32", "sequences": [{"group": "a", "reward": 1, "logprobs": [-1]}]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "dtype")
    assert "safetensors" in reply.error["message"]
    assert plain.post(f"/v1/objective{query}", {"dtype": "f64", "sequences": [{"group": "a", "reward": 1, "logprobs": [-1]}]}).status == 200


@pytest.mark.parametrize("dtype", ["bf16", "F32", "", 32, None])
def test_other_types_are_refused(plain, dtype):
    reply = plain.post("/v1/objective", {"dtype": dtype, "sequences": [{"group": "a", "reward": 1, "logprobs": [-1]}]}, {"Accept": MEDIA_TYPE})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "dtype")


def test_one_token_is_explained_in_doubles_all_the_same(plain):
    body = {"dtype": "f32", "sequences": [{"group": "a", "reward": 1, "logprobs": [-1.5]}, {"group": "a", "reward": 0, "logprobs": [-1]}]}
    reply = plain.post("/v1/objective?explain=0,0", body, {"Accept": MEDIA_TYPE})
    plainly = plain.post("/v1/objective?explain=0,0", {**body, "dtype": "f64"}, {"Accept": MEDIA_TYPE})
    assert reply.status == 200 and reply.body == plainly.body


def test_a_kept_call_is_answered_in_floats_too(plain):
    made = plain.post("/v1/score", {"run": "narrow", "verifiers": [{"name": "exact"}], "groups": [{"task": "t", "reference": "a", "completions": [
        {"text": text, "completion_ids": [1, 2], "logprobs": [-1, -0.3]} for text in "ab"]}]}).json["groups"][0]["rollouts"]
    body = {"dtype": "f32", "optimizer_step": 1, "sequences": [{"rollout": one["id"], "logprobs": [-1.1, -0.2]} for one in made]}
    _, narrow, _ = tensors_of(plain.post("/v1/objective", body, {"Accept": MEDIA_TYPE}))
    wide = plain.post("/v1/objective", {**body, "dtype": "f64"}).json["sequences"]
    assert narrow["dloss_dlogp"] == [f32(value) for row in wide for value in row["dloss_dlogp"]]
