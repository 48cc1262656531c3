"""Leases through the Python package."""
import os
import subprocess
import sys

import pytest

from harness import PATIENCE, ROOT, eventually
from leasing import RIGHT, counts, delivery
from material import make_batch, make_group

sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import rolloutd  # noqa: E402

PATIENT = {"patience_s": PATIENCE, "timeout_s": PATIENCE}


@pytest.fixture
def client(service, engine):
    """With four ready groups."""
    engine.rules(RIGHT)
    with rolloutd.Client(service.url, **PATIENT) as made:
        batch = made.submit(**make_batch(*[make_group(task) for task in "abcd"]))
        service.settled(batch["id"])
        yield made


def lease(client, groups=64, **fields):
    return client.lease("test", groups, wait_s=0, **fields)


def test_a_loop_that_ends_acknowledges_its_groups(client, service):
    seen = []
    for group in lease(client, optimizer_step=40):
        seen.append(group["task"])
        assert counts(service) == {"leased": 4}
    assert seen == ["a", "b", "c", "d"] and counts(service) == {"acked": 4}


def test_a_loop_whose_body_raises_gives_them_back(client, service):
    with pytest.raises(RuntimeError):
        for _ in lease(client, optimizer_step=40):
            raise RuntimeError("out of memory")
    assert counts(service) == {"ready": 4}
    assert [group["deliveries"] for group in lease(client, optimizer_step=40)] == [2, 2, 2, 2]


def test_a_loop_that_is_left_gives_them_back(client, service):
    for _ in lease(client, optimizer_step=40):
        break
    assert counts(service) == {"ready": 4}


def test_a_lease_without_a_step_is_given_back_and_says_what_is_missing(client, service):
    with pytest.raises(ValueError, match="optimizer_step"):
        list(lease(client))
    assert counts(service) == {"ready": 4}


def test_the_step_may_be_known_in_the_end(client, service):
    taken = lease(client, 1)
    for group in taken:
        taken.optimizer_step = 7
    assert delivery(service, group["id"])["optimizer_step"] == 7


def test_a_with_holds_them_over_several_loops(client, service):
    with lease(client, optimizer_step=3) as taken:
        for _ in range(2):
            assert len(list(taken)) == len(taken) == 4
        assert counts(service) == {"leased": 4} and taken.totals == {"tokens": 16, "sequences": 8, "groups": 4}
    assert counts(service) == {"acked": 4}
    with pytest.raises(RuntimeError), lease(client, optimizer_step=4) as empty:
        assert empty.id is None and not empty.groups
        raise RuntimeError("nothing to train on")


def test_nothing_ready_is_an_empty_loop(client):
    list(lease(client, optimizer_step=1))
    assert list(lease(client, optimizer_step=2)) == []


def test_some_are_acknowledged_and_the_others_released(client, service):
    with lease(client) as taken:
        first, *rest = [group["id"] for group in taken]
        assert taken.ack(5, groups=[first])["acked"] == 1
        taken.extend(60)
        taken.release(rest)
    assert counts(service) == {"acked": 1, "ready": 3}


def test_a_lease_that_was_lost_says_where_its_groups_are(client, service):
    taken = lease(client)
    client.attach("test", step=0, revision=1)
    with pytest.raises(rolloutd.Error) as refused:
        taken.ack(1)
    assert refused.value.code == "state_conflict"
    assert {(item["state"], item["lease"]) for item in refused.value.groups} == {("ready", None)} and len(refused.value.groups) == 4


def test_a_key_finds_the_lease_again(client, service):
    first = lease(client, 2, idempotency_key="step-1")
    service.restart()
    with rolloutd.Client(service.url, **PATIENT) as other:
        assert lease(other, 2, idempotency_key="step-1").id == first.id


def test_arrays_of_a_lease_are_numpy_where_that_is_asked_for(client, service):
    numpy = pytest.importorskip("numpy")
    with rolloutd.Client(service.url, numpy=True, **PATIENT) as other:
        rollout = lease(other, 1).groups[0]["rollouts"][0]
    assert rollout["completion_ids"].dtype == numpy.int64 and rollout["logprobs"].tolist() == [-0.5, -0.25]


TRAINER = """
import os, sys
sys.path.insert(0, sys.argv[1])
import rolloutd
client = rolloutd.Client(sys.argv[2])
for group in client.lease("test", 2, wait_s=0, optimizer_step=1):
    print(group["id"], flush=True)
    sys.stdin.read()
"""


def test_a_trainer_that_is_killed_keeps_nothing_beyond_its_attach(client, service):
    trainer = subprocess.Popen([sys.executable, "-c", TRAINER, os.path.join(ROOT, "client", "python"), service.url],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with trainer:
        assert trainer.stdout.readline().startswith("g_")
        trainer.kill()
    assert counts(service) == {"leased": 2, "ready": 2}
    assert len(client.attach("test", step=0, revision=1)["leases"]) == 1
    assert counts(service) == {"ready": 4}
    for _ in lease(client, optimizer_step=1):
        pass
    eventually(lambda: counts(service) == {"acked": 4}, "all to be acknowledged")
