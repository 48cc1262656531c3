"""GET /v1/stats: every number is computed again here, in fractions, from the rows of GET /v1/rollouts."""
import random
from fractions import Fraction

import pytest

from audit_by_hand import clustered_se, mean
from harness import eventually
from material import close, make_batch, make_group, sampling

COUNTS = ("n", "scored", "failed", "cancelled", "groups", "zero_variance_groups", "truncated", "straddles", "duplicates", "decided", "solved")
VERIFIERS = [{"name": "exact"}, {"name": "regex", "id": "has_b", "weight": 0.5, "options": {"pattern": "b"}},
             {"name": "exact", "id": "held", "heldout": True, "options": {"ignore_case": True}}]


# -- by hand -----------------------------------------------------------------------------------------------------------------------

def every(service, path, **query):
    """All items of a list."""
    items, cursor = [], None
    while True:
        reply = service.get(path, **query, **({"cursor": cursor} if cursor else {}))
        assert reply.status == 200, reply
        items += reply.json["items"]
        cursor = reply.json["next"]
        if not cursor:
            return items


def fraction(value):
    return None if value is None else Fraction(value)


def deciding(rollout, verifier):
    if verifier:
        return next((verdict["score"] for verdict in rollout["verdicts"] or [] if verdict["id"] == verifier), None)
    held = list((rollout["heldout"] or {}).values())
    return held[0]["score"] if held else rollout["reward"]


def key_of(rollout, verdict, by):
    values = {"run": rollout["run"], "revision": rollout["policy_revision"], "incarnation": rollout["incarnation"], "purpose": rollout["purpose"],
              "task": rollout["task"], "batch": rollout["batch"], "engine": rollout["engine"], "engine_model": rollout["engine_model"], "finish_reason": rollout["finish_reason"],
              "failure": rollout["failure"] and rollout["failure"]["code"], "verifier": verdict and verdict["id"], "reason": verdict and verdict["reason"]}
    return tuple(values[name] for name in by)


def survivors(rows):
    """Of each revision and purpose those of the latest incarnation."""
    latest = {}
    for row in rows:
        key = row["policy_revision"], row["purpose"]
        latest[key] = max(latest.get(key, 0), row["incarnation"])
    return [row for row in rows if row["incarnation"] == latest[row["policy_revision"], row["purpose"]]]


def mean_and_se(values, tasks):
    values = [fraction(value) for value in values]
    return {"mean": None if mean(values) is None else float(mean(values)), "se": None if clustered_se(values, tasks) is None else float(clustered_se(values, tasks))}


def cell(members, groups, score_of, decides, threshold):
    """members: (rollout, verdict)."""
    rollouts = [rollout for rollout, _ in members]
    tasks = [rollout["task"] for rollout in rollouts]
    judged = [rollout["reward"] is not None for rollout in rollouts]
    tokens = [rollout["completion_tokens"] or 0 for rollout in rollouts]
    decided = [decides(rollout, verdict) for rollout, verdict in members]
    rewards = [rollout["reward"] for rollout in rollouts]
    known = [reward for reward in rewards if reward is not None]
    own = {rollout["group"] for rollout in rollouts}
    want = {"n": len(members), "scored": sum(rollout["state"] == "scored" for rollout in rollouts), "failed": sum(rollout["state"] == "failed" for rollout in rollouts),
            "cancelled": sum(rollout["state"] == "cancelled" for rollout in rollouts), "groups": len(own),
            "zero_variance_groups": sum(groups[group]["state"] == "complete" and groups[group]["zero_variance"] for group in own),
            "truncated": sum(rollout["reward"] is not None and rollout["finish_reason"] == "length" for rollout in rollouts),
            "straddles": sum(rollout["straddles"] for rollout in rollouts), "duplicates": sum(rollout["duplicate"] is True for rollout in rollouts),
            "decided": sum(score is not None for score in decided), "solved": sum(score is not None and score >= threshold for score in decided),
            "reward": {**mean_and_se(rewards, tasks), "min": min(known, default=None), "max": max(known, default=None)},
            "tokens": {**mean_and_se([count if has else None for count, has in zip(tokens, judged)], tasks), "sum": sum(tokens), "max": max(tokens, default=None)}}
    if score_of:
        want["score"] = mean_and_se([score_of(rollout, verdict) for rollout, verdict in members], tasks)
    return want


def expected(service, rows, by, verifier=None, threshold=1):
    groups = {identity: service.read(f"/v1/groups/{identity}", arrays="none") for identity in {row["group"] for row in rows}}
    cells = {}
    for row in rows:
        verdicts = row["verdicts"] or []
        if "verifier" not in by and verifier:
            verdicts = [verdict for verdict in verdicts if verdict["id"] == verifier]
        for verdict in (verdicts or [None]) if {"verifier", "reason"} & set(by) else [None]:
            cells.setdefault(key_of(row, verdict, by), []).append((row, verdict))
    def own(_, verdict):
        return verdict and verdict["score"]

    def chosen(rollout, _):
        return deciding(rollout, verifier)

    score_of = own if "verifier" in by else chosen if verifier else None
    decides = own if "verifier" in by and not verifier else chosen
    return {key: cell(members, groups, score_of, decides, threshold) for key, members in cells.items()}


def agrees(got, want):
    return all(got[name] == want[name] for name in COUNTS) and ("score" in got) == ("score" in want) and all(
        close(got[name][part], want[name][part], 1e-11) for name in ("reward", "tokens", "score") if name in want for part in want[name])


def check(service, rows, by, verifier=None, threshold=None, **filters):
    query = {"by": ",".join(by), **filters, **({"verifier": verifier} if verifier else {}), **({"threshold": threshold} if threshold is not None else {})}
    items = every(service, "/v1/stats", **query)
    want = expected(service, rows, by, verifier, 1 if threshold is None else threshold)
    got = {tuple(item["key"][name] for name in by): item for item in items}
    assert len(got) == len(items) and set(got) == set(want), (by, sorted(map(str, got)), sorted(map(str, want)))
    for key, item in got.items():
        assert list(item["key"]) == list(by) and agrees(item, want[key]), (by, key, item, want[key])


# -- a run of everything -----------------------------------------------------------------------------------------------------------

def rows_of(service, **query):
    return every(service, "/v1/rollouts", limit=1000, fields="run,group,batch,task,policy_revision,incarnation,purpose,state,reward,failure,engine,engine_model,finish_reason,completion_tokens,straddles,duplicate,verdicts,heldout", **query)


def completion(source, engines):
    text = source.choice(("a", "A", "b", "ab", "a b"))
    made = {"text": text, "finish_reason": source.choice(("stop", "length"))}
    if source.random() < 0.8:
        ids = [source.randrange(9) for _ in range(source.randrange(1, 4))]
        made.update(completion_ids=ids, logprobs=[-0.5] * len(ids))
    engine = source.choice(engines)
    return {**made, **({"engine": engine} if engine else {})}


def post_scores(service, source, run, revision, tasks, purpose="train", n=4, **fields):
    groups = [{"task": f"t{task}", "reference": source.choice(("a", "b")), "completions": [completion(source, ("e1", "e2", None)) for _ in range(n)]} for task in tasks]
    reply = service.post("/v1/score", {"run": run, **({} if revision is None else {"policy_revision": revision}), "purpose": purpose, "verifiers": VERIFIERS, "groups": groups, **fields})
    assert reply.status == 200, reply
    return reply.json


def random_run(service, source, run, revisions=4):
    for revision in range(revisions):
        for _ in range(2):
            post_scores(service, source, run, revision, source.sample(range(6), 3), n=source.randrange(1, 5))
        post_scores(service, source, run, revision, [0, 1], purpose="eval")


def rewind(service, run, revision, step):
    reply = service.put(f"/v1/runs/{run}/policy", {"revision": revision, "rewind_to_step": step})
    assert reply.status == 200, reply


KEYS = [("revision",), (), ("task",), ("revision", "task"), ("purpose", "revision"), ("incarnation", "revision"), ("engine",), ("verifier",), ("verifier", "reason"),
        ("reason",), ("finish_reason", "engine"), ("batch",), ("failure",), ("run", "incarnation")]


@pytest.mark.parametrize("seed", (1, 2))
def test_every_number_is_the_one_computed_from_the_rows(plain, seed):
    source, run = random.Random(seed), f"random-{seed}"
    random_run(plain, source, run)
    both, train = rows_of(plain, run=run), rows_of(plain, run=run, purpose="train")
    for by in KEYS:
        check(plain, both if "purpose" in by else train, by, run=run)
        check(plain, both if "purpose" in by else train, by, verifier="has_b", run=run)
    check(plain, train, ("revision",), threshold=1.5, run=run)
    check(plain, train, ("task",), verifier="exact", threshold=0, run=run)
    check(plain, rows_of(plain, run=run, purpose="eval"), ("revision", "task"), run=run, purpose="eval")
    check(plain, [row for row in train if 1 <= row["policy_revision"] <= 2], ("revision",), run=run, revision_min=1, revision_max=2)
    check(plain, [row for row in train if row["engine"] == "e1"], ("task",), run=run, engine="e1")


def test_filters_of_lists_narrow_the_counted_rollouts(plain):
    source, run = random.Random(5), "filters"
    random_run(plain, source, run, 3)
    for filters in ({"task": "t1"}, {"finish_reason": "length"}, {"reward_min": 0.5}, {"reason": "different"}, {"verifier": "has_b", "verdict": "correct"}, {"duplicate": "true"}):
        rows = rows_of(plain, run=run, purpose="train", **filters)
        check(plain, rows, ("revision",), run=run, **{name: value for name, value in filters.items() if name != "verifier"}, verifier=filters.get("verifier"))


def test_a_revision_is_the_one_of_its_latest_incarnation(plain):
    source, run = random.Random(3), "rewound"
    random_run(plain, source, run, 4)
    rewind(plain, run, 1, 1)
    for revision in (1, 2):
        post_scores(plain, source, run, revision, [0, 1, 2])
    rows = rows_of(plain, run=run, purpose="train")
    line = survivors(rows)
    assert len(line) < len(rows)
    for by in (("revision",), ("task",), ("engine",), ()):
        check(plain, line, by, run=run)
    post_scores(plain, source, run, 0, [0], purpose="eval")
    both = rows_of(plain, run=run)
    assert len(survivors(both)) < len(both) and {row["incarnation"] for row in survivors(both) if row["policy_revision"] == 0} == {0, 1}
    check(plain, survivors(both), ("purpose", "revision"), run=run)
    check(plain, survivors(both), ("purpose", "engine"), run=run)
    check(plain, rows, ("incarnation", "revision"), run=run)
    check(plain, [row for row in rows if row["incarnation"] == 0], ("revision",), run=run, incarnation=0)
    check(plain, [row for row in rows if row["incarnation"] == 0], ("engine",), run=run, incarnation=0)


def test_a_mixture_is_split_by_its_tags(plain):
    groups = [{"task": f"t{index}", "reference": "a", "completions": [{"text": text} for text in texts], **({"tags": tags} if tags else {})}
              for index, (texts, tags) in enumerate([("aab", {"source": "gsm8k", "level": "1"}), ("bb", {"source": "gsm8k"}), ("ab", {"source": "math"}), ("a", None)])]
    reply = plain.post("/v1/score", {"run": "mixture", "policy_revision": 0, "verifiers": [{"name": "exact"}], "groups": groups})
    assert reply.status == 200, reply
    items = every(plain, "/v1/stats", run="mixture", by="tag.source,tag.level")
    assert [(item["key"]["tag.source"], item["key"]["tag.level"], item["n"], item["solved"], item["groups"]) for item in items] == [
        (None, None, 1, 1, 1), ("gsm8k", None, 2, 0, 1), ("gsm8k", "1", 3, 2, 1), ("math", None, 2, 1, 1)]
    item, = every(plain, "/v1/stats", run="mixture", **{"tag.source": "gsm8k"})
    assert (item["n"], item["solved"]) == (5, 2)
    for by in ("tag.", "tag.a b", "tag.source,tag.source"):
        assert plain.get("/v1/stats", run="mixture", by=by).error["path"] == "by"


def test_a_reason_counts_each_verdict_that_has_it(plain):
    """Two verifiers give one rollout the same reason: by reason alone that are two, of one verifier one."""
    verifiers = [{"name": "exact"}, {"name": "exact", "id": "again"}]
    groups = [{"task": "t", "reference": "a", "completions": [{"text": "a"}, {"text": "b"}, {"text": "b"}]}]
    reply = plain.post("/v1/score", {"run": "reasons", "policy_revision": 0, "verifiers": verifiers, "groups": groups})
    assert reply.status == 200, reply
    right, wrong = (reply.json["groups"][0]["rollouts"][index]["verdicts"][0]["reason"] for index in (0, 1))

    def counted(**query):
        return {tuple(item["key"].values()): item["n"] for item in every(plain, "/v1/stats", run="reasons", **query)}
    assert right != wrong and counted(by="reason") == {(right,): 2, (wrong,): 4}
    assert counted(by="reason", verifier="again") == {(right,): 1, (wrong,): 2}
    assert counted(by="verifier,reason") == {(name, reason): count for name in ("again", "exact") for reason, count in ((right, 1), (wrong, 2))}


def test_tasks_of_the_same_wording_stay_apart(plain):
    """Grouped by the text of the prompt they would be one group of six, and one cluster without an error."""
    groups = [{"task": f"fig-{reference}", "reference": reference, "prompt": "Find x.", "completions": [{"text": "3"}, {"text": "4"}]} for reference in ("3", "4", "5")]
    assert plain.post("/v1/score", {"run": "wording", "policy_revision": 1, "verifiers": [{"name": "exact"}], "groups": groups}).status == 200
    whole, = every(plain, "/v1/stats", run="wording")
    assert (whole["groups"], whole["zero_variance_groups"], whole["solved"]) == (3, 1, 2)
    # mean 1/3; the tasks' sums of deviations are 1/3, 1/3, -2/3
    assert close(whole["reward"]["mean"], 1 / 3) and close(whole["reward"]["se"], (6 / 9) ** 0.5 / 6, 1e-12)
    assert [(item["key"]["task"], item["solved"], item["zero_variance_groups"]) for item in every(plain, "/v1/stats", run="wording", by="task")] == [
        ("fig-3", 1, 0), ("fig-4", 1, 0), ("fig-5", 0, 1)]


def test_solved_is_by_the_batch_s_own_verifier(plain):
    for name, verifier, solved in (("by-held", None, 1), ("by-pass", "exact", 2)):
        body = {"run": name, "policy_revision": 0, "verifiers": [{"name": "exact"}, {"name": "regex", "id": "held", "heldout": True, "options": {"pattern": "b"}}],
                **({"pass_at": [1], "pass_verifier": verifier} if verifier else {}),
                "groups": [{"task": "t", "reference": "a", "completions": [{"text": text} for text in "aab"]}]}
        assert plain.post("/v1/score", body).status == 200
        for by in ("revision", "finish_reason"):  # roll-ups, and a scan
            item, = every(plain, "/v1/stats", run=name, by=by)
            assert (item["decided"], item["solved"]) == (3, solved), (name, by, item)


# -- failures, cancellations, running rollouts -------------------------------------------------------------------------------------

def test_failures_are_counted_and_in_no_mean(service, engine):
    engine.rules({"in": "BAD", "status": 500, "raw": "boom"}, {"in": "LONG", "text": "\\boxed{42}", "finish": "length"}, {"text": "\\boxed{42}"})
    batch = service.batch(make_batch(make_group("good"), make_group("bad", "BAD"), make_group("long", "LONG"), run="failing"))
    assert batch["state"] == "complete"
    rows = rows_of(service, run="failing")
    for by in (("task",), ("failure",), ("engine", "failure"), ("engine_model",), ()):
        check(service, rows, by, run="failing")
    items = {item["key"]["task"]: item for item in every(service, "/v1/stats", run="failing", by="task")}
    assert {item["key"]["engine_model"] for item in every(service, "/v1/stats", run="failing", by="engine_model")} != {None}
    assert items["bad"]["failed"] == 2 and items["bad"]["reward"]["mean"] is None and items["bad"]["solved"] == 0
    assert items["long"]["truncated"] == 2 and items["good"]["solved"] == 2


def test_running_and_cancelled_rollouts_are_counted(service, engine):
    engine.rules({"in": "HELD", "hold": True}, {"text": "\\boxed{42}"})
    made = service.post("/v1/batches", make_batch(make_group("done"), make_group("held", "HELD"), sampling=sampling(2), run="running"), {"Prefer": "respond-async"}).json
    first, _ = service.read(f"/v1/batches/{made['id']}/groups", arrays="none")["items"]
    eventually(lambda: service.read(f"/v1/groups/{first['id']}", arrays="none")["state"] == "complete", "the first group is closed")
    for by in (("task",), ("engine",)):
        check(service, rows_of(service, run="running"), by, run="running")
    assert service.delete(f"/v1/batches/{made['id']}").status in (200, 202)
    engine.release()
    service.settled(made["id"])
    rows = rows_of(service, run="running")
    assert len(rows) == 4
    for by in (("task",), ("engine",), ()):
        check(service, rows, by, run="running")


# -- objective calls ---------------------------------------------------------------------------------------------------------------

def test_kl_and_clip_fraction_are_the_kept_sums_by_revision_and_engine(plain):
    source, run = random.Random(8), "kept"
    for revision in (0, 1):
        for step in (1, 2):
            made = post_scores(plain, source, run, revision, [0, 1])
            sequences = [{"rollout": rollout["id"], "logprobs": [-0.4] * len(rollout["completion_ids"]), "ref_logprobs": [-0.6] * len(rollout["completion_ids"])}
                         for group in made["groups"] for rollout in group["rollouts"] if rollout["completion_ids"]]
            reply = plain.post("/v1/objective", {"objective": {"preset": "grpo", "beta": 0.1, "loss": {"eps_low": 0.01, "eps_high": 0.01}}, "sequences": sequences,
                                                 "optimizer_step": revision * 2 + step})
            assert reply.status == 200, reply
    kept = every(plain, f"/v1/runs/{run}/objective")
    assert kept
    for by in (("revision",), ("engine",), ("revision", "engine"), ()):
        for item in every(plain, "/v1/stats", run=run, by=",".join(by)):
            own = [one for one in kept if all(one[name] == item["key"][name] for name in by)]
            tokens = sum(one["trainable_tokens"] for one in own)
            assert close(item["clip_fraction"], sum(one["clip_low"] + one["clip_high"] for one in own) / tokens if tokens else None), (by, item)
            for name in ("kl", "kl_policy", "kl_engine", "entropy", "logprob_gap"):
                count = sum(one["sums"][name]["tokens"] for one in own)
                assert close(item[name], sum(one["sums"][name]["sum"] or 0 for one in own) / count if count else None, 1e-12), (by, name, item)
    assert all(item["kl"] is not None and item["kl_estimator"] == "k3" for item in every(plain, "/v1/stats", run=run, by="revision"))
    assert all(item["kl"] is None for item in every(plain, "/v1/stats", run=run, by="task"))


# -- pages and refusals ------------------------------------------------------------------------------------------------------------

def test_pages_are_the_list_in_order_and_a_cursor_is_of_its_list(plain):
    random_run(plain, random.Random(9), "paged")
    whole = every(plain, "/v1/stats", run="paged", by="revision,task", limit=1000)
    for limit in (1, 4, len(whole)):
        assert every(plain, "/v1/stats", run="paged", by="revision,task", limit=limit) == whole
    keys = [(item["key"]["revision"], item["key"]["task"]) for item in whole]
    assert keys == sorted(keys)
    page = plain.read("/v1/stats", run="paged", by="revision,task", limit=2)
    for other in ({"by": "task,revision"}, {"purpose": "eval"}, {"threshold": 2}):
        reply = plain.get("/v1/stats", **{"run": "paged", "by": "revision,task", "limit": 2, "cursor": page["next"], **other})
        assert (reply.status, reply.error["path"]) == (400, "cursor"), reply
    for cursor in ("", "x", page["next"][:-1], "t" + page["next"]):
        assert plain.get("/v1/stats", run="paged", by="revision,task", limit=2, cursor=cursor).status == 400


@pytest.mark.parametrize("query, path", [({"by": "colour"}, "by"), ({"by": "task,task"}, "by"), ({"by": "task,"}, "by"), ({"run": "nobody"}, "run"),
                                         ({"threshold": "high"}, "threshold"), ({"colour": "red"}, "colour"), ({"limit": 0}, "limit"), ({"revision": -1}, "revision")])
def test_an_invalid_query_is_refused_with_its_path(plain, query, path):
    post_scores(plain, random.Random(1), "refusals", 0, [0])
    reply = plain.get("/v1/stats", **{"run": "refusals", **query})
    assert reply.status == (404 if path == "run" else 400) and reply.error["path"] == path, reply


def test_beyond_the_budget_the_filter_to_add_is_named_and_nothing_is_half_answered(start):
    service = start(settings={"stats_budget": 10})
    post_scores(service, random.Random(1), "large", 0, [0, 1, 2])
    post_scores(service, random.Random(2), "large", 1, [0])
    for query, path in (({"by": "engine"}, "run"), ({"by": "engine", "run": "large"}, "revision"), ({"by": "engine", "run": "large", "revision": 0}, "task")):
        reply = service.get("/v1/stats", **query)
        assert reply.status == 422 and reply.error["code"] == "too_many_rollouts" and reply.error["path"] == path, reply
        assert "stats_budget" in reply.error["message"]
    check(service, rows_of(service, run="large", revision=1), ("engine",), run="large", revision=1)
    check(service, rows_of(service, run="large"), ("revision",), run="large")  # 4 roll-ups


def test_without_a_run_all_runs_are_counted(start):
    service = start()
    for run in ("one", "two"):
        random_run(service, random.Random(run), run, 2)
    rows = rows_of(service, purpose="train")
    check(service, rows, ("run",))
    check(service, rows, ("run", "engine"))
