#!/usr/bin/env python3
"""The cost of judge calls to the service: CPU seconds of all its processes per 1,000 verdicts, with 256 calls in flight.

    tests/bench/judges.py [--build build] [--verdicts 4096] [--in-flight 256] [--delay 200] [--repeats 3]

The judge is a server in a process of its own that holds each question for a known time and says YES. The verdicts are those of one
POST /v1/verify a repeat, one call each. Beside it, what the same completions cost with `exact` in place of the judge: the difference
is the questions, the calls and the reading of the replies. Figures: the best of the repeats. Nothing is asserted.
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "http"))
sys.path.insert(0, HERE)

from sampling import cpu_seconds, family  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--verdicts", type=int, default=4096)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--delay", type=int, default=200, help="ms")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


SAID = {"id": "c", "object": "chat.completion", "model": "judge", "usage": {"prompt_tokens": 90, "completion_tokens": 1, "total_tokens": 91},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "YES"}, "finish_reason": "stop"}]}
MODELS = {"object": "list", "data": [{"id": "judge", "object": "model"}]}


class Judge(asyncio.Protocol):
    delay_s, open, most = 0.2, 0, 0

    def connection_made(self, transport):
        self.transport, self.bytes = transport, b""

    def data_received(self, data):
        self.bytes += data
        head, mark, body = self.bytes.partition(b"\r\n\r\n")
        length = int(next((line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0))
        if not mark or len(body) < length:
            return
        self.bytes = b""
        if head.startswith(b"POST"):
            Judge.open += 1
            Judge.most = max(Judge.most, Judge.open)
            asyncio.get_running_loop().call_later(self.delay_s, self.answer, SAID)
        else:
            self.write({"most": Judge.most} if b" /most " in head else MODELS)

    def answer(self, value):
        Judge.open -= 1
        self.write(value)

    def write(self, value):
        body = json.dumps(value).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def serve(delay_s, said):
    async def run():
        Judge.delay_s = delay_s
        server = await asyncio.get_running_loop().create_server(Judge, "127.0.0.1", 0, backlog=1024)
        said.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()
    asyncio.run(run())


def items(count, verifier):
    return {"verifiers": [verifier], "items": [{"id": str(index), "prompt": f"What is {index} + {index}?", "reference": str(2 * index),
                                                "completion": f"Adding {index} to itself gives {2 * index}, so the answer is {2 * index}. " * 8} for index in range(count)]}


def measure(service, body):
    """CPU seconds of all its processes, and seconds."""
    before, began = sum(map(cpu_seconds, family(service.pid))), time.monotonic()
    reply = service.post("/v1/verify", body)
    spent, took = sum(map(cpu_seconds, family(service.pid))) - before, time.monotonic() - began
    wrong = [item for item in reply.json["items"] if item["failure"]]
    if wrong:
        sys.exit(f"{len(wrong)} failed: {wrong[0]['failure']}")
    return spent, took


def main():
    options = arguments()
    os.environ["ROLLOUTD_BINARY"] = os.path.abspath(os.path.join(options.build, "rolloutd"))
    os.environ.setdefault("ROLLOUTD_TEST_PATIENCE", "300")
    from harness import Rolloutd, http_request  # the binary is named when it is imported
    said = multiprocessing.Queue()
    judge = multiprocessing.Process(target=serve, args=(options.delay / 1000, said), daemon=True)
    judge.start()
    url = f"http://127.0.0.1:{said.get()}"
    engine = f"{url}#kind=openai_compat&model=judge&name=judge&pool=judges&in_flight={options.in_flight}"
    verifiers = {"judge": {"name": "judge", "options": {"engine": "judges"}}, "exact": {"name": "exact"}}
    with tempfile.TemporaryDirectory() as folder:
        service = Rolloutd(folder, [engine], settings={"engine.probe_samples": "false"})
        service.start()
        try:
            for name, verifier in verifiers.items():
                body = items(options.verdicts, verifier)
                runs = [measure(service, body) for _ in range(options.repeats)]
                spent, took = min(runs)
                print(f"{name}: {1000 * spent / options.verdicts:.3f} CPU s per 1,000 verdicts, {options.verdicts / took:.0f} verdicts/s")
            print(f"most calls in flight: {http_request(url, 'GET', '/most').json['most']}")
        finally:
            service.terminate()
            judge.terminate()


if __name__ == "__main__":
    main()
