"""Reward functions for verl, by its own configuration:

    custom_reward_function.path=pkg://rolloutd.verl  custom_reward_function.name=compute_score
    +custom_reward_function.reward_kwargs.url=http://127.0.0.1:8787
    +custom_reward_function.reward_kwargs.verifiers='[{name: math}]'

`compute_score` is called for each sample, `compute_scores` by the reward manager `batch` for all at once. verl has no word for a completion
that could not be judged: `compute_scores` gives it the mean of its judged siblings and counts it, `compute_score` raises unless `failed` is a
number. A label `{"verifiers", "reference"}` brings its own verifiers.
"""
from __future__ import annotations

import asyncio
import functools
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ._client import Client
from ._error import Error

VERIFIERS = ({"name": "math"},)


@functools.lru_cache(maxsize=None)
def client_of(url: str, token: Optional[str]) -> Client:
    return Client(url, token)


def item_of(number: int, completion: str, label: Any, prompt: Optional[Any]) -> Dict[str, Any]:
    item = {"id": str(number), "completion": completion}
    if isinstance(label, Mapping) and set(label) <= {"verifiers", "reference"} and "verifiers" in label:
        item.update(label)
    elif label is not None:
        item["reference"] = label
    if prompt is not None:
        item["prompt" if isinstance(prompt, str) else "messages"] = prompt
    return item


def refused(item: Mapping[str, Any]) -> Error:
    failure = item["failure"] or {"code": "no_reward", "message": "no verifier gives a reward"}
    return Error(422, failure["code"], failure["message"])


async def compute_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Optional[Mapping[str, Any]] = None, *,
                        url: str = "http://127.0.0.1:8787", token: Optional[str] = None, verifiers: Sequence[Mapping[str, Any]] = VERIFIERS,
                        failed: Optional[float] = None, **_: Any) -> Dict[str, Any]:
    """One sample. `score` is the reward; the rest goes to verl's reward_extra_info, the same keys for all samples. Asynchronous: verl waits
    for many at once. failed: the number of a completion that could not be judged; None: an Error with the failure's code."""
    item = item_of(0, solution_str, ground_truth, (extra_info or {}).get("prompt"))
    judged, = await asyncio.get_running_loop().run_in_executor(None, client_of(url, token).verify, list(verifiers), [item])
    if judged["reward"] is None and failed is None:
        raise refused(judged)
    return {"score": failed if judged["reward"] is None else judged["reward"], "rolloutd_failed": float(judged["reward"] is None)}


def compute_scores(data_sources: Sequence[str], solution_strs: Sequence[str], ground_truths: Sequence[Any],
                   extra_infos: Optional[Sequence[Mapping[str, Any]]] = None, *, url: str = "http://127.0.0.1:8787",
                   token: Optional[str] = None, verifiers: Sequence[Mapping[str, Any]] = VERIFIERS, **_: Any) -> List[Dict[str, Any]]:
    """All samples of a step. Siblings have one data source, one label and one `index`. A group without any judged member is an Error with
    the code of its first failure: there is no number for it."""
    infos = extra_infos if extra_infos is not None else [{}] * len(solution_strs)
    items = [item_of(number, completion, label, (info or {}).get("prompt"))
             for number, (completion, label, info) in enumerate(zip(solution_strs, ground_truths, infos))]
    judged = client_of(url, token).verify(list(verifiers), items)
    groups: Dict[str, List[float]] = {}
    keys = [repr((source, label, (info or {}).get("index"))) for source, label, info in zip(data_sources, ground_truths, infos)]
    for key, item in zip(keys, judged):
        groups.setdefault(key, []).extend([] if item["reward"] is None else [item["reward"]])
    scores = []
    for key, item in zip(keys, judged):
        if not groups[key]:
            raise refused(item)
        mean = sum(groups[key]) / len(groups[key])
        scores.append({"score": mean if item["reward"] is None else item["reward"], "rolloutd_failed": float(item["reward"] is None)})
    return scores
