"""Client: what a trainer or an operator asks of the service."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import uuid
from typing import Any, Dict, Generator, Iterator, List, Mapping, Optional, Sequence

from . import _arrays
from ._error import Error
from ._lease import Lease, milliseconds, take
from ._link import RETRIED, Link, encode, target, word
from ._progress import Progress

JSON = {"Content-Type": "application/json"}
LINES = "application/x-ndjson"
FIRST_WAIT = "1s"  # of the request that makes a batch: from its end on the id is known, so that Ctrl-C can cancel
CUTS_MAX = 5  # connections in a row that broke without a line
WAIT = "30s"  # of each that asks again
Json = Dict[str, Any]


def body_of(fields: Mapping[str, Any]) -> Json:
    """Python's own words may have an underscore behind: return_=["text"]."""
    return {name.rstrip("_"): value for name, value in fields.items()}


class Client:
    """One service. Any thread; each has its own connection.

    url: `http://127.0.0.1:8787`, `https://host/prefix`. token: of the service, default $ROLLOUTD_TOKEN. patience_s: how long a request
    is repeated while the service cannot be reached or asks to come again. timeout_s: the longest silence of a connection.
    numpy: arrays in replies are numpy's (ids int64), not lists.

    Each method raises Error. Replies are the service's JSON (`/openapi.yaml`) as dicts.
    """

    def __init__(self, url: str = "http://127.0.0.1:8787", token: Optional[str] = None, *, patience_s: float = 60.0,
                 timeout_s: float = 120.0, numpy: bool = False) -> None:
        self._link = Link(url, token or os.environ.get("ROLLOUTD_TOKEN"), patience_s, timeout_s)
        self._numpy = numpy

    def close(self) -> None:
        """Closes this thread's connection; the next request opens another one."""
        self._link.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- any request --------------------------------------------------------------------------------------------

    def get(self, path: str, **query: Any) -> Any:
        """Any GET: `client.get("/v1/pending")`. JSON as objects, everything else as text."""
        reply = self._link.request("GET", target(path, query))
        is_json = reply.headers.get("content-type", "").startswith("application/json")
        return self._read(reply.json()) if is_json else reply.body.decode("utf-8", "replace")

    def pages(self, path: str, **query: Any) -> Iterator[Json]:
        """The items of a list, over all its pages. limit: of one page."""
        while True:
            page = self.get(path, **query)
            yield from page["items"]
            query["cursor"] = page.get("next")
            if not query["cursor"]:
                return

    def _send(self, method: str, path: str, fields: Mapping[str, Any], key: Optional[str] = None,
              timeout_s: Optional[float] = None) -> Json:
        headers = {**JSON, "Idempotency-Key": key} if key else JSON
        reply: Json = self._link.request(method, path, encode(body_of(fields)), headers, timeout_s).json()
        return reply

    def _read(self, value: Any) -> Any:
        return _arrays.unpacked(value) if self._numpy else value

    # -- batches and scores -------------------------------------------------------------------------------------

    def batch(self, *, idempotency_key: Optional[str] = None, **body: Any) -> Json:
        """POST /v1/batches: groups are sampled, judged and scored. The ended batch; its `state` says how it ended.

        Waits as long as it takes (the batch's `deadline` bounds that). Ctrl-C cancels the batch. idempotency_key: a trainer that was
        restarted gets the same batch under the same key; one is made up otherwise."""
        return self._follow("/v1/batches", body, idempotency_key)

    def score(self, *, idempotency_key: Optional[str] = None, **body: Any) -> Json:
        """POST /v1/score: the caller's own completions are judged and scored. As batch()."""
        return self._follow("/v1/score", body, idempotency_key)

    def stream(self, *, idempotency_key: Optional[str] = None, **body: Any) -> Stream:
        """As batch(), but an iterator over groups, each as soon as it is closed. `.batch` is the batch without groups."""
        return Stream(self, "/v1/batches", encode(body_of(body)), idempotency_key or uuid.uuid4().hex)

    def stream_score(self, *, idempotency_key: Optional[str] = None, **body: Any) -> Stream:
        """As score(), but an iterator over groups."""
        return Stream(self, "/v1/score", encode(body_of(body)), idempotency_key or uuid.uuid4().hex)

    def cancel(self, batch: str) -> Json:
        """DELETE /v1/batches/{id}: finished rollouts are kept."""
        reply: Json = self._link.request("DELETE", f"/v1/batches/{word(batch)}").json()
        return reply

    def _follow(self, path: str, body: Mapping[str, Any], key: Optional[str]) -> Json:
        key, content, progress = key or uuid.uuid4().hex, encode(body_of(body)), Progress()
        arrays = "base64" if self._numpy else None
        identifier: Optional[str] = None
        try:
            reply = self._make(path, content, key, wait=FIRST_WAIT, arrays=arrays)
            while reply["state"] == "running":
                identifier = reply["id"]
                progress.show(reply)
                reply = self._link.request("GET", target(f"/v1/batches/{identifier}", {"wait": WAIT, "arrays": arrays})).json()
        except KeyboardInterrupt:
            self._cancel_made(path, content, key, identifier)
            raise
        finally:
            progress.end()
        result: Json = self._read(reply)
        return result

    def _make(self, path: str, content: bytes, key: str, **query: Any) -> Json:
        reply: Json = self._link.request("POST", target(path, query), content, {**JSON, "Idempotency-Key": key}).json()
        return reply

    def _cancel_made(self, path: str, content: bytes, key: str, identifier: Optional[str]) -> None:
        """Where the id is not known yet, the same request says it: its key makes nothing twice."""
        with contextlib.suppress(Error):
            self.cancel(identifier or self._make(path, content, key, wait="0s", arrays="none")["id"])

    # -- verdicts and objectives --------------------------------------------------------------------------------

    def verify(self, verifiers: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> List[Json]:
        """POST /v1/verify: a result for each item, in their order. `reward` is None where there is none; `failure` says why."""
        results: List[Json] = self._send("POST", "/v1/verify", {"verifiers": verifiers, "items": items})["items"]
        return results

    def objective(self, **body: Any) -> Json:
        """POST /v1/objective. Where a sequence has an array or a tensor (numpy, torch), arrays go and come as safetensors: numpy in
        the reply. Otherwise lists."""
        body = body_of(body)
        if _arrays.has_arrays(body["sequences"]):
            headers = {"Content-Type": _arrays.TENSORS, "Accept": _arrays.TENSORS}
            return _arrays.objective_reply(self._link.request("POST", "/v1/objective", _arrays.objective_body(body), headers).body)
        result: Json = self._read(self._send("POST", target("/v1/objective", {"arrays": "base64" if self._numpy else None}), body))
        return result

    # -- runs and weights ---------------------------------------------------------------------------------------

    def attach(self, run: str, *, step: int, revision: int) -> Json:
        """The first call of a trainer after any start. step: of the checkpoint that it resumes from, 0: none. revision: of the weights
        that the engines have. Ends what a killed trainer left open; `incarnation` belongs into idempotency keys."""
        return self._send("POST", f"/v1/runs/{word(run)}/attach", {"step": step, "revision": revision}, uuid.uuid4().hex)

    def lease(self, run: str, groups: int = 1, *, optimizer_step: Optional[int] = None, max_staleness: Optional[int] = None,
              lease_s: float = 1800.0, wait_s: float = 30.0, exact: bool = False, idempotency_key: Optional[str] = None) -> Lease:
        """Ready groups that submit() has made: `for group in client.lease("arith", groups=64, optimizer_step=40):`.

        Waits until as many are ready, for wait_s at most; then it has those that are (exact: all or none). They are acknowledged with
        optimizer_step where the loop ends by itself, and given back where it raises or breaks. lease_s: how long a trainer that
        was killed keeps them from the next lease; longer than a step."""
        fields: Json = {"groups": groups, "lease": milliseconds(lease_s), "wait": milliseconds(wait_s), "exact": exact}
        if max_staleness is not None:
            fields["max_staleness"] = max_staleness
        return Lease(self, run, take(self, run, fields, idempotency_key, wait_s), optimizer_step)

    def submit(self, *, idempotency_key: Optional[str] = None, **body: Any) -> Json:
        """POST /v1/batches with `deliver="lease"`: prompts for leases to come. Answered at once; without `policy_revision` each group is
        sampled at the revision that is current then."""
        return self._send("POST", "/v1/batches", {"deliver": "lease", **body}, idempotency_key or uuid.uuid4().hex)

    @contextlib.contextmanager
    def policy(self, run: str, revision: int, *, mode: Optional[str] = None, timeout_s: float = 3600.0,
               **more: Any) -> Iterator[Json]:
        """`with client.policy("arith", 13, mode="wait"):` push the weights. Begun before the body; committed behind it, or cancelled
        where the body raises. timeout_s: how long the engines may take to come to rest."""
        path = f"/v1/runs/{word(run)}/policy"
        fields: Json = {"revision": revision, **more}
        if mode is not None:
            fields["mode"] = mode
        try:
            begun = self._send("POST", path + "/begin", fields, uuid.uuid4().hex, timeout_s)
            yield begun
        except BaseException:
            with contextlib.suppress(Error):
                self._send("POST", path + "/cancel", {"revision": revision}, uuid.uuid4().hex)
            raise
        self._send("POST", path + "/commit", {"revision": revision}, uuid.uuid4().hex)

    def declare(self, run: str, revision: int, **more: Any) -> Json:
        """PUT /v1/runs/{run}/policy: the engines have these weights already. more: rewind_to_step, cancel_open."""
        return self._send("PUT", f"/v1/runs/{word(run)}/policy", {"revision": revision, **more}, uuid.uuid4().hex)

    # -- the record ---------------------------------------------------------------------------------------------

    def run(self, name: str) -> Json:
        """GET /v1/runs/{run}."""
        result: Json = self.get(f"/v1/runs/{word(name)}")
        return result

    def runs(self, **query: Any) -> Iterator[Json]:
        """GET /v1/runs, all pages."""
        return self.pages("/v1/runs", **query)

    def batches(self, **query: Any) -> Iterator[Json]:
        """GET /v1/batches, all pages."""
        return self.pages("/v1/batches", **query)

    def groups(self, batch: str, **query: Any) -> Iterator[Json]:
        """The groups of a batch, also while it runs."""
        return self.pages(f"/v1/batches/{word(batch)}/groups", **query)

    def rollouts(self, **filters: Any) -> Iterator[Json]:
        """GET /v1/rollouts, all pages: `client.rollouts(run="arith", failure="any", **{"tag.source": "gsm8k"})`."""
        return self.pages("/v1/rollouts", **filters)

    def report(self, run: str, **query: Any) -> Json:
        """GET /v1/runs/{run}/report."""
        result: Json = self.get(f"/v1/runs/{word(run)}/report", **query)
        return result

    def compare(self, a: str, b: str, **query: Any) -> Json:
        """GET /v1/compare: two runs at equal budget, or an Error `not_comparable`."""
        result: Json = self.get("/v1/compare", a=a, b=b, **query)
        return result

    def audit(self, **body: Any) -> Json:
        """POST /v1/audits."""
        return self._send("POST", "/v1/audits", body)


class Stream:
    """Groups of a batch as they are closed. A broken connection is taken up again: no group comes twice, none is left out.

    Leaving the loop early cancels nothing; close() and the end of a `with` do, as Ctrl-C does."""

    def __init__(self, client: Client, path: str, content: bytes, key: str) -> None:
        self._client, self._path, self._content, self._key = client, path, content, key
        self.batch: Optional[Json] = None  # without groups; None before the end
        self._is_silent = False
        self._groups = self._iterate()

    def __iter__(self) -> Iterator[Json]:
        return self._groups

    def __next__(self) -> Json:
        return next(self._groups)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the batch unless it has ended."""
        self._groups.close()
        if self.batch is None:
            self._client._cancel_made(self._path, self._content, self._key, None)

    def _iterate(self) -> Generator[Json, None, None]:
        seen, cuts, progress = set(), 0, Progress()
        try:
            while self.batch is None:
                for line in self._lines():
                    cuts = 0
                    if "batch" in line:
                        self.batch = line["batch"]
                        return
                    if line["group"]["id"] not in seen:
                        seen.add(line["group"]["id"])
                        progress.groups(len(seen))
                        yield self._client._read(line["group"])
                cuts += not self._is_silent
                if cuts > CUTS_MAX:
                    raise Error(None, "cut_off", f"the reply to POST {self._path} was cut off {cuts} times in a row")
                self._client._make(self._path, self._content, self._key, wait="0s", arrays="none")  # does it answer at all?
        except KeyboardInterrupt:
            self.close()
            raise
        finally:
            progress.end()

    def _lines(self) -> Iterator[Json]:
        """Of one connection, until the reply ends, breaks, or says nothing for a while."""
        link, self._is_silent = self._client._link, False
        connection = link.open()
        try:
            response = link.send(connection, "POST", target(self._path, {"arrays": "base64" if self._client._numpy else None}),
                                 self._content, {**JSON, "Accept": LINES, "Idempotency-Key": self._key})
            if response.status in RETRIED:
                return
            if response.status >= 400:
                raise Error.of_reply(response.status, response.read(), response.headers.get("x-request-id"))
            for line in response:
                if line.endswith(b"\n"):
                    yield json.loads(line)
        except socket.timeout:
            self._is_silent = True
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
