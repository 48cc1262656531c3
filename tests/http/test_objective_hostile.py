"""/v1/objective under inputs that nobody means, and every kind of every knob under every preset."""
import json
import math
import os
import random

import pytest
import yaml

from harness import ROOT

SECTIONS = {"advantage": "estimator", "shaping": "kind", "filter": "rule", "loss": "kind", "kl": "estimator", "importance": "method",
            "selection": "method", "aggregation": "mode"}
REQUIRED = {
    "cispo": {"hi": 1.2}, "dro": {"beta": 0.5}, "two_sided": {"delta": 1.3}, "dapo_soft_overlong": {"max_len": 4, "buffer": 2},
    "stop_properly": {"coef": 0.5}, "linear_map": {"source": [0, 1], "target": [-1, 1]}, "bias_scale_clip": {"bias": 0, "scale": 2, "clip": 3},
    "reward_clip": {"lo": 0, "hi": 1}, "cosine": {"max_len": 8}, "rollout_rs": {"option": "token_k1", "threshold": 2}, "tv_mask": {"threshold": 0.1},
    "seq_mult_prob_error": {"threshold": 1.5}, "top_entropy_quantile": {"rho": 0.5}, "off_policy_sequence_mask": {"delta": 0.1},
    "m2po": {"threshold": 0.1}, "clip_cov": {"ratio": 0.5, "lb": -9, "ub": 9}, "kl_cov": {"frac": 0.5, "ppo_kl_coef": 1},
    "seq_mean_token_sum_norm": {"max_len": 8}, "seq_sum_token_sum_norm": {"max_len": 8}, "constant": {"denominator": 8}}
WILD = [0, -1e-320, -1e-9, -1, -5, -709, -745, -746, -1e4, -1e15, -1e100, -1e300, -1.7e308]
REWARDS = [0, 1, -1, 1e-300, 1e150, 1e300, -1e308, None, 5e-324]


def sequence(group="a", tokens=1, **fields):
    return {"group": group, "logprobs": [-1.0] * tokens, **fields}


def ask(service, body):
    """The reply; every number of it is one, and every refusal says what and where."""
    reply = service.post("/v1/objective", body)
    answer = json.loads(reply.body, parse_constant=lambda name: pytest.fail(f"{name} in the reply to {body}"))
    if reply.status != 200:
        assert 400 <= reply.status < 500 and answer["error"]["code"] and answer["error"]["message"] and answer["error"]["path"], (body, answer)
    return reply.status, answer


def refused(service, body):
    status, answer = ask(service, body)
    assert status != 200, answer
    return status, answer["error"]["code"], answer["error"]["path"]


def check_sums(answer, what):
    terms = [value for row in answer["sequences"] for value in row["contributions"]]
    if answer["loss"] is None:
        assert not any(terms) and all(row["advantage"] is None for row in answer["sequences"]), (what, answer["notes"])
        return
    size = max(math.fsum(map(abs, terms)), 1e-300)
    assert abs(math.fsum(terms) - answer["loss"]) <= 1e-12 * size, what
    assert abs(answer["policy_loss"] + answer["kl_loss"] - answer["loss"]) <= 1e-12 * max(abs(answer["policy_loss"]), abs(answer["kl_loss"]), 1e-300), what
    for row in answer["sequences"]:
        assert row["loss"] is None or abs(math.fsum(row["contributions"]) - row["loss"]) <= 1e-12 * size, what


def kinds():
    """Every kind of every section, as /openapi.yaml knows them."""
    with open(os.path.join(ROOT, "schema", "openapi.yaml"), encoding="utf-8") as file:
        schemas = yaml.safe_load(file)["components"]["schemas"]
    for section, selector in SECTIONS.items():
        part = schemas["ObjectiveCorrection"] if section == "importance" else schemas["Objective"]["properties"][section]
        part = part["items"] if section == "shaping" else part
        for kind in part["properties"][selector]["enum"]:
            item = {selector: kind, **REQUIRED.get(kind, {})}
            yield {section: [item] if section == "shaping" else item}


def made(draw, estimator, wild):
    """Six sequences in three groups with every input; masked, flat, unjudged or far beyond what exp can take."""
    lengths, groups, ordinary = (3, 1, 2, 4, 1, 2), "aaabbc", (1, 0, 0.5, 1, 1, 2)
    for place, (length, group, reward) in enumerate(zip(lengths, groups, ordinary)):
        def values():
            return [draw.choice(WILD) if wild else -draw.expovariate(1) for _ in range(length)]
        reward = draw.choice(REWARDS) if wild else reward
        by = {"gdpo": {"rewards": {"r": {"score": reward, "weight": 1}}},
              "process": {"step_rewards": [[length, reward or 0]]}}.get(estimator, {"reward": reward})
        yield {"group": group, "rollout": f"{group}-{place}", "agent": group, **by, "logprobs": values(), "old_logprobs": values(), "ref_logprobs": values(),
               "rollout_logprobs": values(), "teacher_logprobs": values(), "entropy": [abs(value) for value in values()],
               "sum_pi_squared": [0.5] * length, "mask": [draw.randint(0, 1) if wild else 1 for _ in range(length)],
               "finish_reason": draw.choice(["stop", "length"]), "greedy_reward": 0.25, "completion_ids": [7] * length, "prompt_tokens": 3, "turns": 1}


@pytest.mark.parametrize("wild", [False, True])
def test_every_kind_of_every_knob_under_every_preset(plain, wild):
    """Ordinary inputs are computed, except knobs that exclude each other; wild ones are computed or refused by place. Sums always agree."""
    presets = {preset["name"]: preset["objective"]["advantage"]["estimator"] for preset in plain.read("/v1/presets")["presets"]}
    draw, computed, refusals = random.Random(5), 0, set()
    for knobs in kinds():
        for preset, estimator in presets.items():
            objective = {"preset": preset, **knobs}
            estimator = knobs.get("advantage", {}).get("estimator", estimator)
            status, answer = ask(plain, {"objective": objective, "sequences": list(made(draw, estimator, wild))})
            if status == 200:
                computed += 1
                check_sums(answer, objective)
            else:
                refusals.add((answer["error"]["code"], answer["error"]["path"].split("[")[0].split(".")[0]))
    assert computed > (2000 if not wild else 300), computed
    excluded = {("objective_options", "objective"), ("objective_options", "sequences")}  # process takes no shaping of a sequence's reward
    assert refusals <= (excluded | {("non_finite", "sequences")} if wild else excluded), refusals


# -- numbers beyond double ------------------------------------------------------------------------------------------------

SUM = {"aggregation": {"mode": "token_sum"}}


@pytest.mark.parametrize("objective, sequences, path", [
    (SUM, [sequence(tokens=2, advantage=1.7e308)], "sequences[0].logprobs"),
    (SUM, [sequence(advantage=1.7e308), sequence(advantage=1.7e308), sequence(advantage=-1.7e308)], "sequences[1].logprobs"),
    ({}, [sequence(advantage=-1e308, old_logprobs=[-3.0])], "sequences[0].logprobs[0]"),
    ({}, [sequence(reward=1.7e308), sequence(reward=1.7e308), sequence(reward=-1.7e308)], "sequences[0].reward"),
    ({}, [sequence(rewards={"a": {"score": 1e308, "weight": 1e308}})], "sequences[0].rewards.a"),
    ({}, [sequence(rewards={"a": {"score": 1e308, "weight": 10}, "b": {"score": -1e308, "weight": 10}})], "sequences[0].rewards.a"),
    ({}, [sequence(rewards={"a": {"score": 1.7e308, "weight": 1}, "b": {"score": 1.7e308, "weight": 1}})], "sequences[0].rewards"),
    ({"beta": 1}, [sequence(advantage=0, logprobs=[-1000.0], ref_logprobs=[-1.0])], "sequences[0].ref_logprobs[0]"),
    ({"advantage": {"estimator": "reward_to_go"}}, [sequence(tokens=2, token_rewards=[1.7e308, 1.7e308])], "sequences[0].reward"),
    ({}, [{"group": "a", "advantage": 1, "logprobs_f32": "AADAfw=="}], "sequences[0].logprobs[0]"),  # a NaN
    ({}, [{"group": "a", "advantage": 1, "logprobs_f32": "AACA/w=="}], "sequences[0].logprobs[0]"),  # minus infinity
])
def test_a_number_beyond_double_is_refused_with_its_path(plain, objective, sequences, path):
    """A sum that overflows is no null loss, and infinities that cancel are no missing reward."""
    assert refused(plain, {"objective": objective, "sequences": sequences}) == (422, "non_finite", path)


@pytest.mark.parametrize("body", [
    '{"sequences":[{"group":"a","reward":NaN,"logprobs":[-1]}]}', '{"sequences":[{"group":"a","reward":1,"logprobs":[-Infinity]}]}',
    '{"sequences":[{"group":"a","reward":1,"logprobs":[nan]}]}', '{"sequences":[{"group":"a","reward":1,"logprobs":[1e5000]}]}',
    '{"sequences":[{"group":"a","reward":"NaN","logprobs":[-1]}]}', '{"sequences":[{"group":"a","reward":1,"logprobs":["-Infinity"]}]}'])
def test_a_number_that_is_none_is_refused_however_it_is_spelled(plain, body):
    reply = plain.post("/v1/objective", body.encode())
    assert reply.status == 400 and reply.error["code"] in ("invalid_json", "invalid_field"), reply


# -- what does not fit together ---------------------------------------------------------------------------------------------

def steps(*rewards, tokens=2):
    return {"objective": {"advantage": {"estimator": "process"}}, "sequences": [sequence(tokens=tokens, step_rewards=list(rewards))]}


@pytest.mark.parametrize("body, status, code, path", [
    (steps([0, 1]), 400, "invalid_field", "sequences[0].step_rewards[0]"), (steps([2, 1], [1, 0]), 400, "invalid_field", "sequences[0].step_rewards[1]"),
    (steps([1, 1], [1, 0]), 400, "invalid_field", "sequences[0].step_rewards[1]"), (steps(), 400, "invalid_field", "sequences[0].step_rewards"),
    (steps([1.5, 1]), 400, "invalid_field", "sequences[0].step_rewards[0]"), (steps([1, None]), 400, "invalid_field", "sequences[0].step_rewards[0]"),
    (steps([1, 1, 1]), 400, "invalid_field", "sequences[0].step_rewards[0]"), (steps([3, 1]), 400, "invalid_field", "sequences[0].step_rewards[0]"),
    ({"sequences": [sequence(reward=1, finish_reason="lenght")]}, 400, "invalid_field", "sequences[0].finish_reason"),
    ({"sequences": [sequence(reward=1), sequence(advantage=1)]}, 422, "objective_options", "sequences[1].advantage"),
    ({"sequences": [sequence(reward=1), {"rollout": "r_x", "logprobs": [-1]}]}, 400, "invalid_field", "sequences[1].rollout"),
    ({"sequences": [sequence(advantage=1)], "totals": {}}, 422, "objective_options", "totals.sequences"),
    ({"sequences": [sequence(advantage=1)] * 2, "totals": {"sequences": 1}}, 422, "objective_options", "totals.sequences"),
    ({"sequences": [sequence(advantage=1)], "totals": {"sequences": 2 ** 63 - 1}}, 400, "invalid_field", "totals.sequences"),
    ({"sequences": [sequence(reward=1)] * 2, "totals": {"sequences": 9}, "group_sizes": {"a": 1}}, 400, "invalid_field", "group_sizes.a"),
    ({"sequences": [sequence(reward=1)], "totals": {"sequences": 9}, "group_sizes": {"b": 1}}, 400, "missing_field", "group_sizes.a"),
    ({"sequences": [sequence(reward=1)], "group_sizes": {"a": 2}}, 422, "incomplete_group", "group_sizes.a"),
    ({"objective": {"advantage": {"clip_low": 2, "clip_high": 1}}, "sequences": [sequence(reward=1)]}, 422, "objective_options", "objective.advantage.clip_low"),
    ({"objective": {"importance": {"method": "token_mask", "lo": 2, "hi": 1}}, "sequences": [sequence(reward=1)]}, 422, "objective_options",
     "objective.importance.lo"),
    ({"objective": {"shaping": [{"kind": "no_eos_zero"}] * 17}, "sequences": [sequence(reward=1)]}, 422, "objective_options", "objective.shaping[16]"),
    ({"objective": {"preset": "grpo\0"}, "sequences": [sequence(reward=1)]}, 422, "objective_options", "objective.preset")])
def test_a_contradiction_is_refused_by_its_place(plain, body, status, code, path):
    assert refused(plain, body) == (status, code, path)


@pytest.mark.parametrize("preset", ["dapo", "gpg", "reinforce_pp", "gdpo", "trl", "slime"])
def test_a_filter_that_leaves_nothing_leaves_0_and_a_note(plain, preset):
    rewards = {"rewards": {"r": {"score": 1, "weight": 1}}}
    status, answer = ask(plain, {"objective": {"preset": preset, "filter": {"rule": "nonzero_variance"}},
                                 "sequences": [sequence(**rewards, rollout_logprobs=[-1], old_logprobs=[-1])] * 3})
    assert status == 200 and answer["loss"] == 0 and not any(row["kept"] for row in answer["sequences"]), answer
    assert answer["totals"]["tokens"] == 0 and any("filter" in note for note in answer["notes"])
    check_sums(answer, preset)


def test_a_dropped_group_moves_no_running_baseline(plain):
    """Group b is flat and dropped; 0.5 of the reward moves the baseline: 1 - 0, then 0 - 0.5."""
    made = [sequence("b", reward=4), sequence("a", reward=1), sequence("b", reward=4), sequence("a", reward=0)]
    status, answer = ask(plain, {"objective": {"filter": {"rule": "nonzero_variance"}, "advantage": {"estimator": "ema_baseline", "decay": 0.5}},
                                 "sequences": made})
    assert status == 200 and [row["advantage"] for row in answer["sequences"]] == [0, 1, 0, -0.5], answer
    assert answer["metrics"]["final_baseline"] == 0.25


def test_a_step_of_a_call_without_the_record_is_not_kept_and_says_so(plain):
    status, answer = ask(plain, {"sequences": [sequence(advantage=1)], "optimizer_step": 3})
    assert status == 200 and any("optimizer_step" in note for note in answer["notes"])


# -- rollouts on record ------------------------------------------------------------------------------------------------------

@pytest.fixture
def record(plain):
    """The ids of one group of four: rewards 1 0 0 1."""
    reply = plain.post("/v1/score", {"run": "hostile", "verifiers": [{"name": "exact"}], "groups": [{"task": "t", "reference": "3", "completions": [
        {"text": text, "completion_ids": [1, 2], "logprobs": [-1, -0.5], "finish_reason": "stop"} for text in "3443"]}]})
    assert reply.status == 200, reply
    return [rollout["id"] for rollout in reply.json["groups"][0]["rollouts"]]


def stored(identity, **fields):
    return {"rollout": identity, "logprobs": [-0.9, -0.5], **fields}


@pytest.mark.parametrize("fields, path", [
    ({"reward": 1}, "reward"), ({"advantage": 1}, "advantage"), ({"rollout_logprobs": [-1, -1]}, "rollout_logprobs"),
    ({"completion_ids": [1, 2]}, "completion_ids"), ({"finish_reason": "length"}, "finish_reason"), ({"length": 9}, "length"),
    ({"prompt_tokens": 9}, "prompt_tokens"), ({"turns": 2}, "turns"), ({"agent": "x"}, "agent")])
def test_fields_that_the_record_has_are_not_taken_from_the_request(plain, record, fields, path):
    """Ignored, it would be a length that shaping does not see."""
    assert refused(plain, {"sequences": [stored(record[0], **fields)]}) == (400, "invalid_field", f"sequences[0].{path}")


@pytest.mark.parametrize("body, status, code, path", [
    ({"objective": {"loss": {"kind": "real"}}}, 422, "incomplete_group", "sequences"),  # one sign of two would count as 0
    ({"objective": {"advantage": {"scale": "batch"}}}, 422, "incomplete_group", "sequences"),
    ({"objective": {"shaping": [{"kind": "linear_length_penalty"}]}}, 422, "objective_options", "objective"),
    ({"group_sizes": {"a": 4}}, 400, "invalid_field", "group_sizes"), ({"totals": {"sequences": 0}}, 422, "objective_options", "totals.sequences")])
def test_a_part_of_the_record_is_not_taken_for_the_whole(plain, record, body, status, code, path):
    assert refused(plain, {"sequences": [stored(record[0])], **body}) == (status, code, path)


def test_a_whole_group_of_the_record_has_its_real_loss(plain, record):
    """s = 0.05 of each; ln(1 + 2 e^0.1) + ln(1 + 2 e^-0.1), tau 0.5."""
    status, answer = ask(plain, {"objective": {"loss": {"kind": "real"}}, "sequences": [stored(identity) for identity in record]})
    assert status == 200 and math.isclose(answer["loss"], math.log1p(2 * math.exp(0.1)) + math.log1p(2 * math.exp(-0.1)), rel_tol=1e-6)


def test_a_greedy_reward_goes_with_rollouts_on_record(plain, record):
    status, answer = ask(plain, {"objective": {"preset": "remax"}, "sequences": [stored(identity, greedy_reward=0.25) for identity in record]})
    assert status == 200 and [row["advantage"][0] for row in answer["sequences"]] == [0.75, -0.25, -0.25, 0.75]


def test_a_part_without_its_step_is_not_kept_and_says_so(plain, record):
    for fields in ({"part": 1}, {"ppo_epoch": 1}):
        status, answer = ask(plain, {"sequences": [stored(record[0])], **fields})
        assert status == 200 and any("optimizer_step" in note for note in answer["notes"])
    status, answer = ask(plain, {"sequences": [stored(record[0])], "optimizer_step": 1})
    assert status == 200 and not any("optimizer_step" in note for note in answer["notes"])


def test_a_rollout_is_named_once_and_by_its_own_id(plain, record):
    assert refused(plain, {"sequences": [stored(record[0])] * 2}) == (400, "invalid_field", "sequences[1].rollout")
    for name in ("", record[0] + "\0", record[0][:-1], "r_"):
        assert refused(plain, {"sequences": [stored(name)]}) == (404, "not_found", "sequences[0].rollout")
