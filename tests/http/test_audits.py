"""POST /v1/audits of groups in the request: every number is computed again by hand."""
import random

import pytest

from audit_by_hand import assert_row, audit, inline, refused, row
from material import close

FORMATTED = [("t1", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}, {"correct": 0, "format": 0}, {"correct": 1, "format": 1}]),
             ("t2", [{"correct": 0, "format": 1}, {"correct": 0, "format": 0}]),
             ("t1", [{"correct": 1, "format": None}, {"correct": None, "format": 1}, {"correct": 0, "format": 0.5}, {"correct": 1, "format": 0.25}])]


def check_inline(service, groups, weights, swept, verifier="format", truth="correct", threshold=1, **more):
    got = audit(service, inline(groups, weights, swept, verifier, truth, threshold=threshold, **more))
    assert [one["weight"] for one in got["sweep"]] == swept
    for one in got["sweep"]:
        assert_row(one, row(groups, weights, verifier, one["weight"], truth, threshold), lambda group, index: ("id", str(index)))
    recorded = {**got["recorded"], "weight": weights.get(verifier, 0)}
    assert_row(recorded, row(groups, weights, verifier, weights.get(verifier, 0), truth, threshold), lambda group, index: ("id", str(index)))
    assert got["n"] == sum(len(members) for _, members in groups) and got["groups"] == len(groups) and got["divergence"] is None
    return got


@pytest.mark.parametrize("weights", [{"correct": 1}, {"correct": 1, "format": 0.2}, {"correct": 0.5, "format": -1}, {"format": 1}])
def test_each_number_follows_from_scores_and_weights(plain, weights):
    check_inline(plain, FORMATTED, weights, [0, 0.2, 0.5, 1, 3, -2, 1e-9, 1e9])


def test_a_weight_of_3_pays_for_a_wrong_answer_and_a_weight_of_0_does_not(plain):
    groups = [("sum", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}])]
    got = check_inline(plain, groups, {"correct": 1}, [0, 3])
    assert [(one["promoted_wrong"], one["demoted_right"], one["rank_changes"], one["truth_mean"]) for one in got["sweep"]] == [(0, 0, 0, 0.5), (1, 1, 1, 0.5)]
    assert got["sweep"][1]["promoted"] == [{"id": "1", "task": "sum", "advantage": 1.0, "reward": 3.0, "scores": {"correct": 0.0, "format": 1.0}}]


def test_random_scores_give_the_numbers_computed_by_hand(plain):
    values = [None, 0, 0, 0.25, 0.5, 1, 1, 1]
    for seed in range(20):
        chance = random.Random(seed)
        groups = [(f"t{chance.randrange(4)}", [{name: chance.choice(values) for name in ("correct", "format", "length")} for _ in range(chance.randrange(1, 9))]) for _ in range(6)]
        groups.append(("all", [{"correct": 1, "format": 1, "length": 1}]))
        check_inline(plain, groups, {"correct": 1, "length": 0.5}, [0, 0.5, 2, -0.25], threshold=chance.choice([0.25, 0.5, 1]))


def test_a_missing_score_makes_the_reward_null_unless_its_weight_is_0(plain):
    """It makes the reward null where it counts, and nothing where its weight is 0."""
    groups = [("t", [{"correct": 1, "format": 1}, {"correct": 0}, {"correct": 0, "format": None}, {"format": 1}])]
    got = check_inline(plain, groups, {"correct": 1}, [0, 1])
    assert [one["scored"] for one in got["sweep"]] == [3, 1] and got["truth_scored"] == 3


def test_a_missing_score_is_skipped_if_the_objective_says_so(plain):
    got = audit(plain, inline([("t", [{"correct": 1, "format": None}, {"correct": None, "format": 1}, {"correct": None, "format": None}])], {"correct": 1}, [2],
                              objective={"preset": "grpo", "advantage": {"missing": "skip"}}))
    assert (got["sweep"][0]["scored"], got["sweep"][0]["reward_mean"]) == (2, 1.5)


def test_a_truth_without_scores_is_null_everywhere(plain):
    got = check_inline(plain, [("a", [{"format": 1, "correct": None}, {"format": 0, "correct": None}]), ("b", [{"format": 1, "correct": None}])], {"format": 1}, [0, 2])
    for one in got["sweep"]:
        assert (one["truth_mean"], one["truth_se"], one["correlation"], one["promoted_wrong"], one["demoted_right"]) == (None, None, None, 0, 0)
    assert got["truth_scored"] == 0


def test_one_task_has_no_error_and_a_constant_no_correlation(plain):
    got = check_inline(plain, [("a", [{"format": 1, "correct": 1}, {"format": 1, "correct": 0}])], {"format": 1}, [0, 1])
    assert [(one["reward_se"], one["truth_se"], one["correlation"]) for one in got["sweep"]] == [(None, None, None)] * 2


def test_lists_end_at_100_entries_and_counts_do_not(plain):
    groups = [(f"t{index}", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}]) for index in range(150)]
    got = check_inline(plain, groups, {"correct": 1}, [3])
    assert got["sweep"][0]["promoted_wrong"] == 150 and len(got["sweep"][0]["promoted"]) == 100


def test_advantages_follow_the_objective(plain):
    groups = [("a", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}, {"correct": 0, "format": 0}])]
    body = inline(groups, {"correct": 1}, [3])
    rewards = [1, 3, 0]
    for objective, want in [({"preset": "rloo"}, 3 - (1 + 0) / 2), ({"preset": "dr_grpo"}, 3 - 4 / 3),
                            ({"preset": "grpo", "advantage": {"estimator": "reward"}}, 3),
                            ({"preset": "grpo", "shaping": [{"kind": "reward_clip", "lo": 0, "hi": 2}]}, (2 - 1) / (2 / 3) ** 0.5)]:
        got = audit(plain, {**body, "objective": objective})["sweep"][0]["promoted"]
        assert close(got[0]["advantage"], want) and got[0]["reward"] == rewards[1], objective


def test_shaping_by_length_needs_a_length_and_reads_it(plain):
    body = inline([("a", [{"correct": 1, "format": 0}, {"correct": 0, "format": 1}])], {"correct": 1}, [1],
                  objective={"preset": "grpo", "shaping": [{"kind": "dapo_soft_overlong", "max_len": 10, "buffer": 4}]})
    refused(plain, 422, "objective_options", "groups[0].completions[0].length", body)
    body["groups"][0]["completions"][0]["length"] = 10
    body["groups"][0]["completions"][1]["length"] = 5
    got = audit(plain, body)["sweep"][0]
    assert (got["promoted_wrong"], got["promoted"][0]["advantage"], got["reward_mean"]) == (1, 1.0, 1.0)


def test_a_group_that_the_filter_drops_promotes_nobody(plain):
    body = inline([("a", [{"correct": 0, "format": 1}, {"correct": 0, "format": 0}])], {"correct": 1}, [1])
    assert audit(plain, body)["sweep"][0]["promoted_wrong"] == 1
    dropped = {"preset": "grpo", "filter": {"rule": "mean_interval", "lo": 0.6, "hi": 1}}
    assert audit(plain, {**body, "objective": dropped})["sweep"][0]["promoted_wrong"] == 0


def test_gdpo_normalises_the_scores_of_each_name(plain):
    """gdpo: each score by itself in its group, the sum over the request."""
    groups = [("a", [{"correct": 1, "format": 0}, {"correct": 0, "format": 4}]), ("b", [{"correct": 1, "format": 1}, {"correct": 1, "format": 1}])]
    body = inline(groups, {"correct": 1}, [1, 0.5], objective={"preset": "grpo", "advantage": {"estimator": "gdpo", "eps_group": 0, "eps_batch": 0}})
    got = audit(plain, body)["sweep"]
    assert got[0]["promoted_wrong"] == 0 and got[1]["promoted_wrong"] == 0 and got[1]["demoted_right"] == 0
