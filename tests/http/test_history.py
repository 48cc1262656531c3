"""The filters and orders of GET /v1/rollouts (docs/history.md)."""
import pytest

from material import rollouts
from test_records import pages
from test_score import completion, make_group, make_score, score

HELD_OUT = [{"name": "exact"}, {"name": "regex", "id": "digit", "heldout": True, "options": {"pattern": "[0-9]", "mode": "search"}}]


@pytest.fixture(scope="module")
def record(shared_factory):
    """Two revisions of a run: members that repeat, one without a reward, texts and lengths that differ."""
    service = shared_factory()
    completions = [completion("3", [1, 2]), completion("four", [3]), completion("3", [1, 2]), completion("needle", [4, 5, 6]),
                   completion("3", [7], failure={"stage": "sample", "code": "engine_error", "message": "no", "retryable": False, "attempts": 1})]
    for revision in (1, 2):
        score(service, make_score(make_group("a", completions=completions), make_group("b", completions=completions[:2]), run="history",
                                  policy_revision=revision, verifiers=HELD_OUT))
    return service


def found(service, **query):
    """(task, sample_index) of the first revision, in order."""
    return [(row["task"], row["sample_index"]) for row in pages(service, run="history", revision=1, **query)]


# -- filters -------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("query, wanted", [
    ({"verifier": "exact"}, [("a", 0), ("a", 1), ("a", 2), ("a", 3), ("b", 0), ("b", 1)]),
    ({"verdict": "correct", "verifier": "exact"}, [("a", 0), ("a", 2), ("b", 0)]),
    ({"verdict": "incorrect", "verifier": "digit"}, [("a", 1), ("a", 3), ("b", 1)]),
    ({"verifier": "nobody"}, []),
    ({"advantage_min": 0.5, "task": "b"}, [("b", 0)]),
    ({"advantage_max": 0}, [("a", 1), ("a", 3), ("b", 1)]),
    ({"heldout_min": 1}, [("a", 0), ("a", 2), ("b", 0)]),
    ({"duplicate": "true"}, [("a", 2)]),
    ({"duplicate": "false", "task": "a"}, [("a", 0), ("a", 1), ("a", 3), ("a", 4)]),
    ({"text": "need"}, [("a", 3)]), ({"text": "NEED"}, []),
    ({"engine_revision": "step-1"}, [])])
def test_filters_find_the_matching_rollouts(record, query, wanted):
    assert sorted(found(record, **query)) == wanted


def test_verifier_verdict_and_reason_hold_of_one_verdict(record):
    """`four` is incorrect for both, `3` correct for both: no rollout has one of each."""
    reasons = {(verdict["id"], verdict["verdict"], verdict["reason"]) for row in pages(record, run="history", fields="verdicts") for verdict in row["verdicts"]}
    for verifier, verdict, reason in reasons:
        assert found(record, verifier=verifier, verdict=verdict, reason=reason)
        other = next(reason for _, other, reason in reasons if other != verdict)
        assert not found(record, verifier=verifier, verdict=verdict, reason=other)


def test_a_member_that_repeats_an_earlier_one_says_so(record):
    rows = pages(record, run="history", revision=2, task="a")
    assert {row["sample_index"]: row["duplicate"] for row in rows} == {0: False, 1: False, 2: True, 3: False, 4: False}
    (batch,) = record.read("/v1/batches", run="history", limit=1)["items"]
    assert [rollout["duplicate"] for rollout in rollouts(record.read(f"/v1/batches/{batch['id']}"))] == [False, False, True, False, False, False, False]
    unstored = score(record, make_score(make_group(completions=[completion("3"), completion("3")]), store=False))
    assert [rollout["duplicate"] for rollout in rollouts(unstored)] == [False, True]


# -- orders --------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("order_by", ["reward", "advantage", "tokens"])
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_an_order_by_a_value_has_nulls_last_in_both_directions(record, order_by, order, limit):
    field = {"tokens": "completion_tokens"}.get(order_by, order_by)
    rows = pages(record, run="history", revision=1, order_by=order_by, order=order, limit=limit)
    assert len({row["id"] for row in rows}) == len(rows) == 7
    values = [row[field] for row in rows if row[field] is not None]
    assert values == sorted(values, reverse=order == "desc") and all(row[field] is None for row in rows[len(values):])


@pytest.mark.parametrize("query, path", [({}, "run"), ({"run": "history"}, "revision"), ({"run": "history", "revision_min": 1}, "revision"),
                                         ({"run": "history", "revision_min": 1, "revision_max": 2}, "revision"), ({"revision": 1}, "run")])
def test_an_order_by_a_value_needs_a_run_and_a_revision(record, query, path):
    reply = record.get("/v1/rollouts", order_by="reward", **query)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "missing_field", path)
    assert record.get("/v1/rollouts", order_by="created", **query).status == 200


def test_a_cursor_of_another_order_is_refused(record):
    query = {"run": "history", "revision": 1, "limit": 1}
    cursor = record.read("/v1/rollouts", order_by="reward", **query)["next"]
    assert record.get("/v1/rollouts", order_by="reward", cursor=cursor, **query).status == 200
    for other in ({}, {"order_by": "tokens"}, {"order_by": "reward", "order": "desc"}, {"order_by": "reward", "text": "3"}):
        reply = record.get("/v1/rollouts", cursor=cursor, **query, **other)
        assert (reply.status, reply.error["path"]) == (400, "cursor"), other


@pytest.mark.parametrize("query, path", [({"verdict": "right"}, "verdict"), ({"order_by": "length"}, "order_by"), ({"duplicate": "maybe"}, "duplicate"),
                                         ({"advantage_min": "x"}, "advantage_min"), ({"heldout_min": "nan"}, "heldout_min"), ({"heldoutmin": 1}, "heldoutmin")])
def test_a_filter_that_cannot_be_meant_is_refused(record, query, path):
    reply = record.get("/v1/rollouts", **query)
    assert (reply.status, reply.error["path"]) == (400, path)
