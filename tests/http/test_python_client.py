"""The Python package in client/python, against the real service."""
import concurrent.futures
import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy
import pytest

from harness import PATIENCE, ROOT, eventually
from material import make_batch, make_group, sampling

sys.path.insert(0, os.path.join(ROOT, "client", "python"))
import rolloutd  # noqa: E402
import rolloutd.torch  # noqa: E402

ANSWER = {"in": "right", "text": "\\boxed{42}", "ids": [5, 2], "lp": [-0.5, -0.25]}
PATIENT = {"patience_s": PATIENCE, "timeout_s": PATIENCE}


@pytest.fixture
def client(service):
    with rolloutd.Client(service.url, **PATIENT) as made:
        yield made


def two_groups(**fields):
    return make_batch(make_group("a", "right"), make_group("b", "wrong"), **fields)


def test_a_batch_is_waited_for(client, engine):
    engine.rules(ANSWER)
    batch = client.batch(**two_groups())
    assert batch["state"] == "complete"
    assert [rollout["reward"] for rollout in batch["groups"][0]["rollouts"]] == [1, 1]
    assert batch["groups"][0]["rollouts"][0]["completion_ids"] == [5, 2]


def test_a_batch_that_runs_for_long_is_followed(client, engine):
    engine.rules({"in": "right", "hold": True}, ANSWER)
    threading.Timer(2.5, engine.release).start()  # beyond the first wait
    assert client.batch(**two_groups())["state"] == "complete"


def test_arrays_are_numpy_where_that_is_asked_for(service, engine):
    engine.rules(ANSWER)
    with rolloutd.Client(service.url, numpy=True, **PATIENT) as client:
        batch = client.batch(**two_groups())
    rollout = batch["groups"][0]["rollouts"][0]
    assert rollout["completion_ids"].dtype == numpy.int64 and rollout["completion_ids"].tolist() == [5, 2]
    assert rollout["logprobs"].tolist() == [-0.5, -0.25]
    rollout["logprobs"][0] = 0  # may be written to


def test_the_same_key_is_the_same_batch(client, engine):
    engine.rules(ANSWER)
    first = client.batch(idempotency_key="step-1", **two_groups())
    again = client.batch(idempotency_key="step-1", **two_groups())
    assert first["id"] == again["id"] and len(engine.samples) == 4


def test_a_score_takes_arrays_of_numpy(client):
    completion = {"text": "\\boxed{42}", "completion_ids": numpy.array([1, 2]), "logprobs": numpy.array([-0.5, -0.25], numpy.float32)}
    batch = client.score(run="s", policy_revision=0, verifiers=[{"name": "math"}],
                         groups=[{"task": "t", "prompt": "6*7", "reference": "42", "completions": [completion]}])
    assert batch["groups"][0]["rollouts"][0]["reward"] == 1


def test_a_number_that_json_has_not_is_refused_here(client):
    with pytest.raises(ValueError):
        client.score(run="s", groups=[{"task": "t", "completions": [{"text": "x", "logprobs": [float("nan")]}]}])


def test_an_error_says_code_path_and_message(client):
    with pytest.raises(rolloutd.Error) as caught:
        client.batch(**two_groups(sampling={"n": -1}))
    error = caught.value
    assert (error.status, error.code, error.path) == (400, "invalid_field", "sampling.n")
    assert error.message and error.request_id and "sampling.n" in str(error)


def test_a_service_that_is_not_there_is_an_error():
    with pytest.raises(rolloutd.Error) as caught:
        rolloutd.Client("http://127.0.0.1:1", patience_s=0.2).run("x")
    assert caught.value.code == "unreachable" and caught.value.status is None


@pytest.mark.parametrize("url", ["", "ftp://host", "http://"])
def test_a_wrong_url_is_said_at_once(url):
    with pytest.raises(ValueError):
        rolloutd.Client(url)


def test_a_restart_is_survived(service, engine, client):
    engine.rules(ANSWER, {"in": "wrong", "hold": True})
    found = []

    def follow():
        with rolloutd.Client(service.url, **PATIENT) as follower:
            found.append(follower.batch(**two_groups()))

    follower = threading.Thread(target=follow)
    follower.start()
    eventually(lambda: len(engine.samples) >= 4, "both groups to be asked for")
    service.args += ["--listen", f"127.0.0.1:{service.port}"]
    service.restart()
    engine.release()
    follower.join(PATIENCE)
    assert found and found[0]["state"] == "complete"
    assert len(list(client.batches(run=found[0]["run"]))) == 1


def test_a_token_is_sent(start, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("a-token-of-some-length-0123456789\n")
    (tmp_path / "token").chmod(0o600)
    service = start(settings={"token_file": tmp_path / "token"})
    with rolloutd.Client(service.url) as stranger, pytest.raises(rolloutd.Error) as caught:
        list(stranger.runs())
    assert caught.value.status == 401
    with rolloutd.Client(service.url, "a-token-of-some-length-0123456789") as friend:
        assert list(friend.runs()) == []
    monkeypatch.setenv("ROLLOUTD_TOKEN", "a-token-of-some-length-0123456789")
    with rolloutd.Client(service.url) as friend:
        assert list(friend.runs()) == []


# -- streams ----------------------------------------------------------------------------------------------------


def test_groups_come_one_by_one(client, engine):
    engine.rules({"in": "wrong", "hold": True}, ANSWER)
    with client.stream(**two_groups()) as stream:
        assert next(stream)["task"] == "a"
        assert stream.batch is None
        engine.release()
        assert [group["task"] for group in stream] == ["b"]
    assert stream.batch["state"] == "complete"


def test_closing_a_stream_cancels_its_batch(client, engine):
    engine.rules({"in": "wrong", "hold": True}, ANSWER)
    with client.stream(**two_groups()) as stream:
        next(stream)
    row, = client.batches()
    assert eventually(lambda: client.get(f"/v1/batches/{row['id']}", wait="5s")["state"] != "running", "its end")
    assert client.get(f"/v1/batches/{row['id']}")["state"] == "cancelled"
    engine.release()


def test_a_stream_that_is_cut_goes_on(service, engine):
    engine.rules({"in": "wrong", "hold": True}, ANSWER)
    cutter = Cutter(service.port)
    with rolloutd.Client(cutter.url, **PATIENT) as client, client.stream(**two_groups()) as stream:
        assert next(stream)["task"] == "a"
        cutter.cut()
        engine.release()
        assert [group["task"] for group in stream] == ["b"]
        assert stream.batch["state"] == "complete"
    cutter.close()


class Cutter:
    """Passes connections on to a port, and cuts those that are there."""

    def __init__(self, port):
        self.port, self.pairs, self.sockets = port, [], []
        self.threads = concurrent.futures.ThreadPoolExecutor(64)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads.submit(self.serve)

    def serve(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            service = socket.create_connection(("127.0.0.1", self.port))
            self.pairs.append((caller, service))
            self.sockets += [caller, service]
            for source, sink in ((caller, service), (service, caller)):
                self.threads.submit(self.carry, source, sink)

    @staticmethod
    def carry(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        Cutter.end(source, sink)

    @staticmethod
    def end(*sockets):
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self):
        pairs, self.pairs = self.pairs, []
        for pair in pairs:
            self.end(*pair)

    def close(self):
        self.end(self.listener)
        self.cut()
        self.threads.shutdown()
        for one in [self.listener, *self.sockets]:
            one.close()


# -- Ctrl-C and the terminal ------------------------------------------------------------------------------------

PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the shell that began it all runs in the background
sys.path.insert(0, {package!r})
import rolloutd
rolloutd.Client({url!r}).batch(**json.loads({body!r}))
"""


def program(service, body):
    return [sys.executable, "-c", PROGRAM.format(package=os.path.join(ROOT, "client", "python"), url=service.url, body=json.dumps(body))]


@pytest.mark.parametrize("pause_s", [0, 2], ids=["before the id is known", "after"])
def test_ctrl_c_cancels(service, engine, client, pause_s):
    engine.rules({"hold": True})
    with subprocess.Popen(program(service, two_groups()), stderr=subprocess.PIPE) as process:
        eventually(lambda: engine.samples, "the batch to be asked for")
        time.sleep(pause_s)
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=PATIENCE)[1]
    row, = client.batches()
    assert eventually(lambda: client.get(f"/v1/batches/{row['id']}", wait="5s")["state"] == "cancelled", "its end")
    engine.release()


def test_a_terminal_sees_progress_and_a_pipe_sees_nothing(service, engine):
    engine.rules({"hold": True})
    ours, theirs = pty.openpty()
    with subprocess.Popen(program(service, two_groups()), stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while b"0 of 2 groups, 0 of 4 rollouts; waits for the engines" not in seen:
            seen += os.read(ours, 4096)
        engine.release()
        assert process.wait(PATIENCE) == 0
    os.close(ours)
    quiet = subprocess.run(program(service, two_groups()), capture_output=True, timeout=PATIENCE, check=True)
    assert quiet.stdout == quiet.stderr == b""


# -- verdicts, objectives, weights, the record ------------------------------------------------------------------


def test_verdicts(client):
    right, wrong = client.verify([{"name": "math"}], [{"id": "1", "completion": "\\boxed{42}", "reference": "42"},
                                                      {"id": "2", "completion": "\\boxed{41}", "reference": "42"}])
    assert right["reward"] == 1 and wrong["reward"] == 0


SEQUENCES = [{"group": "a", "reward": 1.0, "logprobs": [-0.5, -1.25], "old_logprobs": [-0.625, -1.25]},
             {"group": "a", "reward": 0.0, "logprobs": [-2.0], "old_logprobs": [-2.0]}]


def test_an_objective_of_arrays_is_that_of_lists(client):
    lists = client.objective(sequences=SEQUENCES, objective={"preset": "grpo"}, return_=["dloss_dlogp"])
    arrays = [{name: numpy.array(value) if isinstance(value, list) else value for name, value in sequence.items()} for sequence in SEQUENCES]
    tensors = client.objective(sequences=arrays, objective={"preset": "grpo"}, return_=["dloss_dlogp"])
    assert tensors["loss"] == lists["loss"]
    for one, other in zip(tensors["sequences"], lists["sequences"]):
        assert one["dloss_dlogp"].tolist() == other["dloss_dlogp"]


def test_arrays_that_do_not_fit_are_named(client):
    arrays = [{"group": "a", "reward": 1.0, "logprobs": numpy.zeros(2), "old_logprobs": numpy.zeros(3)}]
    with pytest.raises(ValueError, match=r"sequences\[0\].old_logprobs"):
        client.objective(sequences=arrays)


def test_weights_are_begun_and_committed(client):
    client.attach("w", step=0, revision=0)
    with client.policy("w", 1, mode="wait") as begun:
        assert begun["state"] == "open" and client.run("w")["policy_revision"] == 0
    assert client.run("w")["policy_revision"] == 1
    assert client.declare("w", 2)["revision"] == 2


def test_weights_that_fail_are_cancelled(client):
    client.attach("w", step=0, revision=0)
    with pytest.raises(RuntimeError, match="no room"):
        with client.policy("w", 1):
            raise RuntimeError("no room")
    run = client.run("w")
    assert run["policy_revision"] == 0 and (run["update"] is None or run["update"]["state"] != "open")


def test_a_killed_trainer_attaches_again(client):
    client.attach("w", step=5, revision=5)
    client._send("POST", "/v1/runs/w/policy/begin", {"revision": 6})  # and dies
    found = client.attach("w", step=3, revision=3)
    assert found["incarnation"] == 1 and len(found["updates"]) == 1


def test_the_record_is_read_over_all_pages(client, engine):
    engine.rules(ANSWER)
    batch = client.batch(**make_batch(*[make_group(f"t{index}", "right") for index in range(5)], sampling=sampling(3)))
    assert len(list(client.rollouts(run=batch["run"], limit=4))) == 15
    assert len(list(client.rollouts(task="t1", limit=2))) == 3
    assert [group["task"] for group in client.groups(batch["id"], limit=2)] == [f"t{index}" for index in range(5)]
    assert client.report(batch["run"])["run"] == batch["run"]
    assert "rolloutd_" in client.get("/metrics")
    assert [row["run"] for row in client.runs()] == [batch["run"]]


def test_names_are_quoted(client):
    with pytest.raises(rolloutd.Error) as caught:
        client.run("a/b?c")
    assert caught.value.status in (400, 404)


# -- parts of an optimiser step ---------------------------------------------------------------------------------


def fake_batch(count):
    rollouts = [{"id": f"r_{index}", "trainable": True, "advantage": 1.0} for index in range(count)]
    rollouts.insert(1, {"id": "r_failed", "trainable": True, "advantage": None})
    return {"totals": {"tokens": 1, "sequences": count, "groups": 1}, "groups": [{"rollouts": rollouts}]}


@pytest.mark.parametrize("count, ranks, micro_batches", [(8, 1, 1), (8, 2, 2), (7, 3, 2), (2, 1, 4), (5, 2, 4)])
def test_every_rollout_is_in_one_part(count, ranks, micro_batches):
    parts = [rolloutd.torch.parts(fake_batch(count), rank, ranks, micro_batches) for rank in range(ranks)]
    assert all(len(own) == micro_batches for own in parts)
    assert sorted(rollout["id"] for own in parts for part in own for rollout in part.rollouts) == [f"r_{index}" for index in range(count)]
    assert len({part.number for own in parts for part in own}) == ranks * micro_batches
    for own in parts:  # the last part exchanges gradients, so it has something to send
        assert [part.is_last for part in own] == [False] * (micro_batches - 1) + [True]
        assert own[-1].rollouts


def test_a_rank_without_a_rollout_is_idle_but_takes_part():
    idle = rolloutd.torch.parts(fake_batch(1), 1, 2, 2)
    assert [len(part.rollouts) for part in idle] == [0, 1] and all(part.is_idle for part in idle)
    assert rolloutd.torch.parts(fake_batch(0), 0, 2, 2) == []


# -- the page ------------------------------------------------------------------------------------------------------


def test_the_page_runs_and_names_every_method(service, engine, capsys):
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        page = file.read()
    engine.rules({"text": "\\boxed{42}", "ids": [5, 2], "lp": [-0.5, -0.25]})
    for example in page.split("```python\n")[1:]:
        exec(example.split("```")[0].replace("http://127.0.0.1:8787", service.url), {})
    assert capsys.readouterr().out == "1.0 None\n" * 4 + "2 ['1']\n"
    methods = [name for name in vars(rolloutd.Client) if not name.startswith("_") and name != "close"]
    assert [name for name in methods if f"`{name}" not in page and f" {name}(" not in page] == []


# -- the package ------------------------------------------------------------------------------------------------


def test_its_types_are_strict():
    folder = os.path.join(ROOT, "client", "python")
    found = subprocess.run([sys.executable, "-m", "mypy", "--config-file", os.path.join(folder, "pyproject.toml"), "--cache-dir", os.devnull,
                            os.path.join(folder, "rolloutd")], capture_output=True, text=True, check=False)
    if "No module named mypy" in found.stderr:
        pytest.skip("there is no mypy")
    assert found.returncode == 0, found.stdout


def test_it_is_installed_by_pip_alone(tmp_path, service):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", os.path.join(ROOT, "client", "python"), str(source)], check=True)
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", str(source)], capture_output=True, text=True, check=False)
    if "No matching distribution found for setuptools" in installed.stderr:
        pytest.skip("there is no package index, and pip needs setuptools to build")
    assert installed.returncode == 0, installed.stderr
    said = subprocess.run([python, "-c", f"import rolloutd; print(list(rolloutd.Client({service.url!r}).runs()))"], cwd=tmp_path,
                          capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
