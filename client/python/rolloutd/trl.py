"""For TRL's GRPOTrainer: a reward function, and a rollout function. Neither imports TRL.

    reward_funcs=rolloutd.trl.reward("http://127.0.0.1:8787", [{"name": "math"}])          # TRL samples, rolloutd judges

    rollouts = rolloutd.trl.Rollouts("http://127.0.0.1:8787", "my-run", dataset, [{"name": "math"}], {"max_tokens": 256})
    GRPOTrainer(…, rollout_func=rollouts, reward_funcs=rollouts.reward)                    # rolloutd samples and judges

A completion that could not be judged has the reward None, which TRL leaves out. It is never 0. The revision of a step is the trainer's step;
a trainer that starts again, from a checkpoint or from the beginning, attaches first, so that its run is told apart from what it threw away.
"""
from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._client import Client
from ._error import Error

EMPTY = {"code": "empty_completion", "message": "the model ended at once"}
Verifiers = Sequence[Mapping[str, Any]]


def text_of(completion: Any) -> str:
    """Of a text, or of the last message of a conversation."""
    return completion if isinstance(completion, str) else words(completion[-1].get("content"))


def words(content: Any) -> str:
    """Of a message's content: a text, or parts of which some have one."""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content or ())


def asked(prompt: Any) -> Optional[str]:
    """POST /v1/verify has no messages: what the user said last, as a judge sees a conversation of a batch."""
    if isinstance(prompt, str):
        return prompt
    return next((words(message.get("content")) for message in reversed(prompt) if message.get("role") == "user"), None)


def prompt_field(prompt: Any) -> Dict[str, Any]:
    return {"prompt": prompt} if isinstance(prompt, str) else {"messages": prompt}


def name_of(prompt: Any, reference: Any) -> str:
    """A task that has no name of its own is named by its content."""
    return hashlib.sha256(json.dumps([prompt, reference], sort_keys=True, default=str).encode()).hexdigest()[:16]


def reward(url: str, verifiers: Verifiers, *, reference: str = "answer", task: str = "task", run: Optional[str] = None, token: Optional[str] = None,
           name: str = "rolloutd") -> Callable[..., List[Optional[float]]]:
    """For `reward_funcs`. reference, task: columns of the data set; one that is not there is left out. run: the completions are on record
    under this run (POST /v1/score), so that its report, audits and alarms are about them; None: POST /v1/verify, which keeps nothing.
    TRL shows `rolloutd/failed`, the share without a reward, and the column `rolloutd_failure`."""
    return Judge(Client(url, token), list(verifiers), reference, task, run, name)


class Judge:
    """The reward function; one for each process of the trainer."""

    def __init__(self, client: Client, verifiers: Verifiers, reference: str, task: str, run: Optional[str], name: str) -> None:
        self.client, self.verifiers, self.reference, self.task, self.run, self.__name__ = client, verifiers, reference, task, run, name
        self.draws, self.is_attached, self.is_first = itertools.count(), False, True

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Optional[Sequence[Any]] = None, trainer_state: Any = None,
                 log_metric: Any = None, log_extra: Any = None, **columns: Any) -> List[Optional[float]]:
        rows = Rows(prompts, completions, completion_ids, columns.get(self.reference), columns.get(self.task))
        judged: Sequence[Mapping[str, Any]]
        if self.run is None:
            judged = self.client.verify(self.verifiers, rows.items())
        else:
            with self.naming_the_column(columns):
                judged = self.score(self.run, rows, getattr(trainer_state, "global_step", 0), purpose_of(getattr(log_metric, "__self__", None)))
        if self.is_first:
            refuse_unreadable(judged, self.reference)
            self.is_first = False
        failures = [item["failure"]["code"] if item["failure"] else "" for item in judged]
        if log_metric:
            log_metric(f"{self.__name__}/failed", sum(map(bool, failures)) / max(len(failures), 1))
        if log_extra and any(failures):
            log_extra(f"{self.__name__}_failure", failures)
        return [item["reward"] for item in judged]

    def score(self, run: str, rows: Rows, step: int, purpose: str) -> List[Mapping[str, Any]]:
        """Rollouts in the order of TRL's lists."""
        if purpose == "train" and not self.is_attached:  # an evaluation before the first step takes nothing back
            self.client.attach(run, step=step, revision=step)
            self.is_attached = True
        groups, places = rows.groups(next(self.draws))
        batch = self.client.score(run=run, policy_revision=step, purpose=purpose, verifiers=self.verifiers, groups=groups, return_=[])
        found: List[Any] = [None] * len(places)
        for place, rollout in zip(places, rollouts_of(batch)):
            found[place] = rollout
        return found

    @contextlib.contextmanager
    def naming_the_column(self, columns: Mapping[str, Any]) -> Iterator[None]:
        try:
            yield
        except Error as problem:
            if problem.code != "missing_field" or self.reference in columns:
                raise
            message = f"{problem.message}, and the data set has no column {self.reference!r}"
            raise Error(problem.status, problem.code, message, problem.path, problem.request_id) from problem


def refuse_unreadable(judged: Sequence[Mapping[str, Any]], column: str) -> None:
    """Where no reference of the first step can be read none will be, and TRL would train on nothing without a word."""
    failures = [item["failure"] for item in judged]
    if failures and all(failure and failure["code"] == "reference_unreadable" for failure in failures):
        raise Error(422, "reference_unreadable", f"{failures[0]['message']} (the column {column!r} of the data set)", column)


def purpose_of(trainer: Any) -> str:
    """A reward function is not told whether it judges an evaluation; the trainer whose method `log_metric` is knows."""
    return "train" if getattr(getattr(trainer, "model", None), "training", True) else "eval"


class Rows:
    """The arguments that TRL gives a reward function: lists of one length."""

    def __init__(self, prompts: Sequence[Any], completions: Sequence[Any], ids: Optional[Sequence[Any]], references: Optional[Sequence[Any]],
                 tasks: Optional[Sequence[Any]]) -> None:
        nothing = [None] * len(prompts)
        self.rows = list(zip(prompts, map(text_of, completions), ids or nothing, references or nothing, tasks or nothing))

    def items(self) -> List[Dict[str, Any]]:
        return [{"id": str(number), "completion": text, **optional(prompt=asked(prompt), reference=reference),
                 **({"completion_tokens": len(ids)} if ids is not None else {})}
                for number, (prompt, text, ids, reference, _) in enumerate(self.rows)]

    def groups(self, draw: int) -> Tuple[List[Dict[str, Any]], List[int]]:
        """Neighbours with one prompt are a group; and the place of each completion in TRL's lists."""
        groups: Dict[str, Dict[str, Any]] = {}
        places: Dict[str, List[int]] = {}
        for number, (prompt, text, _, reference, task) in enumerate(self.rows):
            key = str(task) if task is not None else name_of(prompt, reference)
            group = groups.setdefault(key, {"task": key, "draw": draw, **prompt_field(prompt), **optional(reference=reference), "completions": []})
            group["completions"].append(optional(text=text or None, failure=None if text else EMPTY))  # no ids: TRL gives no log-probabilities
            places.setdefault(key, []).append(number)
        return list(groups.values()), [number for key in groups for number in places[key]]


def optional(**fields: Any) -> Dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def rollouts_of(batch: Mapping[str, Any]) -> Iterable[Dict[str, Any]]:
    return (rollout for group in batch["groups"] for rollout in group["rollouts"])


class Rollouts:
    """`rollout_func=rollouts, reward_funcs=rollouts.reward`. Samples, ids and log-probabilities are rolloutd's.

    dataset: rows with `prompt` and the column reference (TRL hands over prompts alone). sampling: as in a batch, without n. push: gives
    the engines the weights of a model, called as push(model, revision): at the first call, because they may have any, and then once a step between
    begin and commit; None: somebody else does that. The revision of a step is first_revision plus the trainer's step."""

    def __init__(self, url: str, run: str, dataset: Iterable[Mapping[str, Any]], verifiers: Verifiers, sampling: Mapping[str, Any], *,
                 reference: str = "answer", task: str = "task", push: Optional[Callable[[Any, int], Any]] = None, seed: int = 0,
                 first_revision: int = 0, token: Optional[str] = None) -> None:
        self.client, self.run, self.verifiers, self.sampling, self.push = Client(url, token), run, list(verifiers), dict(sampling), push
        self.seed, self.first_revision, self.draws, self.is_attached = seed, first_revision, itertools.count(), False
        self.pushed: Optional[int] = None  # of which step the engines have the weights
        self.tasks = {repr(row["prompt"]): (str(row.get(task, number)), row.get(reference)) for number, row in enumerate(dataset)}
        self.__name__ = "rolloutd"

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> Dict[str, List[Any]]:
        step, rank = trainer.state.global_step, trainer.accelerator.process_index
        revision, draw, purpose = self.first_revision + step, next(self.draws), purpose_of(trainer)
        groups = self.groups_of(prompts, trainer, draw)
        self.update(trainer, purpose, step, revision)
        # the content is in the key: a trainer that was started again with other settings asks for something else
        content = name_of(groups, [self.sampling, self.verifiers])
        batch = self.client.batch(idempotency_key=f"{purpose}-{revision}-{draw}-{rank}-{content}", run=self.run, policy_revision=revision, purpose=purpose,
                                  seed=self.seed + draw, sampling=self.sampling, verifiers=self.verifiers,
                                  return_=["completion_ids", "logprobs", "prompt_ids"], groups=groups)
        # TRL cannot leave a row out: one token of the end, without a reward, so without an advantage
        empty = list(trainer.eos_token_ids)[:1]
        output: Dict[str, List[Any]] = {name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "rolloutd_reward", "rollout")}
        for group in batch["groups"]:
            for rollout in group["rollouts"]:
                usable = rollout["trainable"] and rollout.get("completion_ids")
                output["prompt_ids"].append(group["prompt_ids"])
                output["completion_ids"].append(rollout["completion_ids"] if usable else empty)
                output["logprobs"].append(rollout["logprobs"] if usable else [0.0])
                output["rolloutd_reward"].append(rollout["reward"] if usable else None)
                output["rollout"].append(rollout["id"])
        return output

    def reward(self, completions: Sequence[Any], rolloutd_reward: Sequence[Optional[float]], **_: Any) -> List[Optional[float]]:
        """For `reward_funcs`: the rewards that came with the samples."""
        return list(rolloutd_reward)

    def update(self, trainer: Any, purpose: str, step: int, revision: int) -> None:
        """By the main process; the others wait for it."""
        is_start, is_new = purpose == "train" and not self.is_attached, step != self.pushed
        if trainer.accelerator.is_main_process:
            if is_start:
                self.client.attach(self.run, step=step, revision=revision)
            if is_new and self.push:
                with self.client.policy(self.run, revision) if self.pushed is not None else contextlib.nullcontext():
                    self.push(trainer.accelerator.unwrap_model(trainer.model), revision)
        if is_start or is_new:
            trainer.accelerator.wait_for_everyone()
        self.is_attached, self.pushed = self.is_attached or is_start, step

    def groups_of(self, prompts: Sequence[Any], trainer: Any, draw: int) -> List[Dict[str, Any]]:
        """TRL repeats a prompt once for each sample; a process has a slice of that, so that a group may begin on the one before."""
        n = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        first = trainer.accelerator.process_index * len(prompts)
        groups = []
        for (key, place), members in itertools.groupby(enumerate(prompts), lambda pair: (repr(pair[1]), (first + pair[0]) // n)):
            numbers = [number for number, _ in members]
            if key not in self.tasks:
                raise ValueError(f"the prompt {key[:100]} is in no row of the data set that Rollouts was given")
            task, reference = self.tasks[key]
            groups.append({"task": task, "draw": draw * len(prompts) + place, "first_sample_index": (first + numbers[0]) % n,
                           **prompt_field(prompts[numbers[0]]), **optional(reference=reference), "sampling": {"n": len(numbers)}})
        return groups
