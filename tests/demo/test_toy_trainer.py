"""The toy trainer: the chain rule through its softmax, and that it says so when something fails."""
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from toy_process import DEMO, ROOT, ToyEngine
import toy_policy
import toy_trainer
from service import Service, ServiceError

IDS = [1, 10, 2, 13, 13, 4, 0]  # longer than the table has positions
DLOSS_DLOGP = [0.5, -1.25, 0.0, 2.0, -0.75, 0.125, 1.0]


def test_the_gradient_by_the_logits_is_the_finite_difference_of_the_loss():
    rows = [[0.3 * ((7 * token + 3 * row) % 11) for token in range(toy_policy.FIRST_BYTE)] for row in range(toy_policy.POSITIONS)]
    gradients = {}
    toy_trainer.backward(toy_policy.TablePolicy({"p": rows}), gradients, "p", IDS, DLOSS_DLOGP)

    def loss_with(row, token, step):
        moved = [list(each) for each in rows]
        moved[row][token] += step
        values = toy_policy.TablePolicy({"p": moved}).log_probabilities("p", IDS)
        return sum(derivative * value for derivative, value in zip(DLOSS_DLOGP, values))
    for row in range(toy_policy.POSITIONS):
        for token in range(toy_policy.FIRST_BYTE):
            difference = (loss_with(row, token, 1e-5) - loss_with(row, token, -1e-5)) / 2e-5
            assert gradients["p"][row][token] == pytest.approx(difference, abs=1e-8)


def test_the_optimiser_goes_down_and_leaves_other_prompts_alone():
    policy = toy_policy.TablePolicy()
    gradients = {}
    toy_trainer.backward(policy, gradients, "a", [3], [-1.0])
    before = policy.log_probabilities("a", [3])
    toy_trainer.Adam(0.1).update(policy, gradients)
    assert policy.log_probabilities("a", [3]) > before
    assert list(policy.table) == ["a"]


def test_an_unwritten_row_is_the_prior_and_a_probability_distribution():
    for row in toy_policy.PRIOR:
        assert sum(map(toy_policy.math.exp, row)) == pytest.approx(1)
    assert toy_policy.TablePolicy().log_probabilities("x", [1]) == [pytest.approx(toy_policy.math.log(0.6))]


@pytest.mark.parametrize("rewards", [[0.5, 0.4], [0.1] * 2, [0.1, *[0.85] * 35]])
def test_a_curve_that_did_not_climb_is_a_failure(rewards):
    with pytest.raises(toy_trainer.TrainingFailed, match="did not climb"):
        toy_trainer.check_climb(rewards)


@pytest.mark.parametrize("rewards", [[0.1], [0.1, 0.2], [0.1, *[0.95] * 35]])
def test_a_curve_that_climbed_is_none(rewards):
    toy_trainer.check_climb(rewards)


def test_the_plot_has_one_column_for_each_revision_and_stands_at_its_height():
    lines = toy_trainer.plot([0.0, 0.5, 1.0]).splitlines()
    assert [lines[1], lines[6], lines[11]] == ["  1.0 |  *", "  0.5 | *", "  0.0 |*"]


class Refusing(BaseHTTPRequestHandler):
    """Stands for a service that refuses every batch."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"error": {"code": "no_engine", "message": "none is configured", "path": None, "request_id": "x"}}).encode()
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def refusing():
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def train(service, engine, *arguments):
    return subprocess.run([sys.executable, os.path.join(DEMO, "toy_trainer.py"), "--service", service, "--engine", engine, *arguments],
                          capture_output=True, text=True, timeout=300, check=False)


def test_the_trainer_names_the_refusal_that_stopped_it(engine, refusing):
    ended = train(refusing, engine.url)
    assert ended.returncode == 1
    assert "rolloutd: POST /v1/batches answered 503: no_engine: none is configured" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_trainer_names_the_peer_that_is_not_there(engine):
    ended = train("http://127.0.0.1:9", engine.url)
    assert ended.returncode == 1 and "rolloutd: POST http://127.0.0.1:9/v1/batches" in ended.stderr and "refused" in ended.stderr
    ended = train("http://127.0.0.1:9", "http://127.0.0.1:9")
    assert ended.returncode == 1 and "toy engine: GET http://127.0.0.1:9/weights" in ended.stderr


def test_a_reply_that_is_not_json_is_named(engine):
    engine.ask("POST", "/misbehave", {"rules": [{"body": "not_json"}]})
    with contextlib.closing(Service("engine", engine.url)) as service, pytest.raises(ServiceError, match="not JSON"):
        service.post("/v1/completions", {"prompt": "x"})


# -- the whole loop, on the real binary -------------------------------------------------------------

BINARY = os.path.abspath(os.environ.get("ROLLOUTD_BINARY", os.path.join(ROOT, "build", "rolloutd")))
needs_binary = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"there is no {BINARY}")
LINE = re.compile(r"^ +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+) +(\d+) +([\d.]+)$", re.MULTILINE)


@pytest.fixture
def rolloutd(tmp_path, engine):
    ready = tmp_path / "rolloutd.url"
    command = [BINARY, "--listen", "127.0.0.1:0", "--database", str(tmp_path / "rollouts.db"), "--engine", engine.url + "#kind=vllm", "--ready-file", str(ready)]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        for _ in range(600):
            if ready.exists() or process.poll() is not None:
                break
            threading.Event().wait(0.05)
        assert ready.exists(), (tmp_path / "log").read_text(errors="replace")
        yield ready.read_text().strip().rstrip("/")
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


@needs_binary
def test_the_policy_learns_from_the_gradients_that_the_service_returned(rolloutd, engine):
    ended = train(rolloutd, engine.url)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [tuple(map(float, row)) for row in LINE.findall(ended.stdout)]
    revisions, rewards, divergences, clips = zip(*(row[:4] for row in rows))
    assert list(revisions) == list(range(toy_trainer.FULL_TRAINING))
    assert rewards[0] < 0.2 and min(rewards[-3:]) > 0.9
    assert divergences[0] < divergences[-1] and max(clips) > 0
    assert engine.ask("GET", "/weight_info") == {"weight_version": str(toy_trainer.FULL_TRAINING)}


@needs_binary
def test_the_same_seed_trains_the_same_curve(rolloutd, engine):
    def curve(run):
        engine.ask("POST", "/weights", {"revision": 0, "table": {}})
        ended = train(rolloutd, engine.url, "--run", run, "--revisions", "4", "--seed", "11")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return [row[:6] for row in LINE.findall(ended.stdout)]
    assert len(curve("first")) == 4
    assert curve("second") == curve("third")


@needs_binary
def test_an_engine_that_fails_now_and_then_is_told_of_and_does_not_stop_the_training(rolloutd, engine):
    engine.ask("POST", "/misbehave", {"rules": [{"probability": 0.05, "logprobs": "null"}], "seed": 3})
    ended = train(rolloutd, engine.url, "--revisions", "5")
    assert ended.returncode == 0, ended.stdout + ended.stderr


@needs_binary
def test_an_engine_that_always_fails_stops_the_training_with_its_failure(rolloutd, engine):
    engine.ask("POST", "/misbehave", {"rules": [{"status": 400, "message": "broken"}]})
    ended = train(rolloutd, engine.url, "--revisions", "2")
    assert ended.returncode == 1 and "engine_error" in ended.stderr
