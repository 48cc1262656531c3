"""GET /v1/disagreements: every number is counted again here from the rollouts of the reply, and advantages by hand."""
import collections
import random

import pytest

from material import close, group_advantages, make_batch, make_group, rollouts, sampling


def score(service, run, groups, revision=1, weights=None, **more):
    """groups: [(task, [{name: score}])]; names with a weight are rewards, the held-out verifier is `exact`: right or wrong by `exact`."""
    weights = weights or {"old": 1}
    body = {"run": run, "policy_revision": revision, "verifiers": [{"name": "exact", "heldout": True}],
            "groups": [{"task": task, "draw": draw, "reference": "yes", "completions": [
                {"text": "yes" if scores["exact"] else "no", "rewards": {name: {"score": scores[name], "weight": weights[name]} for name in weights}}
                for scores in members]} for draw, (task, members) in enumerate(groups)], **more}
    reply = service.post("/v1/score", body)
    assert reply.status == 200, reply
    return reply.json


def disagreements(service, run, a="old", b="exact", **query):
    text = "".join(f"&{name}={value}" for name, value in query.items())
    reply = service.get(f"/v1/disagreements?run={run}&a={a}&b={b}{text}")
    assert reply.status == 200, reply
    return reply.json


def verdict(rollout, verifier):
    return next((one for one in rollout["verdicts"] or [] if one["id"] == verifier), None)


def sign(value):
    return (value > 0) - (value < 0)


def counted(groups, a="old", b="exact", weights=None):
    """The expected reply for whole groups of rollouts with a grpo objective."""
    weights = weights or {"old": 1}
    pairs, examples = collections.Counter(), collections.defaultdict(list)
    n = agree = changes = signs = 0
    for group in groups:
        before, after = [], []
        for rollout in group:
            left, right = verdict(rollout, a), verdict(rollout, b)
            scores = {name: rollout["rewards"][name]["score"] for name in weights}
            before.append(None if None in scores.values() else sum(weights[name] * scores[name] for name in weights))
            if left and right:
                n += 1
                agree += left["score"] == right["score"]
                key = (left["reason"], left["score"], right["reason"], right["score"])
                pairs[key] += 1
                examples[key].append(rollout["id"])
                scores = {name: right["score"] if name == a else value for name, value in scores.items()}
            after.append(None if None in scores.values() else sum(weights[name] * scores[name] for name in weights))
        for old, new in zip(group_advantages(before), group_advantages(after)):
            changes += (old is None) != (new is None) or (old is not None and not close(new, old))
            signs += old is not None and new is not None and sign(old) != sign(new)
    return n, agree, pairs, examples, changes, signs


def check(got, groups, **names):
    n, agree, pairs, examples, changes, signs = counted(groups, **names)
    assert (got["n"], got["agree"], got["advantage_changes"], got["advantage_sign_changes"]) == (n, agree, changes, signs)
    assert {(one["a"]["reason"], one["a"]["score"], one["b"]["reason"], one["b"]["score"]): one["n"] for one in got["items"]} == pairs
    for one in got["items"]:
        key = (one["a"]["reason"], one["a"]["score"], one["b"]["reason"], one["b"]["score"])
        assert sorted(one["rollouts"]) == sorted(examples[key])[:10] and one["agree"] == (key[1] == key[3])
    order = [(one["agree"], -one["n"]) for one in got["items"]]
    assert order == sorted(order) and got["unlisted"] == 0
    assert got["rollouts"] == got["advantages"] == sum(map(len, groups))


def made_up(seed, tasks=5, members=6):
    chance = random.Random(seed)
    return [(f"t{task}", [{"exact": chance.randrange(2), "old": chance.choice([0, 0, 1, 1, 0.5, None]), "more": chance.choice([0, 1])} for _ in range(members)]) for task in range(tasks)]


def groups_of(*batches):
    return [group["rollouts"] for batch in batches for group in batch["groups"]]


@pytest.mark.parametrize("seed", range(4))
def test_each_number_follows_from_the_verdicts(plain, seed):
    batch = score(plain, f"drawn-{seed}", made_up(seed))
    check(disagreements(plain, f"drawn-{seed}"), groups_of(batch))


def test_a_weight_and_other_scores_stay(plain):
    weights = {"old": 0.5, "more": -1}
    batch = score(plain, "weighted", made_up(9), weights=weights)
    check(disagreements(plain, "weighted"), groups_of(batch), weights=weights)
    check(disagreements(plain, "weighted", a="more"), groups_of(batch), a="more", weights=weights)
    check(disagreements(plain, "weighted", a="old", b="more"), groups_of(batch), b="more", weights=weights)


def test_one_other_verdict_moves_its_siblings(plain):
    """[1, 0, 0, 0] becomes [0, 0, 0, 0]: four advantages change, all in sign."""
    members = [{"old": 1, "exact": 0}, {"old": 0, "exact": 0}, {"old": 0, "exact": 0}, {"old": 0, "exact": 0}]
    score(plain, "moved", [("t", members)])
    got = disagreements(plain, "moved")
    assert (got["n"], got["agree"], got["advantages"], got["advantage_changes"], got["advantage_sign_changes"]) == (4, 3, 4, 4, 4)
    assert [(one["a"]["score"], one["b"]["score"], one["n"]) for one in got["items"]] == [(1, 0, 1), (0, 0, 3)]


def test_a_verifier_that_was_held_out_moves_nothing(plain):
    batch = score(plain, "outside", made_up(4))
    got = disagreements(plain, "outside", a="exact", b="old")
    assert got["advantage_changes"] == got["advantage_sign_changes"] == 0 and got["n"] == len(rollouts(batch)) > got["agree"]


def test_a_missing_score_is_no_zero(plain):
    members = [{"old": None, "exact": 0}, {"old": 1, "exact": 1}, {"old": 0, "exact": 0}]
    score(plain, "missing", [("t", members)])
    got = disagreements(plain, "missing")
    assert (got["n"], got["agree"]) == (3, 2)
    assert got["items"][0]["a"] == {"reason": "not_given", "score": None} and got["items"][0]["b"]["score"] == 0
    assert (got["advantage_changes"], got["advantage_sign_changes"]) == (3, 0)  # [-, 1, -1] becomes [-0.7, 1.4, -0.7]


def test_a_gate_stays_a_gate(plain):
    """The one in place shuts the reward: where the other sees a 1, it opens."""
    body = {"run": "gated", "policy_revision": 1, "verifiers": [
        {"name": "exact", "id": "gate", "gate": True, "reference": "yes"}, {"name": "exact", "id": "other", "heldout": True, "reference": "no"}],
        "groups": [{"task": "t", "reference": "yes", "completions": [{"text": text, "rewards": {"style": {"score": style, "weight": 1}}} for text, style in (("yes", 0), ("no", 1), ("no", 3))]}]}
    batch = plain.post("/v1/score", body).json
    assert [one["reward"] for one in rollouts(batch)] == [1, 0, 0]
    got = disagreements(plain, "gated", a="gate", b="other")  # rewards become [0, 2, 4]
    assert (got["n"], got["agree"], got["advantage_changes"], got["advantage_sign_changes"]) == (3, 0, 3, 3)


def test_an_objective_over_the_whole_batch(plain):
    """One deviation for all groups: a verdict of one group changes the advantages of the others, not their signs."""
    groups = [("a", [{"old": 1, "exact": 0}, {"old": 0, "exact": 0}]), ("b", [{"old": 1, "exact": 1}, {"old": 0, "exact": 0}])]
    score(plain, "whole", groups, objective={"preset": "grpo", "advantage": {"scale": "batch"}})
    got = disagreements(plain, "whole")
    assert (got["advantages"], got["advantage_changes"], got["advantage_sign_changes"]) == (4, 4, 2)
    assert disagreements(plain, "whole", task="b")["advantage_changes"] == 2


def test_scores_that_are_normalised_by_name(plain):
    """gdpo: the score of b is normalised in the place of a's."""
    groups = [("a", [{"old": 1, "more": 0, "exact": 0}, {"old": 0, "more": 1, "exact": 1}, {"old": 0, "more": 0, "exact": 0}])]
    objective = {"preset": "grpo", "advantage": {"estimator": "gdpo"}}
    first = score(plain, "names", groups, weights={"old": 1, "more": 1}, objective=objective)
    same = score(plain, "names-after", [("a", [{**one, "old": one["exact"]} for one in groups[0][1]])], weights={"old": 1, "more": 1}, objective=objective)
    after = [rollout["advantage"] for rollout in rollouts(same)]
    got = disagreements(plain, "names")
    pairs = [(one["advantage"], new) for one, new in zip(rollouts(first), after)]
    assert got["advantage_changes"] == sum(not close(old, new) for old, new in pairs) == 3
    assert got["advantage_sign_changes"] == sum(sign(old) != sign(new) for old, new in pairs)


def test_filters_choose_the_rollouts(plain):
    first, second, third = [made_up(seed, tasks=2, members=3) for seed in (11, 12, 13)]
    one, two = score(plain, "chosen", first, revision=3), score(plain, "chosen", second, revision=4)
    evaluation = score(plain, "chosen", third, revision=4, purpose="eval")
    check(disagreements(plain, "chosen"), groups_of(one, two))
    check(disagreements(plain, "chosen", revision=3), groups_of(one))
    check(disagreements(plain, "chosen", revision_min=4), groups_of(two))
    check(disagreements(plain, "chosen", revision_max=3), groups_of(one))
    check(disagreements(plain, "chosen", batch=two["id"]), groups_of(two))
    check(disagreements(plain, "chosen", task="t1"), [one["groups"][1]["rollouts"], two["groups"][1]["rollouts"]])
    check(disagreements(plain, "chosen", purpose="eval"), groups_of(evaluation))


def test_filters_on_members_leave_their_siblings_in_the_advantages(plain):
    """[1, 0, 0, 0] becomes [0, 0, 0, 0]: the one member that is asked for changes because of another."""
    score(plain, "one-of", [("t", [{"old": 1, "exact": 0}, {"old": 0, "exact": 0}, {"old": 0, "exact": 0}, {"old": 0, "exact": 0}])])
    got = disagreements(plain, "one-of", reward_min=1)
    assert (got["rollouts"], got["n"], got["agree"], got["advantages"], got["advantage_changes"]) == (1, 1, 0, 1, 1)
    got = disagreements(plain, "one-of", reward_max=0)
    assert (got["rollouts"], got["agree"], got["advantages"], got["advantage_changes"]) == (3, 3, 3, 3)


def test_a_revision_is_that_of_its_latest_incarnation(plain):
    old = score(plain, "rewound", made_up(21, tasks=2, members=3), revision=5)
    before = score(plain, "rewound", made_up(22, tasks=1, members=3), revision=6)
    assert plain.put("/v1/runs/rewound/policy", {"revision": 5, "rewind_to_step": 5}).status == 200
    new = score(plain, "rewound", made_up(23, tasks=2, members=3), revision=5)
    check(disagreements(plain, "rewound"), groups_of(before, new))
    check(disagreements(plain, "rewound", incarnation=0), groups_of(old, before))


def test_a_revision_is_that_of_its_latest_incarnation_for_tasks_that_it_had_not(plain):
    """As in stats: the task t1 at revision 5 is of weights that the trainer threw away, though no later sample replaced it."""
    score(plain, "partly", made_up(24, tasks=2, members=3), revision=5)
    before = score(plain, "partly", made_up(25, tasks=2, members=3), revision=4)
    assert plain.put("/v1/runs/partly/policy", {"revision": 5, "rewind_to_step": 5}).status == 200
    new = score(plain, "partly", made_up(26, tasks=1, members=3), revision=5)
    check(disagreements(plain, "partly"), groups_of(before, new))
    check(disagreements(plain, "partly", task="t1"), [before["groups"][1]["rollouts"]])


def test_verifiers_of_single_groups(service, engine):
    """A group with a list of its own has a verdict of one alone."""
    engine.rules({"text": "\\boxed{42}", "ids": [1, 2], "lp": [-1, -1]})
    own = [{"name": "math"}]
    body = make_batch(make_group("both"), make_group("one", verifiers=own), run="mixed", sampling=sampling(3), verifiers=[{"name": "math"}, {"name": "exact", "heldout": True}])
    assert service.post("/v1/batches", body).status == 200
    got = disagreements(service, "mixed", a="math", b="exact")
    assert (got["rollouts"], got["n"], got["only_a"], got["only_b"], got["agree"]) == (6, 3, 3, 0, 0)


@pytest.mark.parametrize("query, status, code, path", [
    ("", 400, "missing_field", "run"), ("run=refused", 400, "missing_field", "a"), ("run=refused&a=old", 400, "missing_field", "b"), ("run=refused&a=old&b=old", 400, "invalid_field", "b"),
    ("run=nobody&a=old&b=exact", 404, "not_found", "run"), ("run=a%20b&a=old&b=exact", 400, "invalid_field", "run"), ("run=refused&a=odl&b=exact", 400, "invalid_field", "a"),
    ("run=refused&a=old&b=exatc", 400, "invalid_field", "b"), ("run=refused&a=old&b=exact&revision=1&revision_min=1", 400, "invalid_field", "revision"),
    ("run=refused&a=old&b=exact&purpose=both", 400, "invalid_field", "purpose"), ("run=refused&a=old&b=exact&revision=x", 400, "invalid_field", "revision"),
    ("run=refused&a=old&b=exact&limit=1", 400, "unknown_field", "limit"), ("run=refused&a=old&b=exact&revision=99", 400, "invalid_field", "a")])
def test_an_invalid_query_is_refused_with_its_path(plain, query, status, code, path):
    score(plain, "refused", made_up(1, tasks=1, members=2))
    reply = plain.get(f"/v1/disagreements?{query}")
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path), reply


def test_the_list_of_pairs_is_cut_and_the_counts_are_not(plain):
    score(plain, "many", [("t", [{"old": index / 300, "exact": 1} for index in range(300)])])
    got = disagreements(plain, "many")
    assert (got["n"], len(got["items"]), got["unlisted"]) == (300, 200, 100)
