"""Engines of kind `scorer`: servers of numbers that list no models. Judges ask them; nothing samples from them and nothing probes them."""
import json

import pytest

from engines import ScriptedEngine
from harness import eventually
from material import assert_failed_without_a_number, make_batch, make_group, rollouts, sampling
from reward_server import NobodyThere, RewardServer, answer
from test_engines_api import hang_up, put, settings_file
from test_start import refused, run, serving

QUICK = {"engine.backoff_min": "5ms", "engine.backoff_max": "20ms", "engine.attempts": 2, "engine.down_timeout": "2s", "engine.probe_samples": "false"}
WIRES = {
    "openrlhf": ("/get_reward", {"rewards": [0.5]}, {"query": ["6*7?42"], "prompts": ["6*7?"], "labels": ["42"]}),
    "slime": ("/rm", 0.5, {"prompt": "6*7?", "response": "42", "label": "42"}),
    "tei": ("/predict", [{"label": "LABEL_0", "score": 0.5}], {"inputs": "6*7?42", "raw_scores": True}),
}


class Scorer(RewardServer):
    """Knows one path; everything else, a list of models too, is 404."""

    def __init__(self, payload, kind="scorer", pool="rewards", more=""):
        self.path, reply, self.wanted = WIRES[payload]
        self.reply = json.dumps(reply)
        super().__init__(lambda asked: answer(self.reply))
        self.for_rolloutd = f"{self.url}#kind={kind}&pool={pool}&name={pool}-1{more}"


@pytest.fixture
def scorer():
    made = []

    def make(*args, **more):
        made.append(Scorer(*args, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


def verifier(payload, pool="rewards", **more):
    return {"name": "judge", "options": {"engine": pool, "parse": {"kind": "reward_model", "payload": payload}, **more}}


def verdict_on(service, payload, pool="rewards", **more):
    item = {"id": "1", "prompt": "6*7?", "completion": "42", "reference": "42", "verifiers": [verifier(payload, pool, **more)]}
    reply = service.post("/v1/verify", {"items": [item]})
    assert reply.status == 200, reply
    return reply.json["items"][0]["verdicts"][0]


def shown(service, name="rewards-1"):
    return service.read(f"/v1/engines/{name}")


# -- three payloads ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("payload", WIRES)
def test_a_server_without_a_list_of_models_is_asked_at_once_and_for_nothing_else(start, scorer, payload):
    server = scorer(payload)
    service = start(server.for_rolloutd, settings=QUICK)
    verdict = verdict_on(service, payload)
    assert (verdict["score"], verdict["detail"]["engine_model"], verdict["detail"]["engine_version"]) == (0.5, None, None), verdict
    assert server.asked == [server.wanted]
    assert [line for line, _ in server.heads] == [f"POST {server.path} HTTP/1.1"]
    engine = shown(service)
    assert (engine["kind"], engine["state"], engine["model"], engine["probed_at"], engine["requests"], engine["samples"]) == ("scorer", "up", None, None, 1, 1)
    assert "not probed" in engine["why"]


def test_a_model_of_the_settings_is_sent_where_the_payload_has_one(start, scorer):
    servers = scorer("tei", pool="named", more="&model=rm-1"), scorer("tei", pool="bare")
    service = start(*[server.for_rolloutd for server in servers], settings=QUICK)
    for server in servers:
        server.reply = json.dumps([{"embedding": [0.5]}])
    said = [verdict_on(service, "classify", pool) for pool in ("named", "bare")]
    assert [(verdict["score"], verdict["detail"]["engine_model"]) for verdict in said] == [(0.5, "rm-1"), (0.5, None)], said
    assert [server.asked for server in servers] == [[{"model": "rm-1", "text": "6*7?42"}], [{"text": "6*7?42"}]]
    verdict_on(service, "tei", "named")
    assert "model" not in servers[0].asked[-1]


# -- batches ----------------------------------------------------------------------------------------------------------------------

def test_a_batch_is_rewarded_by_a_scorer(start, scorer, engine):
    server = scorer("openrlhf")
    engine.rules({"text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]})
    service = start(engine, server.for_rolloutd, settings=QUICK)
    batch = service.batch(make_batch(make_group("t1"), verifiers=[verifier("openrlhf")], sampling=sampling(3)))
    assert [rollout["reward"] for rollout in rollouts(batch)] == [0.5] * 3
    ask, = service.read(f"/v1/rollouts/{rollouts(batch)[0]['id']}")["verdicts"][0]["detail"]["asks"]
    assert ask["engine"] == "rewards-1" and len(server.asked) == 3


def test_a_batch_that_would_sample_from_a_scorer_is_refused_by_name(start, scorer, engine):
    server = scorer("slime")
    service = start(engine, server.for_rolloutd, settings=QUICK)
    reply = service.post("/v1/batches", make_batch(make_group("t1"), engine="rewards", verifiers=[{"name": "exact"}]))
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "engine"), reply
    assert "\"rewards\"" in reply.error["message"] and "scorer" in reply.error["message"] and "default" in reply.error["message"]
    assert not server.asked and not engine.samples


def test_a_scorer_alone_is_no_pool_to_sample_from(start, scorer):
    service = start(scorer("slime", pool="default").for_rolloutd, settings=QUICK)
    assert service.get("/readyz").status == 200
    reply = service.post("/v1/batches", make_batch(make_group("t1"), verifiers=[{"name": "exact"}]))
    assert (reply.status, reply.error["path"]) == (400, "engine") and "no engine that samples" in reply.error["message"], reply


def test_a_scorer_does_not_make_up_for_a_policy_that_is_away(start, scorer):
    nobody = NobodyThere()
    service = start(f"{nobody.url}#pool=policy&name=policy", scorer("slime").for_rolloutd, settings=QUICK)
    eventually(lambda: shown(service, "policy")["state"] == "down", "the policy to be down")
    reply = service.get("/readyz")
    assert reply.status == 503 and reply.json["parts"]["engines"] == "no engine answers"
    nobody.close()


# -- at run time ------------------------------------------------------------------------------------------------------------------

def test_a_scorer_comes_by_put_and_is_there_after_a_restart(start, scorer):
    server = scorer("slime")
    service = start(settings=QUICK)
    reply = service.put("/v1/engines/rewards-1", {"url": server.url, "kind": "scorer", "pool": "rewards"})
    assert (reply.status, reply.json["kind"], reply.json["state"]) == (201, "scorer", "up"), reply
    assert verdict_on(service, "slime")["score"] == 0.5
    service.kill()
    service.start()
    assert verdict_on(service, "slime")["score"] == 0.5 and len(server.asked) == 2
    assert service.put("/v1/engines/rewards-1", {"drain": True}).json["state"] == "draining"
    assert verdict_on(service, "slime")["failure"]["code"] == "engine_unreachable"


@pytest.mark.parametrize("kind, body", [("scorer", {"pool": "policy", "kind": "scorer"}), ("sampler", {"pool": "rewards"}), ("sampler", {"pool": "rewards", "kind": "vllm"})])
def test_a_put_that_mixes_scorers_with_engines_that_sample_is_refused(start, scorer, engine, kind, body):
    service = start(f"{engine.url}#pool=policy&name=policy-1", scorer("slime").for_rolloutd, settings=QUICK)
    reply = service.put("/v1/engines/new", {"url": "http://127.0.0.1:1", **body})
    assert (reply.status, reply.error["code"], reply.error["path"]) == (400, "invalid_field", "pool"), reply
    assert ("policy-1" if kind == "scorer" else "rewards-1") in reply.error["message"]
    assert service.get("/v1/engines/new").status == 404


@pytest.mark.parametrize("how", ["restart", "hang up"])
@pytest.mark.parametrize("put_kind, kind", [("scorer", "vllm"), ("vllm", "scorer")])
def test_an_engine_that_was_put_waits_while_the_settings_would_mix_it(start, scorer, engine, tmp_path, put_kind, kind, how):
    urls = {"scorer": scorer("slime").url, "vllm": engine.url}
    entry = {"name": "of-the-file", "url": urls[kind], "kind": kind, "pool": "p"}
    config = settings_file(tmp_path, [])
    service = start(args=["--config", config], settings=QUICK)
    put(service, "by-put", {"url": urls[put_kind], "kind": put_kind, "pool": "p"}, 201)

    def names_with(entries):
        settings_file(tmp_path, entries)
        if how == "restart":
            service.restart()
        else:
            hang_up(service)
        return {one["name"] for one in service.read("/v1/engines")["items"] if not one["removed"]}
    assert names_with([entry]) == {"of-the-file"}
    assert "a pool has scorers alone, or none" in service.log()
    reply = service.put("/v1/engines/by-put", {"drain": False})
    assert (reply.status, reply.error["path"]) == (400, "pool") and "of-the-file" in reply.error["message"], reply
    assert names_with([{**entry, "pool": "other"}]) == {"of-the-file", "by-put"}
    assert names_with([entry]) == {"of-the-file"}
    put(service, "second", {"url": urls[kind], "kind": kind, "pool": "p"}, 201)
    assert len(names_with([]) & {"by-put", "second"}) == 1  # not mixed among themselves


def test_settings_that_mix_them_are_refused_at_the_start(tmp_path):
    refused(*serving(tmp_path, "--engine", "http://a:1#pool=p&kind=scorer", "--engine", "http://b:1#pool=p"), names=["pool", "\"p\"", "a pool of scorers alone"])


# -- hostile servers --------------------------------------------------------------------------------------------------------------

LIES = {
    "openrlhf": ['{"rewards": [0.5, 1]}', '{"rewards": ["0.5"]}', '{"rewards": [NaN]}', '{"reward": [0.5]}', '{"rewards": [0.5], "rewards": [1]}', "<html>1</html>", "", "[" * 200_000],
    "slime": ['"0.5"', "true", "null", "[0.5, 1]", "1e999", "1.1e100", "-1e308", "0.5 0.5"],
    "tei": ['[{"label": "a", "score": 0.5}, {"label": "b", "score": 1}]', '[{"label": "a"}]', "[]", '{"error": "busy", "error_type": "Overloaded"}'],
}


@pytest.mark.parametrize("payload", WIRES)
def test_a_scorer_that_lies_gives_no_score_and_stays_in_use(start, scorer, payload):
    server = scorer(payload)
    honest, service = server.reply, start(server.for_rolloutd, settings=QUICK)
    for lie in LIES[payload]:
        server.reply = lie
        verdict = verdict_on(service, payload)
        assert (verdict["score"], verdict["verdict"], verdict["failure"]["code"]) == (None, "unscored", "invalid_reply"), (lie, verdict)
    server.reply = honest
    assert verdict_on(service, payload)["score"] == 0.5
    assert shown(service)["state"] == "up"


def test_a_reward_that_no_record_could_hold_is_none(start, scorer, engine):
    """1e300 by a weight of 1e9 is beyond double: no sum of scores and weights may be."""
    server = scorer("slime")
    engine.rules({"text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]})
    service = start(engine, server.for_rolloutd, settings=QUICK)
    for reply, wanted in (("1e300", None), ("1e100", 1e109), ("-1e100", -1e109)):
        server.reply = reply
        batch = service.batch(make_batch(make_group("t1"), verifiers=[{**verifier("slime"), "weight": 1e9}], sampling=sampling(2)))
        assert [(one["reward"], one["state"]) for one in rollouts(batch)] == [(wanted, "failed" if wanted is None else "scored")] * 2
        assert service.read(f"/v1/batches/{batch['id']}")["state"] == "complete"
    assert service.read("/v1/batches", run="test", state="running")["items"] == []


def test_a_scorer_that_hangs_costs_the_time_of_the_verdict(start, scorer):
    server = scorer("openrlhf")
    server.act = lambda asked: RewardServer.HANG
    service = start(server.for_rolloutd, settings=QUICK)
    verdict = verdict_on(service, "openrlhf", timeout="300ms")
    assert verdict["score"] is None and verdict["failure"]["code"] in ("engine_timeout", "verifier_timeout"), verdict


def test_pending_shows_the_calls_at_a_scorer(start, scorer, engine):
    server = scorer("openrlhf")
    server.act = lambda asked: RewardServer.HANG
    engine.rules({"text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]})
    service = start(engine, server.for_rolloutd, settings=QUICK)
    batch = service.post("/v1/batches", make_batch(make_group("t1"), verifiers=[verifier("openrlhf", timeout="1h")], sampling=sampling(2)), {"Prefer": "respond-async"}).json["id"]
    calls = eventually(lambda: [row for row in service.read("/v1/pending")["calls"] if row["in_flight"] == 2], "two calls to be under way")
    assert calls == [{"run": "test", "engine": "rewards", "external": None, "waiting": 0, "in_flight": 2}]
    assert shown(service)["in_flight"] == 2
    server.act = lambda asked: answer(server.reply)
    assert service.delete(f"/v1/batches/{batch}").status == 200


def test_a_scorer_that_is_broken_is_left_alone_until_a_single_call_succeeds(start, scorer):
    server = scorer("slime")
    server.act = lambda asked: answer('{"error": "out of memory"}', 500)
    service = start(server.for_rolloutd, settings={**QUICK, "engine.attempts": 1})
    for _ in range(3):
        verdict = verdict_on(service, "slime")
        assert verdict["score"] is None and verdict["failure"]["code"] == "engine_error", verdict
    engine = shown(service)
    assert engine["state"] in ("down", "half_open") and engine["failures"] == {"engine_error": 3}, engine
    assert engine["next"] == "it gets a single request when there is one to send" and engine["last_error"]["status"] == 500
    server.act = lambda asked: answer(server.reply)
    assert verdict_on(service, "slime")["score"] == 0.5
    assert shown(service)["state"] == "up"


def test_a_scorer_that_dies_is_down_and_is_used_again_when_it_is_back(start, scorer):
    nobody, server = NobodyThere(), scorer("openrlhf")
    service = start(f"{nobody.url}#kind=scorer&pool=rewards&name=rewards-1", settings={**QUICK, "engine.down_timeout": "300ms"})
    verdict = verdict_on(service, "openrlhf")
    assert verdict["score"] is None and verdict["failure"]["code"] == "engine_unreachable", verdict
    assert shown(service)["state"] in ("down", "half_open")
    port = nobody.socket.getsockname()[1]
    nobody.close()
    server.come_back(port)
    verdict = eventually(lambda: (said := verdict_on(service, "openrlhf"))["score"] is not None and said, "the scorer to be used again")
    assert verdict["score"] == 0.5 and shown(service)["state"] == "up"


def test_a_rollout_whose_scorer_is_broken_has_no_reward(start, scorer, engine):
    server = scorer("tei")
    server.act = lambda asked: answer("no", 400)
    engine.rules({"text": " 42", "ids": [4, 2], "lp": [-0.1, -0.2]})
    service = start(engine, server.for_rolloutd, settings=QUICK)
    batch = service.batch(make_batch(make_group("t1"), verifiers=[verifier("tei")], sampling=sampling(2)))
    for rollout in rollouts(batch):
        assert_failed_without_a_number(rollout)
    assert batch["summary"]["reward_mean"] is None and batch["summary"]["failures"] == {"engine_error": 2}


def test_of_two_scorers_the_one_that_answers_is_asked(start, scorer):
    nobody, server = NobodyThere(), scorer("slime")
    service = start(f"{nobody.url}#kind=scorer&pool=rewards&name=gone", server.for_rolloutd, settings={**QUICK, "engine.attempts": 4})
    assert [verdict_on(service, "slime")["score"] for _ in range(6)] == [0.5] * 6
    assert len(server.asked) == 6
    nobody.close()


def test_a_kind_that_is_found_by_asking_is_never_a_scorer(start):
    """Only the settings say it: a server that knows nothing stays refused."""
    other = ScriptedEngine(probes={path: None for path in ("/version", "/model_info", "/props", "/v1/models", "/health")})
    service = start(f"{other.url}#name=who", settings=QUICK)
    eventually(lambda: shown(service, "who")["state"] in ("refused", "down"), "the server to be refused")
    assert shown(service, "who")["kind"] is None
    other.close()


def test_the_command_asks_a_scorer_of_its_settings(tmp_path, scorer):
    server = scorer("slime")
    file = tmp_path / "rolloutd.yaml"
    file.write_text(f'engines:\n  - {{url: "{server.url}", pool: rewards, kind: scorer}}\n', encoding="utf-8")
    done = run("verify", "--config", file, "--verifier", "judge", "--options", json.dumps(verifier("slime")["options"]), "--prompt", "6*7?", "--reference", "42", "--completion", "42")
    assert "engine_model null\n" in done.stdout and "score 0.5" in done.stdout, done
    assert server.asked == [server.wanted]
