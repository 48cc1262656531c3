"""GET /v1/compare: two runs at equal cost. Every number is recomputed here from the list of rollouts."""
import math
import random

import pytest

from harness import eventually
from material import close, make_batch, make_group, sampling
from test_manifest import frozen, score
from test_records import pages
from test_stats import rewind, rows_of
from test_tasksets import body_of, line, put

VERIFIERS = [{"name": "math"}, {"name": "exact", "id": "exact", "heldout": True}]


def train(service, run, source, batches=4, tasks=6, largest=9, first=0, **fields):
    """A run of random groups: right and wrong, of several lengths, some that failed."""
    for revision in range(first, first + batches):
        groups = []
        for task in source.sample(range(tasks), source.randint(1, tasks)):
            completions = []
            for _ in range(source.randint(1, 4)):
                count = source.randint(1, largest)
                right = source.random() < 0.5
                completions.append({"text": ("\\boxed{42}" if source.random() < 0.5 else "42") if right else "no", "completion_ids": list(range(count)), "logprobs": [-0.5] * count})
            if source.random() < 0.2:
                completions.append({"failure": {"code": "lost", "message": "x"}})
            groups.append({"task": f"t{task}", "reference": "42", "completions": completions})
        assert score(service, run, *groups, policy_revision=revision, verifiers=VERIFIERS, **fields).status == 200


def recorded(service, run):
    """Groups of training, in order of creation, each a list of its rollouts."""
    groups = {}
    for rollout in pages(service, run=run, purpose="train", fields="group,task,state,reward,heldout,completion_tokens,policy_revision,incarnation"):
        groups.setdefault(rollout["group"], []).append(rollout)
    order = [group["id"] for batch in pages(service, "/v1/batches", run=run) for group in service.read(f"/v1/batches/{batch['id']}/groups", arrays="none")["items"]]
    return [groups[name] for name in order if name in groups]


def weights(group):
    return {(rollout["incarnation"], rollout["policy_revision"]) for rollout in group}


def cost(groups, budget):
    if budget == "completion_tokens":
        return sum(rollout["completion_tokens"] or 0 for group in groups for rollout in group)
    return sum(map(len, groups)) if budget == "rollouts" else len(set().union(*map(weights, groups)))


def cut(groups, budget, value):
    taken = []
    for group in groups:
        if cost(taken + [group], budget) > value:
            break
        taken.append(group)
    return taken


def surviving(groups):
    """The rollouts of each revision's latest incarnation."""
    spent = set().union(*map(weights, groups))
    latest = {revision: max(incarnation for incarnation, other in spent if other == revision) for _, revision in spent}
    return [[rollout for rollout in group if rollout["incarnation"] == latest[rollout["policy_revision"]]] for group in groups]


def clustered(pairs):
    """(task, value): mean and error, clustered by task."""
    if not pairs:
        return None, None
    mean = math.fsum(value for _, value in pairs) / len(pairs)
    tasks = {task for task, _ in pairs}
    if len(tasks) < 2:
        return mean, None
    return mean, math.sqrt(math.fsum(math.fsum(value - mean for task, value in pairs if task == one) ** 2 for one in tasks)) / len(pairs)


def paired(left, right):
    def means(pairs):
        return {task: math.fsum(value for other, value in pairs if other == task) / sum(other == task for other, _ in pairs) for task in {task for task, _ in pairs}}
    a, b = means(left), means(right)
    differences = [b[task] - a[task] for task in sorted(a.keys() & b.keys())]
    if not differences:
        return {"mean": None, "se": None, "tasks": 0}
    mean = math.fsum(differences) / len(differences)
    se = math.sqrt(math.fsum((one - mean) ** 2 for one in differences)) / len(differences) if len(differences) > 1 else None
    return {"mean": mean, "se": se, "tasks": len(differences)}


def rewards(groups):
    return [(rollout["task"], rollout["reward"]) for group in groups for rollout in group if rollout["reward"] is not None]


def scores(groups, verifier):
    return [(rollout["task"], rollout["heldout"][verifier]["score"]) for group in groups for rollout in group
            if rollout["heldout"] and verifier in rollout["heldout"] and rollout["heldout"][verifier]["score"] is not None]


def same_numbers(got, want):
    return all(close(got[name], want[name], absolute=1e-12) for name in want)


@pytest.mark.parametrize("budget", ["completion_tokens", "rollouts", "revisions"])
@pytest.mark.parametrize("seed", range(4))
def test_every_number_is_that_of_an_independent_computation(plain, budget, seed):
    source, names = random.Random(seed), [f"{budget}-{seed}-a", f"{budget}-{seed}-b"]
    train(plain, names[0], source, batches=source.randint(1, 5))
    train(plain, names[1], source, batches=source.randint(1, 5), objective={"preset": "dr_grpo"})
    score(plain, names[0], purpose="eval", verifiers=VERIFIERS)
    groups = [recorded(plain, name) for name in names]
    value = min(cost(one, budget) for one in groups)
    within = [cut(one, budget, value) for one in groups]
    got = plain.read("/v1/compare", a=names[0], b=names[1], budget=budget)
    assert got["budget"] == {"by": budget, "value": value} and got["ignored"] == []
    for side, taken in zip((got["a"], got["b"]), within):
        mean, se = clustered(rewards(taken))
        assert side["groups"] == len(taken) and side["n"] == sum(map(len, taken)) and side["completion_tokens"] == cost(taken, "completion_tokens")
        assert side["revisions"] == cost(taken, "revisions") and side["failed"] == sum(rollout["state"] == "failed" for group in taken for rollout in group)
        assert same_numbers(side["reward"], {"mean": mean, "se": se, "scored": len(rewards(taken))}), (side, mean, se)
        mean, se = clustered(scores(taken, "exact"))
        assert same_numbers(side["heldout"]["exact"], {"mean": mean, "se": se, "scored": len(scores(taken, "exact"))})
    assert same_numbers(got["difference"]["reward"], paired(*map(rewards, within)))
    assert same_numbers(got["difference"]["heldout"]["exact"], paired(*(scores(one, "exact") for one in within)))
    turned = plain.read("/v1/compare", a=names[1], b=names[0], budget=budget)
    assert turned["a"] == got["b"] and close(turned["difference"]["reward"]["mean"], None if got["difference"]["reward"]["mean"] is None else -got["difference"]["reward"]["mean"], absolute=1e-12)


@pytest.mark.parametrize("budget", ["completion_tokens", "rollouts", "revisions"])
def test_revisions_that_a_rewind_left_behind_count_as_spent_and_in_no_other_number(plain, budget):
    """The steady run spends less, so that the rewound one is cut before its rewind, after it, or not at all."""
    for steady, more in ((1, 3), (3, 3), (5, 1), (9, 2)):
        source, names = random.Random(steady), [f"rewound-{budget}-{steady}", f"steady-{budget}-{steady}"]
        train(plain, names[0], source, batches=3)
        rewind(plain, names[0], 1, 1)
        train(plain, names[0], source, batches=more, first=1)
        train(plain, names[1], source, batches=steady)
        groups = [recorded(plain, name) for name in names]
        value = min(cost(one, budget) for one in groups)
        within = [cut(one, budget, value) for one in groups]
        line = [surviving(one) for one in within]
        got = plain.read("/v1/compare", a=names[0], b=names[1], budget=budget)
        assert got["budget"]["value"] == value
        for side, taken, kept in zip((got["a"], got["b"]), within, line):
            mean, se = clustered(rewards(kept))
            assert (side["groups"], side["completion_tokens"], side["revisions"]) == (len(taken), cost(taken, "completion_tokens"), cost(taken, "revisions"))
            assert side["n"] == sum(map(len, kept)) and same_numbers(side["reward"], {"mean": mean, "se": se, "scored": len(rewards(kept))}), (side, mean, se)
        assert same_numbers(got["difference"]["reward"], paired(*map(rewards, line)))
        assert same_numbers(got["difference"]["heldout"]["exact"], paired(*(scores(one, "exact") for one in line)))
    assert sum(map(len, line[0])) < sum(map(len, within[0])), "a rewind left something behind"


def test_every_revision_of_a_group_s_members_is_spent(service, engine):
    """Mode abort: a sample in flight continues at the new revision, beside a sibling of the old one."""
    engine.rules({"times": 1, "text": "\\boxed{42}"}, {"times": 1, "hold": True}, {"text": "\\boxed{41}"})
    assert service.put("/v1/runs/split/policy", {"revision": 1}).status == 200
    made = service.post("/v1/batches", make_batch(make_group("one"), run="split", policy_revision=1, sampling=sampling(2)), {"Prefer": "respond-async"}).json["id"]
    eventually(lambda: len(rows_of(service, run="split")) == 1, "one member is on record")
    assert service.post("/v1/runs/split/policy/begin", {"revision": 2, "mode": "abort"}).status == 200
    assert service.post("/v1/runs/split/policy/commit", {}).status == 200
    engine.release()
    service.settled(made)
    got = service.read("/v1/compare", a="split", b="split", budget="revisions")
    assert got["budget"]["value"] == 2 and (got["a"]["groups"], got["a"]["revisions"], got["a"]["n"]) == (1, 2, 2)


def test_a_run_compared_with_itself_differs_by_nothing(plain):
    train(plain, "self", random.Random(9))
    difference = plain.read("/v1/compare", a="self", b="self")["difference"]
    assert difference["reward"]["mean"] == difference["reward"]["se"] == 0 and difference["heldout"]["exact"]["mean"] == 0


def test_equal_rewards_have_no_error_at_all(plain):
    """0.1 + 0.1 + 0.1 by 3 is another double than 0.1: the rounding of a division is no difference."""
    verifiers = [{"name": "math", "weight": 0.1}]
    for run, sizes in (("tenths-1", (3, 1, 2, 7)), ("tenths-2", (1, 3, 6, 3))):
        groups = [{"task": f"t{task}", "reference": "42", "completions": [{"text": "\\boxed{42}"}] * size} for task, size in enumerate(sizes)]
        assert score(plain, run, *groups, verifiers=verifiers).status == 200
    got = plain.read("/v1/compare", a="tenths-1", b="tenths-2", budget="revisions")
    assert got["difference"]["reward"] == {"mean": 0, "se": 0, "tasks": 4} and got["b"]["reward"]["se"] == 0


def differences(reply):
    assert (reply.status, reply.error["code"]) == (409, "not_comparable"), reply
    return [(one["key"], one["a"], one["b"]) for one in reply.error["differences"]]


def test_runs_of_other_verifiers_are_refused_with_the_keys_unless_these_are_ignored(plain):
    score(plain, "v1")
    score(plain, "v2", verifiers=[{"name": "math", "weight": 0.5}])
    assert differences(plain.get("/v1/compare", a="v1", b="v2")) == [("verifiers.math.weight", 1, 0.5)]
    for ignore in ("verifiers", "verifiers.math", "verifiers.math.weight", "sampling , verifiers.math.weight"):
        assert plain.read("/v1/compare", a="v1", b="v2", ignore=ignore)["ignored"] == ["verifiers.math.weight"]
    for ignore in ("verifiers.math.weigh", "verifier", "sampling", ",", ""):
        assert differences(plain.get("/v1/compare", a="v1", b="v2", ignore=ignore))


def test_a_run_that_was_changed_shows_each_value_and_its_groups_own_settings_count(plain):
    score(plain, "steady")
    score(plain, "mixed")
    score(plain, "mixed", {"task": "t", "reference": "42", "verifiers": [{"name": "math", "weight": 2}], "completions": [{"text": "42"}]})
    assert differences(plain.get("/v1/compare", a="steady", b="mixed")) == [("verifiers.math.weight", 1, [1, 2])]


def test_masks_differ_by_the_objective_which_itself_may(plain):
    score(plain, "m1", objective={"preset": "grpo"})
    score(plain, "m2", objective={"preset": "grpo", "mask": {"truncated": True}, "loss": {"eps_high": 0.3}})
    assert differences(plain.get("/v1/compare", a="m1", b="m2")) == [("masks.truncated", False, True)]


def test_sets_and_evaluation_are_those_of_the_manifests(plain):
    for run, split in (("s1", "train"), ("s2", "other")):
        frozen(plain, run, data={"set": "gsm", "split": split}, evaluation={"k": 1}, checkpoint=run)
        score(plain, run)
    assert differences(plain.get("/v1/compare", a="s1", b="s2")) == [("data.split", "train", "other")]


def test_runs_on_different_task_sets_are_not_comparable_without_a_manifest_either(plain):
    digests = {name: put(plain, name, body_of(line("t"), line(f"{name}-only"))).json["sha256"] for name in ("cmp-a", "cmp-b")}
    for run, groups in (("on-a", ["cmp-a"]), ("on-a-too", ["cmp-a"]), ("on-b", ["cmp-b"]), ("on-none", [None]), ("on-both", ["cmp-a", None])):
        for number, name in enumerate(groups):
            own = {"set": name} if name else {"reference": "42"}
            assert score(plain, run, {"task": "t", "draw": number, "completions": [{"text": "\\boxed{42}"}], **own}).status == 200
    assert plain.get("/v1/compare", a="on-a", b="on-a-too").status == 200
    assert differences(plain.get("/v1/compare", a="on-a", b="on-b")) == [("data.set", "cmp-a", "cmp-b"), ("data.sha256", digests["cmp-a"], digests["cmp-b"])]
    assert differences(plain.get("/v1/compare", a="on-a", b="on-none"))[0] == ("data.set", "cmp-a", None)
    assert differences(plain.get("/v1/compare", a="on-a", b="on-both"))[0] == ("data.set", "cmp-a", ["cmp-a", None])
    assert plain.get("/v1/compare", a="on-a", b="on-none", ignore="data").status == 200


def test_a_tag_picks_the_numbers_and_no_budget(plain):
    def group(task, right, **tags):
        return {"task": task, "reference": "42", "tags": tags, "completions": [{"text": "\\boxed{42}" if one else "no"} for one in right]}
    score(plain, "tag-a", group("x", [1, 0], source="math", level="1"), group("y", [1, 1, 1], source="code"), group("z", [0], source="math"))
    score(plain, "tag-b", group("x", [1, 1], source="math", level="1"), group("y", [0, 0, 0], source="code"), group("z", [1], source="math"))

    def compare(**tags):
        got = plain.read("/v1/compare", a="tag-a", b="tag-b", budget="rollouts", **{f"tag.{name}": value for name, value in tags.items()})
        assert got["budget"]["value"] == 6
        return got["a"]["n"], got["a"]["groups"], got["difference"]["reward"]["mean"], got["difference"]["reward"]["tasks"]
    assert compare() == (6, 3, pytest.approx((0.5 - 1 + 1) / 3), 3)
    assert compare(source="math") == (3, 2, 0.75, 2)
    assert compare(source="code") == (3, 1, -1, 1)
    assert compare(source="math", level="1") == (2, 1, 0.5, 1)
    assert compare(source="nothing") == (0, 0, None, 0)
    reply = plain.get("/v1/compare", a="tag-a", b="tag-b", **{"tag.no name": "x"})
    assert (reply.status, reply.error["path"]) == (400, "tag.no name")


def test_the_parts_of_a_comparison_are_those_of_a_tag(plain):
    """Each part is what the filter by its value says, within the budget of the whole runs."""
    source = random.Random(5)
    for run in ("parts-a", "parts-b"):
        for revision in range(3):
            groups = [{"task": f"t{number}", "reference": "42", **({"tags": {"source": name}} if name is not None else {}),
                       "completions": [{"text": "\\boxed{42}" if source.random() < 0.5 else "no"} for _ in range(source.randint(1, 4))]}
                      for number, name in enumerate(("math", "code", None, "math", "code", "") if run == "parts-a" else ("math", "code", None, "math", "only b", ""))]
            assert score(plain, run, *groups, policy_revision=revision, verifiers=VERIFIERS).status == 200
    got = plain.read("/v1/compare", a="parts-a", b="parts-b", budget="rollouts", by="tag.source")
    whole = plain.read("/v1/compare", a="parts-a", b="parts-b", budget="rollouts")
    assert {name: value for name, value in got.items() if name != "parts"} == whole and "parts" not in whole
    assert [part["key"] for part in got["parts"]] == [{"tag.source": value} for value in (None, "", "code", "math", "only b")]
    for part in got["parts"][1:]:
        want = plain.read("/v1/compare", a="parts-a", b="parts-b", budget="rollouts", **{"tag.source": part["key"]["tag.source"]})
        assert part["difference"] == want["difference"]
        for side in "ab":
            assert all(part[side][name] == want[side][name] for name in part[side] if name != "completion_tokens")
    for name in ("groups", "n", "scored", "failed", "completion_tokens"):
        assert sum(part["a"][name] for part in got["parts"]) == whole["a"][name]
    assert got["parts"][0]["a"]["groups"] > 0 and got["parts"][4]["a"]["n"] == 0 and got["parts"][4]["difference"]["reward"] == {"mean": None, "se": None, "tasks": 0}


def test_runs_without_a_rollout_have_no_mean(plain):
    frozen(plain, "none-1")
    frozen(plain, "none-2")
    got = plain.read("/v1/compare", a="none-1", b="none-2")
    assert got["budget"]["value"] == 0 and got["a"]["n"] == 0 and got["a"]["reward"] == {"mean": None, "se": None, "scored": 0}
    assert got["difference"] == {"reward": {"mean": None, "se": None, "tasks": 0}, "heldout": {}}


@pytest.mark.parametrize("query, status, path", [({"a": "x"}, 400, "b"), ({"b": "x"}, 400, "a"), ({"a": "nobody", "b": "known"}, 404, "a"), ({"a": "known", "b": "nobody"}, 404, "b"),
                                                 ({"a": "known", "b": "known", "budget": "steps"}, 400, "budget"), ({"a": "known", "b": "known", "c": "x"}, 400, "c"),
                                                 ({"a": "", "b": "known"}, 400, "a"), ({"a": "known", "b": "known", "by": "task"}, 400, "by")])
def test_an_invalid_query_is_refused(plain, query, status, path):
    score(plain, "known")
    reply = plain.get("/v1/compare", **query)
    assert (reply.status, reply.error["path"]) == (status, path)
