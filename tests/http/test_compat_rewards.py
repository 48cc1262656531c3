"""Reward servers as OpenRLHF, slime and NeMo Gym ask for them."""
import base64
import json

import pytest

from harness import StartFailed

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


def test_nemo_gym_masks_a_failure(refusing):
    body = asked(NEMO_GYM, "\\boxed{42}", UNREADABLE)
    said = refusing.post(NEMO_GYM, body).json
    assert said["mask_sample"] is True and said["failure_kind"] == "reference_unreadable" and said["failure_reason"]
    assert said["reward_components"] == {"math": None} and {name: said[name] for name in body} == body
    said = refusing.post(NEMO_GYM, asked(NEMO_GYM, "\\boxed{42}", "42")).json
    assert (said["reward"], said["mask_sample"], said["failure_kind"], said["reward_components"]) == (1, False, None, {"math": 1})
    assert refusing.post("/compat/nemo_gym/seed_session", {"any": "thing"}).json == {}


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
    (NEMO_GYM, {"expected_answer": "1"}, "response.output"),
    (NEMO_GYM, [], None),
])
def test_a_body_of_another_form_is_refused_with_its_path(refusing, route, body, path):
    reply = refusing.post(route, body)
    assert (reply.status, reply.error["path"]) == (400, path)


def test_they_are_off_unless_the_settings_name_verifiers(start):
    plain = start()
    for route in (*ROUTES, "/compat/nemo_gym/seed_session"):
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
