"""Completions of a trainer to verdicts: by POST /v1/verify, or on record under a run by POST /v1/score."""
from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import re
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ._client import Client
from ._error import Error

EMPTY = {"stage": "verify", "code": "empty_completion", "message": "the completion is empty"}
OF_A_GROUP = re.compile(r"groups\[(\d+)\]\.(?:verifiers|reference)")
Verifiers = Sequence[Mapping[str, Any]]


class Sample(NamedTuple):
    completion: str
    label: Any = None  # the reference, or {"verifiers", "reference"}; None: none
    prompt: Any = None  # a text or messages; None: not known
    task: Optional[str] = None  # None: named by prompt and label


@functools.lru_cache(maxsize=None)
def client_of(url: str, token: Optional[str]) -> Client:
    return Client(url, token)


def name_of(prompt: Any, label: Any) -> str:
    """A task that has no name of its own is named by its content."""
    return hashlib.sha256(json.dumps([prompt, label], sort_keys=True, default=str).encode()).hexdigest()[:16]


def label_fields(label: Any) -> Dict[str, Any]:
    """A label that brings verifiers may be a text of JSON, as the columns of trainers are."""
    read = label
    if isinstance(label, str) and label.startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            read = json.loads(label)
    if isinstance(read, Mapping) and set(read) <= {"verifiers", "reference"} and isinstance(read.get("verifiers"), Sequence):
        return dict(read)
    return {} if label is None else {"reference": label}


def prompt_field(prompt: Any) -> Dict[str, Any]:
    return {} if prompt is None else {"prompt" if isinstance(prompt, str) else "messages": prompt}


def grade(client: Client, verifiers: Verifiers, samples: Sequence[Sample], run: Optional[str] = None) -> List[Dict[str, Any]]:
    """For each sample in its order: `reward`, None where there is none, and `failure`, which says why."""
    if run is not None:
        return score(client, run, verifiers, samples)
    return client.verify(list(verifiers), [{"id": str(number), "completion": sample.completion, **label_fields(sample.label),
                                            **prompt_field(sample.prompt if isinstance(sample.prompt, str) else None)}
                                           for number, sample in enumerate(samples)])


def score(client: Client, run: str, verifiers: Verifiers, samples: Sequence[Sample]) -> List[Dict[str, Any]]:
    """Samples of one task are a group. Its revision is the run's."""
    groups: Dict[str, Dict[str, Any]] = {}
    places: Dict[str, List[int]] = {}
    draws: Dict[str, int] = {}
    for number, sample in enumerate(samples):
        name = sample.task if sample.task is not None else name_of(sample.prompt, sample.label)
        key = name_of([name, sample.prompt], sample.label)
        if key not in groups:
            groups[key] = {"task": name, "draw": draws.setdefault(name, 0), **prompt_field(sample.prompt), **label_fields(sample.label), "completions": []}
            draws[name] += 1
        completion: Dict[str, Any] = {"text": sample.completion} if sample.completion else {"failure": EMPTY}
        groups[key]["completions"].append(completion)
        places.setdefault(key, []).append(number)
    batch = score_groups(client, run, verifiers, list(groups.values()))
    found: List[Any] = [None] * len(samples)
    for key, group in zip(groups, batch["groups"]):
        for place, rollout in zip(places[key], group["rollouts"]):
            found[place] = rollout
    return found


def score_groups(client: Client, run: str, verifiers: Verifiers, groups: List[Dict[str, Any]]) -> Dict[str, Any]:
    """A group whose label cannot be read is on record with that failure; the others are judged."""
    while True:
        try:
            return client.score(run=run, verifiers=list(verifiers), groups=groups, return_=[])
        except Error as problem:
            place = OF_A_GROUP.match(problem.path or "")
            if not place or not groups[int(place[1])].get("verifiers", verifiers):
                raise
            refused = groups[int(place[1])]
            failure = {"stage": "verify", "code": problem.code, "message": problem.message[:500]}
            refused.update(verifiers=[], completions=[{**one, "failure": one.get("failure", failure)} for one in refused["completions"]])


async def grade_async(client: Client, verifiers: Verifiers, samples: Sequence[Sample], run: Optional[str] = None) -> List[Dict[str, Any]]:
    """On a thread, so that many may wait at once."""
    return await asyncio.get_running_loop().run_in_executor(None, grade, client, verifiers, samples, run)


async def grade_one(client: Client, verifiers: Verifiers, sample: Sample, run: Optional[str] = None) -> Dict[str, Any]:
    return (await grade_async(client, verifiers, [sample], run))[0]


def refusal(judged: Mapping[str, Any]) -> Error:
    failure = judged["failure"] or {"code": "no_reward", "message": "no verifier gives a reward"}
    return Error(422, failure["code"], failure["message"])


def means(keys: Iterable[str], judged: Sequence[Mapping[str, Any]]) -> Dict[str, float]:
    """Of the groups that have a judged member."""
    rewards: Dict[str, List[float]] = {}
    for key, item in zip(keys, judged):
        if item["reward"] is not None:
            rewards.setdefault(key, []).append(item["reward"])
    return {key: sum(values) / len(values) for key, values in rewards.items()}
