"""Reward servers as OpenRLHF, slime and NeMo Gym ask for them."""
import base64
import json

import pytest

from harness import StartFailed, eventually

MATH = '[{"name": "math"}]'
SETTINGS = {"compat.openrlhf": MATH, "compat.slime": MATH, "compat.nemo_gym": MATH, "verifier_sets": '{"yes": [{"name": "exact", "reference": "yes"}]}'}
UNREADABLE = "\\frac{"
OPENRLHF, SLIME, NEMO_GYM = "/compat/openrlhf/get_reward", "/compat/slime/rm", "/compat/nemo_gym/verify"
ROUTES = (OPENRLHF, SLIME, NEMO_GYM)


@pytest.fixture(scope="module")
def refusing(shared_factory):
    return shared_factory(settings=SETTINGS)


@pytest.fixture(scope="module")
def numbering(shared_factory):
    return shared_factory(settings={**SETTINGS, "compat.failed": "-1.5"})


def asked(route, completion, label, prompt="6*7="):
    """One sample in the protocol of the route."""
    if route == OPENRLHF:
        return {"query": [prompt + completion], "prompts": [prompt], "labels": [label]}
    if route == SLIME:
        return {"prompt": prompt, "response": completion, "label": label}
    return {"responses_create_params": {"input": [{"role": "user", "content": prompt}]}, "expected_answer": label, "id": 7,
            "response": {"output": [{"type": "reasoning", "content": []},
                                    {"type": "message", "content": [{"type": "output_text", "text": completion}]}]}}


def reward_of(route, reply):
    assert reply.status == 200, reply
    return reply.json["rewards"] if route == OPENRLHF else reply.json if route == SLIME else reply.json["reward"]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("completion, reward", [("\\boxed{42}", 1), ("\\boxed{41}", 0), ("", 0)])
def test_one_sample(refusing, route, completion, reward):
    assert reward_of(route, refusing.post(route, asked(route, completion, "42"))) == reward


@pytest.mark.parametrize("route", ROUTES)
def test_a_label_may_bring_its_verifiers(refusing, route):
    label = {"verifiers": [{"name": "exact"}], "reference": "blue"}
    assert reward_of(route, refusing.post(route, asked(route, "blue", label))) == 1
    assert reward_of(route, refusing.post(route, asked(route, "blue", json.dumps(label)))) == 1
    assert reward_of(route, refusing.post(route, asked(route, "\\boxed{\\{1,2\\}}", "{1,2}"))) == 1  # a set is no JSON


@pytest.mark.parametrize("route", ROUTES)
def test_a_set_of_verifiers_by_name(refusing, route):
    assert reward_of(route, refusing.post(route, asked(route, "yes", None), verifiers="yes")) == 1
    reply = refusing.post(route, asked(route, "yes", None), verifiers="no")
    assert (reply.status, reply.error["code"], reply.error["path"]) == (404, "not_found", "verifiers")


@pytest.mark.parametrize("route", (OPENRLHF, SLIME))
@pytest.mark.parametrize("label, code", [(UNREADABLE, "reference_unreadable"), (None, "reference_unreadable"),
                                         ({"verifiers": [{"name": "none"}], "reference": 1}, "invalid_field")])
def test_a_failure_is_refused_with_its_code(refusing, route, label, code):
    reply = refusing.post(route, asked(route, "\\boxed{42}", label))
    assert (reply.status, reply.error["code"]) == (422, code) and reply.error["message"]


def test_a_failure_is_the_number_that_the_settings_name(numbering):
    reply = numbering.post(SLIME, asked(SLIME, "\\boxed{42}", UNREADABLE))
    assert (reply.status, reply.json, reply.headers["x-rolloutd-failed"]) == (200, -1.5, "reference_unreadable")
    assert "x-rolloutd-failed" not in numbering.post(SLIME, asked(SLIME, "\\boxed{42}", "42")).headers
    body = {"query": ["a\\boxed{42}", "b\\boxed{42}", "c"], "prompts": ["a", "b", "c"], "labels": ["42", UNREADABLE, "42"]}
    said = numbering.post(OPENRLHF, body).json
    assert said["rewards"] == said["scores"] == [1, -1.5, 0] and said["extra_logs"]["rolloutd_failed"] == pytest.approx(1 / 3)


# -- on record ---------------------------------------------------------------------------------------------------


def rows_of(service, run):
    rows, query = [], {"run": run, "fields": "task,reward,failure,policy_revision,rewards,prompt,reference,text,verdicts"}
    while True:
        page = service.get("/v1/rollouts", **query).json
        rows += page["items"]
        query["cursor"] = page.get("next")
        if not query["cursor"]:
            return rows


def attached(service, run, revision=0):
    assert service.post(f"/v1/runs/{run}/attach", {"step": 0, "revision": revision}).status == 200
    return {"run": run}


@pytest.mark.parametrize("route", ROUTES)
def test_a_sample_under_a_run_is_on_record(numbering, route):
    run = attached(numbering, "kept-" + route.split("/")[2], 5)
    assert [reward_of(route, numbering.post(route, asked(route, said, "42"), **run)) for said in ("\\boxed{42}", "\\boxed{41}")] == [1, 0]
    assert reward_of(route, numbering.post(route, asked(route, "yes", None, prompt="?"), verifiers="yes", **run)) == 1
    rows = rows_of(numbering, run["run"])
    assert sorted((row["reward"], row["reference"]) for row in rows if row["reference"]) == [(0, "42"), (1, "42")]
    assert len({row["task"] for row in rows}) == 2 and {row["policy_revision"] for row in rows} == {5}
    assert {row["prompt"] for row in rows} == {"6*7=", "?"} and {row["text"] for row in rows} == {"\\boxed{42}", "\\boxed{41}", "yes"}
    batch = numbering.get("/v1/batches", run=run["run"]).json["items"][0]["id"]
    assert numbering.get(f"/v1/batches/{batch}").json["metadata"] == {"route": route}
    report = numbering.get(f"/v1/runs/{run['run']}/report").json
    assert report["totals"]["n"] == 3 and report["totals"]["scored"] == 3


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("completion, label, code", [
    ("\\boxed{42}", UNREADABLE, "reference_unreadable"), ("\\boxed{42}", None, "reference_unreadable"), ("", "42", "empty_completion"),
    ("x", {"verifiers": [{"name": "none"}], "reference": 1}, "invalid_field"), ("x", '{"verifiers": [7]}', "invalid_field"),
])
def test_a_failure_under_a_run_is_on_record_as_a_failure(refusing, numbering, route, completion, label, code):
    run = attached(refusing, f"failed-{route.split('/')[2]}-{code}")
    reply = refusing.post(route, asked(route, completion, label), **run)
    if route == NEMO_GYM:
        assert (reply.status, reply.json["mask_sample"], reply.json["failure_kind"], reply.json["_ng_failure_class"]) == (200, True, f"rolloutd:{code}", "judge_failed")
    else:
        assert (reply.status, reply.error["code"]) == (422, code) and reply.error["message"]
        attached(numbering, run["run"])
        assert reward_of(route, numbering.post(route, asked(route, completion, label), **run)) == -1.5
    assert {(row["reward"], row["failure"]["code"]) for row in rows_of(refusing, run["run"])} == {(None, code)}


def test_several_samples_of_openrlhf_under_a_run(numbering):
    run = attached(numbering, "several")
    body = {"query": ["a\\boxed{42}", "b\\boxed{42}", "a", "a\\boxed{42}"], "prompts": ["a", "b", "a", "a"], "labels": ["42", UNREADABLE, "42", "42"]}
    said = numbering.post(OPENRLHF, body, **run).json
    assert said["rewards"] == said["scores"] == [1, -1.5, -1.5, 1] and said["extra_logs"]["rolloutd_failed"] == 0.5
    rows = rows_of(numbering, "several")
    assert len(rows) == 4 and len({row["task"] for row in rows}) == 2


def test_a_label_that_brings_verifiers_is_on_record_with_them(refusing):
    run = attached(refusing, "mixed")
    label = {"verifiers": [{"name": "exact"}, {"name": "exact", "id": "held", "heldout": True}], "reference": "blue"}
    for route in ROUTES:
        assert reward_of(route, refusing.post(route, asked(route, "blue", json.dumps(label)), **run)) == 1
    said = refusing.post(NEMO_GYM, asked(NEMO_GYM, "blue", label), **run).json
    assert said["reward_components"] == {"exact": 1, "held": 1}
    assert {tuple(row["rewards"]) for row in rows_of(refusing, "mixed")} == {("exact",)}


def test_the_same_sample_again_is_another_rollout_but_for_its_key(refusing):
    run = attached(refusing, "again")
    for _ in range(2):
        assert refusing.post(SLIME, asked(SLIME, "\\boxed{42}", "42"), **run).json == 1
        assert refusing.post(SLIME, asked(SLIME, "\\boxed{42}", "42"), {"Idempotency-Key": "k"}, **run).json == 1
    assert len(rows_of(refusing, "again")) == 3
    assert len({row["task"] for row in rows_of(refusing, "again")}) == 1


@pytest.mark.parametrize("route", (*ROUTES, "/compat/nemo_gym/seed_session"))
@pytest.mark.parametrize("run, status, code", [("never", 404, "not_found"), ("a b", 400, "invalid_field"), ("", 400, "invalid_field"), ("x" * 129, 400, "invalid_field")])
def test_a_run_that_is_not_there_is_refused(refusing, route, run, status, code):
    reply = refusing.post(route, asked(route, "\\boxed{42}", "42"), run=run)
    assert (reply.status, reply.error["code"], reply.error["path"]) == (status, code, "run")
    assert refusing.get("/v1/runs/never").status == 404


def test_groups_of_one_member_raise_no_alarm_about_variance(start):
    service = start(settings={**SETTINGS, "alarms.rollouts": "4"})
    run = attached(service, "alarmed")
    for number in range(8):
        assert service.post(SLIME, asked(SLIME, "\\boxed{42}", "42" if number % 2 else UNREADABLE), **run).status == (200 if number % 2 else 422)
    alarms = eventually(lambda: service.get("/v1/pending", run="alarmed").json["alarms"], "an alarm")
    assert [alarm["alarm"] for alarm in alarms] == ["failed"]


def test_prompts_of_any_form_name_tasks(refusing):
    run = attached(refusing, "forms")
    for prompt in ([{"role": "user", "content": "q"}], [{"role": "user", "content": [{"type": "text", "text": "q"}]}], [1, "a"], {"a": 1}, None, 7):
        assert refusing.post(SLIME, {"prompt": prompt, "response": "\\boxed{42}", "label": "42"}, **run).json == 1
    assert refusing.post(SLIME, {"response": "\\boxed{42}", "label": "42"}, **run).json == 1
    assert len({row["task"] for row in rows_of(refusing, "forms")}) == 6  # null is none


# -- labels of strangers -----------------------------------------------------------------------------------------

HOSTILE = [
    {"verifiers": [], "reference": "42"}, {"verifiers": {}, "reference": "42"}, {"verifiers": None}, {"verifiers": [[]]},
    {"verifiers": [{"name": "math"}] * 500, "reference": "42"}, {"verifiers": [{"name": "external", "options": {"name": "/bin/sh"}}], "reference": "42"},
    {"verifiers": [{"name": "math", "weight": 1e308}], "reference": "42"}, {"verifiers": [{"name": "math", "options": {"x" * 100000: 1}}], "reference": "1"},
    '{"verifiers": [{"name": "math"}], "reference": ' + "[" * 3000 + "]" * 3000 + "}", '{"verifiers": ', '{"verifiers":[{"name":"math"}],"verifiers":[]}',
    "{" * 5000, "{\u0000}", {"reference": "42"}, 2 ** 80, [], "", True, {"verifiers": [{"name": "math"}], "reference": 10 ** 400},
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("recorded", (False, True))
def test_hostile_labels_are_judged_or_fail(numbering, route, recorded):
    query = attached(numbering, "hostile") if recorded else {}
    for label in HOSTILE:
        reply = numbering.post(route, asked(route, "\\boxed{42}", label), **query)
        assert reply.status in (200, 400, 422), (label, reply)
        assert reply.status == 200 or reply.error["code"], (label, reply)
    assert reward_of(route, numbering.post(route, asked(route, "\\boxed{42}", "42"), **query)) == 1


def test_nemo_gym_masks_a_failure(refusing):
    body = asked(NEMO_GYM, "\\boxed{42}", UNREADABLE)
    said = refusing.post(NEMO_GYM, body).json
    assert said["mask_sample"] is True and said["failure_kind"] == "rolloutd:reference_unreadable" and said["failure_reason"]
    assert said["instance_config"] == {"mask_sample": True} and said["_ng_failure_class"] == "judge_failed"
    assert said["reward_components"] == {"math": None} and {name: said[name] for name in body} == body
    said = refusing.post(NEMO_GYM, asked(NEMO_GYM, "\\boxed{42}", "42")).json
    assert (said["reward"], said["mask_sample"], said["failure_kind"], said["reward_components"]) == (1, False, None, {"math": 1})
    again = refusing.post(NEMO_GYM, {**said, "instance_config": {"a": 1}, "expected_answer": UNREADABLE, "_ng_failure_class": "old"}).json
    assert again["instance_config"] == {"a": 1, "mask_sample": True} and again["_ng_failure_class"] == "judge_failed"
    again = refusing.post(NEMO_GYM, {**again, "expected_answer": "42"}).json
    assert again["reward"] == 1 and "_ng_failure_class" not in again and again["mask_sample"] is False


@pytest.mark.parametrize("output", [{"type": "reasoning", "summary": []}, {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
                                    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}])
def test_a_response_of_nemo_gym_without_a_text_is_an_empty_completion(refusing, output):
    """A model that is cut off in its reasoning has said nothing; the agent would stop at an error."""
    body = {**asked(NEMO_GYM, "", "42"), "response": {"output": [output]}}
    said = refusing.post(NEMO_GYM, body, **attached(refusing, "silent")).json
    assert (said["reward"], said["mask_sample"], said["failure_kind"]) == (0, True, "rolloutd:empty_completion"), said
    assert refusing.post(NEMO_GYM, body).json["reward_components"] == {"math": 0}


@pytest.mark.parametrize("call", ("seed_session", "close_session"))
def test_sessions_of_nemo_gym_hold_nothing(refusing, call):
    path = f"/compat/nemo_gym/{call}"
    assert refusing.post(path, {"any": "thing"}).json == {}
    assert refusing.post(path, {"resources_session_id": "s", "episode_id": "e"}).json == {"resources_session_id": "s"}
    assert refusing.post(path, [1]).json == {}
    assert refusing.get("/compat/nemo_gym/reverify_mode").json == "stateless"


def test_one_sample_of_openrlhf_is_a_number_and_several_are_lists(refusing):
    one = refusing.post(OPENRLHF, {"query": "a\\boxed{42}", "prompts": "a", "labels": "42"}).json
    assert one["rewards"] == 1 and one["extra_logs"] == {"rolloutd_failed": 0}
    many = refusing.post(OPENRLHF, {"query": ["a\\boxed{42}", "a"], "prompts": ["a", "a"], "labels": ["42", "42"]}).json
    assert many["rewards"] == [1, 0]
    assert refusing.post(OPENRLHF, {"query": [], "prompts": [], "labels": []}).json["rewards"] == []


@pytest.mark.parametrize("route, body, path", [
    (OPENRLHF, {"query": ["ab"], "prompts": ["b"], "labels": ["1"]}, "query[0]"),
    (OPENRLHF, {"query": ["ab"], "prompts": []}, "prompts"),
    (OPENRLHF, {"query": ["ab"], "prompts": ["a"], "labels": []}, "labels"),
    (OPENRLHF, {"query": [1], "prompts": ["a"]}, "query[0]"),
    (OPENRLHF, {"query": {"a": 1}, "prompts": ["a"]}, "query[0]"),
    (OPENRLHF, {"prompts": ["a"]}, "query"),
    (SLIME, {"response": 1}, "response"),
    (SLIME, {"response": "x", "other": 1}, "other"),
    (NEMO_GYM, {"response": {"output": [{"type": "message", "content": [{"type": "output_text"}]}]}}, "response.output"),
    (NEMO_GYM, {"response": {"output": [{"type": "message", "content": "1"}]}}, "response.output"),
    (NEMO_GYM, {"response": {"output": [{"role": "assistant", "content": "1"}]}}, "response.output"),
    (NEMO_GYM, {"expected_answer": "1"}, "response.output"),
    (NEMO_GYM, [], None),
])
def test_a_body_of_another_form_is_refused_with_its_path(refusing, route, body, path):
    reply = refusing.post(route, body)
    assert (reply.status, reply.error["path"]) == (400, path)


def test_they_are_off_unless_the_settings_name_verifiers(start):
    plain = start()
    assert plain.get("/compat/nemo_gym/reverify_mode").status == 404
    for route in (*ROUTES, "/compat/nemo_gym/seed_session", "/compat/nemo_gym/close_session"):
        reply = plain.post(route, asked(route, "x", "y"))
        assert reply.status == 404 and "is off" in reply.error["message"]


@pytest.mark.parametrize("settings, said", [
    ({"compat.slime": "math"}, "compat.slime"), ({"compat.slime": '{"name": "math"}'}, "compat.slime"),
    ({"compat.openrlhf": '[{"name": "mahts"}]'}, "compat.openrlhf[0]"),
    ({"compat.nemo_gym": '[{"name": "math", "options": {"percent": 3}}]'}, "compat.nemo_gym[0].options.percent"),
    ({"verifier_sets": "[]"}, "verifier_sets"), ({"verifier_sets": '{"a": 1}'}, "verifier_sets.a"),
    ({"compat.failed": "zero"}, "compat.failed"), ({"compat.failed": "nan"}, "compat.failed"),
])
def test_settings_that_cannot_be_meant_are_said_at_the_start(start, settings, said):
    with pytest.raises(StartFailed, match=said.replace("[", r"\[")):
        start(settings=settings)


def test_the_token_may_stand_in_the_url(start, tmp_path):
    (tmp_path / "token").write_text("a-token-of-some-length-0123456789")
    (tmp_path / "token").chmod(0o600)
    service = start(settings={**SETTINGS, "token_file": tmp_path / "token"})
    basic = base64.b64encode(b"x:a-token-of-some-length-0123456789").decode()
    assert service.post(SLIME, asked(SLIME, "\\boxed{42}", "42")).status == 401
    assert service.post(SLIME, asked(SLIME, "\\boxed{42}", "42"), {"Authorization": f"Basic {basic}"}).json == 1
