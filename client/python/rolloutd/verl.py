"""Reward functions for verl, by its own configuration:

    custom_reward_function.path=pkg://rolloutd.verl  custom_reward_function.name=compute_score
    +custom_reward_function.reward_kwargs.url=http://127.0.0.1:8787
    +custom_reward_function.reward_kwargs.verifiers='[{name: math}]'

`compute_score` is called for each sample, `compute_scores` by the reward manager `batch` for all at once. verl has no word for a completion
that could not be judged: `compute_scores` gives it the mean of its judged siblings and counts it, `compute_score` raises unless `failed` is a
number. A label `{"verifiers", "reference"}` brings its own verifiers. With `run` the completions are on record under it (POST /v1/score).
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ._grade import Sample, client_of, grade, grade_one, means, refusal

VERIFIERS = ({"name": "math"},)
Info = Optional[Mapping[str, Any]]


def sample_of(source: Any, completion: str, label: Any, info: Info) -> Sample:
    """Named as rolloutd.tasks.from_verl() names the row, if it has an index; else by its content."""
    info = info or {}
    parts = (source, info.get("split"), info.get("index"))
    name = "-".join(str(part) for part in parts if part is not None) if info.get("index") is not None else None
    return Sample(completion, label, info.get("prompt"), name)


async def compute_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Info = None, *, url: str = "http://127.0.0.1:8787",
                        token: Optional[str] = None, verifiers: Sequence[Mapping[str, Any]] = VERIFIERS, run: Optional[str] = None,
                        failed: Optional[float] = None, **_: Any) -> Dict[str, Any]:
    """One sample. `score` is the reward; the rest goes to verl's reward_extra_info, the same keys for all samples. Asynchronous: verl waits
    for many at once. failed: the number of a completion that could not be judged; None: an Error with the failure's code."""
    judged = await grade_one(client_of(url, token), list(verifiers), sample_of(data_source, solution_str, ground_truth, extra_info), run)
    if judged["reward"] is None and failed is None:
        raise refusal(judged)
    return {"score": failed if judged["reward"] is None else judged["reward"], "rolloutd_failed": float(judged["reward"] is None)}


def compute_scores(data_sources: Sequence[str], solution_strs: Sequence[str], ground_truths: Sequence[Any],
                   extra_infos: Optional[Sequence[Info]] = None, *, url: str = "http://127.0.0.1:8787", token: Optional[str] = None,
                   verifiers: Sequence[Mapping[str, Any]] = VERIFIERS, run: Optional[str] = None, **_: Any) -> List[Dict[str, Any]]:
    """All samples of a step. Siblings have one data source, one label and one `index`. A group without any judged member is an Error with
    the code of its first failure: there is no number for it."""
    infos = extra_infos if extra_infos is not None else [None] * len(solution_strs)
    samples = list(map(sample_of, data_sources, solution_strs, ground_truths, infos))
    judged = grade(client_of(url, token), list(verifiers), samples, run)
    keys = [repr((source, label, (info or {}).get("index"))) for source, label, info in zip(data_sources, ground_truths, infos)]
    mean = means(keys, judged)
    for key, item in zip(keys, judged):
        if key not in mean:
            raise refusal(item)
    return [{"score": mean[key] if item["reward"] is None else item["reward"], "rolloutd_failed": float(item["reward"] is None)}
            for key, item in zip(keys, judged)]
