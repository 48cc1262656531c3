"""Batches for leases and a trainer's calls, for the tests of leases."""
from harness import eventually
from material import make_batch, make_group

RIGHT = {"text": "\\boxed{42}", "ids": [5, 2], "lp": [-0.5, -0.25]}


def post(service, *tasks, headers=None, **fields):
    """A batch for leases, a group for each task. Gives its id."""
    reply = service.post("/v1/batches", make_batch(*[make_group(task, task) for task in tasks], deliver="lease", **fields), headers)
    assert reply.status == 202, reply
    return reply.json["id"]


def posted(service, *tasks, **fields):
    """The same, once it has ended."""
    return service.settled(post(service, *tasks, **fields))


def take(service, run="test", headers=None, **fields):
    return service.post(f"/v1/runs/{run}/leases", {"wait": "0s", "groups": 64, **fields}, headers)


def taken(service, **fields):
    """A lease that got something."""
    reply = take(service, **fields)
    assert reply.status == 200 and reply.json["lease"], reply
    return reply.json


def change(service, identity, what, run="test", **fields):
    return service.post(f"/v1/runs/{run}/leases/{identity}/{what}", fields)


def ack(service, identity, step=1, **fields):
    return change(service, identity, "ack", optimizer_step=step, **fields)


def tasks_of(lease):
    return [group["task"] for group in lease["groups"]]


def ids_of(lease):
    return [group["id"] for group in lease["groups"]]


def counts(service, run="test"):
    """Groups by delivery; states without a group left out."""
    return {state: count for state, count in service.read(f"/v1/runs/{run}")["delivery"].items() if count}


def delivery(service, group):
    return service.read(f"/v1/groups/{group}")["delivery"]


def waiting(service, count):
    eventually(lambda: service.read("/v1/pending")["lease_requests"] == count, f"{count} requests to wait for groups")
