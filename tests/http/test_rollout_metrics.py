"""F19: metrics.rollout compares the engine's log-probabilities with the trainer's, never with themselves."""
import math
import random

import pytest

from material import f32

FIGURES = {"against", "kl", "k3_kl", "training_log_ppl", "rollout_log_ppl", "log_ppl_diff", "ppl_ratio", "chi2_token", "chi2_seq",
           "is_mean", "is_max", "is_min", "ess", "logprob_gap"}


def figures(pairs):
    """pairs: (policy, engine) lists of one sequence each; in plain sums over trainable tokens."""
    xs = [[p - e for p, e in zip(policy, engine)] for policy, engine in pairs]
    flat = [x for row in xs for x in row]
    weights = [math.exp(x) for x in flat]
    training = [-math.fsum(policy) / len(policy) for policy, _ in pairs]
    rollout = [-math.fsum(engine) / len(engine) for _, engine in pairs]
    tokens, sequences = len(flat), len(pairs)
    return {"kl": -math.fsum(flat) / tokens, "k3_kl": math.fsum(math.expm1(x) - x for x in flat) / tokens,
            "training_log_ppl": math.fsum(training) / sequences, "rollout_log_ppl": math.fsum(rollout) / sequences,
            "log_ppl_diff": math.fsum(b - a for a, b in zip(rollout, training)) / sequences,
            "ppl_ratio": math.fsum(math.exp(b - a) for a, b in zip(rollout, training)) / sequences,
            "chi2_token": math.fsum(w * w for w in weights) / tokens - 1,
            "chi2_seq": math.fsum(math.exp(2 * math.fsum(row)) for row in xs) / sequences - 1,
            "is_mean": math.fsum(weights) / tokens, "is_max": max(weights), "is_min": min(weights),
            "ess": math.fsum(weights) ** 2 / (tokens * math.fsum(w * w for w in weights)),
            "logprob_gap": math.fsum(abs(x) for x in flat) / tokens}


def draw(seed, lengths=(3, 4)):
    source = random.Random(seed)
    return [[f32(-2 * source.random() - 0.5) for _ in range(n)] for n in lengths]


def assert_figures(reply, against, policy, engine):
    assert reply.status == 200, reply
    found = reply.json["metrics"]["rollout"]
    assert set(found) == FIGURES and found["against"] == against
    for name, value in figures(list(zip(policy, engine))).items():
        assert math.isclose(found[name], value, rel_tol=1e-12, abs_tol=1e-14), (name, found[name], value)
    named = [note for note in reply.json["notes"] if "metrics.rollout compares" in note]
    assert len(named) == (against == "logprobs")


ENGINE, NOW, OLD = draw(1), draw(2), draw(3)


@pytest.fixture(name="record")
def make_record(plain):
    reply = plain.post("/v1/score", {"run": "mismatch", "verifiers": [{"name": "exact"}], "groups": [{"task": "t", "reference": "a", "completions": [
        {"text": text, "completion_ids": list(range(len(values))), "logprobs": values} for text, values in zip("ab", ENGINE)]}]})
    assert reply.status == 200, reply
    return [rollout["id"] for rollout in reply.json["groups"][0]["rollouts"]]


def ask_stored(plain, record, **arrays):
    rows = [{"rollout": rollout, **{name: values[i] for name, values in arrays.items() if values[i]}} for i, rollout in enumerate(record)]
    return plain.post("/v1/objective", {"objective": {"preset": "grpo"}, "sequences": rows, "store": False})


def test_without_old_logprobs_the_record_is_compared_with_logprobs(plain, record):
    assert_figures(ask_stored(plain, record, logprobs=NOW), "logprobs", NOW, ENGINE)


def test_with_old_logprobs_the_record_is_compared_with_those(plain, record):
    assert_figures(ask_stored(plain, record, logprobs=NOW, old_logprobs=OLD), "old_logprobs", OLD, ENGINE)


def test_one_sequence_without_old_logprobs_and_all_are_compared_with_logprobs(plain, record):
    assert_figures(ask_stored(plain, record, logprobs=NOW, old_logprobs=[None, OLD[1]]), "logprobs", NOW, ENGINE)


def test_the_ratio_is_still_against_the_engine(plain, record):
    reply = ask_stored(plain, record, logprobs=NOW).json
    for row, now, engine in zip(reply["sequences"], NOW, ENGINE):
        assert all(math.isclose(ratio, math.exp(a - b), rel_tol=1e-12) for ratio, a, b in zip(row["ratios"], now, engine))


def test_equal_weights_are_still_equal(plain, record):
    found = ask_stored(plain, record, logprobs=ENGINE).json["metrics"]["rollout"]
    assert (found["kl"], found["ess"], found["logprob_gap"], found["against"]) == (0, 1, 0, "logprobs")


@pytest.mark.parametrize("anchor", ["old", "rollout"])
@pytest.mark.parametrize("with_old", [True, False])
def test_arrays_in_the_request_are_compared_alike(plain, anchor, with_old):
    rows = [{"group": "a", "reward": i, "logprobs": NOW[i], "rollout_logprobs": ENGINE[i], **({"old_logprobs": OLD[i]} if with_old else {})}
            for i in range(2)]
    reply = plain.post("/v1/objective", {"objective": {"preset": "grpo", "loss": {"anchor": anchor}}, "sequences": rows})
    assert_figures(reply, "old_logprobs" if with_old else "logprobs", OLD if with_old else NOW, ENGINE)


def test_masked_tokens_are_in_no_figure(plain, record):
    masks = [[1, 0, 1], [0, 1, 1, 1]]
    picked = [[[value for value, kept in zip(row, mask) if kept] for row, mask in zip(rows, masks)] for rows in (NOW, ENGINE)]
    assert_figures(ask_stored(plain, record, logprobs=NOW, mask=masks), "logprobs", *picked)


def test_without_the_engines_log_probabilities_there_is_nothing_to_compare(plain):
    reply = plain.post("/v1/objective", {"sequences": [{"group": "a", "reward": i, "logprobs": NOW[i], "old_logprobs": OLD[i]} for i in range(2)]})
    assert reply.status == 200 and "rollout" not in reply.json["metrics"]
