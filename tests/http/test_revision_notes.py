"""F20: a batch says when it is behind its run, and what a weight update in mode abort has moved; a batch that runs says what it waits for."""
import pytest

from harness import eventually
from material import make_batch, make_group, rollouts

ASYNC = {"Prefer": "respond-async"}


def put(service, revision, run="test", **fields):
    assert service.put(f"/v1/runs/{run}/policy", {"revision": revision, **fields}).status == 200


def notes(batch, code):
    return [note for note in batch["notes"] if note.startswith(code + ":")]


def score_of(revision, **fields):
    return {"run": "test", "policy_revision": revision, "groups": [{"task": "t", "completions": [{"text": "x"}, {"text": "y"}]}], **fields}


def update(service, revision, **fields):
    assert service.post("/v1/runs/test/policy/begin", {"revision": revision, "mode": "abort", **fields}).status == 200
    assert service.post("/v1/runs/test/policy/commit", {}).status == 200


def held(service, engine, **fields):
    engine.rules({"hold": True})
    identity = service.post("/v1/batches", make_batch(**fields), ASYNC).json["id"]
    eventually(lambda: engine.open == fields.get("sampling", {}).get("n", 2), "the samples to be in flight")
    return identity


# -- behind the run -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("purpose", ["train", "eval"])
def test_a_batch_below_its_run_says_both_numbers(service, restart, purpose):
    put(service, 10)
    batch = service.batch(make_batch(policy_revision=3, purpose=purpose))
    assert notes(batch, "revision_behind") == ["revision_behind: 2 rollouts are of policy_revision 3, the run's is 10"]
    if restart:
        service.restart()
    assert service.read(f"/v1/batches/{batch['id']}")["notes"] == batch["notes"]


@pytest.mark.parametrize("store", [True, False])
def test_a_score_below_its_run_says_both_numbers(service, store):
    put(service, 10)
    reply = service.post("/v1/score", score_of(3, store=store)).json
    assert notes(reply, "revision_behind") == ["revision_behind: 2 rollouts are of policy_revision 3, the run's is 10"]
    assert not any(rollout["straddles"] for rollout in rollouts(reply))


@pytest.mark.parametrize("revision", [10, 11, None])
def test_a_revision_that_is_not_behind_has_no_note(service, revision):
    put(service, 10)
    assert notes(service.batch(make_batch(policy_revision=revision)), "revision_behind") == []
    body = score_of(revision)
    assert notes(service.post("/v1/score", {name: value for name, value in body.items() if value is not None}).json, "revision_behind") == []


def test_an_unstored_score_of_a_run_that_nobody_knows_says_nothing(service):
    assert notes(service.post("/v1/score", score_of(3, store=False)).json, "revision_behind") == []


def test_the_first_batch_of_a_run_is_not_behind(service):
    assert notes(service.batch(make_batch(policy_revision=0)), "revision_behind") == []


@pytest.mark.parametrize("restart", [False, True])
def test_a_batch_that_falls_behind_while_it_runs_says_so(service, engine, restart):
    identity = held(service, engine, policy_revision=5)
    running = service.read(f"/v1/batches/{identity}", wait="0s")
    assert running["notes"] == []
    put(service, 6)
    put(service, 8)
    if restart:
        service.restart()
        engine.rules({})
    running = service.read(f"/v1/batches/{identity}", wait="0s")
    if running["state"] == "running":
        assert notes(running, "revision_behind") == ["revision_behind: the batch is of policy_revision 5, the run's is 8"]
    engine.release()
    batch = service.settled(identity)
    assert notes(batch, "revision_behind") == ["revision_behind: 2 rollouts are of policy_revision 5, the run's is 8"]


def test_a_batch_is_told_that_it_is_behind_with_its_202(service, engine):
    put(service, 10)
    engine.rules({"hold": True})
    reply = service.post("/v1/batches", make_batch(policy_revision=3), ASYNC)
    assert reply.status == 202 and "3" in reply.json["notes"][0] and "10" in reply.json["notes"][0]
    engine.release()


def test_members_of_several_revisions_are_counted_from_the_lowest(start, engine):
    """A group that names no revision has the one of its first dispatch."""
    engine.rules({"in": "A", "hold": True}, {"in": "B", "hold": True})
    service = start(f"{engine.for_rolloutd}&in_flight=1")
    put(service, 5)
    body = make_batch(make_group("a", "A"), make_group("b", "B"), policy_revision=None)
    identity = service.post("/v1/batches", body, ASYNC).json["id"]
    eventually(lambda: engine.open == 1, "the first sample to be in flight")
    put(service, 6)
    engine.release()
    eventually(lambda: engine.samples_for("B"), "the other group to be in flight")
    put(service, 9)
    engine.release()
    batch = service.settled(identity)
    revisions = sorted({rollout["policy_revision"] for rollout in rollouts(batch)})
    assert revisions == [5, 6]
    assert notes(batch, "revision_behind") == ["revision_behind: 4 rollouts are of policy_revisions 5 to 6, the run's is 9"]


def test_a_batch_of_an_incarnation_that_was_left_says_so(service, engine):
    put(service, 10)
    identity = held(service, engine, policy_revision=10)
    put(service, 7, rewind_to_step=7)
    engine.release()
    batch = service.settled(identity)
    assert notes(batch, "revision_behind") == []
    assert len(notes(batch, "incarnation_behind")) == 1 and "incarnation 0" in notes(batch, "incarnation_behind")[0]
    assert notes(service.batch(make_batch(policy_revision=7)), "incarnation_behind") == []


# -- moved by an abort ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("restart", [False, True])
def test_an_abort_that_moved_members_is_noted_with_their_number_and_revision(start, engine, restart):
    engine.rules({"times": 1}, {"hold": True})
    service = start(engine)
    identity = service.post("/v1/batches", make_batch(policy_revision=1, sampling={"n": 3, "max_tokens": 16, "temperature": 1.0}), ASYNC).json["id"]
    eventually(lambda: engine.open == 2 and service.read(f"/v1/batches/{identity}", wait="0s")["counts"]["done"] == 1, "one to be done")
    update(service, 2)
    if restart:
        service.restart()
    engine.rules({})
    engine.release()
    batch = service.settled(identity)
    assert sorted(rollout["policy_revision"] for rollout in rollouts(batch)) == [1, 2, 2]
    assert notes(batch, "revision_moved") == ["revision_moved: a weight update in mode abort moved 2 rollouts to policy_revision 2"]
    assert notes(batch, "revision_behind") == ["revision_behind: 1 rollouts are of policy_revision 1, the run's is 2"]


def test_two_aborts_are_noted_each(start, engine):
    engine.rules({"times": 1}, {"hold": True})
    service = start(f"{engine.for_rolloutd}&in_flight=1")
    identity = service.post("/v1/batches", make_batch(policy_revision=1, sampling={"n": 3, "max_tokens": 16, "temperature": 1.0}), ASYNC).json["id"]
    for done in (1, 2):
        eventually(lambda: engine.open == 1 and service.read(f"/v1/batches/{identity}", wait="0s")["counts"]["done"] == done, "some to be done")
        engine.rules({"times": 1}, {"hold": True})
        update(service, done + 1)
    engine.rules({})
    engine.release()
    moved = notes(service.settled(identity), "revision_moved")
    assert sorted(note[-1] for note in moved) == ["2", "3"] and all("moved 1 rollouts" in note for note in moved), moved


def test_an_abort_that_goes_back_to_a_checkpoint_is_noted(service, engine):
    put(service, 10)
    identity = held(service, engine, policy_revision=10)
    update(service, 7, rewind_to_step=7)
    engine.release()
    batch = service.settled(identity)
    assert notes(batch, "revision_moved") == ["revision_moved: a weight update in mode abort moved 2 rollouts to policy_revision 7"]
    assert notes(batch, "revision_behind") == []


def test_an_abort_that_was_cancelled_moved_nothing(service, engine):
    identity = held(service, engine, policy_revision=1)
    assert service.post("/v1/runs/test/policy/begin", {"revision": 2, "mode": "abort"}).status == 200
    assert service.post("/v1/runs/test/policy/cancel", {}).status == 200
    eventually(lambda: engine.open == 2, "both to be in flight again")
    engine.release()
    assert notes(service.settled(identity), "revision_moved") == []


# -- what a running batch waits for -----------------------------------------------------------------------------------------------

def said(service, reply):
    """A 202, GET of the batch and GET /v1/pending say the same."""
    identity = reply.json["id"]
    pending = next(item for item in service.read("/v1/pending")["items"] if item["batch"] == identity)
    running = service.read(f"/v1/batches/{identity}", wait="0s")
    assert running["waits_for"] == pending["waits_for"] and running["waiting"] == pending["waiting"]
    assert set(reply.json["waiting"]) == {"queued", "sampling", "verifying", "storing"}
    return running["waits_for"]


def test_a_202_says_that_a_weight_update_is_open(service, engine):
    put(service, 1)
    assert service.post("/v1/runs/test/policy/begin", {"revision": 2}).status == 200
    reply = service.post("/v1/batches", make_batch(policy_revision=1), ASYNC)
    assert reply.status == 202 and reply.json["waits_for"] == said(service, reply) == "a weight update of its run, which is open"
    assert reply.json["waiting"]["queued"] == 2
    assert service.post("/v1/runs/test/policy/cancel", {}).status == 200


def test_a_202_says_that_another_run_has_the_pool(service, engine):
    held(service, engine, run="first")
    reply = service.post("/v1/batches", make_batch(run="second"), ASYNC)
    assert reply.json["waits_for"] == said(service, reply) == "the engines, which serve another run"
    engine.release()


def test_a_202_says_that_no_engine_can_be_used(start):
    service = start("http://127.0.0.1:9#kind=vllm&model=m")
    reply = service.post("/v1/batches", make_batch(), ASYNC)
    assert 'no engine of pool "default" can be used' in reply.json["waits_for"] and "e1" in said(service, reply)
    assert service.delete(f"/v1/batches/{reply.json['id']}").status == 200


def test_a_202_says_that_the_only_engine_pauses(start, engine):
    engine.rules({"status": 429, "json": {}, "headers": {"Retry-After": "10"}})
    service = start(engine)
    first = service.post("/v1/batches", make_batch(), ASYNC).json["id"]
    eventually(lambda: service.read(f"/v1/batches/{first}", wait="0s")["waits_for"] == "a pause before the next attempt", "the engine to ask for one")
    reply = service.post("/v1/batches", make_batch(), ASYNC)
    eventually(lambda: "cooling" in service.read(f"/v1/batches/{reply.json['id']}", wait="0s")["waits_for"], "the pause to be said")
    assert service.delete(f"/v1/batches/{reply.json['id']}").status == 200


def test_a_batch_says_that_the_memory_budget_is_used_up(start, engine):
    """A sample of 300,000 tokens may take 60 MB."""
    engine.rules({"hold": True})
    service = start(engine, settings={"memory_budget": "64MiB"})
    reply = service.post("/v1/batches", make_batch(sampling={"n": 2, "max_tokens": 300000, "temperature": 1.0}), ASYNC)
    assert reply.status == 202, reply
    eventually(lambda: engine.open == 1, "one sample to be in flight")
    assert said(service, reply) == "the memory budget, which is used up by what runs"
    engine.release()
    assert service.settled(reply.json["id"])["state"] == "complete"
