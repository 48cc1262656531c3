"""Engines for the tests: one that is told what to answer, the toy engine, a real language model."""
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import threading

from harness import ROOT, eventually, http_request

with open(os.path.join(ROOT, "client", "adapters", "kinds.def"), encoding="utf-8") as _file:
    ENGINE_KINDS = re.findall(r"^ENGINE_KIND\((\w+)\)", _file.read(), re.M)
SAMPLED_KINDS = [kind for kind in ENGINE_KINDS if kind != "scorer"]  # that one is asked by judges alone, and never probed
REPORTS_ENGINE = os.path.join(ROOT, "tests", "tools", "reports_engine.py")
COUNTER = itertools.count()


class ScriptedEngine:
    """tests/tools/reports_engine.py in a thread of this process; its rules are described there."""

    def __init__(self, kind="vllm", model=None, serves=None, port=0, probes=None):
        spec = importlib.util.spec_from_file_location(f"reports_engine_{next(COUNTER)}", REPORTS_ENGINE)
        self.module = importlib.util.module_from_spec(spec)  # a fresh copy: its state is global to the module
        spec.loader.exec_module(self.module)
        if serves:
            self.serve(serves)
        self.module.PROBES.update(probes or {})
        self.server = self.module.Server(("127.0.0.1", port), self.module.Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.for_rolloutd = f"{self.url}#kind={kind}" + (f"&model={model}" if model else "")
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def serve(self, model, version="0.30.1"):
        """Names this model and version from now on, as a server that was started again with something else would."""
        self.module.PROBES = {**self.module.PROBES, "/version": {"version": version},
                              "/v1/models": {"object": "list", "data": [{"id": model, "object": "model", "max_model_len": 4096}]}}

    def rules(self, *rules):
        self.module.set_rules([dict(rule) for rule in rules])

    def release(self):
        """Lets those go that a rule with "hold" keeps, and all that come later."""
        self.module.RELEASED[0].set()

    @property
    def requests(self):
        with self.module.LOCK:
            return [dict(entry) for entry in self.module.STATE["log"]]

    @property
    def samples(self):
        """Requests that asked for tokens, not probes or tokenization."""
        return [entry for entry in self.requests if any(name in entry["body"] for name in ("prompt", "messages", "sampling_params"))]

    def samples_for(self, text):
        return [entry for entry in self.samples if text in str(entry["body"])]

    @property
    def open(self):
        with self.module.LOCK:
            return self.module.STATE["open"]

    def close(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()


class ProcessEngine:
    """An engine in a process of its own."""
    kind = "vllm"

    def __init__(self, folder, command):
        self.log_file = os.path.join(str(folder), "engine.log")
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.url = eventually(self.ready, "the engine to say READY", 120)
        except BaseException:
            self.close()
            raise
        self.for_rolloutd = f"{self.url}#kind={self.kind}"

    def log(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as file:
            return file.read()

    def ready(self):
        assert self.process.poll() is None, f"the engine ended with {self.process.returncode}:\n{self.log()}"
        lines = [line for line in self.log().splitlines(keepends=True) if line.startswith("READY ") and line.endswith("\n")]
        return lines[0].split()[1].rstrip("/") if lines else None

    def post(self, path, body):
        reply = http_request(self.url, "POST", path, body)
        assert reply.status == 200, reply
        return reply

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class ToyEngine(ProcessEngine):
    def __init__(self, folder, *args):
        super().__init__(folder, [sys.executable, os.path.join(ROOT, "deploy", "demo", "toy_engine.py"), *args])


class CannedEngine(ProcessEngine):
    """tests/tools/canned_engine.py: much, and always the same."""

    def __init__(self, folder, *args):
        super().__init__(folder, [sys.executable, os.path.join(ROOT, "tests", "tools", "canned_engine.py"), *args])

    @property
    def said(self):
        return http_request(self.url, "GET", "/_log").json

    def set_delay(self, seconds):
        assert http_request(self.url, "POST", "/_delay", str(seconds).encode()).status == 200


class RealEngine(ProcessEngine):
    kind = "llamacpp"

    def __init__(self, folder, python):
        super().__init__(folder, [python, os.path.join(ROOT, "deploy", "demo", "real_engine.py"), "--slots", "4", "--context", "1024"])
