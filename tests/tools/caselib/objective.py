"""objective_vectors.json through POST /v1/objective. The knob names are those of KNOBS.md."""
import json
import math
import os

from .compare import (Mismatch, NotMapped, same, same_flag, field, arrays, Refused, Caller, sequence,
                      short_sequence, long_sequence, at_mask, UNCLIPPED)
from .losses import run_kl, run_policy_loss, run_selection, run_sequence_loss
from .report import Suite
from .rewards import (run_advantage, run_filter, run_pass_at_k, run_reward_aggregation, run_shaping, same_advantages)

# -- aggregation: with ratio 1 and no clip the loss of a token is minus its advantage ------------------

def loss_sequences(losses, masks, groups=None):
    groups = groups or [f"g{index}" for index in range(len(losses))]
    return [sequence(group, [-1.0] * len(row), [-1.0] * len(row), mask, advantage=[-value for value in row])
            for group, row, mask in zip(groups, losses, masks)]


def run_aggregation(case, call):
    inputs, expected = case["inputs"], case["expected"]
    params = {name: value for name, value in case["params"].items() if name != "groups"}
    sequences = loss_sequences(inputs["per_token_loss"], inputs["mask"], case["params"].get("groups"))
    objective = {**UNCLIPPED, "aggregation": {"mode": case["mode"], **params}}
    try:
        reply = call(objective, sequences)
    except Refused as refused:
        if any(not row for row in inputs["mask"]) and refused.code == "empty_completion":
            return
        raise
    same("loss", field(reply, "loss"), expected["loss"])
    same("weights", arrays(reply, "weights", len(sequences)), expected["token_weights"])
    same_sum(reply, len(sequences))


def same_sum(reply, count):
    total = math.fsum(value for row in arrays(reply, "contributions", count) for value in row)
    same("sum of contributions", total, field(reply, "loss"))


def part_loss(call, losses, masks, totals):
    objective = {**UNCLIPPED, "aggregation": {"mode": "token_mean"}}
    return field(call(objective, loss_sequences(losses, masks), totals=totals), "loss")


def run_accumulation(case, call):
    inputs, expected = case["inputs"], case["expected"]
    if "micro_batches" in inputs:
        batches = inputs["micro_batches"]
        totals = {"tokens": sum(sum(map(sum, batch["mask"])) for batch in batches),
                  "sequences": sum(len(batch["mask"]) for batch in batches)}
        got = [part_loss(call, batch["per_token_loss"], batch["mask"], totals) for batch in batches]
        same("loss of each part", got, expected["contributions_with_global_count"])
        same("sum of the parts", math.fsum(got), expected["global_token_mean"])
    elif "rank_sums" in inputs:
        run_ranks(inputs, expected, call)
    else:
        tokens = inputs["tokens_optimizer_step"]
        each = inputs["token_loss_sum_step"] / tokens
        got = part_loss(call, [[each] * tokens], [[1] * tokens], {"tokens": tokens, "sequences": 1})
        same("loss", got, expected["correct"])


def run_ranks(inputs, expected, call):
    """The service gives each rank's share; a mean all-reduce over R ranks wants R times that."""
    ranks = len(inputs["rank_sums"])
    totals = {"tokens": sum(inputs["rank_tokens"]), "sequences": ranks}
    got = [part_loss(call, [[total / tokens] * tokens], [[1] * tokens], totals)
           for total, tokens in zip(inputs["rank_sums"], inputs["rank_tokens"])]
    same("share times ranks", [value * ranks for value in got], expected["per_rank_loss_for_mean_allreduce"])
    same("sum of the shares", math.fsum(got), expected["global_token_mean"])


# -- off-policy correction: with advantage -1 and ratio 1 a contribution is the weight itself ----------

def run_off_policy(case, call):
    inputs, expected = case["inputs"], case["expected"]
    mask = inputs["mask"]
    params = {name: value for name, value in case["params"].items() if value is not None}
    made = sequence("p", inputs["logp_old"], inputs["logp_old"], mask, advantage=-1.0,
                    rollout_logprobs=inputs["logp_rollout"])
    reply = call({**UNCLIPPED, "importance": {"method": case["method"], **params}}, [made])
    got = arrays(reply, "contributions", 1)[0]
    if "weights" in expected:
        same("weights", got, expected["weights"])
    elif "weight" in expected:
        same("weight", got, [expected["weight"] * keep for keep in mask])
    elif "mask" in expected:
        same("mask", got, expected["mask"])
    if "keep" in expected:
        same_flag("kept", arrays(reply, "kept", 1)[0], expected["keep"])


# -- metrics ----------------------------------------------------------------------------------------------

def metric(reply, path):
    value = field(reply, "metrics")
    for name in path.split("."):
        value = field(value, name, "metrics")
    return value


def metrics_off_policy(case, call):
    inputs = case["inputs"]
    made = sequence("p", inputs["logp_old"], inputs["logp_old"], inputs["mask"], advantage=1.0,
                    rollout_logprobs=inputs["logp_rollout"])
    reply = call({"importance": {"method": "token"}}, [made])
    for name, want in case["expected"].items():
        same(f"metrics.rollout.{name}", metric(reply, f"rollout.{name}"), want)


CLIP_METRICS = {"clip_low_mean": "clip_low_fraction", "clip_high_mean": "clip_high_fraction",
                "clip_region_mean": "clip_fraction"}


def metrics_clip(case, call):
    inputs = case["inputs"]
    made = sequence("p", inputs["logp"], inputs["logp_old"], inputs["mask"], advantage=inputs["advantage"])
    eps = inputs["eps"]
    reply = call({"loss": {"kind": "ppo_clip", "eps_low": eps, "eps_high": eps}}, [made])
    for name, want in case["expected"].items():
        path = CLIP_METRICS.get(name, name)
        same(f"metrics.{path}", metric(reply, path), want)


REWARD_METRICS = {"frac_reward_zero_std_samples": "frac_reward_zero_std", "reward_std_sample": "reward_std"}


def metrics_reward(case, call):
    inputs = case["inputs"]
    sequences = [short_sequence(group, reward=reward) for group, reward in zip(inputs["group"], inputs["rewards"])]
    reply = call({}, sequences)
    for name, want in case["expected"].items():
        path = REWARD_METRICS.get(name, name)
        same(f"metrics.{path}", metric(reply, path), want)


def metrics_length(case, call):
    inputs = case["inputs"]
    sequences = [long_sequence("p", length, reward=1.0, finish_reason=finish)
                 for length, finish in zip(inputs["lengths"], inputs["finish"])]
    reply = call({}, sequences)
    for name, want in case["expected"].items():
        path = "truncated_fraction" if name == "clipped_ratio" else name
        same(f"metrics.{path}", metric(reply, path), want)


METRICS = {"offpolicy-metrics": metrics_off_policy, "clip-metrics": metrics_clip,
           "frac-reward-zero-std": metrics_reward, "length-metrics": metrics_length}


def run_metrics(case, call):
    if case["id"] not in METRICS:
        raise NotMapped("unknown metrics case")
    METRICS[case["id"]](case, call)


# -- end to end ----------------------------------------------------------------------------------------------

def importance_knobs(params):
    """The vectors write level, how and mode apart; the wire has one method and a reduction."""
    if params is None:
        return {"method": "none"}
    knobs = {"method": f"{params.get('level', 'token')}_{params['mode']}", "hi": params["hi"]}
    if "lo" in params:
        knobs["lo"] = params["lo"]
    if "how" in params:
        knobs["reduction"] = params["how"]
    return knobs


LOSS_KINDS = {"ppo": "ppo_clip"}


def end_to_end_knobs(params):
    kind = params.get("kind", "ppo")
    return {"advantage": {"estimator": "grpo", **params["advantage"]},
            "loss": {"kind": LOSS_KINDS.get(kind, kind), **params["loss"]},
            "beta": params["beta"], "kl": {"estimator": params.get("kl", "k3"), "in": "loss"},
            "aggregation": params["aggregation"], "importance": importance_knobs(params["importance"])}


def end_to_end_sequences(inputs):
    names = {"logp_ref": "ref_logprobs", "logp_rollout": "rollout_logprobs"}
    made = []
    for index, group in enumerate(inputs["group"]):
        extra = {wire: inputs[name][index] for name, wire in names.items() if name in inputs}
        made.append(sequence(group, inputs["logp"][index], inputs["logp_old"][index], inputs["mask"][index],
                             reward=inputs["rewards"][index], **extra))
    return made


def run_end_to_end(case, call):
    inputs, expected, masks = case["inputs"], case["expected"], case["inputs"]["mask"]
    reply = call(end_to_end_knobs(case["params"]), end_to_end_sequences(inputs))
    count = len(masks)
    same_advantages(reply, inputs, expected["advantages"])
    same("weights", arrays(reply, "weights", count), expected["token_weights"])
    same("contributions", arrays(reply, "contributions", count), expected["contributions"])
    same("dloss_dlogp", arrays(reply, "dloss_dlogp", count), expected["grad_logp"])
    same("loss", field(reply, "loss"), expected["loss"])
    parts_sum = math.fsum(field(reply, name) for name in ("policy_loss", "kl_loss"))
    same("policy_loss + kl_loss", parts_sum, expected["loss"])
    for index, mask in enumerate(masks):
        if "per_token_policy_loss" in expected:
            same(f"surrogates[{index}]", arrays(reply, "surrogates", count)[index],
                 [-value for value in expected["per_token_policy_loss"][index]])
        if "ratio" in expected:
            same(f"ratios[{index}]", at_mask(arrays(reply, "ratios", count)[index], mask),
                 at_mask(expected["ratio"][index], mask))
        if case["params"]["beta"] and "per_token_kl" in expected:
            same(f"kl[{index}]", arrays(reply, "kl", count)[index], expected["per_token_kl"][index])
    for name, path in (("clip_low", "clip_low_fraction"), ("clip_high", "clip_high_fraction")):
        if name in expected:
            same(f"metrics.{path}", metric(reply, path), expected[name])


SECTIONS = {"advantages": run_advantage, "reward_aggregation": run_reward_aggregation,
            "reward_shaping": run_shaping, "group_filters": run_filter, "pass_at_k": run_pass_at_k, "kl": run_kl,
            "policy_losses": run_policy_loss, "sequence_losses": run_sequence_loss,
            "token_selection": run_selection, "aggregation": run_aggregation, "accumulation": run_accumulation,
            "off_policy": run_off_policy, "metrics": run_metrics, "end_to_end": run_end_to_end}


def run_case(suite, handler, case, call):
    try:
        handler(case, call)
    except NotMapped as reason:
        suite.skip(case["id"], str(reason))
    except Mismatch as wrong:
        suite.failed(case["id"], wrong.expected, wrong.got)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError) as problem:
        suite.failed(case["id"], "a reply of the agreed shape", f"{type(problem).__name__}: {problem}")
    else:
        suite.passed(case["id"])


def run(service, folder):
    """One suite per section of the file."""
    with open(os.path.join(folder, "objective_vectors.json"), encoding="utf-8") as file:
        vectors = json.load(file)
    call, suites = Caller(service), []
    for section, cases in vectors.items():
        if section == "meta":
            continue
        suite = Suite(f"objective.{section}")
        for case in cases:
            if section in SECTIONS:
                run_case(suite, SECTIONS[section], case, call)
            else:
                suite.skip(case["id"], "unknown section")
        suites.append(suite)
    return suites
