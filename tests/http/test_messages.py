"""Refusals end the search: what was meant, then what there is (F26)."""
import pytest

GROUP = {"task": "t", "prompt": "p", "completions": [{"text": "a"}]}
SEQUENCE = {"group": "a", "reward": 1, "logprobs": [-1]}


def refused(plain, path, body, status=400):
    reply = plain.post(path, body)
    assert reply.status == status, reply.json
    return reply.json["error"]


@pytest.mark.parametrize("objective, path, meant, known", [
    ({"preset": "grop"}, "objective.preset", "grpo", "dr_grpo"),
    ({"epsilom": 0.2}, "objective.epsilom", "epsilon", "preset"),
    ({"advantage": {"estimatr": "grpo"}}, "objective.advantage.estimatr", "estimator", "singleton"),
    ({"advantage": {"estimator": "rlo"}}, "objective.advantage.estimator", "rloo", "reinforce_plus_plus"),
    ({"loss": {"kind": "ppo-clip"}}, "objective.loss.kind", "ppo_clip", "cispo"),
    ({"kl_coef": 0.1}, "objective.kl_coef", "beta", "importance"),
])
def test_an_unknown_knob_preset_or_value_names_the_nearest_and_then_the_list(plain, objective, path, meant, known):
    reply = plain.post("/v1/objective", {"objective": objective, "sequences": [SEQUENCE]})
    assert reply.status in (400, 422)
    error = reply.json["error"]
    assert error["path"] == path
    assert f'did you mean "{meant}"?' in error["message"]
    assert known in error["message"].split("known are: ")[1]


@pytest.mark.parametrize("group, path, meant", [
    ({**GROUP, "answer": "4"}, "groups[0].answer", "reference"),
    ({**GROUP, "solution": "4"}, "groups[0].solution", "reference"),
    ({**GROUP, "ground_truth": "4"}, "groups[0].ground_truth", "reference"),
    ({**GROUP, "label": "4"}, "groups[0].label", "reference"),
    ({"task": "t", "question": "p", "completions": [{"text": "a"}]}, "groups[0].question", "prompt"),
    ({"task": "t", "prompt": "p", "responses": [{"text": "a"}]}, "groups[0].responses", "completions"),
    ({**GROUP, "completions": [{"response": "a"}]}, "groups[0].completions[0].response", "text"),
    ({**GROUP, "completions": [{"text": "a", "token_ids": [1]}]}, "groups[0].completions[0].token_ids", "completion_ids"),
])
def test_a_name_that_other_services_use_says_which_is_meant_here(plain, group, path, meant):
    error = refused(plain, "/v1/score", {"run": "x", "groups": [group]})
    assert (error["code"], error["path"]) == ("unknown_field", path)
    assert f'did you mean "{meant}"?' in error["message"]


@pytest.mark.parametrize("name, meant", [("max_completion_tokens", "max_tokens"), ("max_new_tokens", "max_tokens"), ("num_generations", "n"),
                                         ("stop_sequences", "stop"), ("temprature", "temperature"), ("min_tokens", "engine_options"),
                                         ("presence_penalty", "engine_options"), ("logit_bias", "engine_options")])
def test_sampling_knows_the_names_of_trainers_and_engines(plain, name, meant):
    error = refused(plain, "/v1/batches", {"run": "x", "sampling": {name: 4}, "groups": [{"task": "t", "prompt": "p"}]})
    assert (error["code"], error["path"]) == ("unknown_field", f"sampling.{name}")
    assert f'did you mean "{meant}"?' in error["message"]


def test_a_verifier_an_option_and_its_values_are_named(plain):
    def ask(verifier):
        reply = plain.post("/v1/verify", {"verifiers": [verifier], "items": [{"completion": "a", "reference": "a"}]})
        assert reply.status in (400, 422)
        return reply.json["error"]
    assert 'did you mean "math"? known are: ' in ask({"name": "maths"})["message"]
    option = ask({"name": "math", "options": {"rel_tolerance": 1, "extrct": "auto"}})
    assert "known are: " in option["message"] and "rel_tol" in option["message"]
    assert 'did you mean "boxed"?' in ask({"name": "math", "options": {"extract": "box"}})["message"]


def test_blanks_around_the_names_of_a_list_are_nothing(plain):
    assert plain.get("/v1/rollouts?fields=id,%20text%20,%09reward").status == 200


@pytest.mark.parametrize("query, meant", [("fields=rewrd", "reward"), ("state=score", "scored"), ("order=desk", "desc"), ("purpose=trian", "train"), ("arrays=non", "none"),
                                          ("rewardmin=2", "reward_min")])
def test_an_unknown_word_in_a_query_names_the_nearest(plain, query, meant):
    reply = plain.get(f"/v1/rollouts?{query}")
    assert reply.status == 400
    assert f'did you mean "{meant}"?' in reply.json["error"]["message"]


def test_return_lists_the_arrays(plain):
    error = refused(plain, "/v1/objective", {"sequences": [SEQUENCE], "return": ["dloss_dlog"]})
    assert error["path"] == "return[0]" and 'did you mean "dloss_dlogp"?' in error["message"]


def test_a_wrong_token_is_not_answered_as_none(start, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-right-and-long-enough-token\n")
    token.chmod(0o600)
    service = start(settings={"token_file": token})

    def said(value):
        reply = service.get("/v1/runs", headers={"Authorization": value} if value else {})
        assert reply.status == 401
        return reply.json["error"]["message"]
    assert "wants the header" in said(None)
    assert "is not this service's" in said("Bearer wrong")
    assert "another form" in said("Basic cmlnaHQ=")


@pytest.mark.parametrize("name, meant", [("temperature", "sampling"), ("num_generations", "sampling"), ("beta", "objective"), ("step", "policy_revision")])
def test_a_field_of_an_inner_object_of_a_batch_is_named_with_its_object(plain, name, meant):
    error = refused(plain, "/v1/batches", {"run": "x", name: 4, "groups": [{"task": "t", "prompt": "p"}]})
    assert (error["code"], error["path"]) == ("unknown_field", name)
    assert f'did you mean "{meant}"?' in error["message"]


def test_the_arrays_of_a_batch_are_named(plain):
    error = refused(plain, "/v1/score", {"run": "x", "groups": [GROUP], "return": ["logprob"]})
    assert error["path"] == "return[0]"
    assert 'did you mean "logprobs"? known are: prompt_ids, completion_ids' in error["message"]
    assert refused(plain, "/v1/score", {"run": "x", "groups": [GROUP], "return": [7]})["path"] == "return[0]"


def test_a_pool_that_is_not_there_names_those_that_are(service):
    """F26"""
    service.put("/v1/engines/a", {"url": "http://127.0.0.1:9", "kind": "vllm", "pool": "policy"})
    service.put("/v1/engines/b", {"url": "http://127.0.0.1:9", "kind": "vllm", "pool": "judge"})
    error = refused(service, "/v1/batches", {"run": "x", "engine": "polcy", "groups": [{"task": "t", "prompt": "p"}]})
    assert error["path"] == "engine"
    assert 'did you mean "policy"? known are: default, policy, judge' in error["message"]
