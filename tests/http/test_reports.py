"""Situations from public bug reports of trainers, engines and servers (tests/cases/reports.jsonl), for the parts built so far.
Those that belong to a topic stand there, with their number: `grep -rn R55 tests/http`."""
import os
import shutil
import socket
import subprocess

import pytest

from harness import eventually
from material import assert_failed_without_a_number, by_task, make_batch, make_group, rollouts, sampling

BOXED_42 = {"text": "\\boxed{42}"}


def test_r15_an_engine_that_leaves_logprobs_out_trains_nothing(service, engine):
    """R15"""
    engine.rules({"lp": None})
    batch = service.batch(make_batch())
    for rollout in rollouts(batch):
        if rollout["state"] == "scored":
            assert rollout["trainable"] is False and rollout["contributions"] is None
        else:
            assert_failed_without_a_number(rollout)
            assert rollout["failure"]["code"] == "invalid_reply"
    assert batch["loss"] is None or batch["totals"]["tokens"] == 0
    for entry in engine.samples:
        assert isinstance(entry["body"]["logprobs"], int) and "top_logprobs" not in entry["body"]


def test_r19_an_unusual_finish_reason_is_neither_stop_nor_length(service, engine):
    """R19"""
    reasons = {"PROMPT-0": None, "PROMPT-1": "aborted", "PROMPT-2": "", "PROMPT-3": "content_filter"}
    engine.rules(*[{"in": prompt, "finish": reason} for prompt, reason in reasons.items()])
    batch = service.batch(make_batch(*[make_group(f"t{index}", f"PROMPT-{index}", "4") for index in range(4)], sampling=sampling(1)))
    wanted = {"t0": "invalid_reply", "t1": "engine_error", "t2": "invalid_reply", "t3": "engine_error"}
    for task, group in by_task(batch).items():
        rollout = group["rollouts"][0]
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] == wanted[task], rollout["failure"]
        if task in ("t1", "t3"):
            assert reasons[f"PROMPT-{task[1]}"] in rollout["failure"]["message"]
    assert len(engine.samples) <= 80


def test_r21_an_error_with_status_200_is_an_error(service, engine):
    """R21"""
    engine.rules({"in": "QUERY-1", "json": {"error": {"code": "rate_limit_daily", "message": "quota used up", "type": "rate_limit"}}},
                 {"in": "QUERY-2", "json": {"object": "text_completion", "choices": []}}, {"in": "QUERY-3", "json": {"choices": None}},
                 {"in": "QUERY-4", "raw": "null"}, {"in": "QUERY-5", "raw": "[]"}, {"in": "QUERY-6", "raw": ""})
    batch = service.batch(make_batch(*[make_group(f"q{index}", f"QUERY-{index}", "4") for index in range(1, 8)], sampling=sampling(1)))
    groups = by_task(batch)
    first = groups["q1"]["rollouts"][0]["failure"]
    assert first["code"] in ("engine_error", "engine_overloaded") and ("rate_limit_daily" in first["message"] or "quota used up" in first["message"])
    for index in range(2, 7):
        rollout = groups[f"q{index}"]["rollouts"][0]
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] == "invalid_reply", (index, rollout["failure"])
    assert groups["q7"]["rollouts"][0]["state"] == "scored" and service.alive()


def test_r24_a_proxy_in_the_environment_does_not_catch_the_engine(start, engine):
    """R24"""
    engine.rules(BOXED_42)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        url = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        names = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
        service = start(engine, env={**dict.fromkeys(names, url), "no_proxy": "", "NO_PROXY": ""})
        assert all(rollout["reward"] == 1 for rollout in rollouts(service.batch(make_batch())))
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_r25_a_late_result_does_not_replace_a_terminal_one(service, engine):
    """R25"""
    engine.rules({"in": "SLOW", "hold": True})
    batch = service.batch(make_batch(make_group("slow", "SLOW"), make_group("fast", "fast"), deadline="3s"))
    assert batch["state"] == "expired"
    told = service.get(f"/v1/batches/{batch['id']}").body
    engine.release()
    eventually(lambda: engine.open == 0, "the engine to have answered, or to have found nobody")
    assert service.get(f"/v1/batches/{batch['id']}").body == told
    assert len(engine.samples_for("SLOW")) == 2 and all(entry["aborted"] for entry in engine.samples_for("SLOW"))


def test_r28_half_a_surrogate_pair_from_an_engine_becomes_the_replacement_character(service, engine):
    """R28"""
    engine.rules({"raw": r'{"id":"c","object":"text_completion","model":"demo-1b","choices":[{"index":0,"text":"\\boxed{42} \ud83d","token_ids":[9,10],'
                         r'"finish_reason":"length","logprobs":{"token_logprobs":[-0.5,-1.5],"tokens":["token_id:9","token_id:10"],"top_logprobs":[{},{}],'
                         r'"text_offset":[0,0]}}]}'})
    rollout = rollouts(service.batch(make_batch(sampling=sampling(1))))[0]
    assert rollout["state"] == "scored" and rollout["reward"] == 1
    assert rollout["completion_ids"] == [9, 10] and rollout["logprobs"] == [-0.5, -1.5] and rollout["text"] == "\\boxed{42} \ufffd"


def test_r29_a_429_is_not_a_wrong_answer(service, engine):
    """R29"""
    engine.rules({"in": "LIMIT", "status": 429, "headers": {"Retry-After": "1"}, "json": {"error": {"message": "rate limit", "code": 429}}}, BOXED_42)
    batch = service.batch(make_batch(make_group("ok", "fine"), make_group("lim", "LIMIT"), sampling=sampling(4), deadline="5s"))
    for rollout in by_task(batch)["lim"]["rollouts"]:
        assert_failed_without_a_number(rollout)
        assert rollout["failure"]["code"] in ("engine_overloaded", "deadline") and rollout["failure"]["retryable"] is True
    assert len(engine.samples_for("LIMIT")) <= 4 * 4, "engine.attempts"
    assert batch["summary"]["reward_mean"] == 1 and batch["summary"]["scored"] == batch["summary"]["failed"] == 4


def test_r35_equal_rewards_for_a_broken_reference_are_no_rewards(service, engine):
    """R35"""
    engine.rules({"text": "\\boxed{3}"})
    batch = service.batch(make_batch(make_group("t1", reference="\\frac{1}{")))
    assert all(rollout["reward"] is None for rollout in rollouts(batch)) and batch["loss"] is None


def test_r63_a_missing_reward_is_null_in_every_place(service, engine):
    """R63"""
    engine.rules({"times": 1, "in": "PROMPT-0", "status": 500, "raw": "boom"}, {"in": "PROMPT-1", "status": 500, "raw": "boom"}, {"text": "\\boxed{5}"})
    batch = service.batch(make_batch(make_group("g0", "PROMPT-0", "4"), make_group("g1", "PROMPT-1", "4")))
    for rollout in by_task(batch)["g0"]["rollouts"]:
        assert (rollout["reward"], rollout["shaped_reward"]) == (0, 0), "wrong, after a retry"
    for rollout in by_task(batch)["g1"]["rollouts"]:
        places = [rollout, service.read(f"/v1/rollouts/{rollout['id']}"),
                  *[item for item in service.read("/v1/rollouts", task="g1")["items"] if item["id"] == rollout["id"]],
                  *[item for item in service.read(f"/v1/groups/{by_task(batch)['g1']['id']}")["rollouts"] if item["id"] == rollout["id"]]]
        assert len(places) == 4
        for place in places:
            assert place["reward"] is None and place["shaped_reward"] is None and place["advantage"] is None and place["failure"]


def test_r69_a_name_server_that_does_not_answer_stops_nobody(start, engine, tmp_path):
    """R69"""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler or "ROLLOUTD_SANITIZED" in os.environ:
        pytest.skip("needs a compiler and a library that is loaded first")
    source, library, hanging = tmp_path / "slow.c", tmp_path / "slow.so", tmp_path / "hanging"
    hanging.touch()
    source.write_text("#include <netdb.h>\n#include <stdlib.h>\n#include <unistd.h>\nint getaddrinfo(const char *n, const char *s, const struct addrinfo *h, struct addrinfo **r)\n"
                      "{ (void)n; (void)s; (void)h; (void)r; while (access(getenv(\"HANGING\"), F_OK) == 0) usleep(10000); return EAI_AGAIN; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    engine.rules(BOXED_42)
    service = start("http://engine.invalid:9000#kind=vllm", engine, env={"LD_PRELOAD": str(library), "HANGING": str(hanging)})
    for _ in range(5):  # a loop that waited for the resolver would answer nobody
        assert service.get("/healthz").status == 200
        batch = service.batch(make_batch(deadline="30s"))
        assert all(rollout["reward"] == 1 for rollout in rollouts(batch)), batch["summary"]
    hanging.unlink()


def test_r72_silent_clients_are_let_go(start):
    """R72"""
    service = start(settings={"body_timeout": "1s", "connection_timeout": "2s"})
    before = len(os.listdir(f"/proc/{service.pid}/fd"))
    wires = [service.wire().send("GET /heal") for _ in range(100)]
    eventually(lambda: len(os.listdir(f"/proc/{service.pid}/fd")) <= before + 5, "the silent connections to be closed")
    for wire in wires:
        wire.close()


def test_r77_a_model_name_with_quotes_breaks_no_scrape(start, engine):
    """R77"""
    from test_metrics import metrics
    service = start(f"{engine.url}#kind=vllm&model=a%22b%5Cc")
    service.batch(make_batch())
    metrics(service)
    reply = service.post("/v1/batches", make_batch(verifiers=[{"name": "math", "id": 'q"uo\nte'}]))
    assert reply.status in (200, 400) and (reply.status == 200 or reply.error["path"] == "verifiers[0].id")
    metrics(service)


def test_r82_two_batches_with_another_reference_keep_their_own(service, engine):
    """R82"""
    engine.rules({"text": "\\boxed{2}"})
    first, second = (service.batch(make_batch(make_group("t9", reference=reference))) for reference in ("1", "2"))
    assert [rollout["reward"] for rollout in rollouts(first)] == [0, 0] and [rollout["reward"] for rollout in rollouts(second)] == [1, 1]


def test_r64_a_run_that_was_resumed_with_another_objective_shows_both_and_from_when(service, engine):
    first = service.batch(make_batch(objective={"preset": "grpo"}))
    service.restart()
    second = service.batch(make_batch(make_group("t2", prompt="x", reference="1"), objective={"preset": "dr_grpo"}))
    service.batch(make_batch(make_group("t3"), objective={"preset": "dr_grpo"}))
    shown = service.read("/v1/runs/test")["objectives"]
    assert [(item["first_batch"], item["objective"]) for item in shown] == [(first["id"], first["objective"]), (second["id"], second["objective"])]
    assert first["objective"] != second["objective"]
