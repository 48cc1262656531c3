"""New weights while the service samples: every way of vLLM, and what is on record of it."""
import itertools

import pytest

from harness import eventually
from material import make_batch, make_group, rollouts, sampling, seed_of
from test_samples import assert_is_plain, farthest

TALE = "Once upon a time"
TOKENS = 64
VERSIONS = itertools.count(2)


@pytest.fixture(autouse=True)
def first_weights(vllm):
    """Each test begins and ends with the first ones."""
    yield
    vllm.resume()
    vllm.pause("abort")
    vllm.load("first", f"v{next(VERSIONS)}")
    vllm.resume()


def tale(count=2, tokens=TOKENS, **fields):
    return make_batch(make_group("tale", TALE), **{"sampling": sampling(count, max_tokens=tokens, engine_options={"ignore_eos": True}), "deadline": "20m", **fields})


def version_of(vllm):
    return vllm.read("/weight_info")["weight_version"]


def replace(service, vllm, mode, revision):
    """A trainer's update, with samples under way. Gives the two versions."""
    before, after = version_of(vllm), f"v{next(VERSIONS)}"
    eventually(lambda: vllm.running == 2, "both samples to be under way")
    vllm.pause(mode)
    vllm.load("second", after)
    reply = service.put("/v1/runs/test/policy", {"revision": revision})
    assert reply.status == 200, reply
    vllm.resume()
    return before, after


def posted(service, body):
    reply = service.post("/v1/batches", body, {"Prefer": "respond-async"})
    assert reply.status == 202, reply
    return reply.json["id"]


def plain(vllm, rollout):
    return vllm.plain(TALE, rollout["seed"], max_tokens=TOKENS, ignore_eos=True)


def engine_says(kind, version):
    return version if kind == "vllm_generate" else None


def assert_two_segments(rollout, kind, before, after):
    """vllm_generate says where the weights changed; with vllm nobody knows."""
    if kind == "vllm":
        assert rollout["segments"] == []
        return
    first, second = rollout["segments"]
    assert (first["start"], first["engine_revision"], second["end"], second["engine_revision"]) == (0, before, len(rollout["completion_ids"]), after)
    assert 0 < first["end"] == second["start"] < second["end"]


def assert_new_batches_have_the_new_weights(service, vllm, kind, version):
    for rollout in rollouts(service.batch(tale(policy_revision=2, tokens=16))):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (2, 2, False)
        assert rollout["engine_revision"] == engine_says(kind, version)
        assert_is_plain(rollout, vllm.plain(TALE, rollout["seed"], max_tokens=16, ignore_eos=True))


def test_the_second_weights_are_others_and_the_first_come_back_as_they_were(vllm):
    first = vllm.plain(TALE, 5, max_tokens=16)
    vllm.pause("wait")
    vllm.load("second", f"v{next(VERSIONS)}")
    vllm.resume()
    second = vllm.plain(TALE, 5, max_tokens=16)
    same = [index for index in range(16) if first[0][:index] == second[0][:index]]
    assert max(abs(first[1][index] - second[1][index]) for index in same) > 0.01
    vllm.pause("wait")
    vllm.load("first", f"v{next(VERSIONS)}")
    vllm.resume()
    assert vllm.plain(TALE, 5, max_tokens=16)[0] == first[0] and vllm.plain(TALE, 5, max_tokens=16)[1] == first[1]


def test_wait_lets_what_runs_end_with_the_old_weights(service, vllm, kind):
    old = [vllm.plain(TALE, rollout["seed"], max_tokens=TOKENS, ignore_eos=True) for rollout in rollouts(service.batch(tale(tokens=1)))]
    identity = posted(service, tale())
    before, after = replace(service, vllm, "wait", 2)
    for rollout, was in zip(rollouts(service.settled(identity)), old, strict=True):
        assert_is_plain(rollout, was)
        assert rollout["segments"] == [] and rollout["engine_revision"] == engine_says(kind, before) and rollout["policy_revision"] == 1 and rollout["attempts"] == 1
    assert_new_batches_have_the_new_weights(service, vllm, kind, after)


def test_keep_continues_what_runs_with_the_new_weights_and_it_straddles(service, vllm, kind):
    old = [vllm.plain(TALE, rollout["seed"], max_tokens=TOKENS, ignore_eos=True) for rollout in rollouts(service.batch(tale(tokens=1)))]
    identity = posted(service, tale())
    before, after = replace(service, vllm, "keep", 2)
    for rollout, was in zip(rollouts(service.settled(identity)), old, strict=True):
        assert rollout["state"] == "scored" and rollout["attempts"] == 1 and len(rollout["completion_ids"]) == TOKENS
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (1, 2, True)
        assert rollout["engine_revision"] == engine_says(kind, after)
        assert_two_segments(rollout, kind, before, after)
        if kind == "vllm_generate":
            swapped = rollout["segments"][1]["start"]
            assert rollout["completion_ids"][:swapped] == was[0][:swapped], "what the old weights made is what they make alone"
        assert rollout["logprobs"] != was[1], "it did not end with the old ones"
    assert_new_batches_have_the_new_weights(service, vllm, kind, after)


def test_abort_breaks_off_what_runs_and_it_is_sampled_again_with_the_new_weights(service, vllm, kind):
    identity = posted(service, tale())
    _, after = replace(service, vllm, "abort", 2)
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["state"], rollout["attempts"], rollout["resample"]) == ("scored", 2, 0)
        assert rollout["engine_revision"] == engine_says(kind, after)
        assert_is_plain(rollout, plain(vllm, rollout))
    assert_new_batches_have_the_new_weights(service, vllm, kind, after)


# -- in steps: begin, new weights, commit ---------------------------------------------------------------------------------

def step(service, name, **fields):
    reply = service.post(f"/v1/runs/test/policy/{name}", fields)
    assert reply.status == 200, reply
    return reply.json


def load_second(vllm, mode):
    before, after = version_of(vllm), f"v{next(VERSIONS)}"
    vllm.pause(mode)
    vllm.load("second", after)
    vllm.resume()
    return before, after


def under_way(service, vllm):
    identity = posted(service, tale())
    eventually(lambda: vllm.running == 2, "both samples to be under way")
    return identity


def test_a_begin_that_waits_is_answered_when_vllm_is_idle(service, vllm, kind):
    old = [plain(vllm, rollout) for rollout in rollouts(service.batch(tale(tokens=1)))]
    identity = under_way(service, vllm)
    assert step(service, "begin", revision=2, mode="wait")["state"] == "open"
    assert vllm.running == 0
    waiting = posted(service, tale(policy_revision=None))
    before, after = load_second(vllm, "wait")
    assert vllm.running == 0, "nothing is dispatched before the commit"
    step(service, "commit", revision=2)
    for rollout, was in zip(rollouts(service.settled(identity)), old, strict=True):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (1, 1, False)
        assert rollout["engine_revision"] == engine_says(kind, before)
        assert_is_plain(rollout, was)
    for rollout in rollouts(service.settled(waiting)):
        assert (rollout["policy_revision"], rollout["straddles"], rollout["engine_revision"]) == (2, False, engine_says(kind, after))
        assert_is_plain(rollout, plain(vllm, rollout))


def test_a_begin_that_aborts_stops_vllm_and_the_samples_are_made_by_the_new_weights(service, vllm, kind):
    finished = vllm.ended("length")
    identity = under_way(service, vllm)
    assert step(service, "begin", revision=2, mode="abort")["state"] == "open"
    eventually(lambda: vllm.running == 0, "vLLM to stop")
    assert vllm.ended("length") == finished
    _, after = load_second(vllm, "wait")
    step(service, "commit", revision=2)
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (2, 2, False)
        assert rollout["seed_sent"] == seed_of(7, 2, "tale", 0, rollout["sample_index"]) and rollout["engine_revision"] == engine_says(kind, after)
        assert_is_plain(rollout, plain(vllm, rollout))


def test_a_begin_that_straddles_keeps_what_runs_and_marks_it(service, vllm, kind):
    identity = under_way(service, vllm)
    assert step(service, "begin", revision=2, mode="straddle")["state"] == "open"
    before, after = load_second(vllm, "keep")
    step(service, "commit", revision=2)
    for rollout in rollouts(service.settled(identity)):
        assert (rollout["policy_revision"], rollout["revision_at_end"], rollout["straddles"]) == (1, 2, True)
        assert rollout["attempts"] == 1 and rollout["engine_revision"] == engine_says(kind, after)
        assert_two_segments(rollout, kind, before, after)
