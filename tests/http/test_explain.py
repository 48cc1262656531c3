"""POST /v1/objective?explain=<sequence>,<token>: the arithmetic of one token multiplies out to the reply's numbers."""
import math

import pytest

from material import close, f32, rollouts

NAMES = {"ratio": "ratios", "clip": "clipped", "selected": "selected", "kl": "kl", "weight": "weights", "contribution": "contributions",
         "gradient": "dloss_dlogp"}
LP = [[-0.5, -1.25, -2.0], [-0.3], [-1.0, -0.1], [-0.7, -0.9, -0.2, -1.5]]
LO = [[-0.9, -1.25, -1.5], [-0.8], [-1.1, -0.4], [-0.2, -0.95, -0.25, -1.0]]
LR = [[-0.6, -1.0, -2.0], [-0.5], [-1.0, -0.3], [-0.6, -1.0, -0.1, -1.2]]
LB = [[-0.8, -1.2, -1.6], [-0.7], [-1.2, -0.3], [-0.4, -0.9, -0.3, -1.1]]
REWARDS = [1.0, 0.25, 0.0, 0.5]
MASK = [[1, 1, 1], [1], [1, 0], [1, 1, 1, 1]]
PLACES = [(i, t) for i, row in enumerate(LP) for t in range(len(row))]

# Knobs that a kind requires; its token loss from r, A, lp on paper (None: it is made of the whole sequence).
LOSSES = {
    "ppo_clip": ({}, lambda r, a, lp: -min(r * a, min(max(r, 0.8), 1.2) * a)),
    "dual_clip": ({"dual_c": 1.2}, lambda r, a, lp: min(-min(r * a, min(max(r, 0.8), 1.2) * a), math.inf if a >= 0 else -1.2 * a)),
    "two_sided": ({"delta": 1.3}, lambda r, a, lp: -min(min(r, 1.3) * a, min(max(r, 0.8), 1.2) * a)),
    "importance_sampling": ({}, lambda r, a, lp: -r * a),
    "cispo": ({"hi": 1.2}, lambda r, a, lp: -min(r, 1.2) * a * lp),
    "gspo": ({}, None), "gspo_token": ({}, None), "gmpo": ({}, None), "vespo": ({}, None), "luspo": ({}, None),
    "sapo": ({}, lambda r, a, lp: -4 / (1 if a > 0 else 1.05) / (1 + math.exp(-(1 if a > 0 else 1.05) * (r - 1))) * a),
    "dppo_tv": ({}, None), "dppo_kl": ({}, None), "ipo": ({}, None), "rollout_is": ({}, None), "fipo": ({}, None), "real": ({}, None),
    "gpg": ({}, lambda r, a, lp: -a * lp),
    "dro": ({"beta": 0.5}, lambda r, a, lp: -(a * lp - 0.25 * math.log(r) ** 2)),
}


def body(objective, **more):
    return {"objective": {"preset": "grpo", **objective}, **more, "sequences": [
        {"group": "a", "reward": REWARDS[i], "mask": MASK[i], "logprobs": LP[i], "old_logprobs": LO[i], "ref_logprobs": LR[i],
         "rollout_logprobs": LB[i], "entropy": [-value for value in LP[i]]} for i in range(4)]}


def ask(service, asked, place):
    reply = service.post(f"/v1/objective?explain={place[0]},{place[1]}", asked)
    assert reply.status == 200, reply
    return reply.json


def steps_of(answer):
    return {step["step"]: step["value"] for step in answer["explanation"]["steps"]}


def plain_reply(service, asked):
    reply = service.post("/v1/objective", asked)
    assert reply.status == 200, reply
    return reply.json


def check(service, asked, formula=None):
    whole = plain_reply(service, asked)
    for i, t in PLACES:
        answer = ask(service, asked, (i, t))
        steps = steps_of(answer)
        sequence = whole["sequences"][i]
        assert (answer["loss"], answer["totals"], answer["objective"]) == (whole["loss"], whole["totals"], whole["objective"])
        for step, array in NAMES.items():
            assert step not in steps or steps[step] == sequence[array][t], (i, t, step)
        assert steps["reward"] == REWARDS[i] and steps["loss"] == whole["loss"]
        advantage = sequence["advantage"][t] if isinstance(sequence["advantage"], list) else sequence["advantage"]
        assert steps["advantage"] == advantage
        if not MASK[i][t] or sequence["weights"][t] == 0:
            assert (steps["trainable"], steps["contribution"], steps["gradient"]) == (0, 0, 0)
            continue
        base = LB if asked["objective"].get("loss", {}).get("anchor") == "rollout" else LO
        assert steps["log_ratio"] == LP[i][t] - base[i][t]
        assert close(steps["policy_term"], steps["token_loss"] * steps["importance_weight"] + steps.get("selection_term", 0))
        assert steps["policy_term"] == -sequence["surrogates"][t]
        terms = steps["policy_term"] + steps.get("beta", 0) * steps.get("kl", 0)
        assert close(steps["contribution"], steps["weight"] * terms + steps.get("other_terms", 0))
        if "kl_gradient" in steps:
            assert close(steps["gradient"], steps["policy_gradient"] + steps["kl_gradient"])
        if formula:
            assert close(steps["ratio"], math.exp(steps["log_ratio"]))
            assert close(steps["token_loss"], formula(steps["ratio"], steps["advantage"], LP[i][t]))
    return whole


@pytest.mark.parametrize("kind", LOSSES)
def test_every_loss_multiplies_out(plain, kind):
    knobs, formula = LOSSES[kind]
    check(plain, body({"loss": {"kind": kind, **knobs}, "beta": 0.04}), formula)


@pytest.mark.parametrize("mode", ["seq_mean_token_mean", "token_mean", "token_sum", "seq_mean_token_sum", "seq_mean_token_sum_norm",
                                  "seq_sum_token_sum_norm", "prompt_mean", "constant", "group_mean_seq_mean_token_mean"])
def test_every_aggregation_multiplies_out(plain, mode):
    knobs = {"max_len": 16} if mode.endswith("_norm") else {"denominator": 10} if mode == "constant" else {}
    asked = body({"aggregation": {"mode": mode, **knobs}})
    check(plain, asked)
    steps = steps_of(ask(plain, asked, (3, 1)))
    weight = {"seq_mean_token_mean": 1 / (steps["n"] * steps["N"]), "token_mean": 1 / steps["T"], "token_sum": 1,
              "seq_mean_token_sum": 1 / steps["N"], "seq_mean_token_sum_norm": 1 / (steps["N"] * 16), "seq_sum_token_sum_norm": 1 / 16,
              "prompt_mean": 1 / steps["T"], "constant": 1 / 10, "group_mean_seq_mean_token_mean": 1 / (4 * steps["n"])}[mode]
    assert close(steps["weight"], weight)


@pytest.mark.parametrize("importance", [
    {"method": "token"}, {"method": "token_truncate", "hi": 1.1}, {"method": "token_mask", "lo": 0.9, "hi": 1.1},
    {"method": "sequence_truncate", "hi": 1.1}, {"method": "sequence_mask", "lo": 0.9, "hi": 1.1}])
def test_importance_shows_its_weight(plain, importance):
    asked = body({"importance": importance})
    check(plain, asked)
    if importance["method"].startswith("token"):
        weight = math.exp(LO[0][0] - LB[0][0])
        if importance["method"] == "token_truncate":
            weight = min(weight, 1.1)
        if importance["method"] == "token_mask" and not 0.9 <= weight <= 1.1:
            weight = 0
        assert close(steps_of(ask(plain, asked, (0, 0)))["importance_weight"], weight)


@pytest.mark.parametrize("knobs", [
    {"selection": {"method": "kl_cov", "frac": 0.3, "ppo_kl_coef": 0.5}}, {"selection": {"method": "clip_cov", "ratio": 0.3, "lb": 0}},
    {"selection": {"method": "top_entropy_quantile", "rho": 0.5}}, {"selection": {"method": "m2po", "threshold": 0.05}},
    {"selection": {"method": "off_policy_sequence_mask", "delta": -1}, "importance": {"method": "token"}},
    {"loss": {"kind": "vespo"}, "importance": {"method": "token_truncate", "hi": 1.05}}, {"loss": {"positive_nll": 0.1}},
    {"loss": {"kind": "dppo_tv", "kl_tau": 0.1}}, {"loss": {"anchor": "rollout"}}, {"beta": 0.1, "kl": {"in": "reward"}},
    {"shaping": [{"kind": "reward_clip", "lo": 0.2, "hi": 0.8}]}, {"filter": {"rule": "mean_interval", "lo": 0.9, "hi": 1}},
    {"importance": [{"method": "token_truncate", "hi": 1.05}, {"method": "sequence_mask", "lo": 0.5, "hi": 2}]},
    {"importance": {"method": "token_mask", "lo": 0.95, "hi": 1.1, "denominator": "kept"}},
    {"importance": {"method": "token", "batch_normalise": True}}, {"advantage": {"estimator": "ema_baseline"}}])
def test_every_other_knob_multiplies_out(plain, knobs):
    check(plain, body(knobs))


@pytest.mark.parametrize("estimator", ["grpo", "reward", "rloo", "loo_mean_loo_std", "maxrl", "opo", "gpg",
                                       "reinforce_plus_plus_baseline", "reinforce_plus_plus_baseline_sequence"])
def test_every_advantage_multiplies_out(plain, estimator):
    check(plain, body({"advantage": {"estimator": estimator}}))


@pytest.mark.parametrize("kl", ["k1", "abs", "k2", "k3", "k1_plus", "k3_plus"])
def test_every_kl_multiplies_out(plain, kl):
    d = LP[0][0] - LR[0][0]
    steps = steps_of(ask(plain, (asked := body({"beta": 0.5, "kl": {"estimator": kl}})), (0, 0)))
    check(plain, asked)
    value = {"k1": d, "abs": abs(d), "k2": d * d / 2}.get(kl.replace("_plus", ""), math.exp(-d) + d - 1)
    slope = {"k1": 1, "abs": math.copysign(1, d), "k3": 1 - math.exp(-d)}.get(kl, d)
    assert close(steps["kl"], value, absolute=1e-14)
    assert close(steps["kl_gradient"], steps["weight"] * 0.5 * slope, absolute=1e-14)


@pytest.mark.parametrize("ratio", ["multiply", "detached"])
def test_a_kl_times_the_ratio_multiplies_out(plain, ratio):
    asked = body({"beta": 0.5, "kl": {"ratio": ratio}})
    check(plain, asked)
    assert "other_terms" not in steps_of(ask(plain, asked, (0, 0)))


def test_the_group_is_shown(plain):
    steps = steps_of(ask(plain, body({}), (0, 0)))
    assert (steps["group_judged"], steps["group_mean"]) == (4, 0.4375)
    assert close(steps["advantage"], (steps["reward"] - steps["group_mean"]) / steps["group_deviation"])


def test_a_rollout_on_record_is_explained_by_its_id(plain):
    completions = [{"text": text, "completion_ids": [1, 2], "logprobs": [-1, -0.5], "finish_reason": "stop"} for text in "34"]
    batch = plain.post("/v1/score", {"run": "explained", "verifiers": [{"name": "exact"}],
                                     "groups": [{"task": "t", "reference": "3", "completions": completions}]}).json
    name = rollouts(batch)[0]["id"]
    asked = {"sequences": [{"rollout": rollout["id"], "logprobs": [-0.875, -0.5]} for rollout in rollouts(batch)],
             "optimizer_step": 1}
    answer = ask(plain, asked, (name, 0))
    steps = steps_of(answer)
    assert answer["explanation"]["rollout"] == name and answer["explanation"]["sequence"] == 0
    assert (steps["reward"], steps["group_mean"], steps["advantage"]) == (1, 0.5, 1)
    assert steps["log_ratio"] == 0.125 and close(steps["ratio"], math.exp(0.125))
    assert close(steps["contribution"], -math.exp(0.125) / 4)


def test_it_says_what_was_rounded_and_what_is_the_records(plain):
    completions = [{"text": text, "completion_ids": [1], "logprobs": [-1], "finish_reason": "stop"} for text in "34"]
    batch = plain.post("/v1/score", {"run": "rounded", "verifiers": [{"name": "exact"}],
                                     "groups": [{"task": "t", "reference": "3", "completions": completions}]}).json
    name = rollouts(batch)[0]["id"]

    def formulas(sequence, objective, place):
        answer = ask(plain, {"objective": objective, "sequences": [sequence]}, place)
        return {step["step"]: (step["formula"], step["value"]) for step in answer["explanation"]["steps"]}
    stored = formulas({"rollout": name, "logprobs": [-0.1], "ref_logprobs": [-0.3]}, {"beta": 0.1}, (name, 0))
    assert "rounded to float32" in stored["logprob"][0] and stored["logprob"][1] == f32(-0.1) != -0.1
    assert "rounded to float32" in stored["ref_logprob"][0] and stored["ref_logprob"][1] == f32(-0.3)
    assert stored["old_logprob"] == ("lo = lb, the engine's, from the record", -1)
    given = formulas({"rollout": name, "logprobs": [-0.1], "old_logprobs": [-0.2]}, {}, (name, 0))
    assert "rounded to float32" in given["old_logprob"][0] and given["old_logprob"][1] == f32(-0.2)
    stateless = formulas({"group": "a", "advantage": 1, "logprobs": [-0.1], "old_logprobs": [-0.2]}, {}, (0, 0))
    assert stateless["logprob"] == ("lp, as given", -0.1) and stateless["old_logprob"] == ("lo, as given", -0.2)


@pytest.mark.parametrize("asked", ["0", "0,", ",0", "4,0", "0,3", "-1,0", "0,-1", "0.5,0", "r_x,0", "0,0,0", ""])
def test_a_token_that_is_not_there_is_refused(plain, asked):
    reply = plain.post(f"/v1/objective?explain={asked}", body({}))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "explain")
