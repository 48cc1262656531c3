"""Reward functions for environments of Prime Intellect's `verifiers`, and so for prime-rl. Neither is imported.

    class Sums(vf.Task[SumsData]):                                                     # verifiers 0.2 and later: data.answer is the reference
        math = vf.reward(rolloutd.verifiers_env.reward("http://127.0.0.1:8787", [{"name": "math"}], run="my-run"))

    vf.Rubric(funcs=[rolloutd.verifiers_env.rubric_reward("http://127.0.0.1:8787", [{"name": "math"}])])    # verifiers 0.1

A completion that could not be judged has no reward. There the task's scoring fails, so that the trace has an error and prime-rl leaves it
out; a rubric makes 0 of whatever is raised, so that the function writes `state["error"]` itself.
"""
from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict, Optional

from ._error import Error
from ._grade import Sample, Verifiers, client_of, grade_one, refusal


def text_of(completion: Any) -> str:
    """Of a text, or of the last message of a conversation."""
    if isinstance(completion, str) or not completion:
        return completion or ""
    last = completion[-1]
    return (last.get("content") if isinstance(last, dict) else last.content) or ""


def plain(prompt: Any) -> Any:
    """Messages of pydantic as dicts, without what is not set."""
    if prompt is None or isinstance(prompt, str):
        return prompt
    return [message.model_dump(exclude_none=True) if hasattr(message, "model_dump") else message for message in prompt]


def reward(url: str, verifiers: Verifiers, *, reference: str = "answer", run: Optional[str] = None, token: Optional[str] = None,
           name: str = "rolloutd") -> Callable[..., Awaitable[float]]:
    """For `vf.reward`, as a member of a task or plugged in by `rewards` of its configuration. reference: the field of the task's data. run:
    the completions are on record under it."""
    client = client_of(url, token)

    async def judged(*_: Any, task: Any, trace: Any) -> float:
        sample = Sample(trace.last_reply, getattr(task, reference, None), plain(task.prompt), task.id)
        result = await grade_one(client, verifiers, sample, run)
        if result["reward"] is None:
            raise refusal(result)
        return float(result["reward"])

    judged.__name__ = name
    return judged


def rubric_reward(url: str, verifiers: Verifiers, *, run: Optional[str] = None, token: Optional[str] = None,
                  name: str = "rolloutd") -> Callable[..., Awaitable[float]]:
    """For `funcs` of a Rubric; `answer` is the reference. 0 and `state["error"]` where there is no reward."""
    client = client_of(url, token)

    async def judged(prompt: Any, completion: Any, answer: Any, state: Dict[str, Any]) -> float:
        try:
            result = await grade_one(client, verifiers, Sample(text_of(completion), answer, plain(prompt)), run)
            if result["reward"] is None:
                raise refusal(result)
            return float(result["reward"])
        except Error as problem:
            state["error"] = problem
            return 0.0

    judged.__name__ = name
    return judged
