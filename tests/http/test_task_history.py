"""GET /v1/tasks/history and GET /v1/flips: rates, groups and crossings are computed again here from the rows of GET /v1/rollouts."""
import random
from fractions import Fraction

import pytest

from audit_by_hand import mean
from material import close
from test_stats import deciding, every, post_scores, random_run, rewind, rows_of, survivors


def rate(rows, verifier=None, threshold=1):
    scores = [deciding(row, verifier) for row in rows]
    known = [score for score in scores if score is not None]
    solved = sum(score >= threshold for score in known)
    return {"n": len(rows), "scored": len(known), "solved": solved, "rate": solved / len(known) if known else None}


def history(rows, verifier=None, threshold=1):
    cells = {}
    for row in rows:
        cells.setdefault((row["incarnation"], row["policy_revision"]), []).append(row)
    return [{"incarnation": incarnation, "revision": revision, **rate(own, verifier, threshold), "groups": sorted({row["group"] for row in own}), "rewards": [row["reward"] for row in own]}
            for (incarnation, revision), own in sorted(cells.items())]


def check_history(service, rows, run, task, verifier=None, threshold=1, **query):
    got = every(service, "/v1/tasks/history", run=run, task=task, threshold=threshold, **({"verifier": verifier} if verifier else {}), **query)
    want = history([row for row in rows if row["task"] == task], verifier, threshold)
    assert len(got) == len(want)
    for item, other in zip(got, want):
        middle = mean([None if reward is None else Fraction(reward) for reward in other.pop("rewards")])
        assert close(item.pop("reward_mean"), None if middle is None else float(middle), 1e-12), (item, other)
        assert item == other


def flips(rows, before, after, line=0.5, verifier=None, threshold=1):
    items = []
    for task in sorted({row["task"] for row in rows}):
        left, right = (rate([row for row in rows if row["task"] == task and row["policy_revision"] == revision], verifier, threshold) for revision in (before, after))
        if left["rate"] is None or right["rate"] is None or (left["rate"] >= line) == (right["rate"] >= line):
            continue
        items.append({"task": task, "from": left, "to": right, "direction": "gained" if right["rate"] >= line else "lost"})
    return items


def test_a_task_s_history_is_the_one_of_its_rollouts(plain):
    run = "history"
    random_run(plain, random.Random(21), run, 5)
    rows = rows_of(plain, run=run, purpose="train")
    for task in ("t0", "t1", "t5"):
        check_history(plain, rows, run, task)
        check_history(plain, rows, run, task, limit=1)
        check_history(plain, rows, run, task, verifier="has_b", threshold=0.5)
    check_history(plain, rows_of(plain, run=run, purpose="eval"), run, "t0", purpose="eval")
    check_history(plain, rows, run, "no such task")


def test_a_history_is_that_of_the_surviving_line(plain):
    run, source = "history-rewound", random.Random(22)
    random_run(plain, source, run, 4)
    rewind(plain, run, 2, 2)
    post_scores(plain, source, run, 2, [0, 1])
    rows = rows_of(plain, run=run, purpose="train")
    check_history(plain, survivors(rows), run, "t0")
    check_history(plain, [row for row in rows if row["incarnation"] == 0], run, "t0", incarnation=0)


@pytest.mark.parametrize("verifier, threshold", ((None, 1), ("has_b", 1), (None, 0.5)))
def test_flips_are_the_tasks_whose_rate_crossed_the_line(plain, verifier, threshold):
    run, source = f"flips-{verifier}-{threshold}", random.Random(23)
    for revision in (0, 1):
        post_scores(plain, source, run, revision, range(20), n=3)
        post_scores(plain, source, run, revision, range(20, 22))
    post_scores(plain, source, run, 1, [30])
    rows, seen = rows_of(plain, run=run), set()
    for before, after, line in ((0, 1, 0.5), (1, 0, 0.5), (0, 1, 1 / 3), (0, 1, 1), (0, 1, 0)):
        want = flips(rows, before, after, line, verifier, threshold)
        for limit in (1000, 2):
            query = {"run": run, "from": before, "to": after, "rate": line, "threshold": threshold, "limit": limit, **({"verifier": verifier} if verifier else {})}
            assert every(plain, "/v1/flips", **query) == want
        seen |= {item["direction"] for item in want}
    assert seen == {"gained", "lost"}
    assert every(plain, "/v1/flips", run=run, **{"from": 0, "to": 7}) == []


@pytest.mark.parametrize("path, query, status, field", [
    ("/v1/tasks/history", {"run": "refused"}, 400, "task"), ("/v1/tasks/history", {"task": "t0"}, 400, "run"), ("/v1/tasks/history", {"run": "nobody", "task": "t0"}, 404, "run"),
    ("/v1/tasks/history", {"run": "refused", "task": "t0", "engine": "e1"}, 400, "engine"), ("/v1/tasks/history", {"run": "refused", "task": "t0", "cursor": "x"}, 400, "cursor"),
    ("/v1/flips", {"run": "refused", "from": 0}, 400, "to"), ("/v1/flips", {"run": "refused", "to": 0}, 400, "from"), ("/v1/flips", {"from": 0, "to": 1}, 400, "run"),
    ("/v1/flips", {"run": "refused", "from": 1, "to": 1}, 400, "to"), ("/v1/flips", {"run": "refused", "from": -1, "to": 1}, 400, "from"),
    ("/v1/flips", {"run": "nobody", "from": 0, "to": 1}, 404, "run"), ("/v1/flips", {"run": "refused", "from": 0, "to": 1, "rate": "x"}, 400, "rate"),
    ("/v1/flips", {"run": "refused", "from": 0, "to": 1, "by": "task"}, 400, "by"), ("/v1/flips", {"run": "refused", "from": 0, "to": 1, "by": "tag."}, 400, "by"),
    ("/v1/flips", {"run": "refused", "from": 0, "to": 1, "cursor": "0" * 32}, 400, "cursor")])
def test_an_invalid_query_is_refused_with_its_path(plain, path, query, status, field):
    post_scores(plain, random.Random(1), "refused", 0, [0])
    reply = plain.get(path, **query)
    assert (reply.status, reply.error["path"]) == (status, field), reply


def test_beyond_the_budget_there_is_no_half_history(start):
    service = start(settings={"stats_budget": 10})
    for revision in range(4):
        post_scores(service, random.Random(revision), "large", revision, [0])
    reply = service.get("/v1/tasks/history", run="large", task="t0")
    assert reply.status == 422 and reply.error["code"] == "too_many_rollouts" and "stats_budget" in reply.error["message"], reply


def test_a_tag_picks_the_groups_of_a_task_and_of_a_crossing(plain):
    def group(task, draw, right, source):
        return {"task": task, "draw": draw, "reference": "42", "tags": {"source": source},
                "completions": [{"text": "\\boxed{42}" if one else "no"} for one in right]}

    for revision, (math, code) in enumerate((([0, 0], [1]), ([1, 1], [1, 1]))):
        body = {"run": "tagged", "policy_revision": revision, "verifiers": [{"name": "math"}], "groups": [group("t", 0, math, "math"), group("t", 1, code, "code")]}
        assert plain.post("/v1/score", body).status == 200
    crossings = {source: [(item["task"], item["direction"]) for item in every(plain, "/v1/flips", run="tagged", **{"from": 0, "to": 1, "tag.source": source})]
                 for source in ("math", "code", "none")}
    assert crossings == {"math": [("t", "gained")], "code": [], "none": []}
    rates = {source: [(item["n"], item["rate"]) for item in every(plain, "/v1/tasks/history", run="tagged", task="t", **{"tag.source": source})] for source in ("math", "code", "none")}
    assert rates == {"math": [(2, 0), (2, 1)], "code": [(1, 1), (2, 1)], "none": []}
    assert [item["n"] for item in every(plain, "/v1/tasks/history", run="tagged", task="t")] == [3, 4]


def test_flips_are_split_by_a_tag(plain):
    """A task that has groups of several values crosses in each by itself."""
    source = random.Random(31)
    for revision in (0, 1):
        groups = [{"task": f"t{number % 6}", "draw": number, "reference": "42", **({"tags": {"source": name}} if name is not None else {}),
                   "completions": [{"text": "\\boxed{42}" if source.random() < 0.5 else "no"} for _ in range(3)]}
                  for number in range(24) for name in (("math", "code", None, "", "once")[number % 5],) if (name, revision) != ("once", 1)]
        assert plain.post("/v1/score", {"run": "split", "policy_revision": revision, "verifiers": [{"name": "math"}], "groups": groups}).status == 200
    tags = {group["id"]: (group["tags"] or {}).get("source") for batch in every(plain, "/v1/batches", run="split") for group in every(plain, f"/v1/batches/{batch['id']}/groups", arrays="none")}
    rows = rows_of(plain, run="split")
    for before, after in ((0, 1), (1, 0)):
        want = [{"key": {"tag.source": value}, **item} for value in (None, "", "code", "math", "once")
                for item in flips([row for row in rows if tags[row["group"]] == value], before, after)]
        assert {item["key"]["tag.source"] for item in want} == {None, "", "code", "math"}
        for limit in (1000, 1, 2):
            assert every(plain, "/v1/flips", run="split", by="tag.source", limit=limit, **{"from": before, "to": after}) == want
