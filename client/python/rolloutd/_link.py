"""HTTP to one service: connections that are kept, requests that are repeated where that is safe."""
from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, Mapping, NamedTuple, Optional, Sequence, Union
from urllib.parse import quote, unquote, urlencode, urlsplit

from ._error import Error

if TYPE_CHECKING:
    import mmap

    Body = Optional[Union[bytes, memoryview, mmap.mmap]]

RETRIED = frozenset((408, 429, 502, 503, 504))
PAUSE_S, PAUSE_MAX_S = 0.1, 5.0  # after the first repetition, which comes at once


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as problem:
            raise Error(self.status, "not_json", str(problem), None, self.headers.get("x-request-id")) from problem


def plain(value: Any) -> Any:
    """For json.dumps: arrays and tensors as lists, numbers of numpy as numbers, configurations of OmegaConf as objects and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def encode(body: Any) -> bytes:
    """JSON bytes. ValueError for NaN and infinities, which JSON has not."""
    return json.dumps(body, default=plain, allow_nan=False, separators=(",", ":")).encode()


def target(path: str, query: Mapping[str, Any]) -> str:
    """The path with those parameters that are not None; true and false as the service writes them."""
    pairs = [(name, str(value).lower() if isinstance(value, bool) else value) for name, value in query.items() if value is not None]
    return f"{path}?{urlencode(pairs)}" if pairs else path


class Box:
    """A thread's connection, closed when the thread or the link ends."""

    connection: Optional[http.client.HTTPConnection] = None

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection:
            connection.close()

    __del__ = close


class Kept(threading.local):
    def __init__(self) -> None:
        self.box = Box()  # once in each thread


class Link:
    """Each thread has a connection of its own. Any thread."""

    def __init__(self, url: str, token: Optional[str], patience_s: float, timeout_s: float) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a service, such as http://127.0.0.1:8787")
        self.host, self.port, self.tls = parts.hostname, parts.port, parts.scheme == "https"
        self.origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # for messages: without a password
        self.prefix, self.patience_s, self.timeout_s = parts.path.rstrip("/"), patience_s, timeout_s
        self.headers: Dict[str, str] = {}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        elif parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        self.kept = Kept()

    def open(self, timeout_s: Optional[float] = None) -> http.client.HTTPConnection:
        """A connection that the caller closes."""
        timeout_s = timeout_s or self.timeout_s
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=ssl.create_default_context())
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)

    def send(self, connection: http.client.HTTPConnection, method: str, path: str, body: Body,
             headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """A reply that refuses a body may come before all of it was sent."""
        try:
            connection.request(method, self.prefix + path, body, {**self.headers, **headers})
        except (BrokenPipeError, ConnectionResetError):
            if body is None:
                raise
        return connection.getresponse()

    def once(self, method: str, path: str, body: Body, headers: Mapping[str, str],
             timeout_s: Optional[float]) -> Reply:
        """One attempt on this thread's connection; that is closed by anything but a whole reply."""
        box = self.kept.box
        connection = box.connection or self.open()
        box.connection = None
        try:
            if connection.sock is None:
                connection.timeout = timeout_s or self.timeout_s
            else:
                connection.sock.settimeout(timeout_s or self.timeout_s)
            response = self.send(connection, method, path, body, headers)
            reply = Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        except BaseException:
            connection.close()
            raise
        box.connection = connection
        return reply

    def request(self, method: str, path: str, body: Body = None, headers: Optional[Mapping[str, str]] = None,
                timeout_s: Optional[float] = None) -> Reply:
        """Repeated with growing pauses, at most for patience_s from the first failure on, where the connection broke or the service asks to
        come again. So only for requests that may be repeated: those without effect, and those with a key. Raises Error."""
        pause_s = 0.0
        ends: Optional[float] = None
        while True:
            after: Optional[str] = None
            try:
                reply = self.once(method, path, body, headers or {}, timeout_s)
                if reply.status < 400:
                    return reply
                failure = Error.of_reply(reply.status, reply.body, reply.headers.get("x-request-id"))
                if reply.status not in RETRIED:
                    raise failure
                after = reply.headers.get("retry-after")
            except (OSError, http.client.HTTPException) as problem:
                code = "no_reply" if isinstance(problem, (socket.timeout, http.client.HTTPException)) else "unreachable"
                failure = Error(None, code, f"{method} {self.origin}{self.prefix}{path}: {problem or type(problem).__name__}")
                failure.__cause__ = problem
            now = time.monotonic()
            ends = now + self.patience_s if ends is None else ends
            wait_s = float(after) if after and after.isdigit() else pause_s
            if now + wait_s > ends:
                raise failure
            time.sleep(wait_s)
            pause_s = min(max(2 * pause_s, PAUSE_S), PAUSE_MAX_S)

    def close(self) -> None:
        """This thread's connection."""
        self.kept.box.close()


def word(name: str) -> str:
    """As a part of a path."""
    return quote(name, safe="")
