#!/usr/bin/env python3
"""usage: tests/bench/disk.py [--binary build/rolloutd] [--rollouts 1024]

Bytes on disk for each rollout of 512 tokens, against its raw bytes: text, ids (u32) and log-probabilities (f32). Two ways into the record: POST /v1/batches with prompts
of 2 kB that a scripted engine answers, and POST /v1/score, whose request brings text, ids and log-probabilities as JSON numbers of seven digits, of f32 as Python writes them, or as base64. The texts are words of a
dictionary, the ids are drawn from a vocabulary of 128,000 with the frequencies of words, the log-probabilities have seven digits. Prints a row for
each: raw bytes, bytes on disk by table, their quotient, and the processor seconds of the service."""
import argparse
import base64
import http.client
import json
import math
import os
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TOKENS, MEMBERS = 512, 8
RANDOM = random.Random(7)
WORDS = ["".join(RANDOM.choice("etaoinshrdlucmfwygpbvk") for _ in range(RANDOM.randint(1, 6))) for _ in range(8000)]


def word_index():
    """Zipf: the k-th word is 1/k as frequent as the first."""
    return min(len(WORDS) - 1, int(math.exp(RANDOM.random() * math.log(len(WORDS)))) - 1)


TEXT_BYTES = []  # of completions; the probe of the engine asks for some, too


def sample():
    words = [word_index() for _ in range(TOKENS)]
    text = " ".join(WORDS[index] for index in words)
    TEXT_BYTES.append(len(text))
    return {"text": text, "ids": [(index * 104729 + 11) % 128000 for index in words],
            "logprobs": [round(-RANDOM.expovariate(2.5), 7) for _ in words]}


def prompt(number):
    return f"Task {number}. " + " ".join(WORDS[word_index()] for _ in range(400)) + " Give the answer."


class Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        known = {"/health": {}, "/version": {"version": "1"}, "/v1/models": {"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 8192}]}}
        self.answer(known.get(self.path, {}), 200 if self.path in known else 404)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        made = sample()
        names = [f"token_id:{number}" for number in made["ids"]]
        self.answer({"id": "c", "object": "text_completion", "created": 1, "model": "m",
                     "choices": [{"index": 0, "text": made["text"], "finish_reason": "length", "token_ids": made["ids"], "prompt_token_ids": list(range(1000, 1500)),
                                  "logprobs": {"tokens": names, "token_logprobs": made["logprobs"], "text_offset": [0] * TOKENS, "top_logprobs": [{n: v} for n, v in zip(names, made["logprobs"])]}}],
                     "usage": {"prompt_tokens": 500, "completion_tokens": TOKENS, "total_tokens": 500 + TOKENS}})


class Server(ThreadingHTTPServer):
    request_queue_size, daemon_threads = 512, True


class Service:
    def __init__(self, binary, folder, *args):
        self.database, ready = os.path.join(folder, "r.db"), os.path.join(folder, "ready")
        self.process = subprocess.Popen([binary, "--listen", "127.0.0.1:0", "--database", self.database, "--ready-file", ready, "--set", "log.level=error", *args])
        while not (os.path.exists(ready) and open(ready, encoding="utf-8").read().endswith("\n")):
            time.sleep(0.05)
        self.url = urlsplit(open(ready, encoding="utf-8").read().strip())

    def post(self, path, body):
        link = http.client.HTTPConnection(self.url.hostname, self.url.port)
        link.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = link.getresponse()
        text = reply.read()
        assert reply.status == 200, text[:500]

    def seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        assert self.process.wait() == 0


def sampled(service, first, groups):
    service.post("/v1/batches?arrays=none", {"run": "r", "sampling": {"n": MEMBERS, "max_tokens": TOKENS}, "deadline": "10m", "verifiers": [{"name": "exact"}],
                                             "groups": [{"task": f"t{first + i}", "prompt": prompt(first + i), "reference": "42"} for i in range(groups)]})


def completion(form):
    made = sample()
    if form == "base64":
        return {"text": made["text"], "completion_ids_u32": base64.b64encode(struct.pack(f"<{TOKENS}I", *made["ids"])).decode(),
                "logprobs_f32": base64.b64encode(struct.pack(f"<{TOKENS}f", *made["logprobs"])).decode()}
    if form == "f32":
        made["logprobs"] = struct.unpack(f"{TOKENS}f", struct.pack(f"{TOKENS}f", *made["logprobs"]))
    return {"text": made["text"], "completion_ids": made["ids"], "logprobs": made["logprobs"]}


def given(form):
    def post(service, first, groups):
        service.post("/v1/score?arrays=none", {"run": "r", "verifiers": [{"name": "exact"}],
                                               "groups": [{"task": f"t{first + i}", "prompt": prompt(first + i), "reference": "42", "completions": [completion(form) for _ in range(MEMBERS)]}
                                                          for i in range(groups)]})
    return post


def tables(path):
    done = subprocess.run(["sqlite3", path, "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 6"], capture_output=True, text=True, check=False)
    return ", ".join(done.stdout.split()) or "(no dbstat)"


def measure(binary, name, post, rollouts, *args):
    with tempfile.TemporaryDirectory() as folder:
        service = Service(binary, folder, *args)
        TEXT_BYTES.clear()
        before = service.seconds()
        for first in range(0, rollouts // MEMBERS, 16):
            post(service, first, 16)
        seconds = service.seconds() - before
        service.end()
        link = sqlite3.connect(os.path.join(folder, "r.db"))
        count, = link.execute("SELECT count(*) FROM rollouts").fetchone()
        link.close()
        raw = sum(TEXT_BYTES) / len(TEXT_BYTES) + TOKENS * 8
        disk = os.path.getsize(os.path.join(folder, "r.db")) / count
        print(f"{name:16} raw {raw:6.0f}  disk {disk:6.0f}  {disk / raw:.2f}  {1e6 * seconds / count:5.0f} us cpu   {tables(os.path.join(folder, 'r.db'))}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/rolloutd")
    parser.add_argument("--rollouts", type=int, default=1024)
    options = parser.parse_args()
    engine = Server(("127.0.0.1", 0), Engine)
    threading.Thread(target=engine.serve_forever, daemon=True).start()
    measure(options.binary, "batches", sampled, options.rollouts, "--engine", f"http://127.0.0.1:{engine.server_address[1]}#kind=vllm&in_flight=8")
    measure(options.binary, "score, numbers", given("numbers"), options.rollouts)
    measure(options.binary, "score, f32", given("f32"), options.rollouts)
    measure(options.binary, "score, base64", given("base64"), options.rollouts)


if __name__ == "__main__":
    sys.exit(main())
