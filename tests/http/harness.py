"""One rolloutd process, and the ways to talk to it. Each reply is held against the document (contract.py)."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from urllib.parse import urlencode, urlsplit

import contract

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.abspath(os.environ.get("ROLLOUTD_BINARY", os.path.join(ROOT, "build", "rolloutd")))
ENDLESS_BINARY = os.path.join(os.path.dirname(BINARY), "tests", "rolloutd-endless")  # the same with a verifier that does not end
PATIENCE = float(os.environ.get("ROLLOUTD_PATIENCE", "120"))  # seconds; only ever a guard against hanging
BATCH_PATIENCE = max(PATIENCE, 280)  # a batch may have much to do
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|SUMMARY: \w+Sanitizer")


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        """Refuses what JSON refuses: NaN, Infinity, broken UTF-8."""
        return json.loads(self.body.decode("utf-8"), parse_constant=refuse_constant)

    @property
    def error(self):
        return self.json["error"]

    def __repr__(self):
        return f"<{self.status} {self.headers.get('content-type')} {self.body[:2000]!r}>"


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def http_request(url, method, path, body=None, headers=None, timeout=None):
    """body: bytes go out as they are, anything else as JSON."""
    parts = urlsplit(url)
    link = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout or PATIENCE)
    payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    head = {} if payload is None else {"Content-Type": "application/json"}
    try:
        link.request(method, path, payload, {**head, **(headers or {})})
        answer = link.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        link.close()


class Wire:
    """A plain socket, for what no HTTP library would send."""

    def __init__(self, url, timeout=None):
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout or PATIENCE)
        self.held = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    __del__ = __exit__

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def more(self):
        data = self.socket.recv(65536)
        self.held += data
        return bool(data)

    def until(self, mark):
        while mark not in self.held:
            if not self.more():
                raise EOFError(f"closed after {self.held!r}")
        part, self.held = self.held.split(mark, 1)
        return part

    def reply(self):
        """The next reply on this connection."""
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        status = int(lines[0].split()[1])
        if status == 100:
            return Reply(100, headers, b"")
        length = int(headers.get("content-length", 0))
        while len(self.held) < length and self.more():
            pass
        body, self.held = self.held[:length], self.held[length:]
        return Reply(status, headers, body)

    def closed(self):
        """Reads to the end; True once the peer has closed."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            pass
        return True


class Process:
    """Identified by pid and start time, so that a pid that is used again is not mistaken for it."""

    def __init__(self, pid):
        self.pid, self.started = pid, process_fields(pid)[19]

    def alive(self):
        try:
            fields = process_fields(self.pid)
        except (OSError, IndexError):
            return False
        return fields[19] == self.started and fields[0] != "Z"


def process_fields(pid):
    with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
        return file.read().rpartition(")")[2].split()


def descendants(pid):
    found, queue = [], [pid]
    while queue:
        parent = queue.pop()
        for task in list_or_nothing(f"/proc/{parent}/task"):
            try:
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as file:
                    children = [int(word) for word in file.read().split()]
            except OSError:
                continue
            queue += children
            found += [process for process in map(process_or_none, children) if process]
    return found


def list_or_nothing(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def process_or_none(pid):
    try:
        return Process(pid)
    except (OSError, IndexError):
        return None


def eventually(check, what, patience=None):
    """Asks again and again until check() is true; gives its value."""
    end = time.monotonic() + (patience or PATIENCE)
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


class StartFailed(Exception):
    pass


class Rolloutd:
    def __init__(self, folder, engines=(), *, database=None, args=(), settings=None, env=None, wrapper=(), binary=BINARY):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.database = str(database or os.path.join(self.folder, "rolloutd.db"))
        self.ready_file, self.log_file = (os.path.join(self.folder, name) for name in ("ready", "log"))
        self.engines = [engine if isinstance(engine, str) else engine.for_rolloutd for engine in engines]
        self.args, self.wrapper, self.binary = list(args), list(wrapper), binary
        # a test that failed half way should not wait for its samples; probes that sample would be among the requests that tests count
        self.settings = {"drain_timeout": "2s", "engine.probe_samples": "false", **(settings or {})}
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("ROLLOUTD_")}
        self.env.update(env or {})
        self.process, self.url, self.family = None, None, []

    def command(self):
        words = [*self.wrapper, self.binary, "--listen", "127.0.0.1:0", "--database", self.database, "--ready-file", self.ready_file]
        for engine in self.engines:
            words += ["--engine", engine]
        for key, value in self.settings.items():
            words += ["--set", f"{key}={value}"]
        return words + self.args

    def start(self):
        if os.path.exists(self.ready_file):
            os.unlink(self.ready_file)
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        self.url = eventually(self.ready, "the ready file").rstrip("/")
        return self

    def ready(self):
        if self.process.poll() is not None:
            raise StartFailed(f"rolloutd ended with {self.process.returncode}:\n{self.log()}")
        try:
            with open(self.ready_file, encoding="utf-8") as file:
                text = file.read()
        except OSError:
            return ""
        return text.strip() if text.endswith("\n") else ""

    @property
    def pid(self):
        return self.process.pid

    @property
    def port(self):
        return urlsplit(self.url).port

    def log(self):
        try:
            with open(self.log_file, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def remember_family(self):
        known = {process.pid for process in self.family}
        self.family += [process for process in descendants(self.pid) if process.pid not in known]

    def terminate(self):
        """SIGTERM; gives the exit code."""
        if not self.alive():
            return self.process.returncode if self.process else None
        self.remember_family()
        self.process.send_signal(signal.SIGTERM)
        return self.wait_exit()

    def wait_exit(self):
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"rolloutd did not end within {PATIENCE} s:\n{self.log()}") from None

    def kill(self):
        if self.alive():
            self.remember_family()
            self.process.kill()
        if self.process:
            self.process.wait()

    def no_orphans(self):
        """The spawner and its workers end with the service, however it ended."""
        eventually(lambda: not any(process.alive() for process in self.family), "the child processes to end")

    def restart(self):
        self.kill()
        return self.start()

    def wire(self, timeout=None):
        return Wire(self.url, timeout)

    def request(self, method, path, body=None, headers=None, timeout=None, **query):
        if query:
            path += "?" + urlencode(query)
        reply = http_request(self.url, method, path, body, headers, timeout)
        if self.binary == BINARY:  # the document does not know the verifier that does not end
            contract.hold(method, path, reply)
        return reply

    def get(self, path, **query):
        return self.request("GET", path, **query)

    def read(self, path, **query):
        """A GET that must succeed; gives its JSON."""
        reply = self.get(path, **query)
        assert reply.status == 200, reply
        return reply.json

    def post(self, path, body, headers=None, **query):
        return self.request("POST", path, body, headers, **query)

    def put(self, path, body, headers=None):
        return self.request("PUT", path, body, headers)

    def delete(self, path):
        return self.request("DELETE", path)

    def batch(self, body, **query):
        """A batch that is waited for; gives the finished batch."""
        reply = self.request("POST", "/v1/batches", body, timeout=BATCH_PATIENCE, **query)
        assert reply.status == 200, reply
        return reply.json

    def settled(self, identity):
        """The batch once it is no longer running."""
        return eventually(lambda: not_running(self.read(f"/v1/batches/{identity}", wait="5s")), f"{identity} to settle", BATCH_PATIENCE)


def not_running(batch):
    return batch if batch["state"] != "running" else None
