#!/usr/bin/env python3
"""usage: canned_engine.py [--tokens 1024] [--delay 0] [--text-bytes 4096]

An engine of vLLM's form that gives everybody the same answer, so that it costs next to nothing: for tests of how much, not of
what. Prints READY and its URL. GET /_log says {"samples", "open", "max_open"}. POST /_delay with a number sets the seconds
before each answer, and lets those go that wait already. Standard library only.
"""
import argparse
import asyncio
import json
import resource
import signal

PROBES = {"/health": {}, "/version": {"version": "0.30.1"}, "/v1/models": {"object": "list", "data": [{"id": "canned", "object": "model", "max_model_len": 1 << 20}]}}


def completion(tokens, text_bytes):
    ids = [1000 + index % 30000 for index in range(tokens)]
    names = [f"token_id:{one}" for one in ids]
    logprobs = [-0.0625 * (1 + index % 31) for index in range(tokens)]
    choice = {"index": 0, "text": ("4 " * text_bytes)[:text_bytes], "finish_reason": "length", "stop_reason": None, "token_ids": ids, "prompt_token_ids": None,
              "logprobs": {"text_offset": [0] * tokens, "token_logprobs": logprobs, "tokens": names, "top_logprobs": [{name: value} for name, value in zip(names, logprobs)]}}
    return {"id": "c", "object": "text_completion", "model": "canned", "choices": [choice], "usage": {"prompt_tokens": 4, "completion_tokens": tokens}}


def message(value, status="200 OK"):
    body = json.dumps(value).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


class Engine(asyncio.Protocol):
    samples = open = max_open = 0
    delay, answer, waiting = 0.0, b"", set()

    def connection_made(self, transport):
        self.transport, self.held, self.timer = transport, bytearray(), None

    def connection_lost(self, _):
        if self.timer:
            self.timer.cancel()
            self.leave()

    def leave(self):
        self.timer = None
        Engine.open -= 1
        Engine.waiting.discard(self)

    def data_received(self, data):
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:])
            total = end + 4 + int(headers.get("content-length", 0))
            if len(self.held) < total:
                return
            body = bytes(self.held[end + 4:total])
            del self.held[:total]
            self.request(head[0].split(" ")[1], body)

    def request(self, path, body):
        if path == "/v1/completions":
            Engine.samples += 1
            Engine.open += 1
            Engine.max_open = max(Engine.max_open, Engine.open)
            Engine.waiting.add(self)
            self.timer = asyncio.get_running_loop().call_later(Engine.delay, self.finish)
        elif path == "/_log":
            self.transport.write(message({"samples": Engine.samples, "open": Engine.open, "max_open": Engine.max_open}))
        elif path == "/_delay":
            Engine.delay = float(body)
            for one in list(Engine.waiting):
                one.timer.cancel()
                one.finish()
            self.transport.write(message({}))
        else:
            self.transport.write(message(PROBES[path]) if path in PROBES else message({}, "404 Not Found"))

    def finish(self):
        self.leave()
        self.transport.write(Engine.answer)


async def run(options):
    Engine.delay, Engine.answer = options.delay, message(completion(options.tokens, options.text_bytes))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Engine, "127.0.0.1", 0, backlog=4096)
    print("READY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


def parse_arguments():
    parser = argparse.ArgumentParser(description="An engine that gives everybody the same answer.")
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--text-bytes", type=int, default=4096)
    return parser.parse_args()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)  # a connection is a file
    asyncio.run(run(parse_arguments()))
