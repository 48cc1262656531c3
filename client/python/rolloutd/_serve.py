"""An existing reward function as an `external` of the service: it stays in its own process."""
from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Awaitable, Callable, Dict, Mapping, Optional, Tuple

Judge = Callable[[Mapping[str, Any]], Any]


def by_trl(function: Callable[..., Any]) -> Judge:
    """function(completions=[…], prompts=[…], **columns) -> [number or None]: the columns are the item's metadata, and `answer` and
    `reference` its reference."""
    def judge(asked: Mapping[str, Any]) -> Any:
        columns = {name: [value] for name, value in (asked.get("metadata") or {}).items()}
        columns.update(answer=[asked.get("reference")], reference=[asked.get("reference")], completion_ids=[asked.get("completion_ids")])
        is_chat = asked.get("messages") is not None
        completion = [{"role": "assistant", "content": asked["completion"]}] if is_chat else asked["completion"]
        said = function(prompts=[asked["messages"] if is_chat else asked.get("prompt")], completions=[completion], **columns)
        return only_awaited(said) if inspect.isawaitable(said) else only(said)
    return judge


def only(said: Any) -> Any:
    """A list of one for one completion."""
    rewards = list(said)
    if len(rewards) != 1:
        raise ValueError(f"the function gave {len(rewards)} rewards for 1 completion")
    return rewards[0]


async def only_awaited(said: Awaitable[Any]) -> Any:
    return only(await said)


def by_verl(function: Callable[..., Any]) -> Judge:
    """function(data_source, solution_str, ground_truth, extra_info) -> number, or a dict with `score`."""
    def judge(asked: Mapping[str, Any]) -> Any:
        extra = dict(asked.get("metadata") or {})
        return function(data_source=extra.get("data_source"), solution_str=asked["completion"], ground_truth=asked.get("reference"), extra_info=extra)
    return judge


SIGNATURES: Dict[str, Callable[[Callable[..., Any]], Judge]] = {"trl": by_trl, "verl": by_verl}


def version_of(function: Callable[..., Any]) -> str:
    """Changes with the function's source, not with what it calls."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16]
    except (OSError, TypeError):
        return getattr(function, "__name__", "unknown")


def answer(judge: Judge, asked: Mapping[str, Any]) -> Dict[str, Any]:
    """The reply of an external. A result that is no reply is a failure, never a number."""
    try:
        said = judge(asked)
        if inspect.isawaitable(said):
            said = asyncio.run(wait_for(said))
        detail = None
        if isinstance(said, Mapping):
            detail = as_json({name: value for name, value in said.items() if name != "score"})
            said = said["score"]
        score = None if said is None or isinstance(said, (str, bytes)) else float(said)
    except (Exception, SystemExit) as problem:  # whatever a user's function raises
        return {"failure": f"{type(problem).__name__}: {problem}"[:200]}
    if score is None or not math.isfinite(score):
        return {"failure": f"the function gave {said!r}"[:200]}
    return {"score": score, **({"detail": detail} if detail else {})}


def as_json(value: Any) -> Any:
    """Values that JSON cannot say become texts."""
    return json.loads(json.dumps(value, default=str), parse_constant=str)


async def wait_for(value: Any) -> Any:
    return await value


class Server:
    """Answers until close(). url: for `externals.NAME.url` of the settings."""

    def __init__(self, judge: Judge, version: str, address: Tuple[str, int]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                try:
                    asked = json.loads(self.rfile.read(max(0, int(self.headers.get("Content-Length", 0)))))
                    status, said = 200, {**answer(judge, asked), "version": version}
                except ValueError as problem:
                    status, said = 400, {"error": str(problem)}
                content = json.dumps(said, default=str).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(address, Handler)
        self._server.daemon_threads = True
        self.url = f"http://{address[0]}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Until the process is ended."""
        self._thread.join()


def serve(function: Callable[..., Any], signature: str, *, port: int = 0, version: Optional[str] = None) -> Server:
    """Hosts a reward function on the loopback: `rolloutd.serve(correctness, signature="trl", port=9000).wait()`. signature: how it is
    called, `trl` or `verl`. Calls come at once from several threads."""
    if signature not in SIGNATURES:
        raise ValueError(f"signature {signature!r}: {' or '.join(SIGNATURES)}")
    return Server(SIGNATURES[signature](function), version or version_of(function), ("127.0.0.1", port))
