"""Rewards that are equal, names that are missing, rollouts of several sequences: what counts as a difference, and how often.

F01: rounding is no signal. F02: gdpo with a missing score. F05: a rollout counts once.
"""
import itertools
import math
import random

import pytest

from material import make_batch, make_group

CENTRED = [
    {"estimator": "grpo"}, {"estimator": "grpo", "ddof": 1, "eps": 1e-4}, {"estimator": "grpo", "scale": "batch"}, {"estimator": "grpo", "scale": "none"},
    {"estimator": "rloo"}, {"estimator": "maxrl"}, {"estimator": "gpg"}, {"estimator": "reinforce_plus_plus_baseline_sequence"},
    {"estimator": "rloo", "normalize_batch": True}, {"estimator": "normalization"}, {"estimator": "normalization", "leave_one_out": True},
    {"estimator": "normalization", "scale": "batch"}, {"estimator": "normalization", "scale": "none"}]
OTHERS = [{"estimator": "loo_mean_loo_std"}, {"estimator": "grpo_passk"}, {"estimator": "opo"}, {"estimator": "gdpo"},
          {"estimator": "reinforce_plus_plus_baseline"}, {"estimator": "process"}, {"estimator": "optimal_token_baseline"}]


def sequence(reward=None, group="a", tokens=1, **fields):
    judged = {} if {"rewards", "step_rewards", "advantage", "token_rewards"} & set(fields) else {"reward": reward}
    return {"group": group, "logprobs": [-1.0] * tokens, **judged, **fields}


def judged(estimator, reward, group="a", tokens=1, **fields):
    """A sequence of this reward, in the form that the estimator reads."""
    by = {"gdpo": {"rewards": {"r": {"score": reward}}}, "process": {"step_rewards": [[tokens, reward]]}}.get(estimator, {"reward": reward})
    more = {"sum_pi_squared": [0.5] * tokens} if estimator == "optimal_token_baseline" else {}
    return sequence(group=group, tokens=tokens, **by, **more, **fields)


def ask(service, sequences, advantage=None, **more):
    objective = more.pop("objective", {})
    reply = service.post("/v1/objective", {"objective": {**objective, "advantage": advantage or {"estimator": "grpo"}}, "sequences": sequences, **more})
    assert reply.status == 200, reply
    return reply.json


def refused(service, sequences, advantage=None, **more):
    reply = service.post("/v1/objective", {"objective": {"advantage": advantage or {"estimator": "grpo"}, **more}, "sequences": sequences})
    assert reply.status >= 400, reply
    return reply.status, reply.error["code"], reply.error["path"]


def advantages(reply):
    """One number for a sequence; of an estimator per token the first token's."""
    return [row["advantage"][0] if isinstance(row["advantage"], list) else row["advantage"] for row in reply["sequences"]]


def named(knobs):
    return "-".join(str(value) for value in knobs.values())


# -- F01: what is equal ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("advantage", CENTRED + OTHERS, ids=named)
@pytest.mark.parametrize("rewards", [
    (0.1 + 0.2, 0.3), (0.3, 0.1 + 0.2, 0.3), (-0.1 - 0.2, -0.3), (1e9 + 1e-4, 1e9), (1e15, 1e15 + 0.125, 1e15 - 100), (0.7, 0.7),
    (1 / 3, 1 - 2 / 3, 0.3333333333333333)], ids=str)
def test_rewards_that_differ_by_rounding_have_no_variance(plain, advantage, rewards):
    reply = ask(plain, [judged(advantage["estimator"], reward) for reward in rewards], advantage, objective={"filter": {"rule": "none"}})
    assert advantages(reply) == [0] * len(rewards)
    assert reply["metrics"]["zero_variance_groups"] == 1 and reply["metrics"]["frac_reward_zero_std"] == 1
    assert reply["metrics"]["reward_std"] == 0


@pytest.mark.parametrize("advantage", [knobs for knobs in CENTRED if "batch" not in named(knobs)] + OTHERS[:3], ids=named)
def test_a_twin_group_shares_the_scale_and_still_rounding_is_no_signal(plain, advantage):
    made = [judged(advantage["estimator"], reward, group) for group in "ab" for reward in (0.1 + 0.2, 0.3)]
    assert advantages(ask(plain, made, advantage)) == [0] * 4


def test_under_the_scale_of_the_batch_a_group_of_rounding_gets_zeros_beside_a_group_of_signal(plain):
    made = [sequence(0.1 + 0.2), sequence(0.3), sequence(1, "b"), sequence(0, "b")]
    for advantage in ({"estimator": "grpo", "scale": "batch"}, {"estimator": "normalization", "scale": "batch"}, {"estimator": "rloo", "normalize_batch": True},
                      {"estimator": "reinforce_plus_plus_baseline_sequence"}):
        found = advantages(ask(plain, made, advantage))
        assert found[:2] == [0, 0] and found[2] > 0.5 and found[3] == -found[2], advantage


@pytest.mark.parametrize("advantage", CENTRED + OTHERS, ids=named)
@pytest.mark.parametrize("low", [1.0, 1e9, 3e-7])
def test_a_relative_difference_of_a_billionth_is_a_difference(plain, advantage, low):
    high = low * (1 + 1e-9)
    reply = ask(plain, [judged(advantage["estimator"], reward) for reward in (low, high, low)], advantage)
    found = advantages(reply)
    assert found[1] > 0 >= found[0] and reply["metrics"]["zero_variance_groups"] == 0, found


@pytest.mark.parametrize("weights", [(1, 1), (3, 3), (0.1, 0.1), (-1, -1), (1e6, 1e6)])
def test_weighted_sums_that_agree_but_for_rounding_are_equal(plain, weights):
    first = {name: {"score": score, "weight": weight} for name, score, weight in zip("xy", (0.1, 0.2), weights)}
    second = {"x": {"score": 0.3, "weight": weights[0]}}
    reply = ask(plain, [sequence(rewards=first), sequence(rewards=second)])
    assert advantages(reply) == [0, 0] and reply["metrics"]["zero_variance_groups"] == 1


@pytest.mark.parametrize("advantage", CENTRED + OTHERS[:3] + [{"estimator": "gdpo"}], ids=named)
def test_scores_that_cancel_leave_nothing_not_their_rounding(plain, advantage):
    one = {"x": {"score": 0.1}, "y": {"score": 0.2}, "z": {"score": -0.3}}
    none = {"x": {"score": 0.0}, "y": {"score": 0.0}, "z": {"score": 0.0}}
    reply = ask(plain, [sequence(rewards=one), sequence(rewards=none)], advantage)
    assert [row["reward"] for row in reply["sequences"]] == [0, 0] and reply["metrics"]["zero_variance_groups"] == 1
    if advantage["estimator"] != "gdpo":
        assert advantages(reply) == [0, 0]


def test_names_that_cancel_after_their_normalisation_give_zeros_under_gdpo(plain):
    scores = [(0.1, 0.3), (0.7, -0.9), (0.35, -0.2)]
    made = [sequence(rewards={"x": {"score": x}, "y": {"score": -3 * x + 7.1}}) for x, _ in scores]
    assert advantages(ask(plain, made, {"estimator": "gdpo", "eps_group": 0})) == [0, 0, 0]


def test_shaping_that_takes_an_offset_off_leaves_no_rounding(plain):
    for shaper in ({"kind": "bias_scale_clip", "bias": -0.3, "scale": 1, "clip": 5}, {"kind": "linear_map", "source": [0.3, 1], "target": [0, 1]}):
        reply = ask(plain, [sequence(0.1 + 0.2), sequence(0.3)], objective={"shaping": [shaper]})
        assert advantages(reply) == [0, 0] and reply["metrics"]["zero_variance_groups"] == 1, shaper


@pytest.mark.parametrize("rule", [{"rule": "nonzero_variance"}, {"rule": "range", "tol": 0}, {"rule": "mean_interval", "lo": 0, "hi": 0.3},
                                  {"rule": "mean_interval", "lo": 0.3, "hi": 1}], ids=str)
def test_filters_drop_a_group_of_rewards_that_are_equal_but_for_rounding(plain, rule):
    below = math.nextafter(0.3, 0)
    made = [sequence(0.3), sequence(below), sequence(0.3), sequence(0.1, "b"), sequence(0.25, "b"), sequence(0.9, "c"), sequence(0.4, "c")]
    for on in ("raw", "shaped"):
        reply = ask(plain, made, objective={"filter": {**rule, "on": on}})
        assert [row["kept"] for row in reply["sequences"]][:3] == [False] * 3
        assert any(row["kept"] for row in reply["sequences"])


def test_a_group_of_rounding_has_no_kl_where_that_is_skipped(plain):
    made = [sequence(0.1 + 0.2, ref_logprobs=[-2.0]), sequence(0.3, ref_logprobs=[-2.0])]
    reply = ask(plain, made, objective={"beta": 1, "kl": {"skip_zero_variance": True}})
    assert reply["loss"] == 0 and reply["kl_loss"] == 0


def test_two_best_that_differ_by_rounding_are_a_tie(plain):
    assert advantages(ask(plain, [sequence(0.1 + 0.2), sequence(0.3), sequence(-5)], {"estimator": "grpo_passk"})) == [0, 0, 0]


def test_others_that_differ_by_rounding_do_not_scale_one_up(plain):
    found = advantages(ask(plain, [sequence(1), sequence(0.1 + 0.2), sequence(0.3)], {"estimator": "loo_mean_loo_std"}))
    assert math.isclose(found[0], 0.7, rel_tol=1e-12) and abs(found[1]) < 2


def test_a_mean_that_is_rounding_divides_nothing_up(plain):
    """0.1 + 0.2 - 0.3 is 5.6e-17 in binary: maxrl would divide by it."""
    assert advantages(ask(plain, [sequence(0.1), sequence(0.2), sequence(-0.3)], {"estimator": "maxrl"})) == [0, 0, 0]


# -- F01: deviations add up to 0 ------------------------------------------------------------------------------------------

def random_group(draw, offset):
    width = max(1.0, 1e-11 * abs(offset)) * draw.choice([1, 10, 1000])
    return [offset + width * draw.choice([draw.random(), draw.gauss(0, 1), draw.randint(0, 1)]) for _ in range(draw.randint(2, 9))]


@pytest.mark.parametrize("advantage", CENTRED, ids=named)
def test_the_advantages_of_a_group_add_up_to_nothing_at_any_offset(plain, advantage):
    """Property over random rewards, signs and offsets up to 1e15."""
    draw = random.Random(named(advantage))
    for offset in (0, 1, -7, 1e6, -1e9, 1e9, 1e12, -1e15, 1e15):
        groups = [random_group(draw, offset) for _ in range(6)]
        made = [sequence(reward, str(name)) for name, group in enumerate(groups) for reward in group]
        found = iter(advantages(ask(plain, made, advantage)))
        for group in groups:
            own = list(itertools.islice(found, len(group)))
            largest = max(1.0, max(map(abs, own)))
            assert abs(math.fsum(own)) <= 1e-9 * (largest if largest > 1e3 else 1), (offset, group, own)


def test_weighted_sums_at_an_offset_add_up_to_nothing_too(plain):
    draw = random.Random(5)
    for _ in range(20):
        made = [sequence(rewards={"x": {"score": 1e9, "weight": 1}, "y": {"score": draw.random(), "weight": draw.uniform(-5, 5)}}) for _ in range(7)]
        assert abs(math.fsum(advantages(ask(plain, made)))) <= 1e-9


def test_steps_and_weighted_baselines_keep_their_digits_at_an_offset(plain):
    steps = [sequence(tokens=1, step_rewards=[[1, 1e15 + k * 4096]]) for k in (0, 1, 3)]
    assert abs(math.fsum(advantages(ask(plain, steps, {"estimator": "process"})))) <= 1e-9
    for estimator in ("opo", "optimal_token_baseline"):
        far = advantages(ask(plain, [judged(estimator, 1e9 + k, tokens=2) for k in (0, 1, 3)], {"estimator": estimator}))
        near = advantages(ask(plain, [judged(estimator, k, tokens=2) for k in (0, 1, 3)], {"estimator": estimator}))
        assert all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(far, near)), (far, near)


def test_deviations_beyond_double_are_scaled_or_refused_but_never_zeros(plain):
    reply = plain.post("/v1/objective", {"sequences": [sequence(1.7e308), sequence(-1.7e308)]})
    assert reply.status == 200 and advantages(reply.json) == [1, -1]
    assert refused(plain, [sequence(1.7e308)] + [sequence(-1.7e308 / 3)] * 3 + [sequence(-1.7e308)])[1] == "non_finite"


@pytest.mark.parametrize("form", ["rsqrt_var_plus_eps", "rsqrt_max"])
@pytest.mark.parametrize("unit", [1e-200, 1e-150, 1.0, 1e150])
def test_whitening_keeps_a_difference_whose_square_is_outside_double(plain, unit, form):
    knobs = {"estimator": "reinforce_plus_plus_baseline", "form": form, "eps": 0}
    found = advantages(ask(plain, [sequence(unit), sequence(2 * unit)], knobs))
    assert found == pytest.approx([-1, 1], rel=1e-12) and sum(found) == 0


# -- F01: scores and batches ----------------------------------------------------------------------------------------------

def score_body(**objective):
    def made(text, ids):
        return {"text": text, "completion_ids": ids, "logprobs": [-1.0] * len(ids), "finish_reason": "stop"}
    # Weights 0.1 + 0.2 against 0.3: one completion is right by two verifiers, the other by one.
    verifiers = [{"name": "regex", "id": name, "weight": weight, "options": {"pattern": pattern}}
                 for name, weight, pattern in (("x", 0.1, "A"), ("y", 0.2, "A"), ("z", 0.3, "B"))]
    return {"run": "f01", "policy_revision": 1, "verifiers": verifiers, "objective": {"preset": "grpo", **objective},
            "groups": [{"task": "t", "prompt": "?", "completions": [made("A", [1]), made("B", [2])]}]}


def test_a_score_of_weights_that_add_up_alike_has_no_variance(plain):
    reply = plain.post("/v1/score", score_body())
    assert reply.status == 200, reply
    group = reply.json["groups"][0]
    assert sorted(rollout["reward"] for rollout in group["rollouts"]) == [0.3, 0.1 + 0.2]
    assert [rollout["advantage"] for rollout in group["rollouts"]] == [0, 0]
    assert group["zero_variance"] is True and group["reward_std"] == 0 and reply.json["summary"]["zero_variance_groups"] == 1
    stored = plain.post("/v1/objective", {"objective": {"advantage": {"estimator": "rloo"}}, "sequences": [
        {"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in group["rollouts"]]})
    assert stored.status == 200 and advantages(stored.json) == [0, 0] and stored.json["metrics"]["zero_variance_groups"] == 1
    filtered = plain.post("/v1/score", score_body(filter={"rule": "nonzero_variance"})).json
    assert filtered["totals"]["groups"] == 0 and filtered["summary"]["zero_variance_groups"] == 1


# -- F02: a missing score -------------------------------------------------------------------------------------------------

def scores(**values):
    weights = values.pop("weights", {})
    return {name: {"score": score, "weight": weights.get(name, 1)} for name, score in values.items()}


@pytest.mark.parametrize("eps", [{}, {"eps_group": 0, "eps_batch": 0}], ids=str)
def test_a_member_without_a_score_is_as_if_it_were_not_there(plain, eps):
    whole = [sequence(rewards=scores(x=1, y=1)), sequence(rewards=scores(x=0, y=0)), sequence(rewards=scores(x=0.25, y=1)),
             sequence(1, "b", rewards=scores(x=1, y=0)), sequence(1, "b", rewards=scores(x=0, y=0))]
    missing = sequence(rewards=scores(x=0, y=None))
    knobs = {"estimator": "gdpo", "missing": "null", **eps}
    without = advantages(ask(plain, whole, knobs))
    beside = ask(plain, [*whole[:2], missing, *whole[2:]], knobs)
    assert advantages(beside) == [*without[:2], None, *without[2:]]
    assert beside["sequences"][2]["reward"] is None and beside["metrics"]["sequences"] == 5


def test_a_name_that_the_others_of_the_group_have_is_a_missing_score_under_gdpo(plain):
    """Left out or null: the two say the same. A group in which nobody has a name misses nothing."""
    whole = [sequence(rewards=scores(x=1, y=1)), sequence(rewards=scores(x=0, y=0)), sequence(rewards=scores(x=0.25, y=1))]
    other = [sequence(group="b", rewards=scores(x=1)), sequence(group="b", rewards=scores(x=0))]
    knobs = {"estimator": "gdpo", "missing": "null"}
    without = advantages(ask(plain, whole + other, knobs))
    for lacking in (scores(x=0), scores(x=5, y=None), scores(y=3)):
        beside = ask(plain, [*whole, sequence(rewards=lacking), *other], knobs)
        assert advantages(beside) == [*without[:3], None, *without[3:]]
        assert beside["sequences"][3]["reward"] is None and beside["metrics"]["sequences"] == 5
    skipped = advantages(ask(plain, [*whole, sequence(rewards=scores(x=0)), *other], {"estimator": "gdpo", "missing": "skip"}))
    assert skipped == advantages(ask(plain, [*whole, sequence(rewards=scores(x=0, y=None)), *other], {"estimator": "gdpo", "missing": "skip"}))


def test_the_example_of_the_fault(plain):
    made = [sequence(rewards=scores(x=1, y=1)), sequence(rewards=scores(x=0, y=0)), sequence(rewards=scores(x=0, y=None))]
    first, second, third = advantages(ask(plain, made, {"estimator": "gdpo", "missing": "null"}))
    assert first == -second > 0.99 and third is None


def test_skip_normalises_each_name_over_those_that_have_it_and_counts_a_missing_one_as_nothing(plain):
    made = [sequence(rewards=scores(x=1, y=1)), sequence(rewards=scores(x=0, y=0)), sequence(rewards=scores(x=0, y=None))]
    found = advantages(ask(plain, made, {"estimator": "gdpo", "missing": "skip", "eps_group": 0, "eps_batch": 0}))
    half = 1 / math.sqrt(2)
    sums = [2 * half + 1, -half - 1, -half]
    sigma = math.sqrt(sum(value ** 2 for value in sums) / 3)
    assert all(math.isclose(got, value / sigma, rel_tol=1e-12) for got, value in zip(found, sums))


def test_a_sequence_whose_every_score_is_missing_has_no_reward_under_skip_either(plain):
    made = [sequence(rewards=scores(x=1)), sequence(rewards=scores(x=0)), sequence(rewards=scores(x=None))]
    assert advantages(ask(plain, made, {"estimator": "gdpo", "missing": "skip"}))[2] is None


@pytest.mark.parametrize("estimator", ["grpo", "gdpo", "rloo", "normalization"])
def test_a_missing_score_of_weight_0_does_not_take_the_reward(plain, estimator):
    made = [sequence(rewards=scores(x=1, y=1, weights={"y": 0})), sequence(rewards=scores(x=0, y=None, weights={"y": 0}))]
    plainly = [sequence(rewards=scores(x=1)), sequence(rewards=scores(x=0))]
    knobs = {"estimator": estimator, "missing": "null"}
    assert advantages(ask(plain, made, knobs)) == advantages(ask(plain, plainly, knobs))


@pytest.mark.parametrize("estimator", ["grpo", "rloo", "gpg", "normalization", "opo", "reinforce_plus_plus_baseline_sequence", "gdpo"])
def test_a_null_reward_by_name_is_outside_every_statistic(plain, estimator):
    whole = [sequence(rewards=scores(x=1, y=1)), sequence(rewards=scores(x=0, y=0)), sequence(rewards=scores(x=0, y=1))]
    reply = ask(plain, [*whole, sequence(rewards=scores(x=9, y=None))], {"estimator": estimator})
    assert advantages(reply) == [*advantages(ask(plain, whole, {"estimator": estimator})), None]


def stored(service, group, advantage):
    return advantages(ask(service, [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in group["rollouts"]], advantage))


@pytest.mark.parametrize("missing", ["null", "skip"])
def test_gdpo_of_a_score_and_of_its_record_goes_by_missing_where_a_score_is(start, missing):
    """The third completion has one score of two."""
    service = start()
    completions = [{"text": text, "completion_ids": [place], "logprobs": [-1.0], "finish_reason": "stop", "rewards": {"y": {"score": score, "weight": 1}}}
                   for place, (text, score) in enumerate([("ab", 1), ("b", 0), ("a", None)])]
    body = {"run": "f02", "policy_revision": 1, "missing": missing, "deadline": "2m", "objective": {"advantage": {"estimator": "gdpo", "missing": missing}},
            "verifiers": [{"name": "exact", "id": "x"}],
            "groups": [{"task": "t", "prompt": "?", "reference": "ab", "completions": completions}]}
    reply = service.post("/v1/score", body)
    assert reply.status == 200, reply
    group = reply.json["groups"][0]
    assert [rollout["rewards"]["y"]["score"] for rollout in group["rollouts"]] == [1, 0, None]
    made = [sequence(rewards=scores(x=1, y=1)), sequence(rewards=scores(x=0, y=0)), sequence(rewards=scores(x=0, y=None))]
    want = advantages(ask(service, made, {"estimator": "gdpo", "missing": missing}))
    assert (want[2] is None) == (missing == "null")
    assert [rollout["advantage"] for rollout in group["rollouts"]] == want
    other = {"estimator": "gdpo", "missing": missing, "eps_group": 0.5}  # not the batch's rule: computed anew
    assert stored(service, group, other) == advantages(ask(service, made, other))


@pytest.mark.parametrize("missing", ["null", "skip"])
def test_gdpo_of_a_batch_leaves_out_a_group_whose_verifier_failed(service, engine, missing):
    """The reference of the second group cannot be read by `math`, so its members have the score of `form` alone."""
    engine.rules({"in": "P1", "text": "\\boxed{42}", "times": 1}, {"in": "P2", "text": "\\boxed{42}", "times": 1}, {"text": "\\boxed{41}"})
    verifiers = [{"name": "math"}, {"name": "regex", "id": "form", "weight": 0.5, "options": {"pattern": "42"}}]
    batch = service.batch(make_batch(make_group("whole", "P1"), make_group("broken", "P2", "\\frac{1}{"), verifiers=verifiers, missing=missing,
                                     objective={"advantage": {"estimator": "gdpo", "missing": missing}}))
    whole, broken = ([rollout["advantage"] for rollout in group["rollouts"]] for group in batch["groups"])
    made = [sequence(rewards=scores(x=score, y=score, weights={"y": 0.5})) for score in (1, 0)]
    made += [sequence(group="b", rewards=scores(x=None, y=score, weights={"y": 0.5})) for score in (1, 0)]
    want = advantages(ask(service, made, {"estimator": "gdpo", "missing": missing}))
    assert sorted(whole) == sorted(want[:2]) and [value is None for value in broken] == [missing == "null"] * 2
    if missing == "skip":
        assert sorted(broken) == sorted(want[2:])


# -- F05: a rollout counts once -------------------------------------------------------------------------------------------

def spread_out(estimator, tokens=1):
    """Rollout r1 in three sequences, r2 and r3 in one each; and the same with each in one."""
    rewards = {"r1": 1.0, "r2": 0.0, "r3": 0.25}
    several = [judged(estimator, rewards[name], tokens=tokens, rollout=name) for name in ("r1", "r1", "r2", "r1", "r3")]
    once = [judged(estimator, rewards[name], tokens=tokens, rollout=name) for name in ("r1", "r2", "r3")]
    return several, once


@pytest.mark.parametrize("advantage", CENTRED + [{"estimator": "loo_mean_loo_std"}, {"estimator": "grpo_passk"}, {"estimator": "gdpo"}, {"estimator": "process"},
                                                 {"estimator": "ema_baseline"}, {"estimator": "optimal_token_baseline"}, {"estimator": "reward"}], ids=named)
def test_a_rollout_of_three_sequences_counts_once(plain, advantage):
    several, once = spread_out(advantage["estimator"])
    r1, r2, r3 = advantages(ask(plain, once, advantage))
    reply = ask(plain, several, advantage)
    assert all(math.isclose(got, want, rel_tol=1e-12, abs_tol=1e-15) for got, want in zip(advantages(reply), [r1, r1, r2, r1, r3])), reply
    if advantage["estimator"] == "ema_baseline":
        assert reply["metrics"]["final_baseline"] == ask(plain, once, advantage)["metrics"]["final_baseline"]


def test_the_example_of_the_fault_of_rollouts(plain):
    made = [sequence(1, rollout="r1")] * 3 + [sequence(0, rollout="r2")]
    assert advantages(ask(plain, made)) == [1, 1, 1, -1]
    assert advantages(ask(plain, [sequence(1)] * 3 + [sequence(0)]))[3] < -1.7, "without a name each sequence is one"


def test_whitening_over_tokens_starts_from_the_mean_over_rollouts(plain):
    made = [sequence(1, rollout="r1")] * 3 + [sequence(0, rollout="r2")]
    found = advantages(ask(plain, made, {"estimator": "reinforce_plus_plus_baseline"}))
    sigma = math.sqrt(0.1875)  # of 0.5 three times and -0.5
    assert all(math.isclose(got, want, rel_tol=1e-12) for got, want in zip(found, [0.25 / sigma] * 3 + [-0.75 / sigma]))


def test_opo_weights_a_rollout_by_all_its_tokens(plain):
    made = [sequence(1, tokens=2, rollout="r1"), sequence(1, tokens=3, rollout="r1"), sequence(0, tokens=5, rollout="r2")]
    assert advantages(ask(plain, made, {"estimator": "opo"})) == [0.5, 0.5, -0.5]


def test_metrics_filters_and_pass_at_count_rollouts(plain):
    made = [sequence(1, rollout="r1")] * 3 + [sequence(0, rollout="r2"), sequence(0, "b", rollout="r3"), sequence(0, "b", rollout="r4")]
    reply = ask(plain, made, pass_at=[1, 2])
    assert reply["metrics"]["reward_mean"] == 0.25 and reply["metrics"]["reward_std"] == 0.5
    assert reply["metrics"]["frac_reward_zero_std"] == 0.5 and reply["metrics"]["frac_groups_zero_std"] == 0.5
    assert reply["metrics"]["pass_at_k"] == {"1": 0.25, "2": 0.5} and reply["metrics"]["sequences"] == 6
    kept = ask(plain, made, objective={"filter": {"rule": "mean_interval", "lo": 0, "hi": 0.7}})  # 0.75 over sequences
    assert [row["kept"] for row in kept["sequences"]] == [True] * 4 + [False] * 2
    one = ask(plain, [sequence(1, rollout="r1")] * 3)
    assert advantages(one) == [0, 0, 0] and any("one member with a reward" in note for note in one["notes"])
    lonely = ask(plain, [sequence(1, rollout="r1")] * 3, objective={"filter": {"rule": "nonzero_variance"}})
    assert [row["kept"] for row in lonely["sequences"]] == [False] * 3


def test_the_kl_in_the_reward_of_a_rollout_is_that_of_all_its_sequences(plain):
    def made(kl, **fields):
        return sequence(logprobs=[-1.0], old_logprobs=[-1.0], ref_logprobs=[-1.0 - kl], **fields)
    objective = {"beta": 1, "kl": {"in": "reward", "estimator": "k1"}}
    several = [made(0.25, reward=1, rollout="r1"), made(0.5, reward=1, rollout="r1"), made(0, reward=0, rollout="r2")]
    assert advantages(ask(plain, several, {"estimator": "reward"}, objective=objective)) == [0.25, 0.25, 0]
    assert advantages(ask(plain, several, objective=objective)) == [1, 1, -1]


def test_each_agent_of_a_rollout_moves_its_baseline_once(plain):
    made = [sequence(1, rollout="r1", agent=agent) for agent in ("x", "y", "x")] + [sequence(1, rollout="r2", agent=agent) for agent in ("x", "y")]
    reply = ask(plain, made, {"estimator": "ema_baseline", "decay": 0.5})
    assert advantages(reply) == [1, 1, 1, 0.5, 0.5] and reply["metrics"]["final_baseline"] == {"x": 0.75, "y": 0.75}


@pytest.mark.parametrize("sequences, path", [
    ([sequence(1, rollout="r1"), sequence(0, rollout="r2"), sequence(0.5, rollout="r1")], "sequences[2].reward"),
    ([sequence(1, rollout="r1"), sequence(None, rollout="r1")], "sequences[1].reward"),
    ([sequence(None, rollout="r1"), sequence(1, rollout="r1")], "sequences[1].reward"),
    ([sequence(rewards=scores(x=1), rollout="r1"), sequence(rewards=scores(x=0), rollout="r1")], "sequences[1].rewards"),
    ([sequence(1, rollout="r1"), sequence(1, "b", rollout="r1")], "sequences[1].rollout")])
def test_values_that_sequences_of_a_rollout_must_share_are_refused_if_they_differ(plain, sequences, path):
    assert refused(plain, sequences) == (422, "objective_options", path)


@pytest.mark.parametrize("advantage, own, other, field", [
    ({"estimator": "gdpo"}, {"rewards": scores(x=1, y=0)}, {"rewards": scores(x=0, y=1)}, "rewards"),
    ({"estimator": "process"}, {"step_rewards": [[1, 1], [2, 0]]}, {"step_rewards": [[1, 0], [2, 1]]}, "step_rewards"),
    ({"estimator": "reward_to_go"}, {"token_rewards": [1, 1]}, {"token_rewards": [0, 1]}, "token_rewards")])
def test_rewards_by_name_step_or_token_are_those_of_the_rollout_too(plain, advantage, own, other, field):
    made = [sequence(tokens=2, rollout="r1", **own), sequence(tokens=2, rollout="r1", **other)]
    assert refused(plain, made, advantage) == (422, "objective_options", f"sequences[1].{field}")


def test_shaping_that_tells_the_sequences_of_a_rollout_apart_is_refused(plain):
    made = [sequence(1, rollout="r1", finish_reason="stop"), sequence(1, rollout="r1", finish_reason="length")]
    assert refused(plain, made, shaping=[{"kind": "no_eos_zero"}]) == (422, "objective_options", "sequences[1].reward")


def test_rewards_of_a_rollout_that_differ_by_rounding_are_one(plain):
    made = [sequence(0.1 + 0.2, rollout="r1"), sequence(0.3, rollout="r1"), sequence(1, rollout="r2")]
    assert advantages(ask(plain, made)) == [-1, -1, 1]


def test_given_advantages_ask_no_rewards_and_group_sizes_count_sequences(plain):
    made = [sequence(advantage=1.0, rollout="r1"), sequence(advantage=-1.0, rollout="r1"), sequence(0, "b", advantage=0.5, rollout="r1")]
    assert advantages(ask(plain, made)) == [1, -1, 0.5]
    both = [sequence(1, rollout="r1"), sequence(1, rollout="r1"), sequence(0, rollout="r2")]
    assert advantages(ask(plain, both, group_sizes={"a": 3})) == [1, 1, -1]
    assert plain.post("/v1/objective", {"sequences": both, "group_sizes": {"a": 4}}).error["code"] == "incomplete_group"
