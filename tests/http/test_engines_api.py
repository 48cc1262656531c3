"""/v1/engines: which engines there are, how they are, and more or fewer of them while the service runs."""
import glob
import http.server
import json
import os
import signal
import socket
import sys
import threading

import pytest

from engines import ProcessEngine, ScriptedEngine
from harness import ROOT, eventually
from material import make_batch, make_group, rollouts, sampling

RIGHT = {"text": "\\boxed{42}", "ids": [11, 12, 2], "lp": [-0.5, -0.25, -0.125]}
QUICK = {"engine.backoff_min": "10ms", "engine.backoff_max": "50ms", "engine.check_interval": "100ms"}
ASKING = {**QUICK, "engine.probe_samples": "true"}


@pytest.fixture
def scripted():
    made = []

    def make(**options):
        made.append(ScriptedEngine(**options))
        made[-1].rules(RIGHT)
        return made[-1]
    yield make
    for one in made:
        one.close()


class KeyedEngine:
    """Says who came with which key."""

    def __init__(self):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(self.headers.get("Authorization"))
                body = json.dumps({"version": "1", "data": [{"id": "demo"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def engines(service):
    return {item["name"]: item for item in service.read("/v1/engines")["items"]}


def in_state(service, name, state):
    def check():
        item = engines(service).get(name)
        return item if item and item["state"] == state else None
    return eventually(check, f"{name} to be {state}")


def put(service, name, body, status):
    reply = service.put(f"/v1/engines/{name}", body)
    assert reply.status == status, reply
    return reply.json


def hang_up(service):
    """SIGHUP, and the end of what it starts."""
    before = service.read("/v1/engines")["settings"]["tried_at"]
    service.process.send_signal(signal.SIGHUP)
    return eventually(lambda: (said := service.read("/v1/engines")["settings"])["tried_at"] != before and said, "the settings to be read again")


def posted(service, *groups, **fields):
    reply = service.post("/v1/batches", make_batch(*groups, **fields), headers={"Prefer": "respond-async"})
    assert reply.status == 202, reply
    return reply.json["id"]


def settings_file(service_folder, entries, extra=""):
    path = os.path.join(str(service_folder), "rolloutd.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(extra + "engines:\n" + "".join("  - " + "\n    ".join(f"{key}: {value}" for key, value in entry.items()) + "\n" for entry in entries) if entries
                   else extra + "engines: []\n")
    return path


# --- what is seen ---------------------------------------------------------------------------------------

def test_an_engine_is_shown_with_everything_that_is_known(start, toy):
    service = start(toy, settings=ASKING)
    shown = in_state(service, "e1", "up")
    assert shown["kind"] == "vllm" and shown["model"] == "toy-table" and shown["source"] == "settings" and shown["pool"] == "default"
    assert shown["capabilities"] == {"ids": True, "logprobs": True, "n": True, "seeds": "honoured", "note": None}
    assert shown["logprobs_mode"] == "raw" and shown["context_tokens"] == 4096 and shown["weight_version"] == "0"
    assert len(shown["tokenizer_sha256"]) == 64 and shown["why"] is None and shown["last_error"] is None and shown["restarts"] == 0
    service.batch(make_batch(sampling=sampling(4)))
    shown = engines(service)["e1"]
    assert (shown["requests"], shown["samples"], shown["failures"], shown["latency"]["samples"]) == (4, 4, {}, 4)
    assert 0 < shown["latency"]["p50_us"] <= shown["latency"]["p90_us"] <= shown["latency"]["p99_us"]
    assert service.read("/v1/engines/e1")["name"] == "e1"
    assert service.get("/v1/engines/nobody").status == 404


def test_a_rollout_says_that_an_honest_engine_honoured_its_seed(start, toy):
    service = start(toy, settings=ASKING)
    assert {rollout["seed_honoured"] for rollout in rollouts(service.batch(make_batch()))} == {True}


def test_an_engine_that_ignores_seeds_is_marked_and_so_are_its_rollouts(start, scripted):
    """As `transformers serve` does."""
    engine = scripted()
    engine.rules({"choices": [{"ids": [index, 2], "lp": [-3.0, -0.5], "text": f"\\boxed{{{index}}}"} for index in range(100, 197)]})
    service = start(engine, settings=ASKING)
    shown = in_state(service, "e1", "up")
    assert shown["capabilities"]["seeds"] == "ignored" and "ignores seeds" in shown["why"]
    assert {(rollout["state"], rollout["seed_honoured"], rollout["trainable"]) for rollout in rollouts(service.batch(make_batch()))} == {("scored", False, True)}


def test_an_engine_that_gives_no_ids_is_marked_and_nothing_of_it_is_trained_on(start, scripted):
    engine = scripted(kind="openai_compat")
    engine.rules({"choices": [{"ids": None, "lp": None, "text": f"\\boxed{{{index}}}"} for index in range(97)]})
    service = start(engine, settings=ASKING)
    shown = in_state(service, "e1", "up")
    assert (shown["capabilities"]["ids"], shown["capabilities"]["logprobs"], shown["capabilities"]["seeds"]) == (False, False, "ignored")
    assert "nothing it samples can be trained on" in shown["why"]
    assert {(rollout["trainable"], rollout["seed_honoured"]) for rollout in rollouts(service.batch(make_batch()))} == {(False, False)}


def test_logits_for_log_probabilities_are_refused(start, scripted):
    engine = scripted()
    engine.rules({"lp": [3.5, 11.25, 7.0]})
    shown = in_state(start(engine, settings=ASKING), "e1", "refused")
    assert "logits" in shown["why"] and shown["logprobs_mode"] == "logits" and shown["next"] and shown["next_at"]


@pytest.mark.parametrize("rule", [{"status": 500, "raw": "boom"}, {"status": 404, "raw": "{}"}, {"raw": "<html>"}, {"drop": True}, {"status": 401, "raw": "{}"}], ids=str)
def test_questions_that_get_no_answer_leave_the_engine_up_and_unknown(start, engine, rule):
    engine.rules(rule)
    service = start(engine, settings=ASKING)
    shown = in_state(service, "e1", "up")
    assert shown["capabilities"]["seeds"] == "unknown" and shown["capabilities"]["ids"] is None
    engine.rules(RIGHT)
    assert service.batch(make_batch())["summary"]["scored"] == 2


def test_an_operator_learns_which_engine_is_sick_and_why(start, scripted):
    sound, port = scripted(), closed_port()
    service = start(sound, f"http://127.0.0.1:{port}#kind=vllm", settings=QUICK)
    in_state(service, "e1", "up")
    shown = in_state(service, "e2", "down")
    assert "cannot be reached" in shown["why"] and shown["last_error"]["code"] == "engine_unreachable"
    assert shown["since"] and shown["next"] in ("it is probed again", "a probe is under way")
    eventually(lambda: service.get("/readyz").status == 200, "everything to be ready")
    ready = {item["name"]: item for item in service.read("/readyz")["engines"]}
    assert ready["e2"]["state"] == "down" and "cannot be reached" in ready["e2"]["why"] and ready["e1"]["why"] is None
    metrics = service.get("/metrics").body.decode()
    assert 'rolloutd_engine_state{engine="e2",state="down"} 1' in metrics and 'rolloutd_engine_usable{engine="e1"} 1' in metrics


def test_a_batch_without_a_usable_engine_says_what_it_waits_for(start):
    port = closed_port()
    service = start(f"http://127.0.0.1:{port}#kind=vllm", settings=QUICK)
    in_state(service, "e1", "down")
    posted(service)
    waits = service.read("/v1/pending")["items"][0]["waits_for"]
    assert 'no engine of pool "default" can be used' in waits and "e1 is down" in waits and "cannot be reached" in waits


# --- who belongs together ----------------------------------------------------------------------------------

def test_an_engine_of_another_model_gets_nothing(start, scripted):
    first, second = scripted(serves="demo-1b"), scripted(serves="other-7b")
    service = start(first, settings=QUICK)
    in_state(service, "e1", "up")
    put(service, "second", {"url": second.url, "kind": "vllm"}, 201)
    shown = in_state(service, "second", "refused")
    assert shown["why"] == 'it serves other-7b, but pool "default" is of demo-1b, as e1 said first'
    assert service.batch(make_batch(sampling=sampling(20)))["summary"]["scored"] == 20
    assert len(first.samples) == 20 and not second.samples
    put(service, "second", {"pool": "others"}, 200)
    in_state(service, "second", "up")
    assert service.batch(make_batch(engine="others"))["summary"]["scored"] == 2 and len(second.samples) == 2


def test_an_engine_that_comes_back_with_another_model_in_the_middle_of_a_batch_is_refused(start, scripted):
    """Half a group of one model and half of another would be compared."""
    first, second = scripted(), scripted()
    for engine in (first, second):
        engine.rules({**RIGHT, "delay": 0.1})
    service = start(f"{first.for_rolloutd}&in_flight=2", f"{second.for_rolloutd}&in_flight=2", settings=QUICK)
    batch = posted(service, *[make_group(f"t{index}") for index in range(20)], sampling=sampling(10), deadline="60s")
    eventually(lambda: first.samples and second.samples, "both to work")
    second.serve("other-7b", "0.31.0")
    shown = in_state(service, "e2", "refused")
    assert "other-7b" in shown["why"] and shown["restarts"] == 1
    count = len(second.samples)
    settled = service.settled(batch)
    assert settled["state"] == "complete" and settled["summary"]["scored"] == 200
    assert len(second.samples) <= count + 2  # those that were on their way
    assert engines(service)["e1"]["state"] == "up"


def test_a_single_engine_that_changes_its_model_waits_for_the_end_of_what_is_unfinished(start, scripted):
    engine = scripted()
    engine.rules({**RIGHT, "delay": 0.1})
    service = start(f"{engine.for_rolloutd}&in_flight=2", settings=QUICK)
    batch = posted(service, sampling=sampling(200), deadline="60s")
    eventually(lambda: engine.samples, "the engine to work")
    engine.serve("other-7b")
    in_state(service, "e1", "refused")
    count = eventually(lambda: not engine.open and len(engine.samples), "its last samples")
    assert "refused" in service.read("/v1/pending")["items"][0]["waits_for"]
    assert service.delete(f"/v1/batches/{batch}").status == 200
    assert in_state(service, "e1", "up")["model"] == "other-7b"
    assert len(engine.samples) == count
    assert service.batch(make_batch())["summary"]["scored"] == 2


def test_the_later_steps_of_a_sample_name_the_model_of_the_first(start, scripted):
    """A probe that finds another model meanwhile has freed the name that was in use."""
    engine = scripted(kind="vllm_generate")
    engine.rules({**RIGHT, "in": "sampling_params", "hold": True})
    service = start(engine, settings=QUICK)
    in_state(service, "e1", "up")
    batch = posted(service, {"task": "ids", "prompt_ids": [5, 6, 7], "reference": "42"}, sampling=sampling(4))
    eventually(lambda: engine.open == 4, "the samples to be asked for")
    engine.serve("another-model-with-a-name-that-needs-another-piece-of-memory")
    eventually(lambda: "another" in engines(service)["e1"]["model"], "the probe to find it")
    engine.release()
    service.settled(batch)
    texts = [entry["body"]["model"] for entry in engine.requests if entry["path"] == "/detokenize"]
    assert texts == ["demo-1b"] * 4


class KilledToy(ProcessEngine):
    def __init__(self, folder, port=0):
        super().__init__(folder, [sys.executable, os.path.join(ROOT, "deploy", "demo", "toy_engine.py"), "--port", str(port), "--pace", "0.005"])

    def kill(self):
        self.process.kill()
        self.process.wait()


def test_a_killed_engine_costs_its_samples_one_try_and_is_found_again(start, tmp_path):
    toys = []
    try:
        for name in ("a", "b"):
            os.mkdir(tmp_path / name)
            toys.append(KilledToy(tmp_path / name))
        service = start(*[f"{toy.for_rolloutd}&in_flight=8" for toy in toys], settings=ASKING)
        in_state(service, "e1", "up"), in_state(service, "e2", "up")
        batch = posted(service, *[make_group(f"t{index}", f"{index}+4=") for index in range(30)], sampling=sampling(8), deadline="60s")
        eventually(lambda: engines(service)["e2"]["samples"] > 5, "the second to work")
        toys[1].process.send_signal(signal.SIGSTOP)  # so that it has something when it dies
        eventually(lambda: engines(service)["e2"]["in_flight"] == 8, "the second to have all it may have")
        toys[1].kill()
        shown = in_state(service, "e2", "down")
        assert "cannot be reached" in shown["why"]
        toys.append(KilledToy(tmp_path / "b", int(toys[1].url.rpartition(":")[2])))
        shown = in_state(service, "e2", "up")
        assert shown["restarts"] == 1 and shown["capabilities"]["seeds"] == "honoured"
        settled = service.settled(batch)
        assert settled["state"] == "complete" and settled["summary"]["scored"] == 240
        again = [rollout for rollout in rollouts(settled) if rollout["attempts"] > 1]
        assert 1 <= len(again) <= 8 + 3, len(again)  # those that were there, and one in the place of each that it took to see it
        # two: a request on a connection that was kept open may be sent once more by the HTTP library, which counts
        assert max(rollout["attempts"] for rollout in again) <= 3
    finally:
        for toy in toys:
            toy.close()


# --- more and fewer -------------------------------------------------------------------------------------------

def test_an_engine_that_is_added_takes_the_batch_that_waits_and_is_kept(start, scripted):
    service = start(f"http://127.0.0.1:{closed_port()}#kind=vllm", settings=QUICK)
    batch = posted(service, deadline="60s")
    engine = scripted()
    made = put(service, "added", {"url": engine.url + "/", "kind": "vllm", "in_flight": 3}, 201)
    assert (made["url"], made["source"], made["in_flight_limit"], made["in_flight_learned"]) == (engine.url, "api", 3, False)
    assert service.settled(batch)["summary"]["scored"] == 2
    service.restart()
    shown = in_state(service, "added", "up")
    assert (shown["url"], shown["kind"], shown["in_flight_limit"], shown["source"]) == (engine.url, "vllm", 3, "api")
    assert put(service, "added", {"in_flight": "auto"}, 200)["in_flight_learned"] is True
    assert engines(service)["added"]["state"] == "up"  # the same engine: nothing is forgotten


def test_an_engine_that_is_removed_ends_what_it_has(start, scripted):
    first, second = scripted(), scripted()
    first.rules({**RIGHT, "hold": True})
    second.rules({**RIGHT, "hold": True})
    service = start(f"{first.for_rolloutd}&in_flight=4", settings=QUICK)
    put(service, "second", {"url": second.url, "kind": "vllm", "in_flight": 4}, 201)
    in_state(service, "e1", "up"), in_state(service, "second", "up")
    batch = posted(service, *[make_group(f"t{index}") for index in range(5)], sampling=sampling(8), deadline="10m")
    eventually(lambda: second.open == 4, "the second to work")
    reply = service.delete("/v1/engines/second")
    assert reply.status == 200 and reply.json["removed"] is True and reply.json["in_flight"] > 0, reply
    assert service.delete("/v1/engines/second").status == 404
    leaving = service.read("/v1/engines/second")
    assert (leaving["state"], leaving["removed"], leaving["next"]) == ("draining", True, None) and leaving["in_flight"] > 0 and "was removed" in leaving["why"]
    assert [item["name"] for item in service.read("/v1/engines")["items"]] == ["second", "e1"]
    count = len(second.samples)
    second.release()
    eventually(lambda: service.get("/v1/engines/second").status == 404, "it to be idle")
    assert set(engines(service)) == {"e1"}
    first.release()
    settled = service.settled(batch)
    assert settled["summary"]["scored"] == 40 and not any(entry["aborted"] for entry in second.samples)
    assert len(second.samples) == count and {rollout["attempts"] for rollout in rollouts(settled)} == {1}
    service.restart()
    assert set(engines(service)) == {"e1"}


def test_a_drained_engine_gets_nothing_new_also_after_a_restart(start, scripted):
    first, second = scripted(), scripted()
    service = start(first, second, settings=QUICK)
    assert put(service, "e2", {"drain": True}, 200)["state"] == "draining"
    assert service.batch(make_batch(sampling=sampling(20)))["summary"]["scored"] == 20 and not second.samples
    service.restart()
    shown = engines(service)["e2"]
    assert shown["state"] == "draining" and "drain" in shown["why"] and shown["source"] == "settings"
    put(service, "e2", {"drain": False}, 200)
    in_state(service, "e2", "up")
    assert service.batch(make_batch(sampling=sampling(20)))["summary"]["scored"] == 20 and second.samples


def test_an_engine_of_the_settings_is_changed_there(start, engine):
    service = start(engine, settings=QUICK)
    for body in ({"url": "http://127.0.0.1:9"}, {"drain": True, "shared": True}, {"in_flight": 3}, {}):
        reply = service.put("/v1/engines/e1", body)
        assert reply.status == 409 and reply.error["code"] == "state_conflict" and "SIGHUP" in reply.error["message"], reply
    assert service.delete("/v1/engines/e1").status == 409
    assert engines(service)["e1"]["url"] == engine.url


# --- SIGHUP --------------------------------------------------------------------------------------------------------

def test_the_settings_file_is_followed_and_wins(start, scripted, tmp_path):
    first, second, third = scripted(), scripted(), scripted()
    config = settings_file(tmp_path, [{"name": "one", "url": first.url, "kind": "vllm"}, {"name": "two", "url": second.url, "kind": "vllm"}])
    service = start(args=["--config", config], settings=QUICK)
    put(service, "three", {"url": third.url, "kind": "vllm"}, 201)
    in_state(service, "one", "up"), in_state(service, "two", "up"), in_state(service, "three", "up")
    service.batch(make_batch(sampling=sampling(2)))
    before = engines(service)
    settings_file(tmp_path, [{"name": "one", "url": first.url, "kind": "vllm", "in_flight": 5}, {"name": "three", "url": second.url, "kind": "vllm"}])
    assert hang_up(service)["error"] is None
    after = engines(service)
    assert set(after) == {"one", "three"}
    assert after["one"]["in_flight_limit"] == 5 and after["one"]["samples"] == before["one"]["samples"] and after["one"]["state"] == "up"
    assert (after["three"]["source"], after["three"]["url"]) == ("settings", second.url)
    settings_file(tmp_path, [])
    hang_up(service)
    assert {(name, item["source"], item["url"]) for name, item in engines(service).items()} == {("three", "api", third.url)}
    in_state(service, "three", "up")
    assert service.batch(make_batch())["summary"]["scored"] == 2


def test_a_broken_settings_file_changes_nothing_and_is_seen(start, scripted, tmp_path):
    engine = scripted()
    entry = {"name": "one", "url": engine.url, "kind": "vllm"}
    config = settings_file(tmp_path, [entry])
    service = start(args=["--config", config], settings=QUICK)
    in_state(service, "one", "up")
    for broken in ("engines: [\n", "engines:\n  - url: ftp://x\n", "no_such_setting: 1\n", "engines:\n  - url: http://a\n    token_file: /nowhere\n"):
        with open(config, "w", encoding="utf-8") as file:
            file.write(broken)
        said = hang_up(service)
        assert said["error"] and said["read_at"] < said["tried_at"], said
        assert "all stays as it was" in service.log()
        assert set(engines(service)) == {"one"} and engines(service)["one"]["state"] == "up"
        assert service.batch(make_batch())["summary"]["scored"] == 2
    settings_file(tmp_path, [entry])
    assert hang_up(service)["error"] is None


def test_a_pipe_in_the_place_of_the_settings_file_holds_nobody_up(start, scripted, tmp_path):
    config = settings_file(tmp_path, [{"name": "one", "url": scripted().url, "kind": "vllm"}])
    service = start(args=["--config", config], settings=QUICK)
    os.unlink(config)
    os.mkfifo(config)
    assert "no regular file" in hang_up(service)["error"] and set(engines(service)) == {"one"}
    assert service.terminate() == 0


def test_a_reading_of_the_settings_does_not_outlive_the_service(start, scripted, tmp_path):
    """A worker still has it when the service ends: the address sanitizer sees whether somebody takes it."""
    engine = scripted()
    config = settings_file(tmp_path, [{"name": f"n{index}", "url": engine.url, "kind": "vllm"} for index in range(200)])
    service = start(args=["--config", config], settings=QUICK)
    service.process.send_signal(signal.SIGHUP)
    assert service.terminate() == 0


def test_work_goes_on_while_the_settings_are_read_again(start, scripted, tmp_path):
    first, second = scripted(), scripted()
    for engine in (first, second):
        engine.rules({**RIGHT, "delay": 0.05})
    config = settings_file(tmp_path, [{"name": "one", "url": first.url, "kind": "vllm", "in_flight": 4}])
    service = start(args=["--config", config], settings=QUICK)
    batch = posted(service, *[make_group(f"t{index}") for index in range(10)], sampling=sampling(10), deadline="60s")
    for round_ in range(6):
        eventually(lambda: len(first.samples) + len(second.samples) > 5 * round_, "samples")
        settings_file(tmp_path, [{"name": "one", "url": (second, first)[round_ % 2].url, "kind": "vllm", "in_flight": 4}])
        hang_up(service)
    settled = service.settled(batch)
    assert settled["summary"]["scored"] == 100 and {rollout["attempts"] for rollout in rollouts(settled)} == {1}


# --- keys --------------------------------------------------------------------------------------------------------

SECRETS = ["sk-from-a-file-9d7c", "sk-rotated-41aa", "sk-from-a-variable-77e1", "sk-of-the-settings-5b0f"]


def write_key(path, key):
    path.write_text(key + "\n")
    path.chmod(0o600)


def test_keys_reach_the_engine_and_nobody_else(start, tmp_path):
    engine = KeyedEngine()
    folder = tmp_path / "keys"
    folder.mkdir()
    write_key(folder / "provider", SECRETS[0])
    write_key(tmp_path / "own", SECRETS[3])
    try:
        service = start(f"{engine.url}#kind=openai_compat&token_file={tmp_path / 'own'}", env={"ROLLOUTD_TOKEN_other": SECRETS[2]},
                        settings={**ASKING, "engine.token_dir": folder, "log.level": "debug"})
        said = [put(service, "a", {"url": engine.url, "kind": "openai_compat", "pool": "a", "token": "provider"}, 201),
                put(service, "b", {"url": engine.url, "kind": "openai_compat", "pool": "b", "token": "other"}, 201)]
        for key in (SECRETS[0], SECRETS[2], SECRETS[3]):
            eventually(lambda: f"Bearer {key}" in engine.seen, "the key to be sent")
        write_key(folder / "provider", SECRETS[1])
        hang_up(service)
        eventually(lambda: f"Bearer {SECRETS[1]}" in engine.seen, "the new key to be sent")
        service.restart()
        engine.seen.clear()
        eventually(lambda: {f"Bearer {key}" for key in SECRETS[1:]} <= set(engine.seen), "all keys after a restart")
        said += [service.get(path).body.decode() for path in ("/v1/engines", "/v1/engines/a", "/readyz", "/metrics", "/v1/pending")]
        service.terminate()
        for key in SECRETS:
            assert key not in json.dumps(said) and key not in service.log()
            for path in glob.glob(service.database + "*"):
                with open(path, "rb") as file:
                    assert key.encode() not in file.read(), path
    finally:
        engine.close()


def test_a_key_that_is_gone_is_said(start, scripted, tmp_path):
    engine = scripted()
    write_key(tmp_path / "k", SECRETS[0])
    service = start(settings={**QUICK, "engine.token_dir": tmp_path})
    put(service, "a", {"url": engine.url, "kind": "vllm", "token": "k"}, 201)
    (tmp_path / "k").unlink()
    service.restart()
    assert "its key \"k\" cannot be read" in in_state(service, "a", "up")["why"]


# --- hostile ----------------------------------------------------------------------------------------------------------

URL = "http://127.0.0.1:9"
HOSTILE = [
    ({"url": "http://user:hunter2@127.0.0.1:9"}, "url"), ({"url": "file:///etc/passwd"}, "url"), ({"url": "gopher://127.0.0.1:9"}, "url"),
    ({"url": "http://"}, "url"), ({"url": "http://:80"}, "url"), ({"url": "127.0.0.1:9"}, "url"), ({"url": ""}, "url"), ({"url": "http://a b"}, "url"),
    ({"url": "http://h/?key=hunter2"}, "url"), ({"url": "http://h#token_file=/etc/shadow"}, "url"), ({"url": "http://h\r\nX: y"}, "url"),
    ({"url": "http://h\0x"}, "url"), ({"url": "http://" + "h" * 5000}, "url"), ({"url": 7}, "url"), ({"url": None}, "url"), ({"url": "http://ü"}, "url"),
    ({"url": URL, "kind": "telepathy"}, "kind"), ({"url": URL, "kind": 3}, "kind"), ({"url": URL, "model": ""}, "model"), ({"url": URL, "model": "a\nb"}, "model"),
    ({"url": URL, "model": "m" * 300}, "model"), ({"url": URL, "pool": ""}, "pool"), ({"url": URL, "pool": "a b"}, "pool"), ({"url": URL, "pool": "p" * 65}, "pool"),
    ({"url": URL, "in_flight": 0}, "in_flight"), ({"url": URL, "in_flight": -1}, "in_flight"), ({"url": URL, "in_flight": 65537}, "in_flight"),
    ({"url": URL, "in_flight": "many"}, "in_flight"), ({"url": URL, "in_flight": 1.5}, "in_flight"), ({"url": URL, "in_flight": None}, "in_flight"),
    ({"url": URL, "shared": "yes"}, "shared"), ({"url": URL, "drain": 1}, "drain"),
    ({"url": URL, "token": "../../etc/shadow"}, "token"), ({"url": URL, "token": "/etc/passwd"}, "token"), ({"url": URL, "token": ".."}, "token"), ({"url": URL, "token": ""}, "token"),
    ({"url": URL, "token": "sk-hunter2 x"}, "token"), ({"url": URL, "token": "nothing_of_this_name"}, "token"), ({"url": URL, "token": "a\0b"}, "token"), ({"url": URL, "token": "open"}, "token"),
]


@pytest.fixture(scope="module")
def keyed(shared_factory):
    folder = shared_factory.folder / "keys"
    folder.mkdir(exist_ok=True)
    (folder / "open").write_text("everybody-may-read-this\n")
    (folder / "open").chmod(0o644)
    return shared_factory(settings={**QUICK, "engine.token_dir": folder})


@pytest.mark.parametrize("body,path", HOSTILE, ids=lambda value: str(value)[:60])
def test_a_hostile_body_is_refused_by_its_field(keyed, body, path):
    reply = keyed.put("/v1/engines/x", body)
    assert reply.status == 400 and reply.error["code"] == "invalid_field" and reply.error["path"] == path, reply
    assert b"hunter2" not in reply.body and "hunter2" not in keyed.log() and keyed.get("/v1/engines/x").status == 404


@pytest.mark.parametrize("name", ["a%20b", "n" * 65, "n" * 3000, "%2e%2e%2fx", "x%0d%0ay", "%F0%9F%A6%99", "a;b"], ids=lambda value: value[:20])
def test_a_hostile_name_is_refused(keyed, name):
    reply = keyed.put(f"/v1/engines/{name}", {"url": URL})
    assert reply.status in (400, 414) and reply.error["code"] in ("invalid_field", "bad_request"), reply
    assert keyed.get(f"/v1/engines/{name}").status in (404, 414)


def test_missing_and_unknown_fields_are_named(keyed):
    reply = keyed.put("/v1/engines/x", {"kind": "vllm"})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "missing_field", "url")
    reply = keyed.put("/v1/engines/x", {"url": URL, "tokenfile": "k"})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "unknown_field", "tokenfile")
    assert keyed.put("/v1/engines/x", b"{").error["code"] == "invalid_json"
    assert keyed.put("/v1/engines/x", b"[]").status == 400
    assert keyed.get("/v1/engines", x=1).status == 400


def test_there_are_only_so_many_engines(start):
    service = start(settings={**QUICK, "engine.check_interval": "1h"})
    for index in range(256):
        put(service, f"n{index}", {"url": f"http://127.0.0.1:{1 + index % 7}", "kind": "vllm"}, 201)
    assert service.delete("/v1/engines/n0").status == 200
    replies = []
    threads = [threading.Thread(target=lambda name=name: replies.append(service.put(f"/v1/engines/{name}", {"url": URL}).status)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(replies) == [201] + 7 * [409]  # also what is on its way to the record counts
    service.restart()
    assert len(engines(service)) == 256 and sum(name in "abcdefgh" for name in engines(service)) == 1
    reply = service.put("/v1/engines/more", {"url": URL})
    assert reply.status == 409 and "256" in reply.error["message"], reply
    assert service.delete("/v1/engines/n7").status == 200
    put(service, "more", {"url": URL}, 201)
    assert len(engines(service)) == 256
