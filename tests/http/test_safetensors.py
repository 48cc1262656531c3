"""POST /v1/objective with tensors instead of JSON arrays: the same numbers, bit for bit."""
import json
import random

import pytest

from material import f32
from tensors import MEDIA_TYPE, flat, offsets, pack, unpack

ARRAYS = ("logprobs", "old_logprobs", "ref_logprobs", "rollout_logprobs")
OUTPUTS = ("surrogates", "contributions", "dloss_dlogp", "ratios", "weights", "kl", "clipped", "selected")


def make_sequences(lengths=(3, 5, 1, 7), seed=7):
    draw = random.Random(seed)
    return [{"group": "ab"[i % 2], "reward": float(i), "finish_reason": "stop", "mask": [int(draw.random() < 0.8) for _ in range(n)],
             **{name: [f32(-3 * draw.random()) for _ in range(n)] for name in ARRAYS}} for i, n in enumerate(lengths)]


def make_request(sequences, **more):
    return {"objective": {"preset": "grpo", "beta": 0.04},
            "sequences": [{name: value for name, value in one.items() if not isinstance(value, list)} for one in sequences], **more}


def make_tensors(sequences, kind="F32", mask="U8", cut="I32"):
    return {**{name: (kind, flat(sequences, name)) for name in ARRAYS}, "mask": (mask, flat(sequences, "mask")),
            "cu_seqlens": (cut, offsets(sequences))}


def post(service, body, accept=None, query=""):
    return service.post("/v1/objective" + query, body, {"Content-Type": MEDIA_TYPE, **({"Accept": accept} if accept else {})})


def ask(service, sequences, tensors=None, pad=True, **more):
    reply = post(service, pack(make_request(sequences, **more), tensors or make_tensors(sequences), pad=pad))
    assert reply.status == 200, reply
    return reply.json


def in_json(service, sequences, **more):
    reply = service.post("/v1/objective", {**make_request(sequences, **more), "sequences": sequences})
    assert reply.status == 200, reply
    return reply.json


def refused(service, body, status, code, path):
    reply = post(service, body)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path), reply


# -- in ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, mask, cut", [("F32", "U8", "I32"), ("F64", "BOOL", "I64"), ("F64", "F32", "U32")])
def test_tensors_give_what_json_gives_bit_for_bit(plain, kind, mask, cut):
    sequences = make_sequences()
    assert ask(plain, sequences, make_tensors(sequences, kind, mask, cut)) == in_json(plain, sequences)


@pytest.mark.parametrize("kind", ["F32", "F64"])
def test_every_other_array_of_a_sequence_may_be_a_tensor(plain, kind):
    sequences = make_sequences()
    for sequence in sequences:
        sequence.update(entropy=[-value for value in sequence["logprobs"]], teacher_logprobs=sequence["ref_logprobs"],
                        completion_ids=list(range(len(sequence["logprobs"]))))
    objective = {"preset": "grpo", "advantage": {"teacher_coef": 0.5}, "selection": {"method": "top_entropy_quantile", "rho": 0.5},
                 "shaping": [{"kind": "repetition", "ngram": 2, "max_penalty": -0.5}]}
    tensors = {**make_tensors(sequences, kind), "completion_ids": ("U32", flat(sequences, "completion_ids")),
               **{name: (kind, flat(sequences, name)) for name in ("entropy", "teacher_logprobs")}}
    assert ask(plain, sequences, tensors, objective=objective) == in_json(plain, sequences, objective=objective)


@pytest.mark.parametrize("shift", range(8))
def test_tensors_need_not_be_aligned(plain, shift):
    sequences = make_sequences()
    request = json.dumps(make_request(sequences)) + " " * shift
    for kind in ("F32", "F64"):
        reply = post(plain, pack(request, {"mask": make_tensors(sequences)["mask"], **make_tensors(sequences, kind)}, pad=False))
        assert reply.status == 200 and reply.json == in_json(plain, sequences)


def test_doubles_keep_all_their_bits(plain):
    sequences = [{"group": "a", "reward": 1.0, "logprobs": [-0.1], "old_logprobs": [-0.3]},
                 {"group": "a", "reward": 0.0, "logprobs": [-0.7], "old_logprobs": [-0.2]}]
    tensors = {name: ("F64", flat(sequences, name)) for name in ("logprobs", "old_logprobs")}
    plainly = {"objective": {"preset": "grpo"}}
    assert ask(plain, sequences, {**tensors, "cu_seqlens": ("I64", [0, 1, 2])}, **plainly) == in_json(plain, sequences, **plainly)


def test_nan_at_a_masked_token_is_never_read_and_elsewhere_refused(plain):
    sequences = make_sequences((2, 2))
    for sequence in sequences:
        sequence["mask"] = [1, 0]
    want = in_json(plain, sequences)
    for sequence in sequences:
        sequence["logprobs"][1] = float("nan")
    assert ask(plain, sequences) == want
    sequences[1]["mask"] = [1, 1]
    refused(plain, pack(make_request(sequences), make_tensors(sequences)), 422, "non_finite", "sequences[1].logprobs[1]")


def test_an_advantage_may_be_a_tensor(plain):
    sequences = [{"group": "a", "logprobs": [-1.0, -2.0], "advantage": [0.5, -0.5]}, {"group": "a", "logprobs": [-1.0], "advantage": [1.0]}]
    tensors = {"logprobs": ("F32", [-1, -2, -1]), "advantage": ("F32", [0.5, -0.5, 1]), "cu_seqlens": ("I64", [0, 2, 3])}
    request = {"objective": {"preset": "grpo"}, "sequences": [{"group": "a"}, {"group": "a"}]}
    reply = post(plain, pack(request, tensors))
    assert reply.status == 200, reply
    assert reply.json == plain.post("/v1/objective", {"objective": {"preset": "grpo"}, "sequences": sequences}).json


def test_rollouts_on_record_take_tensors_too(plain):
    completions = [{"text": text, "completion_ids": [1, 2], "logprobs": [-1, -0.5], "finish_reason": "stop"} for text in "34"]
    batch = plain.post("/v1/score", {"run": "tensors", "verifiers": [{"name": "exact"}],
                                     "groups": [{"task": "t", "reference": "3", "completions": completions}]}).json
    ids = [rollout["id"] for rollout in batch["groups"][0]["rollouts"]]
    tensors = {"logprobs": ("F32", [-1, -0.75, -1, -0.25]), "cu_seqlens": ("I32", [0, 2, 4])}
    kept = {"optimizer_step": 1}
    reply = post(plain, pack({"sequences": [{"rollout": name} for name in ids], **kept}, tensors), MEDIA_TYPE)
    assert reply.status == 200, reply
    body = {"sequences": [{"rollout": name, "logprobs": lp} for name, lp in zip(ids, ([-1, -0.75], [-1, -0.25]))]}
    asked = plain.post("/v1/objective", body).json
    assert unpack(reply.body)[1]["dloss_dlogp"] == flat(asked["sequences"], "dloss_dlogp")


# -- out --------------------------------------------------------------------------------------------------------------

def test_the_reply_is_in_the_same_form_for_those_who_accept_it(plain):
    sequences = make_sequences()
    want = in_json(plain, sequences)
    reply = post(plain, pack(make_request(sequences), make_tensors(sequences)), MEDIA_TYPE)
    assert reply.status == 200 and reply.headers["content-type"] == MEDIA_TYPE
    metadata, tensors = unpack(reply.body)
    assert set(tensors) == {*OUTPUTS, "cu_seqlens"} and tensors["cu_seqlens"] == offsets(sequences)
    for name in OUTPUTS:
        assert tensors[name] == flat(want["sequences"], name), name
    for sequence in want["sequences"]:
        for name in OUTPUTS:
            del sequence[name]
    assert json.loads(metadata["reply"]) == want


def test_a_json_request_may_be_answered_with_tensors(plain):
    sequences = make_sequences()
    reply = plain.post("/v1/objective", {**make_request(sequences), "sequences": sequences}, {"Accept": MEDIA_TYPE})
    assert reply.headers["content-type"] == MEDIA_TYPE
    assert unpack(reply.body)[1]["contributions"] == flat(in_json(plain, sequences)["sequences"], "contributions")


def test_return_and_arrays_pick_the_tensors(plain):
    sequences = make_sequences()
    body = pack(make_request(sequences, **{"return": ["dloss_dlogp", "clipped"]}), make_tensors(sequences))
    assert set(unpack(post(plain, body, MEDIA_TYPE).body)[1]) == {"cu_seqlens", "dloss_dlogp", "clipped"}
    assert set(unpack(post(plain, body, MEDIA_TYPE, "?arrays=none").body)[1]) == {"cu_seqlens"}


def test_refusals_are_json_whatever_is_accepted(plain):
    reply = post(plain, b"", MEDIA_TYPE)
    assert reply.status == 400 and reply.headers["content-type"] == "application/json"


# -- refusals ---------------------------------------------------------------------------------------------------------

def test_other_routes_take_no_tensors(plain):
    for path in ("/v1/batches", "/v1/score", "/v1/verify"):
        reply = plain.post(path, pack({}, {}), {"Content-Type": MEDIA_TYPE})
        assert (reply.status, reply.error["code"]) == (415, "unsupported_media_type")


def test_a_body_may_be_larger_than_json_but_has_a_limit_of_its_own(start):
    service = start(settings={"body_limit": "64KiB", "safetensors_limit": "256KiB"})
    for tokens, status in ((20_000, 200), (80_000, 413)):
        sequences = [{"group": "a", "reward": 1.0, "logprobs": [-1.0] * tokens}]
        body = pack(make_request(sequences, objective={"preset": "grpo"}), {"logprobs": ("F32", sequences[0]["logprobs"]), "cu_seqlens": ("I64", [0, tokens])})
        reply = post(service, body, query="?arrays=none")
        assert reply.status == status, reply
    assert reply.error["code"] == "body_too_large" and "safetensors_limit" in reply.error["message"]


def changed(sequences, **tensors):
    return {name: value for name, value in {**make_tensors(sequences), **tensors}.items() if value}


@pytest.mark.parametrize("tensors, status, code, path", [
    ({"cu_seqlens": None}, 400, "missing_field", "cu_seqlens"),
    ({"logprobs": None}, 400, "missing_field", "logprobs"),
    ({"cu_seqlens": ("I64", [0, 2])}, 422, "length_mismatch", "cu_seqlens"),
    ({"cu_seqlens": ("I64", [0, 4])}, 422, "length_mismatch", "sequences"),
    ({"cu_seqlens": ("I64", [1, 2, 4])}, 400, "invalid_field", "cu_seqlens[0]"),
    ({"cu_seqlens": ("I64", [0, 5, 4])}, 400, "invalid_field", "cu_seqlens[1]"),
    ({"cu_seqlens": ("I64", [0, 3, 2, 4])}, 400, "invalid_field", "cu_seqlens[2]"),
    ({"cu_seqlens": ("I64", [0, -1, 4])}, 400, "invalid_field", "cu_seqlens[1]"),
    ({"cu_seqlens": ("F64", [0, 2, 4])}, 400, "invalid_field", "cu_seqlens"),
    ({"cu_seqlens": ("I64", [0, 0, 4])}, 422, "empty_completion", "sequences[0].logprobs"),
    ({"old_logprobs": ("F32", [-1] * 3)}, 422, "length_mismatch", "old_logprobs"),
    ({"mask": ("U8", [1, 1, 1, 2])}, 400, "invalid_field", "sequences[1].mask[1]"),
    ({"nonsense": ("F32", [-1] * 4)}, 400, "unknown_field", "nonsense"),
    ({"reward": ("F32", [-1] * 4)}, 400, "unknown_field", "reward"),
])
def test_tensors_that_cannot_be_meant_are_refused_by_name(plain, tensors, status, code, path):
    sequences = make_sequences((2, 2))
    refused(plain, pack(make_request(sequences), changed(sequences, **tensors)), status, code, path)


def test_an_array_is_given_once(plain):
    sequences = make_sequences((2, 2))
    request = make_request(sequences)
    request["sequences"][1]["mask"] = [1, 1]
    refused(plain, pack(request, make_tensors(sequences)), 400, "invalid_field", "sequences[1].mask")


def test_the_json_in_the_metadata_is_read_as_strictly_as_a_body(plain):
    sequences = make_sequences((2, 2))
    tensors = make_tensors(sequences)
    refused(plain, pack({**make_request(sequences), "nonsense": 1}, tensors), 400, "unknown_field", "nonsense")
    refused(plain, pack("{", tensors), 400, "invalid_json", None)
    refused(plain, pack("", tensors), 400, "invalid_json", None)
    refused(plain, pack({}, tensors, key="other"), 400, "missing_field", "__metadata__.request")


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 100, -1])
def test_a_file_that_is_cut_is_refused(plain, cut):
    sequences = make_sequences((2, 2))
    reply = post(plain, pack(make_request(sequences), make_tensors(sequences))[:cut])
    assert reply.status == 400 and "safetensors" in reply.error["message"]
