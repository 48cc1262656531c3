"""POST /v1/audits: refusals with their paths, and the limits of texts and lists."""
import pytest

from audit_by_hand import audit, inline, refused
from material import close

GOOD = inline([("t", [{"correct": 1, "format": 0}])], {"correct": 1}, [0, 1])
SWEEP = {"verifier": "format", "weights": [1]}


@pytest.mark.parametrize("code, path, change", [
    ("missing_field", "sweep", {"sweep": None}), ("missing_field", "truth", {"truth": None}), ("missing_field", "groups", {"groups": None}), ("missing_field", "weights", {"weights": None}),
    ("unknown_field", "sweeps", {"sweeps": 1}), ("invalid_field", "kind", {"kind": "other"}), ("invalid_field", "groups", {"groups": []}), ("invalid_field", "groups", {"groups": {}}),
    ("invalid_field", "groups[0].completions", {"groups": [{"task": "t", "completions": []}]}), ("missing_field", "groups[0].task", {"groups": [{"completions": []}]}),
    ("missing_field", "groups[0].completions[0].scores", {"groups": [{"task": "t", "completions": [{"id": "1"}]}]}),
    ("invalid_field", "groups[0].completions[0].scores.correct", {"groups": [{"task": "t", "completions": [{"scores": {"correct": "1", "format": 1}}]}]}),
    ("invalid_field", "groups[0].completions[1].id", {"groups": [{"task": "t", "completions": [{"id": "1", "scores": {"correct": 1, "format": 1}}] * 2}]}),
    ("invalid_field", "sweep.verifier", {"sweep": {**SWEEP, "verifier": "fromat"}}), ("invalid_field", "sweep.weights", {"sweep": {**SWEEP, "weights": []}}),
    ("invalid_field", "sweep.weights", {"sweep": {**SWEEP, "weights": [1] * 33}}), ("invalid_field", "sweep.weights[1]", {"sweep": {**SWEEP, "weights": [1, "1"]}}),
    ("invalid_field", "sweep.weights[1]", {"sweep": {**SWEEP, "weights": [1, 1e308]}}), ("invalid_field", "sweep.weights[0]", {"sweep": {**SWEEP, "weights": [None]}}),
    ("invalid_field", "sweep.weights[0]", {"sweep": {**SWEEP, "weights": [-1.1e9]}}), ("unknown_field", "sweep.weight", {"sweep": {**SWEEP, "weight": 1}}),
    ("invalid_field", "truth", {"truth": "corect"}), ("invalid_field", "truth", {"truth": "reward"}), ("invalid_field", "weights.corect", {"weights": {"corect": 1}}),
    ("invalid_field", "weights.correct", {"weights": {"correct": 2e9}}), ("invalid_field", "weights.correct", {"weights": {"correct": None}}),
    ("missing_field", "run", {"revision": 3}), ("missing_field", "run", {"batch": "b_1"}),
    ("invalid_field", "groups", {"run": "r", "revision": 1}), ("missing_field", "revision", {"run": "r", "groups": None, "weights": None}),
    ("invalid_field", "revision", {"run": "r", "revision": 1, "batch": "b_1", "groups": None, "weights": None}),
    ("invalid_field", "run", {"run": "no such/run", "revision": 1, "groups": None, "weights": None}), ("invalid_field", "threshold", {"threshold": "1"})])
def test_a_wrong_field_is_refused_with_its_path(plain, code, path, change):
    refused(plain, 400, code, path, {name: value for name, value in {**GOOD, **change}.items() if value is not None})


@pytest.mark.parametrize("objective, path", [({"preset": "gropo"}, "objective.preset"), ({"advantage": {"estimator": "reinforce_plus_plus"}}, "objective.advantage.estimator"), ({"advantage": {"estimator": "opo"}}, "objective.advantage.estimator"),
                                             ({"advantage": {"estimator": "remax"}}, "objective.advantage.estimator"), ({"shaping": [{"kind": "repetition", "ngram": 2, "max_penalty": -1}]}, "objective.shaping"),
                                             ({"beta": 0.1, "kl": {"in": "reward"}}, "objective.kl.in")])
def test_an_objective_that_needs_tokens_is_refused(plain, objective, path):
    refused(plain, 422, "objective_options", path, {**GOOD, "objective": {"preset": "grpo", **objective}})


@pytest.mark.parametrize("body, code", [(b'{"sweep":{"verifier":"a","weights":[NaN]},"truth":"a"}', "invalid_json"), (b'{"sweep":{"verifier":"a","weights":[1e999]},"truth":"a"}', "invalid_field"),
                                        (b'{"truth":"a","truth":"b"}', "invalid_json"),
                                        (b'{"groups":[{"task":"t","completions":[{"scores":{"a":1,"a":0}}]}],"weights":{"a":1},"sweep":{"verifier":"a","weights":[1]},"truth":"a"}', "invalid_json"),
                                        (b"[]", "invalid_field"), (b"", "invalid_json")])
def test_a_body_that_is_no_json_is_refused(plain, body, code):
    reply = plain.post("/v1/audits", body)
    assert (reply.status, reply.error["code"]) == (400, code), reply


def test_rewards_beyond_the_range_of_double_are_refused_with_their_path(plain):
    refused(plain, 422, "non_finite", "groups[0].completions[1].scores", inline([("t", [{"correct": 1, "format": 1}, {"correct": 0, "format": 1e308}])], {"correct": 1}, [1, 1e9]))
    refused(plain, 422, "non_finite", "groups[0].completions[0].scores", inline([("t", [{"correct": 1e308, "format": 1e308}])], {"correct": 1e9, "format": -1e9}, [-1e9]))
    got = audit(plain, inline([("t", [{"correct": 1e308, "format": 1}, {"correct": 0, "format": 1}]), ("u", [{"correct": 1e308, "format": 1}, {"correct": 1e308, "format": 0}])], {"correct": 1}, [1]))
    assert got["sweep"][0]["reward_mean"] == 7.5e307 and close(got["sweep"][0]["correlation"], 1)


def test_too_many_completions_are_refused(plain):
    group = {"task": "t", "completions": [{"scores": {"a": 1}}] * 32768}
    body = {"groups": [group, group], "weights": {"a": 1}, "sweep": {"verifier": "a", "weights": [1]}, "truth": "a"}
    got = audit(plain, body)
    assert (got["n"], got["recorded"]["scored"], got["recorded"]["rank_changes"]) == (65536, 65536, 0)
    body["groups"] = [group, group, {"task": "u", "completions": [{"scores": {"a": 1}}]}]
    refused(plain, 422, "too_many_rollouts", "groups", body)


def test_too_many_names_are_refused(plain):
    body = inline([("t", [{**{f"s{index}": 1 for index in range(300)}, "correct": 1, "format": 1}])], {"correct": 1}, [1])
    refused(plain, 400, "invalid_field", "groups", body)


def test_too_many_scores_are_refused_even_in_a_small_body(plain):
    """256 weights that each of 20,000 completions lacks are five million missing scores."""
    names = {f"s{index}": 1 for index in range(255)}
    body = {"groups": [{"task": "t", "completions": [{"scores": {**names, "t": 1}}, *[{"scores": {}}] * 20000]}], "weights": names, "sweep": {"verifier": "s0", "weights": [1]}, "truth": "t"}
    refused(plain, 422, "too_many_rollouts", "groups", body)
    gdpo = {"preset": "grpo", "advantage": {"estimator": "gdpo"}}
    body = {**body, "objective": gdpo, "weights": {"s0": 1}}
    refused(plain, 422, "too_many_rollouts", "groups", body)
    body["groups"][0]["completions"] = body["groups"][0]["completions"][:100]
    assert audit(plain, body)["n"] == 100


@pytest.mark.parametrize("name, largest", [("task", 1024), ("id", 256), ("score", 64)])
def test_texts_of_the_largest_length_are_listed_and_longer_ones_refused(plain, name, largest):
    def body(length, members):
        text = "\u0001" * length if name != "score" else "s" * length
        score = text if name == "score" else "style"
        completions = [{**({"id": text[:-3] + f"{index:03d}"} if name == "id" else {}), "scores": {score: index, "right": 0}} for index in range(members)]
        return {"groups": [{"task": text if name == "task" else "t", "completions": completions}], "weights": {score: 1}, "sweep": {"verifier": score, "weights": [2] * 32}, "truth": "right"}
    got = audit(plain, body(largest, 300))
    assert [len(one["promoted"]) for one in got["sweep"]] == [100] * 32 and got["sweep"][0]["promoted_wrong"] == 150
    reply = plain.post("/v1/audits", body(largest + 1, 4))
    assert (reply.status, reply.error["code"]) == (400, "invalid_field") and reply.error["path"].startswith("groups[0]")


def test_a_list_ends_at_a_mebibyte(plain):
    names = ["\u0001" * 60 + f"{index:04d}" for index in range(200)]
    scores = dict.fromkeys(names, 0)
    body = {"groups": [{"task": "t", "completions": [{"scores": {**scores, "style": index, "right": 0}} for index in range(80)]}], "weights": {"style": 1},
            "sweep": {"verifier": "style", "weights": [1, 2]}, "truth": "right"}
    for one in audit(plain, body)["sweep"]:
        assert one["promoted_wrong"] == 40 and 1 < len(one["promoted"]) < 40 and set(one["promoted"][0]["scores"]) == {*names, "style", "right"}


def test_texts_of_every_kind_are_returned_unchanged(plain):
    names = {"id": "a\u0000b", "task": "\u00e4\u0000\u2028\U0001f984"}
    body = {"groups": [{"task": names["task"], "completions": [{"id": names["id"], "scores": {"\u00e4 \"q\"": 1, "t": 0}}, {"scores": {"\u00e4 \"q\"": 0, "t": 1}}]}],
            "weights": {"\u00e4 \"q\"": 1}, "sweep": {"verifier": "\u00e4 \"q\"", "weights": [2]}, "truth": "t"}
    assert audit(plain, body)["sweep"][0]["promoted"] == [{"id": names["id"], "task": names["task"], "advantage": 1.0, "reward": 2.0, "scores": {"\u00e4 \"q\"": 1.0, "t": 0.0}}]
