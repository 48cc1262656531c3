"""OpenRLHF's SingleTurnAgentExecutor, with the engine and the tokenizer replaced: sample, decode, ask the URL, five tries."""
import asyncio
import importlib
import os
from types import SimpleNamespace

import numpy

from common import SAMPLES, SOURCES, bare, check_record, client_of, done, route, service

PROMPT, END = "<|im_start|>user\n6*7=<|im_end|>\n", "<|im_end|>"


def load():
    folder = os.path.join(SOURCES, "openrlhf", "openrlhf")
    bare("openrlhf", folder)
    bare("openrlhf.utils", os.path.join(folder, "utils"))
    return importlib.import_module("openrlhf.utils.agent")


class Tokenizer:
    """Characters are tokens."""

    def __call__(self, text, add_special_tokens, return_tensors):
        assert not add_special_tokens and return_tensors == "pt"
        return {"input_ids": numpy.array([[ord(letter) for letter in text]])}

    def decode(self, ids, skip_special_tokens):
        assert not skip_special_tokens
        return "".join(map(chr, ids))


class Engine:
    def __init__(self, says):
        self.says = says

    async def generate(self, ids, params, multi_modal_data=None):
        text = self.says + END
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=[ord(letter) for letter in text], text=text, finish_reason="stop", logprobs=None)])


async def run_samples(agent, url, samples):
    executor = agent.SingleTurnAgentExecutor(url)
    params = SimpleNamespace(max_tokens=64, logprobs=None)
    return await asyncio.gather(*(executor.execute(PROMPT, label, params, 4096, Tokenizer(), Engine(said)) for said, label, _ in samples))


def main():
    agent = load()
    samples = [(said + " ", label, reward) if label[0] == "{" else (said, label, reward) for said, label, reward in SAMPLES]
    samples = [sample for sample in samples if sample[1][0] != "{"]  # what stands behind the answer is compared, too: exact has nothing to say here
    with service(**{"compat.failed": "-1"}) as made:
        client = client_of(made)
        client.attach("openrlhf", step=0, revision=0)
        outputs = asyncio.run(run_samples(agent, [route(made, "/compat/openrlhf/get_reward?run=openrlhf")], samples))
        assert [output["reward"] for output in outputs] == [-1 if reward is None else reward for _, _, reward in samples], outputs
        assert [output["extra_logs"] for output in outputs] == [{"rolloutd_failed": float(reward is None)} for _, _, reward in samples]
        assert all(row["text"].endswith(END) for row in client.rollouts(run="openrlhf", fields="text,reward,failure,id"))
        check_record(client, "openrlhf", samples)
        many = [samples[number % 2] for number in range(200)]
        outputs = asyncio.run(run_samples(agent, [route(made, "/compat/openrlhf/get_reward")] * 1, many))
        assert [output["scores"] for output in outputs] == [reward for _, _, reward in many]
    with service() as made:
        refused, = asyncio.run(run_samples(agent, route(made, "/compat/openrlhf/get_reward"), samples[-1:]))
        assert refused["reward"] is None and refused["scores"] is None, refused
    done("OpenRLHF", f"{len(samples)} samples on record", "200 at once", "compat.failed refuse: the reward stays None after its five tries")


if __name__ == "__main__":
    main()
