"""Two real language models in a pool: what probes find out about them, and what the death of one costs."""
import os

import pytest

from engines import ProcessEngine, RealEngine
from harness import ROOT, eventually, http_request
from material import make_batch, make_group, rollouts, sampling
from test_engines_api import ASKING, engines, in_state, posted

pytestmark = pytest.mark.model


class SmallEngine(RealEngine):
    """Two slots, and a port that it can be started on again."""

    def __init__(self, folder, python, port=0):
        os.makedirs(folder, exist_ok=True)
        ProcessEngine.__init__(self, folder, [python, os.path.join(ROOT, "deploy", "demo", "real_engine.py"), "--slots", "2", "--context", "512", "--port", str(port)])

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def pair(tmp_path, real_engine):  # real_engine skips where there is no model
    python = os.environ["ROLLOUTD_TEST_MODEL_PYTHON"]
    made = []

    def start_one(name, port=0):
        made.append(SmallEngine(tmp_path / name, python, port))
        return made[-1]
    yield start_one
    for one in made:
        one.close()


def prompt(index):
    return f"<|im_start|>user\nWhat is {index} + 4?<|im_end|>\n<|im_start|>assistant\n"


def test_a_probe_finds_out_what_the_server_says_of_itself(start, real_engine):
    service = start(real_engine.url, settings=ASKING)
    shown = in_state(service, "e1", "up")
    props = http_request(real_engine.url, "GET", "/props").json
    assert (shown["kind"], shown["model"], shown["slots"], shown["context_tokens"]) == \
        ("llamacpp", "smollm2-135m", props["total_slots"], props["default_generation_settings"]["n_ctx"])
    assert shown["capabilities"] == {"ids": True, "logprobs": True, "n": True, "seeds": "honoured", "note": None}, shown["capabilities"]
    assert shown["logprobs_mode"] == "raw" and len(shown["tokenizer_sha256"]) == len(shown["chat_template_sha256"]) == 64


def test_a_pool_of_two_loses_one_in_the_middle_of_a_batch_and_the_batch_completes(start, pair):
    first, second = pair("a"), pair("b")
    service = start(first, second, settings=ASKING)
    in_state(service, "e1", "up"), in_state(service, "e2", "up")
    assert len({item["tokenizer_sha256"] for item in engines(service).values()}) == 1
    batch = posted(service, *[make_group(f"q{index}", prompt(index), str(index + 4)) for index in range(8)],
                   sampling=sampling(4, max_tokens=16), deadline="4m")
    eventually(lambda: engines(service)["e2"]["samples"] > 3 and engines(service)["e2"]["in_flight"] > 0, "the second to work", 120)
    second.kill()
    sick = in_state(service, "e2", "down")
    assert "cannot be reached" in sick["why"] and sick["since"] and sick["last_error"]["code"] == "engine_unreachable"
    assert sick["next"] in ("it is probed again", "a probe is under way") and engines(service)["e1"]["why"] is None
    again = pair("b", int(second.url.rpartition(":")[2]))  # on the same port
    back = in_state(service, "e2", "up")
    assert back["restarts"] == 1 and back["capabilities"]["seeds"] == "honoured" and again.process.poll() is None
    settled = eventually(lambda: (said := service.read(f"/v1/batches/{batch}", wait="20s"))["state"] != "running" and said, "the batch to end", 240)
    assert settled["state"] == "complete" and len(rollouts(settled)) == 32
    for rollout in rollouts(settled):  # an emoji may part ids and log-probabilities; nothing else may fail
        assert rollout["state"] == "scored" or rollout["failure"]["code"] == "invalid_reply", rollout["failure"]
        assert rollout["state"] != "scored" or rollout["seed_honoured"] is True
    assert {rollout["engine"] for rollout in rollouts(settled)} == {"e1", "e2"}


def test_two_engines_give_the_tokens_that_one_gives(start, pair):
    """One at a time and from the first token on: this server's numbers depend a little on what it works on beside, and on what it has cached."""
    first, second = pair("a"), pair("b")
    urls = [f"{one.for_rolloutd}&in_flight=1" for one in (first, second)]
    asked = make_batch(*[make_group(f"q{index}", prompt(index), str(index + 4)) for index in range(3)], sampling=sampling(4, max_tokens=12, engine_options={"cache_prompt": False}), deadline="4m")
    alone = start(urls[0], settings=ASKING)
    one = alone.batch(asked)
    pool = start(*urls, settings=ASKING)
    in_state(pool, "e1", "up"), in_state(pool, "e2", "up")
    two = pool.batch(asked)
    assert {rollout["engine"] for rollout in rollouts(two)} == {"e1", "e2"}
    for left, right in zip(rollouts(one), rollouts(two)):
        if left["state"] == right["state"] == "scored" and left["resample"] == right["resample"]:
            assert left["completion_ids"] == right["completion_ids"]
