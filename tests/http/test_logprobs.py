"""Arrays of log-probabilities as they come in: F07 (above 0 they are refused by their place) and F21 (half-precision tensors)."""
import base64
import json
import math
import struct

import pytest

from tensors import flat, pack
from test_safetensors import changed, in_json, make_request, make_sequences, make_tensors, post, refused

LOGPROBS = ("logprobs", "old_logprobs", "ref_logprobs", "rollout_logprobs", "teacher_logprobs")
OTHERS = ("entropy", "sum_pi_squared")


def objective(service, sequences, **more):
    return service.post("/v1/objective", {"sequences": sequences, **more})


def two(name, values, **more):
    """Two sequences of three tokens; the second has `values` under `name`."""
    good = {"group": "a", "reward": 1, "logprobs": [-1, -1, -1]}
    return [good, {**good, "reward": 0, name: values, **more}]


def assert_refused(reply, status, code, path):
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path), reply


def packed(values, kind):
    return base64.b64encode(struct.pack(f"<{len(values)}{kind}", *values)).decode()


# -- F07 --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", LOGPROBS)
@pytest.mark.parametrize("value", [0.5, 1.1e-6, 1e30])
def test_a_log_probability_above_0_is_refused_by_its_place(plain, name, value):
    assert_refused(objective(plain, two(name, [-1, -1, value])), 400, "invalid_field", f"sequences[1].{name}[2]")


@pytest.mark.parametrize("name", LOGPROBS)
@pytest.mark.parametrize("suffix, kind", [("f32", "f"), ("f64", "d")])
def test_a_packed_log_probability_above_0_is_refused_by_its_place(plain, name, suffix, kind):
    sequences = two("group", "a")
    sequences[1].pop("logprobs" if name == "logprobs" else "mask", None)
    sequences[1][f"{name}_{suffix}"] = packed([-1, 0.25, -1], kind)
    assert_refused(objective(plain, sequences), 400, "invalid_field", f"sequences[1].{name}[1]")


@pytest.mark.parametrize("name", LOGPROBS)
@pytest.mark.parametrize("kind", ["F64", "F32", "BF16", "F16"])
def test_a_log_probability_above_0_in_a_tensor_is_named_by_sequence_and_element(plain, name, kind):
    sequences = make_sequences((3, 5))
    tensors = make_tensors(sequences)
    values = [-1.0] * 8
    values[6] = 0.5
    reply = post(plain, pack(make_request(sequences_without_mask(sequences)), {**without_mask(tensors), name: (kind, values)}))
    assert_refused(reply, 400, "invalid_field", f"sequences[1].{name}[3]")
    assert f"element 6 of the tensor {name}" in reply.error["message"]


def without_mask(tensors):
    return {name: tensor for name, tensor in tensors.items() if name != "mask"}


def sequences_without_mask(sequences):
    return [{name: value for name, value in one.items() if name != "mask"} for one in sequences]


@pytest.mark.parametrize("name", LOGPROBS)
@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1e-6, 5e-324])
def test_0_and_rounding_up_to_a_millionth_pass(plain, name, value):
    assert objective(plain, two(name, [-1, -1, value])).status == 200
    assert objective(plain, two(f"{name}_f32" if name != "logprobs" else "old_logprobs_f32", packed([-1, -1, value], "f"))).status == 200


@pytest.mark.parametrize("name", LOGPROBS)
def test_masked_values_are_not_read(plain, name):
    for value in (0.5, 1.0, None):  # TRL and verl pad with 1.0
        assert objective(plain, two(name, [-1, -1, value], mask=[1, 1, 0])).status == 200
    assert_refused(objective(plain, two(name, [-1, 0.5, 1.0], mask=[1, 1, 0])), 400, "invalid_field", f"sequences[1].{name}[1]")


@pytest.mark.parametrize("change", [{"reward": None}, {"finish_reason": "length"}])
def test_a_sequence_that_trains_nothing_is_not_looked_at(plain, change):
    reply = objective(plain, two("logprobs", [-1, 0.5, None], **change), objective={"preset": "grpo", "mask": {"truncated": True}})
    assert reply.status == 200, reply


@pytest.mark.parametrize("name", LOGPROBS + OTHERS)
def test_a_value_that_is_no_number_stays_non_finite_also_where_no_knob_reads_it(plain, name):
    assert_refused(objective(plain, two(name, [-1, None, -1])), 422, "non_finite", f"sequences[1].{name}[1]")
    for value in (math.nan, math.inf, -math.inf):
        sequences = two("group", "a")
        if name == "logprobs":
            del sequences[1]["logprobs"]
        sequences[1][f"{name}_f32"] = packed([-1, value, -1], "f")
        assert_refused(objective(plain, sequences), 422, "non_finite", f"sequences[1].{name}[1]")


def score(service, completion):
    return service.post("/v1/score", {"run": "logprobs", "verifiers": [{"name": "exact"}], "groups": [
        {"task": "t", "reference": "a", "completions": [{"text": "a"}, {"text": "a", "completion_ids": [1, 2, 3], **completion}]}]})


@pytest.mark.parametrize("form", ["json", "f32", "f64"])
def test_a_score_refuses_log_probabilities_above_0_too(plain, form):
    def given(values):
        return {"logprobs": values} if form == "json" else {f"logprobs_{form}": packed(values, {"f32": "f", "f64": "d"}[form])}
    path = "groups[0].completions[1].logprobs[1]"
    assert_refused(score(plain, given([-1, 0.5, -1])), 400, "invalid_field", path)
    assert_refused(score(plain, given([-1, 2e-6, -1])), 400, "invalid_field", path)
    assert score(plain, given([-1, 1e-6, 0])).status == 200
    assert score(plain, {**given([-1, 0.5, -1]), "completion_mask": [1, 0, 1]}).status == 200
    if form != "json":
        assert_refused(score(plain, given([-1, math.inf, -1])), 422, "non_finite", path)
        assert_refused(score(plain, given([-1, math.nan, -1])), 422, "non_finite", path)


@pytest.mark.parametrize("name", [name for name in LOGPROBS if name != "rollout_logprobs"])
def test_rollouts_on_record_are_held_to_the_same_and_their_mask_counts(plain, name):
    reply = plain.post("/v1/score", {"run": "stored", "verifiers": [{"name": "exact"}], "groups": [{"task": "t", "reference": "a", "completions": [
        {"text": "a", "completion_ids": [1, 2, 3], "logprobs": [-1, None, -1], "completion_mask": [1, 0, 1]},
        {"text": "b", "completion_ids": [1, 2, 3], "logprobs": [-1, -1, -1]}]}]})
    assert reply.status == 200, reply
    masked, plainly = [rollout["id"] for rollout in reply.json["groups"][0]["rollouts"]]

    def ask(rollout, values):
        return objective(plain, [{"rollout": rollout, "logprobs": [-1, -1, -1], name: values}], objective={"preset": "grpo"})
    assert_refused(ask(plainly, [-1, 0.5, -1]), 400, "invalid_field", f"sequences[0].{name}[1]")
    assert ask(masked, [-1, 0.5, -1]).status == 200
    assert ask(masked, [-1, None, -1]).status == 200


# -- F21 --------------------------------------------------------------------------------------------------------------

def f16_bits(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def bf16_value(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


# Zero, the smallest and largest subnormals, the smallest normal, one, the largest, and what lies between.
F16 = [0x0000, 0x8000, 0x8001, 0x83ff, 0x8400, 0x8401, 0xbc00, 0xbc01, 0xc248, 0xd640, 0xfbff, 0xb555]
BF16 = [0x0000, 0x8000, 0x8001, 0x807f, 0x8080, 0x8081, 0xbf80, 0xbf81, 0xc248, 0xc640, 0xb555, 0xc2c8]


def as_values(kind, bits):
    return [struct.unpack("<e", struct.pack("<H", one))[0] for one in bits] if kind == "F16" else [bf16_value(one) for one in bits]


def raw(kind, bits):
    return kind, struct.pack(f"<{len(bits)}H", *bits)


@pytest.mark.parametrize("kind, bits", [("F16", F16), ("BF16", BF16)])
@pytest.mark.parametrize("name", LOGPROBS + OTHERS)
@pytest.mark.parametrize("shift", [0, 1, 8])
def test_half_precision_is_read_exactly(plain, kind, bits, name, shift):
    """Bit for bit what JSON gives with the same numbers; gpg shows a log-probability itself: contribution -A lp / n."""
    sequences = make_sequences((5, 7))
    tensors = {**make_tensors(sequences), name: raw(kind, bits)}
    for sequence, part in zip(sequences, (as_values(kind, bits)[:5], as_values(kind, bits)[5:])):
        sequence[name] = part
    request = make_request(sequences)
    request["objective"] = {"preset": "gpg"}
    body = pack({**request, "pad": None} and json.dumps(request) + " " * shift, tensors, pad=False)
    reply = post(plain, body)
    assert reply.status == 200, reply
    assert reply.json == in_json(plain, sequences, objective={"preset": "gpg"})


@pytest.mark.parametrize("kind, bits", [("F16", F16), ("BF16", BF16)])
def test_the_largest_and_smallest_halves_are_in_the_loss_as_they_are(plain, kind, bits):
    values = as_values(kind, bits)
    request = {"objective": {"preset": "gpg", "aggregation": {"mode": "token_sum"}}, "sequences": [{"group": "a", "advantage": 1}]}
    reply = post(plain, pack(request, {"logprobs": raw(kind, bits), "cu_seqlens": ("I32", [0, len(bits)])}))
    assert reply.status == 200, reply
    assert reply.json["sequences"][0]["contributions"] == [-value + 0.0 for value in values]


@pytest.mark.parametrize("kinds", [("F64", "F32", "F16", "BF16"), ("BF16", "F16", "F32", "F64"), ("F16", "F16", "BF16", "BF16")])
def test_any_mix_of_types_in_one_request(plain, kinds):
    sequences = make_sequences()
    names = LOGPROBS[:4]
    for sequence in sequences:
        for name in names:  # numbers that every type holds
            sequence[name] = [round(value * 16) / 16 for value in sequence[name]]
    tensors = {**make_tensors(sequences), **{name: (kind, flat(sequences, name)) for name, kind in zip(names, kinds)}}
    reply = post(plain, pack(make_request(sequences), tensors))
    assert reply.status == 200 and reply.json == in_json(plain, sequences), reply


@pytest.mark.parametrize("name", LOGPROBS + OTHERS)
@pytest.mark.parametrize("kind, bits", [("F16", 0x7e00), ("F16", 0x7c01), ("F16", 0x7c00), ("F16", 0xfc00),
                                        ("BF16", 0x7fc0), ("BF16", 0x7f81), ("BF16", 0x7f80), ("BF16", 0xff80)])
def test_halves_that_are_no_numbers_are_refused_by_their_place(plain, name, kind, bits):
    sequences = sequences_without_mask(make_sequences((2, 2)))
    tensors = {**without_mask(make_tensors(make_sequences((2, 2)))), name: raw(kind, [0xb800, 0xb800, 0xb800, bits])}
    refused(plain, pack(make_request(sequences), tensors), 422, "non_finite", f"sequences[1].{name}[1]")


@pytest.mark.parametrize("name", ["mask", "advantage", "token_rewards", "completion_ids"])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_every_other_array_may_be_halves(plain, name, kind):
    sequences = make_sequences((2, 2))
    for sequence in sequences:
        sequence[name] = [1, 1]
        if name in ("advantage", "token_rewards"):
            del sequence["reward"]
    plainly = {"objective": {"preset": "grpo"}}
    if name == "token_rewards":
        plainly["objective"] = {"preset": "grpo", "advantage": {"estimator": "reward_to_go"}}
    reply = post(plain, pack(make_request(sequences, **plainly), changed(sequences, **{name: (kind, [1, 1, 1, 1])})))
    assert reply.status == 200 and reply.json == in_json(plain, sequences, **plainly), reply
