"""The toy engine in a process of its own, and a plain way to talk to it."""
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEMO = os.path.join(ROOT, "deploy", "demo")
sys.path.insert(0, DEMO)


class ToyEngine:
    def __init__(self, folder, *arguments):
        ready = os.path.join(str(folder), "ready")
        self.process = subprocess.Popen([sys.executable, os.path.join(DEMO, "toy_engine.py"), "--ready-file", ready, *arguments],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not os.path.exists(ready):
            assert self.process.poll() is None and time.monotonic() < end, "the toy engine did not start"
            time.sleep(0.02)
        with open(ready, encoding="utf-8") as file:
            self.url = file.read().strip()
        self.address = (urlsplit(self.url).hostname, urlsplit(self.url).port)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, bytes)"""
        link = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            link.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            reply = link.getresponse()
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        finally:
            link.close()

    def ask(self, method, path, body=None):
        status, _, data = self.request(method, path, body)
        assert status == 200, data
        return json.loads(data) if data else None

    def complete(self, prompt="3+4=", **fields):
        body = {"prompt": prompt, "max_tokens": 16, "seed": 7, "logprobs": 0, "return_token_ids": True,
                "return_tokens_as_token_ids": True, **fields}
        return self.ask("POST", "/v1/completions", body)["choices"]

    def refused(self, **fields):
        """(status, error object) of a completion that must not work."""
        status, _, data = self.request("POST", "/v1/completions", {"prompt": "3+4=", **fields})
        assert status != 200, data
        return status, json.loads(data)["error"]

    def log(self):
        return self.ask("GET", "/_log")

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
