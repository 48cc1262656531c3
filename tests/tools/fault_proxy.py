#!/usr/bin/env python3
"""usage: fault_proxy.py --upstream URL [--listeners 8] [--seed 1] [--rate 0.5] [--only KIND,…] [--kinds]

A proxy that lies, between rolloutd and an engine. Each listener looks like an engine of its own. A request for a sample of
vLLM's form meets a fault with probability RATE; which one depends on the proxy's seed, the sample's seed and how often it was
asked for, so that a run can be repeated. A request of any form that holds [[KIND]] gets that fault whatever the rate (those
that --any-form lists do not need vLLM's form). Everything else passes.

Prints READY and the listeners' URLs. GET /_faults on any of them: {"injected": {kind: count}, "passed": n, "followed": n,
"open": n}; "followed" counts requests that came because somebody followed a redirect. GET /_drop closes every connection
that waits for a request. Standard library only.
"""
import argparse
import asyncio
import collections
import email.utils
import json
import os
import resource
import random
import re
import signal
import socket
import struct
import time
from urllib.parse import urlsplit

TAG = re.compile(r"\[\[([a-z0-9_]+)\]\]")
JSON = "application/json"


class Reply:
    def __init__(self, status, body, kind=JSON, headers=()):
        self.status, self.body, self.kind, self.headers = status, body, kind, list(headers)

    def head(self, length=None, extra=()):
        lines = [f"HTTP/1.1 {self.status} X", f"Content-Type: {self.kind}", *[f"{name}: {value}" for name, value in self.headers], *extra]
        if length is not None:
            lines.append(f"Content-Length: {length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def bytes(self):
        return self.head(len(self.body)) + self.body


# -- faults of the connection: they write to the client themselves and close --------------------------------------------------

async def reset(_, writer, __):
    """Not a byte, and the hardest way to close."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def hang(reader, _, __):
    try:
        await reader.read(1)  # until the client goes
    except ConnectionError:
        pass


async def no_byte(_, __, ___):
    pass


async def byte_a_second(reader, writer, reply):
    gone = asyncio.ensure_future(hang(reader, writer, reply))
    for byte in reply.bytes():
        writer.write(bytes([byte]))
        if (await asyncio.wait([gone], timeout=1))[0]:
            return


async def cut_head(_, writer, reply):
    writer.write(reply.head(len(reply.body))[:-20])


async def cut_body(_, writer, reply):
    writer.write(reply.head(len(reply.body)) + reply.body[:len(reply.body) // 2])


async def stalled_body(reader, writer, reply):
    await cut_body(reader, writer, reply)
    await hang(reader, writer, reply)


async def cut_chunks(_, writer, reply):
    writer.write(reply.head(None, ["Transfer-Encoding: chunked"]) + f"{len(reply.body):x}\r\n".encode() + reply.body + b"\r\n")


async def bad_chunks(_, writer, reply):
    writer.write(reply.head(None, ["Transfer-Encoding: chunked"]) + b"zz\r\n" + reply.body)


async def endless(writer, piece):
    try:
        while True:
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass


async def endless_header(_, writer, __):
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await endless(writer, b"X-Filler: " + b"a" * 4000 + b"\r\n")


async def endless_body(_, writer, reply):
    writer.write(reply.head() + reply.body[:-1])
    await endless(writer, b" " * 65536)


async def endless_text(_, writer, reply):
    writer.write(reply.head() + b'{"choices":[{"index":0,"text":"')
    await endless(writer, b"a" * 65536)


async def endless_continue(_, writer, __):
    await endless(writer, b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


async def not_http(_, writer, reply):
    writer.write(b"\x15\x03\x01\x00\x02\x02\x46" + reply.body)


async def short_length(_, writer, reply):
    writer.write(reply.head(len(reply.body) // 2) + reply.body)


async def long_length(_, writer, reply):
    writer.write(reply.head(len(reply.body) + 100) + reply.body)


async def two_lengths(_, writer, reply):
    writer.write(reply.head(len(reply.body), [f"Content-Length: {len(reply.body) - 7}"]) + reply.body)


CONNECTION = {function.__name__: function for function in (
    reset, hang, no_byte, byte_a_second, cut_head, cut_body, stalled_body, cut_chunks, bad_chunks, endless_header, endless_body, endless_text,
    endless_continue, not_http, short_length, long_length, two_lengths)}


# -- faults of the reply: from a good one to another --------------------------------------------------------------------------

def status(code, **headers):
    def fault(_, __):
        return Reply(code, json.dumps({"error": {"message": f"injected {code}", "code": code}}).encode(), headers=[(name.replace("_", "-"), value()) for name, value in headers.items()])
    return fault


def whole(text, kind=JSON):
    return lambda _, __: Reply(200, text.encode(), kind)


def redirect(code):
    return lambda _, proxy: Reply(code, b"", headers=[("Location", f"{proxy.url}/_followed")])


def edit(change):
    """Changes the only choice."""
    def fault(reply, _):
        value = json.loads(reply.body)
        change(value["choices"][0], value)
        return Reply(200, json.dumps(value).encode())
    return fault


def logprob(text):
    """Another spelling in the place of the first log-probability."""
    def fault(reply, _):
        value = json.loads(reply.body)
        value["choices"][0]["logprobs"]["token_logprobs"][0] = "@@"
        return Reply(200, json.dumps(value).encode().replace(b'"@@"', text.encode()))
    return fault


def token_id(text):
    def fault(reply, _):
        value = json.loads(reply.body)
        value["choices"][0]["token_ids"][-1] = "@@"
        return Reply(200, json.dumps(value).encode().replace(b'"@@"', text.encode()))
    return fault


def more_ids(choice, value):
    """Consistent in itself, but more than anybody asked for."""
    for _ in range(2000):
        choice["token_ids"].append(3)
        for name, one in (("token_logprobs", -0.5), ("tokens", "token_id:3"), ("top_logprobs", None), ("text_offset", 0)):
            choice["logprobs"][name].append(one)
    value["usage"]["completion_tokens"] = len(choice["token_ids"])


def twice(choice, value):
    value["choices"].append(dict(choice))


def without(*names):
    def change(choice, _):
        for name in names:
            choice[name] = None
    return edit(change)


def soon():
    return email.utils.formatdate(time.time() + 1, usegmt=True)


def past():
    return "Thu, 01 Jan 1970 00:00:00 GMT"


REPLY = {
    "status_429_seconds": status(429, Retry_After=lambda: "1"), "status_429_date": status(429, Retry_After=soon),
    "status_503_seconds": status(503, Retry_After=lambda: "0"), "status_503_date": status(503, Retry_After=past),
    "status_429_nonsense": status(429, Retry_After=lambda: "-1e9"), "status_429": status(429), "status_500": status(500), "status_502": status(502),
    "status_504": status(504), "status_599": status(599), "status_204": lambda reply, _: Reply(204, b""), "status_400": status(400), "status_401": status(401),
    "status_404": status(404), "redirect_302": redirect(302), "redirect_307": redirect(307),
    "html": whole("<!DOCTYPE html><html><body>502 Bad Gateway</body></html>", "text/html"), "empty": whole(""), "number": whole("17"), "array": whole("[]"), "null": whole("null"),
    "nested": whole("[" * 100000), "error_in_200": whole('{"error":{"message":"injected","code":500}}'), "no_choice": whole('{"choices":[]}'),
    "half_json": lambda reply, _: Reply(200, reply.body[:len(reply.body) // 2]), "two_jsons": lambda reply, _: Reply(200, reply.body + reply.body),
    "nul_json": lambda reply, _: Reply(200, reply.body[:-1] + b"\0}"), "wrong_type": lambda reply, _: Reply(200, reply.body, "text/html; charset=utf-7"),
    **{f"logprob_{index}": logprob(text) for index, text in enumerate((
        "NaN", "nan", "-NaN", '"NaN"', "Infinity", "-Infinity", "inf", "1e999", "-1e999", "null", "-9999.0", "-3.4028235e38", "0.5", "1e-3", "[]", '"-0.5"'))},
    **{f"id_{index}": token_id(text) for index, text in enumerate(("-1", "4294967296", "2147483648", "1e99", "1.5", '"7"', "null", "99999999999999999999"))},
    "index_1": edit(lambda choice, _: choice.update(index=1)), "two_choices": edit(twice), "more_ids": edit(more_ids),
    "fewer_logprobs": edit(lambda choice, _: choice["logprobs"]["token_logprobs"].pop()), "fewer_ids": edit(lambda choice, _: choice["token_ids"].pop()),
    "fewer_names": edit(lambda choice, _: choice["logprobs"]["tokens"].pop()), "no_ids_no_logprobs": without("token_ids", "logprobs", "text"),
    "no_logprobs": without("logprobs"), "no_text": without("text"), "wrong_count": edit(lambda _, value: value["usage"].update(completion_tokens=4711)),
    "no_finish": without("finish_reason"), "odd_finish": edit(lambda choice, _: choice.update(finish_reason="because")),
    "aborted": edit(lambda choice, _: choice.update(finish_reason="abort")),
}
SOUND = ("wrong_type", "delay")  # odd, and yet the answer is right
SLOW = ("hang", "byte_a_second", "stalled_body")  # only a time limit ends them
KINDS = [*CONNECTION, *REPLY, "delay"]
ANY_FORM = [*CONNECTION, *(kind for kind in REPLY if kind.startswith(("status_", "redirect_"))), "html", "empty", "number", "array", "null", "nested",
            "error_in_200", "no_choice", "half_json", "wrong_type", "delay"]


# -- the proxy ----------------------------------------------------------------------------------------------------------------

async def read_message(reader):
    """(first line, headers in lower case, body); None at the end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        return head[0], headers, await reader.readexactly(int(headers.get("content-length", 0)))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return None


class Proxy:
    def __init__(self, options):
        self.upstream = urlsplit(options.upstream)
        self.seed, self.rate = options.seed, options.rate
        self.kinds = options.only.split(",") if options.only else KINDS
        self.url, self.idle = None, []
        self.asked, self.injected = collections.Counter(), collections.Counter()
        self.passed = self.followed = self.open = 0
        self.waiting = set()

    def fault_for(self, body):
        try:
            ask = json.loads(body)
        except ValueError:
            return None
        tag = TAG.search(body.decode("utf-8", "replace"))
        if tag:
            return tag[1]
        if "prompt" not in ask or "seed" not in ask:
            return None
        self.asked[ask["seed"]] += 1
        dice = random.Random(f"{self.seed}/{ask['seed']}/{self.asked[ask['seed']]}")
        return dice.choice(self.kinds) if dice.random() < self.rate else None

    async def forward(self, line, body):
        """The engine's reply."""
        while True:
            used = bool(self.idle)
            reader, writer = self.idle.pop() if used else await asyncio.open_connection(self.upstream.hostname, self.upstream.port, limit=1 << 24)
            method, path, _ = line.split(" ", 2)
            writer.write(f"{method} {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await read_message(reader)
            if answer:
                self.idle.append((reader, writer))
                return Reply(int(answer[0].split()[1]), answer[2], answer[1].get("content-type", JSON))
            writer.close()
            assert used, "the engine is gone"

    def own(self, path):
        if path == "/_followed":
            self.followed += 1
        elif path == "/_drop":
            for writer in self.waiting:
                writer.close()
        elif path != "/_faults":
            return None
        return Reply(200, json.dumps({"injected": self.injected, "passed": self.passed, "followed": self.followed, "open": self.open}).encode())

    async def answer(self, reader, writer, message):
        """True if the connection can be used again."""
        line, _, body = message
        reply = self.own(line.split(" ")[1])
        if reply:
            writer.write(reply.bytes())
            return True
        fault = self.fault_for(body)
        reply = await self.forward(line, body)
        if reply.status != 200 and fault in REPLY:
            fault = None  # there is nothing to change
        self.passed += fault is None
        self.injected.update([fault] if fault else [])
        if fault in CONNECTION:
            await CONNECTION[fault](reader, writer, reply)
            return False
        if fault == "delay":
            await asyncio.sleep(0.2)
        elif fault:
            reply = REPLY[fault](reply, self)
        writer.write(reply.bytes())
        return True

    async def serve(self, reader, writer):
        self.open += 1
        try:
            while True:
                self.waiting.add(writer)
                message = await read_message(reader)
                self.waiting.discard(writer)
                if not message or not await self.answer(reader, writer, message):
                    break
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self.waiting.discard(writer)
            self.open -= 1
            writer.close()


async def run(options):
    proxy, servers = Proxy(options), []
    for _ in range(options.listeners):
        servers.append(await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 24, backlog=4096))
    urls = [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers]
    proxy.url = urls[0]
    print("READY", *urls, flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    os._exit(0)  # asyncio would cancel the connections that it knows, and complain of one that comes meanwhile


def parse_arguments():
    parser = argparse.ArgumentParser(description="A proxy that lies, for tests.")
    parser.add_argument("--upstream")
    parser.add_argument("--listeners", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--only")
    parser.add_argument("--kinds", action="store_true", help="list them")
    parser.add_argument("--any-form", action="store_true", help="list those that can happen to a reply of any form")
    return parser.parse_args()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)  # a connection is a file
    arguments = parse_arguments()
    if arguments.kinds or arguments.any_form:
        print(*(KINDS if arguments.kinds else ANY_FORM), sep="\n")
    else:
        asyncio.run(run(arguments))
