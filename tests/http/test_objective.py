"""Losses and gradients: numbers from paper, signs that a trainer can trust, parts that add up to the whole."""
import math

import pytest

from material import close, f32, make_batch, make_group, packed, rollouts, sampling

GRPO = {"preset": "grpo"}


def ask(service, sequences, objective=None, **extra):
    reply = service.post("/v1/objective", {"objective": {**GRPO, **(objective or {})}, "sequences": sequences, **extra})
    assert reply.status == 200, reply
    return reply.json


def refused(service, sequences, objective=None, **extra):
    reply = service.post("/v1/objective", {"objective": {**GRPO, **(objective or {})}, "sequences": sequences, **extra})
    assert reply.status >= 400, reply
    return reply.status, reply.error["code"], reply.error["path"]


def sequence(group="a", logprobs=(-1.0,), **fields):
    return {"group": group, "logprobs": list(logprobs), **fields}


def at_ratio(ratio, advantage, **fields):
    """One token whose ratio is as close to `ratio` as an f32 lets it be; gives the true ratio too."""
    new = f32(math.log(ratio) - 1)
    return sequence(logprobs=[new], old_logprobs=[-1.0], advantage=advantage, **fields), math.exp(new + 1)


# -- the policy term -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("ratio, advantage, surrogate, clipped", [
    (1.4, 1.0, 1.2, 1), (1.4, -1.0, -1.4, 0), (0.6, 1.0, 0.6, 0), (0.6, -1.0, -0.8, -1), (1.0, 1.0, 1.0, 0), (1.0, -2.0, -2.0, 0)])
def test_the_clipped_surrogate_of_the_paper(plain, ratio, advantage, surrogate, clipped):
    """PPO (arXiv 1707.06347) equation 7 with epsilon 0.2."""
    made, true_ratio = at_ratio(ratio, advantage)
    reply = ask(plain, [made])
    want = surrogate if clipped else true_ratio * advantage
    row = reply["sequences"][0]
    assert close(row["surrogates"], [want], relative=1e-6) and row["clipped"] == [clipped]
    assert close(reply["loss"], -want, 1e-6) and close(reply["surrogate"], want, 1e-6) and close(row["ratios"], [true_ratio])
    assert close(row["dloss_dlogp"], [0.0 if clipped else -true_ratio * advantage])
    assert math.isclose(row["surrogates"][0], surrogate, rel_tol=1e-6)


@pytest.mark.parametrize("bounds, ratio, surrogate", [
    ({"epsilon": 0.1}, 1.4, 1.1), ({"loss": {"eps_low": 0.2, "eps_high": 0.28}}, 1.4, 1.28), ({"loss": {"eps_low": 0.2, "eps_high": 0.5}}, 1.4, 1.4)])
def test_epsilon_and_its_two_halves(plain, bounds, ratio, surrogate):
    made, _ = at_ratio(ratio, 1.0)
    assert math.isclose(ask(plain, [made], bounds)["surrogate"], surrogate, rel_tol=1e-6)


def test_a_step_against_the_gradient_raises_what_was_good_and_lowers_what_was_bad(plain):
    reply = ask(plain, [sequence(reward=1, logprobs=[-1.0, -2.0]), sequence(reward=0, logprobs=[-1.0])])
    good, bad = reply["sequences"]
    assert all(value < 0 for value in good["dloss_dlogp"]) and all(value > 0 for value in bad["dloss_dlogp"])


@pytest.mark.parametrize("objective", [{}, {"aggregation": {"mode": "token_mean"}}, {"beta": 0.1}])
def test_the_gradient_is_the_derivative_of_the_loss(plain, objective):
    """Central differences with a step that f32 holds exactly; error O(h^2)."""
    step = 2.0 ** -10
    old = [[-1.0, -0.5, -2.0], [-0.75, -1.25], [-1.5, -3.0]]
    new = [[-0.9375, -0.625, -1.75], [-0.875, -1.0], [-1.5, -2.875]]
    reference = [[-1.25, -0.5, -1.5], [-0.75, -1.0], [-1.0, -3.0]]
    rewards = [1.0, 0.0, 0.25]

    def asked(values):
        return ask(plain, [sequence(reward=reward, logprobs=now, old_logprobs=before, ref_logprobs=ref)
                           for reward, now, before, ref in zip(rewards, values, old, reference)], {"epsilon": 0.9, **objective})
    gradient = [row["dloss_dlogp"] for row in asked(new)["sequences"]]
    for place, values in enumerate(new):
        for token in range(len(values)):
            losses = []
            for sign in (1, -1):
                moved = [list(row) for row in new]
                moved[place][token] += sign * step
                losses.append(asked(moved)["loss"])
            slope = (losses[0] - losses[1]) / (2 * step)
            assert math.isclose(slope, gradient[place][token], rel_tol=1e-5, abs_tol=1e-7), (place, token)


def test_a_zero_loss_has_a_gradient_all_the_same(plain):
    """R05: a loss of 0 is not a broken run."""
    reply = ask(plain, [sequence(reward=1, logprobs=[-0.7]), sequence(reward=0, logprobs=[-2.3])])
    first, second = reply["sequences"]
    assert reply["loss"] == 0 and (first["advantage"], second["advantage"]) == (1, -1)
    assert (first["contributions"], second["contributions"]) == ([-0.5], [0.5])
    assert (first["dloss_dlogp"], second["dloss_dlogp"]) == ([-0.5], [0.5])
    assert reply["metrics"]["zero_variance_groups"] == 0
    assert any("old_logprobs" in note for note in reply["notes"]), reply["notes"]


def test_an_advantage_of_zero_beats_an_infinite_ratio(plain):
    """R03, first part"""
    reply = ask(plain, [sequence(reward=1, old_logprobs=[-801.0]), sequence(reward=1, old_logprobs=[-1.0])])
    assert reply["loss"] == 0
    for row in reply["sequences"]:
        assert (row["advantage"], row["contributions"], row["dloss_dlogp"]) == (0, [0], [0])


def test_the_clip_holds_a_ratio_that_overflows(plain):
    """R03, second part"""
    reply = ask(plain, [sequence(reward=1, old_logprobs=[-801.0]), sequence(reward=0, old_logprobs=[-1.0])])
    first, second = reply["sequences"]
    assert close(first["contributions"], [-0.6]) and first["dloss_dlogp"] == [0]
    assert close(second["contributions"], [0.5]) and close(second["dloss_dlogp"], [0.5])
    assert close(reply["loss"], -0.1)


def test_a_ratio_beyond_double_that_enters_the_loss_is_refused(plain):
    status, code, path = refused(plain, [sequence(reward=0, logprobs=[-1.0], old_logprobs=[-1001.0]), sequence(reward=1)])
    assert (status, code) == (422, "non_finite") and path.startswith("sequences[0]")


# -- advantages ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rewards, advantages", [
    ([0, 0, 1, 1], [-1, -1, 1, 1]), ([1, 1, 1], [0, 0, 0]), ([0.1, 0.1, 0.1], [0, 0, 0]), ([1, 0, 0, 0], [math.sqrt(3)] + [-1 / math.sqrt(3)] * 3),
    ([1, None, 0], [1, None, -1]), ([None, None], [None, None]), ([0.7, None], [0, None])])
def test_advantages_use_the_population_deviation_of_those_that_were_judged(plain, rewards, advantages):
    """DeepSeekMath (arXiv 2402.03300) section 4.1; R08."""
    reply = ask(plain, [sequence(reward=reward) for reward in rewards])
    assert close([row["advantage"] for row in reply["sequences"]], advantages)
    for row, advantage in zip(reply["sequences"], advantages):
        if advantage is None:
            assert row["dloss_dlogp"] == [0] and row["contributions"] == [0]
    assert reply["metrics"]["sequences"] == sum(reward is not None for reward in rewards)


def test_a_loss_over_nothing_is_null(plain):
    reply = ask(plain, [sequence(reward=None), sequence(reward=None)])
    assert reply["loss"] is None and reply["totals"]["sequences"] == 0


def test_a_group_of_one_is_named_in_the_notes(plain):
    """R08"""
    reply = ask(plain, [sequence(reward=0.7)])
    assert reply["loss"] == 0 and any("singleton" in note for note in reply["notes"]), reply["notes"]


def test_rewards_that_cancel_are_a_group_without_variance(plain):
    """R06: 0.1 * 10 in binary must not look like a spread."""
    reply = ask(plain, [sequence(rewards={"fact": {"score": 1, "weight": 1}, "brief": {"score": 0, "weight": 0.1}}),
                        sequence(rewards={"fact": {"score": 0, "weight": 1}, "brief": {"score": 10, "weight": 0.1}})])
    assert [row["advantage"] for row in reply["sequences"]] == [0, 0]
    assert reply["metrics"]["zero_variance_groups"] == 1


def test_groups_do_not_mix_whatever_their_order(plain):
    reply = ask(plain, [sequence(group, reward=reward) for group, reward in [("a", 1), ("b", 5), ("a", 0), ("b", 5)]])
    assert [row["advantage"] for row in reply["sequences"]] == [1, 0, -1, 0]


# -- KL ------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("now, reference", [(-1.0, -1.5), (-1.0, -0.5), (-1.0, -1.0), (-0.125, -8.0)])
def test_k3_of_the_blog_post_and_its_gradient(plain, now, reference):
    """Schulman, Approximating KL Divergence: k3 = (r - 1) - log r with log r = reference - now; derivative 1 - r."""
    made = sequence(advantage=0.0, logprobs=[now], old_logprobs=[now], ref_logprobs=[reference])
    reply = ask(plain, [made], {"beta": 0.5})
    log_ratio = reference - now
    k3 = math.expm1(log_ratio) - log_ratio
    row = reply["sequences"][0]
    assert close(row["kl"], [k3]) and close(reply["kl_loss"], 0.5 * k3) and close(reply["loss"], 0.5 * k3) and reply["policy_loss"] == 0
    assert close(row["dloss_dlogp"], [0.5 * -math.expm1(log_ratio)]) and row["surrogates"] == [0]


def test_beta_without_reference_logprobs_is_refused(plain):
    assert refused(plain, [sequence(reward=1)], {"beta": 0.1})[:2] == (422, "objective_options")


# -- masks and aggregation --------------------------------------------------------------------------------------------------------

def test_masked_tokens_carry_0_and_are_in_no_denominator(plain):
    reply = ask(plain, [sequence(advantage=1.0, logprobs=[-1.0, -9.0, -1.0, -1.0], mask=[1, 0, 1, 0])])
    row = reply["sequences"][0]
    for name in ("surrogates", "contributions", "dloss_dlogp", "ratios", "weights", "clipped", "kl"):
        assert row[name][1] == row[name][3] == 0, name
    assert row["contributions"] == [-0.5, 0, -0.5, 0] and reply["totals"]["tokens"] == 2 and reply["metrics"]["trainable_tokens"] == 2


def test_the_loss_of_all_masked_tokens_is_0_with_a_note(plain):
    reply = ask(plain, [sequence(reward=1, mask=[0]), sequence(reward=0, mask=[0])])
    assert reply["loss"] == 0 and reply["notes"]


def test_each_completion_counts_alike_or_each_token(plain):
    sequences = [sequence(advantage=1.0, logprobs=[-1.0] * 4), sequence(advantage=-1.0, logprobs=[-1.0])]
    by_sequence, by_token = ask(plain, sequences), ask(plain, sequences, {"aggregation": {"mode": "token_mean"}})
    assert close([row["weights"] for row in by_sequence["sequences"]], [[1 / 8] * 4, [1 / 2]])
    assert close([row["weights"] for row in by_token["sequences"]], [[1 / 5] * 4, [1 / 5]])
    assert close(by_sequence["loss"], 0, absolute=1e-12) and close(by_token["loss"], -3 / 5)


def test_contributions_sum_to_the_loss(plain):
    sequences = [sequence(f"g{index % 3}", [-(index + token) / 8 for token in range(index + 1)], reward=float(index % 2),
                          old_logprobs=[-(index + token) / 7 for token in range(index + 1)],
                          ref_logprobs=[-(index + token) / 9 for token in range(index + 1)]) for index in range(9)]
    reply = ask(plain, sequences, {"beta": 0.04})
    assert close(math.fsum(value for row in reply["sequences"] for value in row["contributions"]), reply["loss"], absolute=1e-12)
    assert close(math.fsum(row["loss"] for row in reply["sequences"]), reply["loss"], absolute=1e-12)
    assert close(reply["policy_loss"] + reply["kl_loss"], reply["loss"], absolute=1e-12)


# -- parts ----------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["seq_mean_token_mean", "token_mean"])
def test_the_parts_of_a_step_add_up_to_the_whole(plain, mode):
    """A group may lie across parts only if its advantages are given; here each part holds whole groups."""
    groups = [[sequence(name, [-1.0 - index / 8, -0.5 * index], reward=float(index % 2), old_logprobs=[-1.0, -0.5]) for index in range(4)]
              for name in "abc"]
    objective = {"aggregation": {"mode": mode}}
    whole = ask(plain, sum(groups, []), objective)
    parts = [ask(plain, group, objective, totals=whole["totals"], group_sizes={group[0]["group"]: 4}) for group in groups]
    assert close(math.fsum(part["loss"] for part in parts), whole["loss"], absolute=1e-12)
    split = [row["dloss_dlogp"] for part in parts for row in part["sequences"]]
    assert close(split, [row["dloss_dlogp"] for row in whole["sequences"]])


def test_a_part_that_lacks_members_is_refused(plain):
    """The lost member would silently shift every advantage of its group."""
    totals = {"tokens": 100, "sequences": 10, "groups": 2}
    status, code, path = refused(plain, [sequence(reward=1)], totals=totals, group_sizes={"a": 2})
    assert (status, code) == (422, "incomplete_group") and path
    assert refused(plain, [sequence(reward=1)], totals=totals)[0] in (400, 422)
    assert close(ask(plain, [sequence(advantage=1.0)], totals=totals)["loss"], -1 / 10)


def test_a_knob_that_needs_the_whole_step_is_refused_in_a_part(plain):
    status, code, _ = refused(plain, [sequence(reward=1)], {"advantage": {"scale": "batch"}}, totals={"tokens": 9, "sequences": 9, "groups": 9},
                              group_sizes={"a": 1})
    assert (status, code) == (422, "objective_options")


# -- what is refused ----------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("fields, code", [
    ({"old_logprobs": [-1.0]}, "length_mismatch"), ({"ref_logprobs": [-1.0] * 3}, "length_mismatch"), ({"mask": [1]}, "length_mismatch"),
    ({"advantage": [1.0], "reward": None}, "length_mismatch")])
def test_arrays_of_other_lengths_are_refused(plain, fields, code):
    made = {**sequence(reward=1, logprobs=[-1.0, -1.0]), **fields}
    if made.get("reward") is None:
        del made["reward"]
    status, got, path = refused(plain, [sequence(reward=0), made])
    assert (status, got) == (422, code) and path.startswith("sequences[1]")


def test_a_sequence_without_tokens_is_refused(plain):
    assert refused(plain, [sequence(reward=1, logprobs=[])])[:2] == (422, "empty_completion")


def test_null_among_trainable_logprobs_is_refused_and_under_the_mask_is_not(plain):
    status, code, path = refused(plain, [sequence(reward=1, logprobs=[-1.0, None])])
    assert (status, code) == (422, "non_finite") and path.startswith("sequences[0].logprobs")
    assert ask(plain, [sequence(advantage=1.0, logprobs=[-1.0, None], mask=[1, 0])])["loss"] == -1


@pytest.mark.parametrize("objective, path", [
    ({"eps_high": 0.3}, "objective.eps_high"), ({"loss": {"epsilon_high": 0.3}}, "objective.loss.epsilon_high"),
    ({"aggregation": {"kind": "token_mean"}}, "objective.aggregation.kind"), ({"advantages": {}}, "objective.advantages")])
def test_a_knob_nobody_knows_is_refused(plain, objective, path):
    """A typo in eps_high must not train a model with a default."""
    assert refused(plain, [sequence(reward=1)], objective) == (400, "unknown_field", path)


@pytest.mark.parametrize("objective", [
    {"loss": {"kind": "pppo"}}, {"aggregation": {"mode": "mean"}}, {"advantage": {"estimator": "magic"}}, {"kl": {"estimator": "k9"}}, {"beta": -0.1},
    {"epsilon": -1}, {"preset": "grpoo"}])
def test_a_value_nobody_knows_is_refused(plain, objective):
    status, code, path = refused(plain, [sequence(reward=1)], objective)
    assert (status, code) in ((422, "objective_options"), (400, "invalid_field")) and path.startswith("objective")


def test_an_empty_list_of_sequences_is_refused(plain):
    assert refused(plain, [])[0] in (400, 422)


def test_packed_arrays_mean_the_same(plain):
    new, old = [-1.0, -0.5, -2.25], [-1.25, -0.5, -2.0]
    plainly = ask(plain, [sequence(advantage=1.0, logprobs=new, old_logprobs=old, mask=[1, 1, 0])])
    in_bytes = ask(plain, [{"group": "a", "advantage": 1.0, "logprobs_f32": packed("f", new), "old_logprobs_f32": packed("f", old), "mask": [1, 1, 0]}])
    assert in_bytes == plainly


@pytest.mark.parametrize("text", ["!!!!", "AAA", "AAAAAAA=", "AAAAAA", "AAAA AAA"])
def test_broken_base64_is_refused(plain, text):
    status, code, path = refused(plain, [{"group": "a", "advantage": 1.0, "logprobs_f32": text}])
    assert (status, code) == (400, "invalid_field") and path == "sequences[0].logprobs_f32"


def test_the_same_array_twice_is_refused(plain):
    status, code, _ = refused(plain, [{"group": "a", "advantage": 1.0, "logprobs": [-1.0], "logprobs_f32": packed("f", [-1.0])}])
    assert (status, code) == (400, "invalid_field")


def test_return_limits_the_arrays(plain):
    row = ask(plain, [sequence(advantage=1.0)], **{"return": ["dloss_dlogp"]})["sequences"][0]
    assert row["dloss_dlogp"] == [-1.0] and not {"surrogates", "contributions", "ratios", "weights", "clipped"} & set(row)


def test_the_same_request_gives_the_same_bytes(plain):
    body = {"objective": {**GRPO, "beta": 0.03}, "sequences": [
        sequence("g", [-(index * token % 7) / 3 for token in range(50)], reward=float(index % 3), old_logprobs=[-(index + token) / 40 for token in range(50)],
                 ref_logprobs=[-(index * 2 + token) / 50 for token in range(50)]) for index in range(8)]}
    first = plain.post("/v1/objective", body)
    assert first.status == 200, first
    assert all(plain.post("/v1/objective", body).body == first.body for _ in range(5))


# -- presets --------------------------------------------------------------------------------------------------------------------------------

def test_presets_say_every_knob(plain):
    presets = {row["name"]: row for row in plain.read("/v1/presets")["presets"]}
    assert "grpo" in presets
    knobs = presets["grpo"]["objective"]
    assert {"advantage", "shaping", "filter", "mask", "loss", "beta", "kl", "importance", "selection", "aggregation"} <= set(knobs)
    echoed = ask(plain, [sequence(advantage=1.0)])["objective"]
    assert {name: value for name, value in echoed.items() if name != "preset"} == {name: value for name, value in knobs.items() if name != "preset"}


def test_knobs_that_were_echoed_can_be_sent_again(plain):
    first = ask(plain, [sequence(reward=1), sequence(reward=0)], {"epsilon": 0.1})
    again = plain.post("/v1/objective", {"objective": first["objective"], "sequences": [sequence(reward=1), sequence(reward=0)]})
    assert again.status == 200 and again.json["loss"] == first["loss"] and again.json["objective"] == first["objective"]


# -- the stored form --------------------------------------------------------------------------------------------------------------------------

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
WRONG = {"text": "\\boxed{41}", "ids": [11, 13, 14, 2], "lp": [-0.5, -1.5, -1.0, -0.125]}


@pytest.fixture
def stored(service, engine):
    engine.rules({"in": "LOST", "lp": None}, {"choices": [RIGHT, WRONG, WRONG]})
    return service.batch(make_batch(make_group("t1", "PROMPT-1"), make_group("t2", "PROMPT-2"), make_group("t3", "LOST"), sampling=sampling(3)))


def scored(batch):
    return [rollout for rollout in rollouts(batch) if rollout["reward"] is not None]


def stored_sequences(batch, **fields):
    return [{"rollout": rollout["id"], "logprobs": rollout["logprobs"], **fields} for rollout in scored(batch)]


def ask_stored(service, sequences, objective=None, **extra):
    reply = service.post("/v1/objective", {"objective": objective or GRPO, "sequences": sequences, **extra})
    assert reply.status == 200, reply
    return reply.json


def test_on_policy_the_stored_form_repeats_the_batch(service, stored):
    reply = ask_stored(service, stored_sequences(stored))
    assert close(reply["loss"], stored["loss"]) and reply["totals"] == stored["totals"]
    for row, rollout in zip(reply["sequences"], scored(stored)):
        assert row["rollout"] == rollout["id"] and row["advantage"] == rollout["advantage"]
        assert close(row["contributions"], rollout["contributions"]) and close(row["surrogates"], rollout["surrogates"])
        assert row["ratios"] == [1] * len(rollout["logprobs"])
    assert any("old_logprobs" in note for note in reply["notes"])


def test_any_order_and_any_subset_keep_the_statistics_of_the_whole_group(service, stored):
    wanted = stored_sequences(stored)[::-1][:2]
    reply = ask_stored(service, wanted)
    advantages = {rollout["id"]: rollout["advantage"] for rollout in rollouts(stored)}
    assert [row["advantage"] for row in reply["sequences"]] == [advantages[made["rollout"]] for made in wanted]


def test_parts_of_stored_rollouts_add_up(service, stored):
    sequences, totals = stored_sequences(stored), stored["totals"]
    parts = [ask_stored(service, [made], totals=totals, optimizer_step=1, ppo_epoch=0, part=index) for index, made in enumerate(sequences)]
    assert close(math.fsum(part["loss"] for part in parts), stored["loss"], absolute=1e-12)
    assert close([part["sequences"][0]["dloss_dlogp"] for part in parts],
                 [row["dloss_dlogp"] for row in ask_stored(service, sequences)["sequences"]])


def test_new_logprobs_move_the_ratio_against_the_engine(service, stored):
    rollout = scored(stored)[0]
    moved = [value + 0.0625 for value in rollout["logprobs"]]
    row = ask_stored(service, [{"rollout": rollout["id"], "logprobs": moved}])["sequences"][0]
    assert close(row["ratios"], [math.exp(0.0625)] * len(moved))


def test_a_mask_is_combined_with_the_record(service, stored):
    rollout = scored(stored)[0]
    mask = [0] + [1] * (len(rollout["logprobs"]) - 1)
    row = ask_stored(service, [{"rollout": rollout["id"], "logprobs": rollout["logprobs"], "mask": mask}])["sequences"][0]
    assert row["contributions"][0] == 0 and row["dloss_dlogp"][0] == 0


def test_a_failed_rollout_has_no_part_in_a_loss(service, stored):
    lost = [rollout for rollout in rollouts(stored) if rollout["state"] == "failed"]
    assert len(lost) == 3
    reply = service.post("/v1/objective", {"objective": GRPO, "sequences": [*stored_sequences(stored), {"rollout": lost[0]["id"], "logprobs": [-1.0]}]})
    if reply.status == 200:
        assert reply.json["sequences"][-1]["advantage"] is None and close(reply.json["loss"], stored["loss"])
    else:
        assert reply.status in (409, 422) and reply.error["path"].startswith("sequences[6]"), reply


def test_unknown_and_doubled_rollouts_are_refused(service, stored):
    made = stored_sequences(stored)[0]
    reply = service.post("/v1/objective", {"objective": GRPO, "sequences": [{"rollout": "r_nobody", "logprobs": [-1.0]}]})
    assert reply.status in (400, 404, 422) and reply.error["path"] == "sequences[0].rollout"
    reply = service.post("/v1/objective", {"objective": GRPO, "sequences": [made, made]})
    assert reply.status in (400, 422) and reply.error["path"] == "sequences[1].rollout"


def test_stored_logprobs_must_have_the_length_of_the_record(service, stored):
    made = stored_sequences(stored)[0]
    made["logprobs"] = made["logprobs"][:-1]
    reply = service.post("/v1/objective", {"objective": GRPO, "sequences": [made]})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (422, "length_mismatch", "sequences[0].logprobs")


def test_rollouts_of_an_evaluation_are_not_trained_on(service, engine):
    engine.rules(RIGHT)
    batch = service.batch(make_batch(purpose="eval"))
    reply = service.post("/v1/objective", {"objective": GRPO, "sequences": stored_sequences(batch)})
    assert (reply.status, reply.error["code"]) == (409, "eval_group")


def test_another_objective_recomputes_advantages_and_says_so(service, stored):
    reply = ask_stored(service, stored_sequences(stored), {"preset": "grpo", "advantage": {"ddof": 1}})
    assert reply["notes"]
    for group in stored["groups"][:2]:
        rewards = [rollout["reward"] for rollout in group["rollouts"]]
        mean = math.fsum(rewards) / 3
        deviation = math.sqrt(math.fsum((reward - mean) ** 2 for reward in rewards) / 2)
        got = {row["rollout"]: row["advantage"] for row in reply["sequences"]}
        for rollout in group["rollouts"]:
            assert close(got[rollout["id"]], 0.0 if deviation == 0 else (rollout["reward"] - mean) / deviation, absolute=1e-12)


def test_the_stored_form_works_after_a_restart(service, stored):
    before = ask_stored(service, stored_sequences(stored))
    service.terminate()
    service.start()
    assert ask_stored(service, stored_sequences(stored)) == before
