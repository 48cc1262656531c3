"""A lease that several ranks share: GET …/leases/{lease}?rank=&ranks=&by=."""
import pytest

from leasing import RIGHT, ack, counts, posted, taken
from tensors import unpack

LONG = {"text": "\\boxed{42}", "ids": [5, 6, 7, 8, 9, 10, 11, 2], "lp": [-0.5] * 8}


def share(service, lease, rank, ranks, by=None, **query):
    return service.read(f"/v1/runs/test/leases/{lease['lease']}", rank=rank, ranks=ranks, **({"by": by} if by else {}), **query)


def members(lease):
    return [rollout["id"] for group in lease["groups"] for rollout in group["rollouts"]]


def tokens(lease):
    return sum(len(rollout["completion_ids"]) for group in lease["groups"] for rollout in group["rollouts"])


@pytest.fixture
def lease(service, engine):
    """Five groups of four; the rollouts of the last are long."""
    engine.rules({"in": "long", **LONG}, RIGHT)
    posted(service, "a", "b", "c", "d", "long", sampling={"n": 4, "max_tokens": 16})
    return taken(service)


@pytest.mark.parametrize("by", ["groups", "rollouts", "tokens"])
@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_the_shares_of_all_ranks_are_the_lease_each_rollout_once(service, lease, ranks, by):
    shares = [share(service, lease, rank, ranks, by) for rank in range(ranks)]
    assert sorted(sum(map(members, shares), [])) == sorted(members(lease))
    whole = {rollout["id"]: rollout for group in lease["groups"] for rollout in group["rollouts"]}
    for rank, part in enumerate(shares):
        assert part == share(service, lease, rank, ranks, by)
        assert part["totals"] == lease["totals"]
        assert [group["id"] for group in part["groups"]] == sorted(group["id"] for group in part["groups"])
        assert all(rollout == whole[rollout["id"]] for group in part["groups"] for rollout in group["rollouts"])


def test_by_groups_each_rank_has_as_many_whole_groups(service, lease):
    shares = [share(service, lease, rank, 2) for rank in range(2)]
    assert [len(part["groups"]) for part in shares] == [3, 2]
    assert all(len(group["rollouts"]) == 4 for part in shares for group in part["groups"])


def test_by_rollouts_each_rank_has_as_many_rollouts(service, lease):
    assert [len(members(share(service, lease, rank, 3, "rollouts"))) for rank in range(3)] == [7, 7, 6]


def test_by_tokens_the_long_rollouts_are_spread(service, lease):
    # four of 8 tokens and sixteen of 2, in four shares: 16 tokens each
    assert [tokens(share(service, lease, rank, 4, "tokens")) for rank in range(4)] == [16, 16, 16, 16]


def test_a_rollout_without_a_reward_counts_for_nothing(service, engine):
    engine.rules({"times": 1, "status": 400}, RIGHT)
    posted(service, "a", sampling={"n": 4, "max_tokens": 16})
    lease = taken(service)
    shares = [share(service, lease, rank, 2, "rollouts") for rank in range(2)]
    assert [sum(rollout["reward"] is not None for group in part["groups"] for rollout in group["rollouts"]) for part in shares] == [2, 1]
    assert [len(members(part)) for part in shares] == [2, 2]


def test_a_share_comes_as_tensors_and_as_lines(service, lease):
    path = f"/v1/runs/test/leases/{lease['lease']}?rank=1&ranks=4&by=tokens"
    reply = service.request("GET", path, headers={"Accept": "application/x-safetensors"})
    _, tensors = unpack(reply.body)
    assert len(tensors["completion_ids"]) == 16
    lines = service.request("GET", path, headers={"Accept": "application/x-ndjson"}).body.decode().splitlines()
    assert len(lines) == 1 + len(share(service, lease, 1, 4, "tokens")["groups"])


def test_one_acknowledgement_is_for_the_whole_lease(service, lease):
    share(service, lease, 0, 2)
    assert ack(service, lease["lease"]).json["acked"] == 5
    assert counts(service) == {"acked": 5}
    assert members(share(service, lease, 1, 2)), "a rank that asks late still gets its share"


@pytest.mark.parametrize("query, status, code, path", [
    ({"rank": 0}, 400, "missing_field", "ranks"), ({"ranks": 2}, 400, "missing_field", "rank"), ({"by": "tokens"}, 400, "missing_field", "ranks"),
    ({"rank": 2, "ranks": 2}, 400, "invalid_field", "rank"), ({"rank": 0, "ranks": 0}, 400, "invalid_field", "ranks"),
    ({"rank": -1, "ranks": 2}, 400, "invalid_field", "rank"), ({"rank": 0, "ranks": 2, "by": "bytes"}, 400, "invalid_field", "by")])
def test_a_share_that_cannot_be_is_refused(service, query, status, code, path):
    reply = service.get("/v1/runs/test/leases/l_00000000000000000000000000", **query)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, path)
