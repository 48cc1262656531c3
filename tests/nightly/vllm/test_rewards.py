"""A judge whose pool is a reward model in vLLM: each payload that vLLM takes gives the number that a plain request gives."""
import pytest

from conftest import SETTINGS
from harness import eventually
from material import close

PROMPT, COMPLETION = "Which river flows through Tours?", " The Loire."
PLAIN = {
    "vllm_classify": ("/classify", {"input": PROMPT + COMPLETION}, lambda said: said["data"][0]["probs"][0]),
    "pooling": ("/pooling", {"messages": [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": COMPLETION}]}, lambda said: said["data"][0]["data"][0]),
    "score": ("/score", {"text_1": PROMPT, "text_2": COMPLETION}, lambda said: said["data"][0]["score"]),
}


@pytest.fixture(scope="module")
def reward(tmp_path_factory):
    from vllm_server import RewardVllm
    made = RewardVllm(tmp_path_factory.mktemp("reward"), "--runner", "pooling")
    yield made
    made.close()


def verdict_on(service, payload):
    judge = {"name": "judge", "options": {"engine": "rewards", "timeout": "60s", "parse": {"kind": "reward_model", "payload": payload}}}
    reply = service.post("/v1/verify", {"items": [{"id": "1", "prompt": PROMPT, "completion": COMPLETION, "verifiers": [judge]}]})
    assert reply.status == 200, reply
    return reply.json["items"][0]["verdicts"][0]


@pytest.mark.parametrize("kind", ["vllm", "scorer"])
def test_each_payload_gives_the_number_of_a_plain_request(start, reward, kind):
    service = start(f"{reward.url}#kind={kind}&pool=rewards&model={reward.served}", settings=SETTINGS)
    eventually(lambda: service.read("/v1/engines")["items"][0]["state"] == "up", "the reward model to be up")
    for payload, (path, body, number) in PLAIN.items():
        plain = number(reward.post(path, {"model": reward.served, **body}).json)
        verdict = verdict_on(service, payload)
        assert close(verdict["score"], plain), (payload, plain, verdict)
        assert verdict["detail"]["engine_model"] == reward.served


def test_a_batch_that_would_sample_from_a_reward_model_is_refused(start, reward):
    service = start(f"{reward.url}#kind=scorer&pool=rewards", settings=SETTINGS)
    body = {"run": "test", "policy_revision": 0, "engine": "rewards", "groups": [{"task": "t", "prompt": PROMPT, "reference": "Loire"}], "verifiers": [{"name": "exact"}]}
    reply = service.post("/v1/batches", body)
    assert (reply.status, reply.error["path"]) == (400, "engine"), reply
