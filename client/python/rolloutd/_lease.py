"""Lease: groups of a run that are this trainer's until it has trained on them."""
from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional

from ._error import Error
from ._link import encode, target, word

if TYPE_CHECKING:
    from ._client import Client

Json = Dict[str, Any]
HEADERS = {"Content-Type": "application/json"}


class Lease:
    """Groups on loan. A loop over it has the groups, and acknowledges them where it ends by itself; where its body raises or breaks, they
    are given back, and the next lease has them. A `with` does the same around more than one loop.

    Attributes: `id` (None: nothing was ready), `groups`, `totals` (what the optimiser step divides by), `reply` (all of it),
    `optimizer_step` (what the acknowledgement says; may be set before the loop ends).
    """

    def __init__(self, client: Client, run: str, reply: Json, optimizer_step: Optional[int]) -> None:
        self._client, self._path = client, path_of(run)
        self.optimizer_step, self.reply = optimizer_step, reply
        self.id: Optional[str] = reply["lease"]
        self.groups: List[Json] = reply["groups"]
        self.totals: Json = reply["totals"]
        self._ended = self.id is None
        self._in_with = False

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Json]:
        if self._in_with:
            return iter(self.groups)
        return self._loop()

    def _loop(self) -> Iterator[Json]:
        with self:  # a loop that is left closes its iterator, which raises here
            yield from self.groups

    def __enter__(self) -> Lease:
        self._in_with = True
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._in_with = False
        if self._ended:
            return
        if kind is not None:
            self._give_back()
        elif self.optimizer_step is None:
            self._give_back()
            raise ValueError("an acknowledgement needs the optimizer's step: lease(…, optimizer_step=…), or .optimizer_step")
        else:
            self.ack()

    def ack(self, optimizer_step: Optional[int] = None, groups: Optional[List[str]] = None) -> Json:
        """They were trained on, in this step (left out: `.optimizer_step`). groups: ids, left out: all. Error `state_conflict`: the lease has
        lost one of them; `.groups` of the error says where they are."""
        step = self.optimizer_step if optimizer_step is None else optimizer_step
        return self._end("ack", {"optimizer_step": step}, groups)

    def release(self, groups: Optional[List[str]] = None) -> Json:
        """They were not trained on: ready again for the next lease. groups: ids, left out: all."""
        return self._end("release", {}, groups)

    def extend(self, lease_s: float) -> Json:
        """Holds it for lease_s from now on."""
        return self._change("extend", {"lease": milliseconds(lease_s)})

    def _end(self, what: str, fields: Json, groups: Optional[List[str]]) -> Json:
        if groups is not None:
            fields["groups"] = list(groups)
        reply = self._change(what, fields)
        self._ended = reply["held"] == 0
        return reply

    def _change(self, what: str, fields: Mapping[str, Any]) -> Json:
        if self.id is None:
            raise ValueError("there is no lease: nothing was ready")
        reply: Json = self._client._link.request("POST", f"{self._path}/{word(self.id)}/{what}", encode(fields), HEADERS).json()
        return reply

    def _give_back(self) -> None:
        """An error here would hide the one that led to it. A lease that cannot be given back ends by its time."""
        if self._ended:
            return
        with contextlib.suppress(Error):
            self.release()
        self._ended = True


def path_of(run: str) -> str:
    return f"/v1/runs/{word(run)}/leases"


def milliseconds(seconds: float) -> str:
    return f"{max(0, round(seconds * 1000))}ms"


def take(client: Client, run: str, fields: Mapping[str, Any], key: Optional[str], wait_s: float) -> Json:
    """One request: a lease that a broken connection hid from us is found again by its key."""
    path = target(path_of(run), {"arrays": "base64" if client._numpy else None})
    headers = {**HEADERS, "Idempotency-Key": key or uuid.uuid4().hex}
    silence_s = wait_s + client._link.timeout_s
    reply: Json = client._read(client._link.request("POST", path, encode(fields), headers, silence_s).json())
    return reply
