"""A reward function for slime, by its own configuration: --custom-rm-path rolloutd.slime.reward, and in the file of --custom-config-path

    rolloutd_url: http://127.0.0.1:8787
    rolloutd_verifiers: [{name: math}]
    rolloutd_run: my-run                    # may be left out: then nothing is kept

A completion that could not be graded is taken out of the loss: `remove_sample`, with the failure's code in its metadata. Its reward is the mean of its
graded siblings where slime hands over several samples at once, else 0.
"""
from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Union

from ._grade import Sample, client_of, grade_async, means


async def reward(args: Any, sample: Union[Any, Sequence[Any]], **_: Any) -> Union[float, List[float]]:
    """slime's `custom_rm`: of one sample, or of several."""
    samples = list(sample) if isinstance(sample, (list, tuple)) else [sample]
    items = [Sample(one.response, one.label, one.prompt or None) for one in samples]
    client = client_of(args.rolloutd_url, getattr(args, "rolloutd_token", None))
    graded = await grade_async(client, args.rolloutd_verifiers, items, getattr(args, "rolloutd_run", None))
    keys = [repr((one.prompt, one.label)) for one in samples]
    mean = means(keys, graded)
    rewards = [reward_of(one, result, mean.get(key, 0.0)) for one, result, key in zip(samples, graded, keys)]
    return rewards if isinstance(sample, (list, tuple)) else rewards[0]


def reward_of(sample: Any, graded: Mapping[str, Any], instead: float) -> float:
    if graded["reward"] is None:
        sample.remove_sample = True
        sample.metadata["rolloutd_failure"] = (graded["failure"] or {"code": "no_reward"})["code"]
        return instead
    return float(graded["reward"])
