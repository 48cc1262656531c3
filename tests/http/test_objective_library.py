"""Every knob over HTTP: batches that use them, presets, inputs of single estimators, and what users reported of others."""
import json
import math

import pytest

from material import close, make_batch, make_group, rollouts, sampling

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
WRONG = {"text": "\\boxed{41}", "ids": [11, 13, 14, 2], "lp": [-0.5, -1.5, -1.0, -0.125]}
LONG = {"text": "\\boxed{42} and", "ids": [11, 12, 3, 3, 3], "lp": [-0.5, -0.25, -2.0, -0.5, -0.5], "finish": "length"}


def ask(service, sequences, objective=None, **extra):
    reply = service.post("/v1/objective", {"objective": {"preset": "grpo", **(objective or {})}, "sequences": sequences, **extra})
    assert reply.status == 200, reply
    json.loads(reply.body, parse_constant=lambda name: pytest.fail(f"the reply holds {name}"))
    return reply.json


def refused(service, sequences, objective=None, **extra):
    reply = service.post("/v1/objective", {"objective": {"preset": "grpo", **(objective or {})}, "sequences": sequences, **extra})
    assert reply.status >= 400, reply
    return reply.status, reply.error["code"], reply.error["path"]


def sequence(group="a", tokens=2, **fields):
    return {"group": group, "logprobs": [-1.0] * tokens, **fields}


def said(reply, part):
    return any(part in note for note in reply["notes"])


# -- what users of other trainers reported -----------------------------------------------------------------------------

def test_a_rejected_weight_that_overflows_touches_nothing(plain):
    """R01"""
    rule = {"importance": {"method": "token_mask", "lo": 0.5, "hi": 5}}
    reply = ask(plain, [sequence(advantage=1.0, old_logprobs=[-1, -1], rollout_logprobs=[-1001, -1])], rule)
    assert reply["loss"] == -0.5
    row = reply["sequences"][0]
    assert (row["contributions"], row["dloss_dlogp"], row["selected"]) == ([0, -0.5], [0, -0.5], [0, 1])
    assert reply["metrics"]["rollout"]["is_max"] is None and reply["metrics"]["rollout"]["chi2_token"] is None
    assert said(reply, "beyond double")


def test_a_loss_of_0_is_not_a_gradient_of_0(plain):
    """R05"""
    reply = ask(plain, [{"group": "a", "reward": 1, "logprobs": [-0.7]}, {"group": "a", "reward": 0, "logprobs": [-2.3]}])
    assert reply["loss"] == 0 and [row["dloss_dlogp"] for row in reply["sequences"]] == [[-0.5], [0.5]]
    assert said(reply, "taken from logprobs")


def test_rewards_that_cancel_in_the_sum_do_not_cancel_by_name(plain):
    """R06"""
    made = [sequence(rewards={"fact": {"score": fact, "weight": 1}, "brief": {"score": brief, "weight": 0.1}}, tokens=1)
            for fact, brief in ((1, 0), (0, 10))]
    reply = ask(plain, made)
    assert [row["advantage"] for row in reply["sequences"]] == [0, 0] and reply["metrics"]["zero_variance_groups"] == 1
    reply = ask(plain, made, {"advantage": {"estimator": "gdpo"}})
    assert [round(row["advantage"], 12) for row in reply["sequences"]] == [0.999888876794, -0.999888876794]


def test_a_single_member_says_which_rule_made_its_advantage(plain):
    """R08"""
    reply = ask(plain, [sequence(reward=0.7, tokens=1)])
    assert (reply["sequences"][0]["advantage"], reply["loss"]) == (0, 0) and said(reply, "singleton")
    reply = ask(plain, [sequence(reward=0.7, tokens=1)], {"advantage": {"singleton": "raw"}})
    assert close(reply["loss"], -0.7) and close(reply["sequences"][0]["dloss_dlogp"], [-0.7])
    reply = ask(plain, [sequence(reward=0.7), sequence(reward=None)])
    assert [row["advantage"] for row in reply["sequences"]] == [0, None] and reply["metrics"]["sequences"] == 1
    assert reply["sequences"][1]["contributions"] == [0, 0]


def test_pass_at_k_draws_without_replacement(plain):
    """R09"""
    made = [sequence(group, 1, reward=reward) for group, rewards in (("p", (1, 0, 0, 0)), ("q", (0, 0, 0, 0))) for reward in rewards]
    assert ask(plain, made, pass_at=[1, 2, 4])["metrics"]["pass_at_k"] == {"1": 0.125, "2": 0.25, "4": 0.5}


def test_the_finish_reason_decides_never_the_last_id(plain):
    """R11"""
    made = [sequence(reward=1, finish_reason=finish, completion_ids=[5, last]) for finish, last in (("stop", 32007), ("length", 32000))]
    reply = ask(plain, made, {"shaping": [{"kind": "no_eos_zero"}]})
    assert [row["shaped_reward"] for row in reply["sequences"]] == [1, 0]
    assert [row["reward"] for row in reply["sequences"]] == [1, 1]
    assert [row["advantage"] for row in reply["sequences"]] == [1, -1]
    assert reply["metrics"]["truncated_fraction"] == 0.5 and reply["metrics"]["mean_terminated_length"] == 2


# -- presets -------------------------------------------------------------------------------------------------------------

def whole_sequences():
    """Every input that a preset may ask for."""
    made = []
    for index, (reward, finish) in enumerate(((1.0, "stop"), (0.0, "length"), (0.5, "stop"), (1.0, "stop"))):
        logprobs = [-1.0 + 0.1 * index, -0.5, -0.25 * (index + 1)]
        made.append({"group": "ab"[index % 2], "logprobs": logprobs, "old_logprobs": [value - 0.05 for value in logprobs],
                     "ref_logprobs": [value - 0.1 for value in logprobs], "rollout_logprobs": [value - 0.04 for value in logprobs],
                     "finish_reason": finish, "greedy_reward": 0.25, "rewards": {"r": {"score": reward, "weight": 1.0}}})
    return made


def presets(service):
    return {preset["name"]: preset for preset in service.read("/v1/presets")["presets"]}


def test_every_trainer_has_a_preset_with_a_version(plain):
    names = presets(plain)
    for trainer in ("trl", "verl", "openrlhf", "nemo_rl", "prime_rl", "areal", "slime", "skyrl", "open_instruct", "ms_swift"):
        versions = [name for name in names if name.startswith(trainer + "@")]
        assert versions, trainer
        echoed = ask(plain, whole_sequences(), {"preset": trainer})["objective"]
        assert echoed["preset"] == versions[0] and echoed == names[versions[0]]["objective"]
    for method in ("grpo", "dr_grpo", "dapo", "gspo", "rloo", "reinforce_pp"):
        assert method in names


def test_every_preset_computes_and_its_echo_means_the_same(plain):
    for name, preset in presets(plain).items():
        first = ask(plain, whole_sequences(), {"preset": name})
        assert first["overrides"] == [] and math.isfinite(first["loss"]), name
        again = ask(plain, whole_sequences(), preset["objective"])
        assert (again["loss"], again["objective"]) == (first["loss"], first["objective"]), name
        total = math.fsum(value for row in first["sequences"] for value in row["contributions"])
        assert close(total, first["loss"], absolute=1e-14), name


def test_overrides_of_a_preset_are_named(plain):
    reply = ask(plain, whole_sequences(), {"preset": "trl", "beta": 0.1, "loss": {"eps_high": 0.28}, "importance": {"hi": 2}})
    assert sorted(reply["overrides"]) == ["beta", "importance", "loss.eps_high"]
    assert reply["objective"]["importance"]["method"] == "sequence_mask" and reply["objective"]["importance"]["hi"] == 2


def test_a_batch_names_what_its_request_changed_of_the_preset(service, engine):
    engine.rules({"choices": [RIGHT, WRONG]})
    asked = make_batch(objective={"preset": "trl", "loss": {"eps_high": 0.28}, "aggregation": {"masked_seq": "exclude"}})
    batch = service.batch(asked)
    assert sorted(batch["overrides"]) == ["aggregation.masked_seq", "loss.eps_high"]
    assert service.read(f"/v1/batches/{batch['id']}")["overrides"] == batch["overrides"]
    lines = service.post("/v1/batches", asked, {"Accept": "application/x-ndjson"}).body.decode().splitlines()
    assert json.loads(lines[-1])["batch"]["overrides"] == batch["overrides"]
    assert service.batch(make_batch(objective={"preset": "dapo"}))["overrides"] == []


# -- inputs of single estimators ----------------------------------------------------------------------------------------------

def test_step_rewards_count_for_the_tokens_before_their_end(plain):
    made = [sequence(tokens=4, step_rewards=[[2, 1.0], [4, 0.0]]), sequence(tokens=4, step_rewards=[[1, 0.0], [4, 1.0]])]
    reply = ask(plain, made, {"advantage": {"estimator": "process"}})
    assert [row["advantage"] for row in reply["sequences"]] == [[0, 0, -1, -1], [0, 1, 1, 1]]
    assert refused(plain, [sequence(step_rewards=[[3, 1.0]])], {"advantage": {"estimator": "process"}})[0] == 400
    assert refused(plain, [sequence(step_rewards=[[2, 1.0]])]) == (422, "objective_options", "sequences[0].step_rewards")


def test_agents_have_a_baseline_each(plain):
    made = [sequence(reward=1.0, agent=agent, tokens=1) for agent in ("x", "y", "x")]
    reply = ask(plain, made, {"advantage": {"estimator": "ema_baseline", "decay": 0.5}})
    assert [row["advantage"] for row in reply["sequences"]] == [1, 1, 0.5]
    assert reply["metrics"]["final_baseline"] == {"x": 0.75, "y": 0.5}


def test_samples_of_one_rollout_share_a_denominator(plain):
    made = [sequence(tokens=tokens, advantage=-1.0, rollout=rollout) for tokens, rollout in ((1, "r1"), (3, "r1"), (2, "r2"))]
    reply = ask(plain, made, {"aggregation": {"mode": "rollout_mean"}})
    assert [row["weights"][0] for row in reply["sequences"]] == [0.125, 0.125, 0.25]
    assert reply["totals"] == {"tokens": 6, "sequences": 3, "groups": 1, "rollouts": 2}
    part = ask(plain, made[:2], {"aggregation": {"mode": "rollout_mean"}}, totals=reply["totals"], group_sizes={"a": 2})
    assert close(part["loss"], 0.5)


@pytest.mark.parametrize("objective, path", [
    ({"advantage": {"scale": "batch"}}, "advantage.scale"), ({"advantage": {"estimator": "reinforce_plus_plus"}}, "advantage.estimator"),
    ({"advantage": {"estimator": "gdpo"}}, "advantage.estimator"), ({"advantage": {"estimator": "gpg"}}, "advantage.estimator"),
    ({"advantage": {"estimator": "ema_baseline"}}, "advantage.estimator"),
    ({"advantage": {"estimator": "rloo", "normalize_batch": True}}, "advantage.normalize_batch"),
    ({"advantage": {"estimator": "normalization", "mean": "batch"}}, "advantage.mean"),
    ({"importance": {"method": "token", "batch_normalise": True}}, "importance.batch_normalise"),
    ({"importance": {"method": "token_mask", "hi": 2, "denominator": "kept"}}, "importance.denominator"),
    ({"selection": {"method": "top_entropy_quantile", "rho": 0.5}}, "selection.method"),
    ({"selection": {"method": "m2po", "threshold": 0.5}}, "selection.method"),
    ({"selection": {"method": "kl_cov", "frac": 0.5, "ppo_kl_coef": 1}}, "selection.method"),
    ({"loss": {"positive_nll": 0.1}}, "loss.positive_nll"), ({"loss": {"kind": "real"}}, "loss.kind")])
def test_a_knob_that_needs_the_whole_request_is_refused_in_a_part(plain, objective, path):
    found = refused(plain, [sequence(reward=1), sequence(reward=0)], objective, totals={"tokens": 9, "sequences": 9, "groups": 3},
                    group_sizes={"a": 2})
    assert found == (422, "objective_options", "objective." + path)


@pytest.mark.parametrize("objective, field", [
    ({"importance": {"method": "token"}}, "rollout_logprobs"), ({"loss": {"kind": "rollout_is"}}, "rollout_logprobs"),
    ({"loss": {"anchor": "rollout"}}, "rollout_logprobs"), ({"advantage": {"teacher_coef": 1}}, "teacher_logprobs"),
    ({"selection": {"method": "top_entropy_quantile", "rho": 0.5}}, "entropy"), ({"beta": 0.1, "kl": {"in": "reward"}}, "ref_logprobs"),
    ({"advantage": {"estimator": "optimal_token_baseline"}}, "sum_pi_squared"), ({"advantage": {"estimator": "remax"}}, "greedy_reward"),
    ({"advantage": {"estimator": "gdpo"}}, "rewards"), ({"advantage": {"estimator": "process"}}, "step_rewards"),
    ({"shaping": [{"kind": "repetition"}]}, "completion_ids"), ({"shaping": [{"kind": "no_eos_zero"}]}, "finish_reason"),
    ({"shaping": [{"kind": "linear_length_penalty"}]}, "prompt_tokens")])
def test_a_missing_input_is_named(plain, objective, field):
    assert refused(plain, [sequence(reward=1)], objective) == (422, "objective_options", "sequences[0]." + field)


def terms_sum_up(batch):
    terms = [term for rollout in rollouts(batch) for term in rollout["contributions"] or []]
    assert close(math.fsum(terms), batch["loss"], absolute=1e-12), (terms, batch["loss"])


# -- batches ------------------------------------------------------------------------------------------------------------------

OBJECTIVES = [
    {"preset": "dapo"}, {"preset": "rloo"}, {"preset": "reinforce_pp"}, {"preset": "reinforce_pp_baseline"}, {"preset": "gspo"},
    {"preset": "cispo"}, {"preset": "gpg"}, {"preset": "trl"}, {"preset": "verl"}, {"preset": "slime"}, {"preset": "areal"},
    {"preset": "gdpo"}, {"preset": "opo"}, {"preset": "maxrl"}, {"preset": "prime_rl"}, {"preset": "nemo_rl"},
    {"loss": {"kind": "real"}}, {"loss": {"kind": "vespo"}}, {"loss": {"kind": "luspo"}}, {"loss": {"kind": "dppo_kl"}},
    {"aggregation": {"mode": "prompt_mean"}}, {"aggregation": {"mode": "group_mean_seq_mean_token_mean"}},
    {"advantage": {"scale": "batch"}}, {"mask": {"truncated": True}},
    {"shaping": [{"kind": "dapo_soft_overlong", "max_len": 5, "buffer": 2}]},
    {"shaping": [{"kind": "stop_properly", "coef": 0.5}, {"kind": "repetition", "ngram": 2, "max_penalty": -0.5}],
     "filter": {"rule": "nonzero_variance", "on": "shaped"}},
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: json.dumps(objective)[:60])
def test_a_batch_and_the_stored_form_agree_under_every_objective(service, engine, objective):
    engine.rules({"in": "SAME", **RIGHT}, {"choices": [RIGHT, WRONG, LONG, WRONG]})
    batch = service.batch(make_batch(make_group("t1", "SAME 1"), make_group("t2", "PROMPT-2"), make_group("t3", "PROMPT-3"),
                                     sampling=sampling(4), objective=objective))
    assert batch["state"] == "complete"
    terms_sum_up(batch)
    sequences = [{"rollout": rollout["id"], "logprobs": rollout["logprobs"], "old_logprobs": rollout["logprobs"]} for rollout in rollouts(batch)]
    reply = service.post("/v1/objective", {"objective": {**objective, "beta": 0}, "sequences": sequences})
    assert reply.status == 200, reply
    assert close(reply.json["loss"], batch["loss"], absolute=1e-6)
    assert close([row["advantage"] if not isinstance(row["advantage"], list) else row["advantage"][0] for row in reply.json["sequences"]],
                 [rollout["advantage"] for rollout in rollouts(batch)])
    assert [row["shaped_reward"] for row in reply.json["sequences"]] == [rollout["shaped_reward"] for rollout in rollouts(batch)]
    one = rollouts(batch)[5]
    assert service.read(f"/v1/rollouts/{one['id']}")["contributions"] == one["contributions"]


def test_shaped_rewards_are_on_record_beside_the_raw_ones(service, engine):
    engine.rules({"choices": [RIGHT, LONG]})
    batch = service.batch(make_batch(sampling=sampling(2), objective={"shaping": [{"kind": "no_eos_zero"}]}))
    found = {rollout["finish_reason"]: rollout for rollout in rollouts(batch)}
    assert (found["stop"]["reward"], found["stop"]["shaped_reward"], found["stop"]["advantage"]) == (1, 1, 1)
    assert (found["length"]["reward"], found["length"]["shaped_reward"], found["length"]["advantage"]) == (1, 0, -1)
    assert batch["groups"][0]["reward_mean"] == 1 and batch["groups"][0]["zero_variance"] is False


def test_terms_that_do_not_exist_at_sampling_are_left_out_by_name(service, engine):
    engine.rules({"choices": [RIGHT, WRONG]})
    objective = {"beta": 0.1, "importance": {"method": "token_truncate", "hi": 2}, "advantage": {"teacher_coef": 0.5},
                 "selection": {"method": "top_entropy_quantile", "rho": 0.5}, "loss": {"positive_nll": 0.1}}
    batch = service.batch(make_batch(objective=objective))
    for name in ("beta", "importance", "teacher_coef", "selection", "positive_nll"):
        assert said(batch, name), (name, batch["notes"])
    assert batch["objective"]["selection"]["rho"] == 0.5
    terms_sum_up(batch)


@pytest.mark.parametrize("objective, path", [
    ({"kl": {"in": "reward"}}, "kl.in"), ({"preset": "openrlhf"}, "kl.in"), ({"advantage": {"estimator": "process"}}, "advantage.estimator"),
    ({"advantage": {"estimator": "remax"}}, "advantage.estimator"), ({"advantage": {"estimator": "reward_to_go", "gamma": 0.9}}, "advantage.gamma")])
def test_an_advantage_that_cannot_exist_at_sampling_is_refused(service, objective, path):
    reply = service.post("/v1/batches", make_batch(objective=objective))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "objective_options", "objective." + path)


def test_importance_in_the_stored_form_needs_old_logprobs(service, engine):
    engine.rules({"choices": [RIGHT, WRONG]})
    made = [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in rollouts(service.batch(make_batch()))]
    reply = service.post("/v1/objective", {"objective": {"importance": {"method": "token"}}, "sequences": made})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "objective_options", "sequences[0].old_logprobs")


def test_a_part_of_a_stored_group_is_refused_where_the_weight_needs_all(service, engine):
    engine.rules({"choices": [RIGHT, WRONG]})
    batch = service.batch(make_batch(sampling=sampling(4)))
    made = [{"rollout": rollout["id"], "logprobs": rollout["logprobs"]} for rollout in rollouts(batch)]
    body = {"objective": {"aggregation": {"mode": "prompt_mean"}}, "sequences": made[:2], "totals": {"tokens": 14, "sequences": 4, "groups": 1}}
    reply = service.post("/v1/objective", body)
    assert (reply.status, reply.error["code"]) == (422, "incomplete_group")
    body = {"objective": {"preset": "reinforce_pp"}, "sequences": made[:2]}
    reply = service.post("/v1/objective", body)
    assert (reply.status, reply.error["code"]) == (422, "incomplete_group")
