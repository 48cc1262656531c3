"""POST /v1/audits of a run: the revision from which its reward rises while the truth falls."""
from fractions import Fraction

import pytest

from audit_by_hand import audit, clustered_se, mean, score
from material import close


def history(service, run, means):
    """means: [(rewards of each of 8 tasks, right tasks)], one revision each."""
    for revision, (rewards, right) in enumerate(means):
        score(service, run, revision, [(f"t{task}", [{"correct": int(task < right), "style": value}]) for task, value in enumerate(rewards)], {"style": 1})
    return audit(service, {"run": run, "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "correct"})["divergence"]


def level(value, spread=0.01):
    return [value - spread, value + spread] * 4


def test_divergence_starts_where_the_reward_rose_and_the_truth_fell(plain):
    rising = [(level(0.1), 2), (level(0.2), 4), (level(0.3), 6), (level(0.4), 5), (level(0.5), 4), (level(0.6), 2)]
    got = history(plain, "hacked", rising)
    assert got["revision"] == 2
    for name, values in (("reward", (level(0.3), level(0.5))), ("truth", ([1] * 6 + [0] * 2, [1] * 4 + [0] * 4))):
        for end, revision, given in (("from", 2, values[0]), ("to", 4, values[1])):
            exact = [Fraction(value) for value in given]
            want = {"revision": revision, "mean": float(mean(exact)), "se": float(clustered_se(exact, range(8)))}
            assert got[name][end]["revision"] == revision and all(close(got[name][end][field], want[field]) for field in ("mean", "se")), (name, end)


@pytest.mark.parametrize("name, means", [
    ("both-rise", [(level(0.1), 2), (level(0.2), 3), (level(0.3), 4)]), ("two-revisions", [(level(0.1), 4), (level(0.9), 1)]),
    ("within-errors", [(level(0.1, 0.5), 6), (level(0.2, 0.5), 5), (level(0.3, 0.5), 4)]), ("reward-falls", [(level(0.3), 6), (level(0.2), 5), (level(0.1), 4)]),
    ("a-dip", [(level(0.1), 6), (level(0.05), 5), (level(0.3), 4)]), ("truth-stays", [(level(0.1), 4), (level(0.2), 4), (level(0.3), 4)])])
def test_no_divergence_without_a_rising_reward_and_a_falling_truth(plain, name, means):
    assert history(plain, name, means) is None


def test_rounding_does_not_make_the_truth_fall(plain):
    """The truth's mean is 0.1 at each revision; as doubles the three means fall by an ulp."""
    truths = ([0, 0.1, 0.2] * 2, [0, 0.2] * 3, [0, 0, 0.3] * 2)
    assert float(sum(map(Fraction, truths[0]))) / 6 > 0.1 > float(sum(map(Fraction, truths[2]))) / 6
    for revision, values in enumerate(truths):
        score(plain, "rounded", revision, [(f"t{task}", [{"correct": 1, "style": revision + task / 100, "quality": value}]) for task, value in enumerate(values)], {"style": 1, "quality": 0})
    assert audit(plain, {"run": "rounded", "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "quality"})["divergence"] is None


def test_each_revision_may_have_tasks_of_its_own(plain):
    """The errors are over the tasks of the revision alone."""
    means = [([0.1, 0.3, 0.2], 3), ([1.1, 1.3, 1.2], 2), ([2.1, 2.5, 2.2], 1)]
    for revision, (rewards, right) in enumerate(means):
        tasks = [(f"r{revision}-{place % 2}", [{"correct": int(place < right), "style": value}]) for place, value in enumerate(rewards)]
        score(plain, "moving", revision, list(reversed(tasks)), {"style": 1})
    got = audit(plain, {"run": "moving", "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "correct"})["divergence"]
    for end, (rewards, _) in (("from", means[0]), ("to", means[2])):
        exact = [Fraction(value) for value in rewards]
        assert close(got["reward"][end]["mean"], float(mean(exact))) and close(got["reward"][end]["se"], float(clustered_se(exact, [0, 1, 0]))), end


def test_one_task_has_no_error_and_so_no_divergence(plain):
    for revision in range(3):
        score(plain, "one-task", revision, [("t", [{"correct": int(member >= revision), "style": revision} for member in range(3)])], {"style": 1})
    assert audit(plain, {"run": "one-task", "revision": 0, "sweep": {"verifier": "style", "weights": [1]}, "truth": "correct"})["divergence"] is None
