"""F08: what answers none of the GETs of its kind as that kind does is no engine: it is refused, and gets no POST."""
import http.server
import json
import socket
import subprocess
import sys
import threading

import pytest

from engines import SAMPLED_KINDS, ScriptedEngine
from harness import eventually
from material import make_batch

KINDS = [*SAMPLED_KINDS, None]
QUICK = {"engine.check_interval": "100ms", "engine.down_timeout": "2s"}
ASKING = {**QUICK, "engine.probe_samples": "true"}
OK = b'{"status":"ok"}'
STRANGERS = {
    "404": (lambda path: (404, "text/html", b"<!DOCTYPE HTML>"), "404 for GET /"),
    "html": (lambda path: (200, "text/html; charset=utf-8", b"<html><body>hello</body></html>"), "200 (HTML) for GET /"),
    "json": (lambda path: (200, "application/json", b'{"service":"shop","status":"ok","version":"1.2"}'), "200 (other JSON) for GET /"),
    "redirect": (lambda path: (301, "text/plain", b""), "301 (a redirect) for GET /"),
    "empty": (lambda path: (200, "text/plain", b""), "200 (empty) for GET /"),
    "files": (lambda path: (200, "application/json", b'{"object":"list","data":[{"id":"file-1","object":"file"}]}'), "200 (other JSON) for GET /"),
    "login": (lambda path: (401, "application/json", b'{"error":"Unauthorized"}'), "it wants a key"),
    "service": (lambda path: (200, "application/json", OK) if path == "/health" else (404, "application/json", b'{"detail":"Not Found"}'), "404 for GET /"),
}


class Stranger:
    """Answers GETs as it is told, and POSTs like an engine; says what it was asked."""

    def __init__(self, answer):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def reply(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked.append((self.command, self.path))
                status, kind, body = answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(body)
            do_GET = do_POST = reply

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def shown(service):
    return service.read("/v1/engines")["items"][0]


def in_state(service, state):
    return eventually(lambda: (item := shown(service))["state"] == state and item, f"e1 to be {state}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STRANGERS)
def test_a_stranger_is_refused_whatever_kind_it_is_said_to_be_and_gets_no_post(start, name, kind):
    answer, says = STRANGERS[name]
    stranger = Stranger(answer)
    try:
        service = start(f"{stranger.url}#model=m" + (f"&kind={kind}" if kind else ""), settings=ASKING)
        item = in_state(service, "refused")
        assert says in item["why"] and item["next"] and item["next_at"]
        batch = service.batch(make_batch(deadline="4s"))
        assert batch["summary"]["scored"] == 0
        assert {failure["code"] for failure in (rollout["failure"] for rollout in batch["groups"][0]["rollouts"])} <= {"engine_unreachable", "deadline"}
        assert {method for method, _ in stranger.asked} == {"GET"} and ("GET", "/elsewhere") not in stranger.asked
    finally:
        stranger.close()


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_without_the_model_of_its_settings_gets_no_post(start, kind):
    """F08: users of a shop have ids, too."""
    stranger = Stranger(lambda path: (200, "application/json", b'{"data":[{"id":"u1","name":"Ann"}],"total":1}'))
    try:
        service = start(f"{stranger.url}#model=m" + (f"&kind={kind}" if kind else ""), settings=ASKING)
        assert in_state(service, "refused")["why"] == "its settings say the model m, which it does not serve (it has u1)"
        assert not [path for method, path in stranger.asked if method == "POST"]
    finally:
        stranger.close()


def test_a_folder_on_the_web_is_no_engine(start, tmp_path):
    """The example of the report."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    web = subprocess.Popen([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(tmp_path)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        service = start(f"http://127.0.0.1:{port}#kind=vllm&model=m", settings=ASKING)
        assert in_state(service, "refused")["why"] == \
            "it answers like no engine of kind vllm: 404 for GET /version, 404 for GET /v1/models, 404 for GET /weight_info, 404 for GET /health"
        service.post("/v1/batches", make_batch(), headers={"Prefer": "respond-async"})
        assert "is refused (it answers like no engine" in service.read("/v1/pending")["items"][0]["waits_for"]
    finally:
        web.terminate()
        web.wait()


def test_while_it_is_being_asked_an_engine_is_probing(start):
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        service = start(f"http://127.0.0.1:{silent.getsockname()[1]}#kind=vllm")
        item = shown(service)
        assert (item["state"], item["why"], item["next"]) == ("probing", "it is being asked what it is", "a probe is under way")
        metrics = service.get("/metrics").body.decode()
        assert 'rolloutd_engines{state="probing"} 1' in metrics and 'rolloutd_engine_state{engine="e1",state="probing"} 1' in metrics
        in_state(service, "down")


def test_an_engine_in_whose_place_something_else_answers_gets_nothing_more_until_it_is_back(start):
    engine = ScriptedEngine()
    try:
        service = start(engine, settings=QUICK)
        in_state(service, "up")
        probes, engine.module.PROBES = engine.module.PROBES, {}
        assert "404 for GET /version" in in_state(service, "refused")["why"]
        assert not engine.samples
        engine.module.PROBES = probes
        in_state(service, "up")
        assert service.batch(make_batch())["summary"]["scored"] == 2
    finally:
        engine.close()


def test_a_key_that_is_wanted_is_asked_for(start):
    """An API: its error is JSON, its list of models is there for who has the key."""
    models = json.dumps({"object": "list", "data": [{"id": "gpt-x", "object": "model"}]}).encode()
    answers = [(401, "application/json", b'{"error":{"message":"You did not provide an API key","code":null}}')]
    api = Stranger(lambda path: answers[0])
    try:
        service = start(f"{api.url}#kind=openai_compat", settings=QUICK)
        assert in_state(service, "refused")["why"] == "it wants a key, and its settings name none: 401 for GET /v1/models, 401 for GET /health"
        answers[0] = (200, "application/json", models)
        assert in_state(service, "up")["model"] == "gpt-x"
    finally:
        api.close()


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_the_stub_of_the_benches_is_an_engine(start, kind):
    """It says {"status":"ok"} to every GET."""
    stub = Stranger(lambda path: (200, "application/json", OK))
    try:
        in_state(start(f"{stub.url}#kind={kind}&model=fake"), "up")
    finally:
        stub.close()
