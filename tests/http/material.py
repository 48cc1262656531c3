"""Requests that many tests share, and the contract's arithmetic in plain Python."""
import base64
import hashlib
import math
import struct


def make_batch(*groups, **fields):
    """Fields given as None are left out."""
    body = {"run": "test", "policy_revision": 1, "seed": 7,
            "sampling": {"n": 2, "max_tokens": 16, "temperature": 1.0},
            "verifiers": [{"name": "math"}], "deadline": "20s",
            "groups": list(groups) or [make_group("t1")], **fields}
    return {name: value for name, value in body.items() if value is not None}


def make_group(task, prompt="What is 6*7?", reference="42", **fields):
    return {"task": task, "prompt": prompt, "reference": reference, **fields}


def sampling(count, **fields):
    return {"n": count, "max_tokens": 16, "temperature": 1.0, **fields}


def seed_of(batch_seed, revision, task, draw, index, resample=0):
    """DESIGN section 4, in one line."""
    text = f"{batch_seed}/{revision}/{task}/{draw}/{index}/{resample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def rollouts(batch):
    return [rollout for group in batch["groups"] for rollout in group["rollouts"]]


def by_task(batch):
    return {group["task"]: group for group in batch["groups"]}


def codes(group):
    return [rollout["failure"] and rollout["failure"]["code"] for rollout in group["rollouts"]]


def group_advantages(rewards):
    """(r - mean) / population deviation over those that have one; 0 when all are equal."""
    known = [reward for reward in rewards if reward is not None]
    if not known:
        return [None] * len(rewards)
    if max(known) == min(known):
        return [None if reward is None else 0.0 for reward in rewards]
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((reward - mean) ** 2 for reward in known) / len(known))
    return [None if reward is None else (reward - mean) / deviation for reward in rewards]


def close(got, want, relative=1e-12, absolute=1e-15):
    if want is None:
        return got is None
    if isinstance(want, (list, tuple)):
        return isinstance(got, list) and len(got) == len(want) and all(close(a, b, relative, absolute) for a, b in zip(got, want))
    number = isinstance(got, (int, float)) and not isinstance(got, bool)
    return number and math.isclose(got, want, rel_tol=relative, abs_tol=absolute)


def f32(value):
    """A log-probability as it is stored and used."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def packed(kind, values):
    return base64.b64encode(struct.pack(f"<{len(values)}{kind}", *values)).decode()


def unpacked(kind, text):
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}{kind}", data))


def assert_failed_without_a_number(rollout):
    """Promise 1: a failure is never a number."""
    assert rollout["state"] == "failed", rollout
    for name in ("reward", "shaped_reward", "advantage", "surrogates", "contributions"):
        assert rollout[name] is None, (name, rollout)
    failure = rollout["failure"]
    assert failure["stage"] in ("sample", "verify", "store") and failure["message"], failure
    assert isinstance(failure["retryable"], bool) and isinstance(failure["attempts"], int), failure


def assert_sums_up(batch):
    """The figures of a batch agree with its rollouts."""
    scored = [rollout for rollout in rollouts(batch) if rollout["reward"] is not None]
    terms = [term for rollout in scored if rollout["contributions"] for term in rollout["contributions"]]
    if scored:
        assert close(math.fsum(terms), batch["loss"], absolute=1e-12), (terms, batch["loss"])
        mean = math.fsum(rollout["reward"] for rollout in scored) / len(scored)
        assert close(batch["summary"]["reward_mean"], mean), batch["summary"]
    else:
        assert batch["loss"] is None and batch["summary"]["reward_mean"] is None, batch["summary"]
    assert batch["summary"]["rollouts"] == len(rollouts(batch))
    assert batch["summary"]["failed"] == sum(rollout["state"] == "failed" for rollout in rollouts(batch))
    for group in batch["groups"]:
        want = group_advantages([rollout["reward"] for rollout in group["rollouts"]])
        assert close([rollout["advantage"] for rollout in group["rollouts"]], want), (group["task"], want)
