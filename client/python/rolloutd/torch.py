"""The gradient of the service's objective, for PyTorch.

    for part in rolloutd.torch.parts(batch, rank, ranks, micro_batches=4):
        with part.no_sync(model):
            loss += part.backward(client, [log_probabilities(model, rollout) for rollout in part.rollouts], optimizer_step=step)
    optimizer.step()
"""
from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, ContextManager, Dict, List, Mapping, Optional, Sequence

from ._client import Client


def trainable(batch: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """The rollouts of an ended batch that have a part in its loss."""
    return [rollout for group in batch["groups"] for rollout in group["rollouts"]
            if rollout.get("trainable") and rollout.get("advantage") is not None]


@dataclass(frozen=True)
class Part:
    """One rank's share of one micro-batch. Losses and gradients of all parts add up to those of the whole step."""

    rollouts: List[Dict[str, Any]]
    totals: Dict[str, int]  # of the step
    number: int  # of all parts of all ranks
    ranks: int
    is_last: bool  # of its rank
    is_idle: bool = False  # there is nothing for this rank: its one rollout has weight 0, so that other ranks need not wait for ever

    def no_sync(self, model: Any) -> ContextManager[Any]:
        """Around forward and backward: gradients are exchanged with the rank's last part alone."""
        if self.is_last or not hasattr(model, "no_sync"):
            return contextlib.nullcontext()
        context: ContextManager[Any] = model.no_sync()
        return context

    def backward(self, client: Client, logprobs: Sequence[Any], *, optimizer_step: Optional[int] = None, **request: Any) -> float:
        """logprobs: of each of `rollouts` a tensor, one number for each of its completion_ids, under the policy as it is now. Puts
        d loss / d logprob into their graph and gives the loss of this part. request: more of /v1/objective, such as ppo_epoch; lists of
        tensors under old_logprobs, ref_logprobs, … go to their sequences. DistributedDataParallel divides by the ranks: undone here."""
        if not self.rollouts:
            return 0.0
        if self.is_idle:
            (0.0 * sum(values.sum() for values in logprobs)).backward()
            return 0.0
        if optimizer_step is not None:
            request["optimizer_step"] = optimizer_step
        return backward(client, self.rollouts, logprobs, scale=self.ranks, totals=self.totals, part=self.number, **request)


def parts(batch: Mapping[str, Any], rank: int = 0, ranks: int = 1, micro_batches: int = 1) -> List[Part]:
    """The micro-batches of one rank for the optimiser step of an ended batch. Every rank has the batch whole (the same reply) and as many
    parts; a group may lie on several ranks. Empty parts come first; a batch without anything to train on has none."""
    everything = trainable(batch)
    mine = everything[rank::ranks]
    is_idle = bool(everything) and not mine
    if is_idle:
        mine = everything[:1]
    found = []
    for number in range(micro_batches):
        last = number == micro_batches - 1
        rollouts = mine[micro_batches - 1 - number::micro_batches]
        found.append(Part(rollouts, dict(batch["totals"]), rank * micro_batches + number, ranks, last, is_idle))
    return found if everything else []


def backward(client: Client, rollouts: Sequence[Mapping[str, Any]], logprobs: Sequence[Any], *, scale: float = 1.0,
             **request: Any) -> float:
    """One request to /v1/objective: the step d loss / d logprob, times scale, goes into the graph of logprobs. Gives the loss.

    rollouts: of the record (`id`). request: totals, part, optimizer_step, objective, …; lists of tensors go to their sequences."""
    import torch

    lists = {name: request.pop(name) for name in [name for name, value in request.items() if is_tensors(value)]}
    lists["logprobs"] = logprobs
    for name, tensors in lists.items():
        if len(tensors) != len(rollouts):
            raise ValueError(f"{name}: {len(tensors)} tensors for {len(rollouts)} rollouts")
    sequences = [{"rollout": rollout["id"], **{name: tensors[index] for name, tensors in lists.items()}}
                 for index, rollout in enumerate(rollouts)]
    reply = client.objective(sequences=sequences, return_=["dloss_dlogp"], **request)
    slopes = [torch.from_numpy(row["dloss_dlogp"]) for row in reply["sequences"]]
    together = torch.cat([values.reshape(-1) for values in logprobs])
    together.backward(scale * torch.cat(slopes).to(together))
    return float(reply["loss"] or 0.0)


def is_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(hasattr(one, "detach") for one in value)
