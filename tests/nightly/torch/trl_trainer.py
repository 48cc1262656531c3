"""TRL's own GRPOTrainer with the reward function of rolloutd.trl, the two changed lines of docs/from-trl.md: rewards are the record's, a
completion that could not be judged is left out, and what is rewarded becomes more likely.

  trl_trainer.py        a model of random weights and letters as tokens; about a minute on one core
"""
import os
import statistics
import sys
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "..", "http"), os.path.join(ROOT, "client", "python")]
import rolloutd.trl  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz .\n"
STEPS, SAMPLES = 12, 8


def make_tokenizer():
    words = {letter: number for number, letter in enumerate([*LETTERS, "<end>", "<pad>"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="."))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<pad>")


def make_trainer(reward_funcs, rows, folder, steps):
    torch.manual_seed(3)
    tokenizer = make_tokenizer()
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
                                         bos_token_id=None, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id))
    config = GRPOConfig(output_dir=folder, per_device_train_batch_size=4 * SAMPLES, num_generations=SAMPLES, max_completion_length=6, learning_rate=1e-2, beta=0.0,
                        max_steps=steps, logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", seed=1, disable_tqdm=True, bf16=False)
    return GRPOTrainer(model=model, processing_class=tokenizer, args=config, train_dataset=Dataset.from_list(rows), reward_funcs=reward_funcs)


def logged(trainer, name):
    return [row[name] for row in trainer.state.log_history if name in row]


def learns(url, folder):
    """A letter is asked for; the record has what TRL was told."""
    rows = [{"prompt": f"say {letter}.", "answer": letter} for letter in "eaiotnsr" * 8]
    verifiers = [{"name": "regex", "options": {"pattern": "k"}}]
    trainer = make_trainer(rolloutd.trl.reward(url, verifiers, run="trl"), rows, folder, STEPS)
    trainer.train()
    rewards = logged(trainer, "reward")
    assert len(rewards) == STEPS and statistics.mean(rewards[-3:]) > statistics.mean(rewards[:3]) + 0.3, rewards
    with rolloutd.Client(url) as client:
        for revision, (reward, failed) in enumerate(zip(rewards, logged(trainer, "rolloutd/failed"))):
            found = [rollout["reward"] for rollout in client.rollouts(run="trl", revision=revision)]
            judged = [one for one in found if one is not None]  # an empty completion is a failure of its own name
            assert len(found) == 4 * SAMPLES and abs(1 - len(judged) / len(found) - failed) < 1e-6, (revision, found, failed)
            assert failed or abs(statistics.mean(found) - reward) < 1e-6, (revision, found, reward)
        assert client.report("trl")["run"] == "trl"
    return rewards


def leaves_out(url, folder):
    """Half of the tasks have a reference that nobody can read: None, never 0."""
    rows = [{"prompt": f"say {letter}.", "answer": answer} for letter, answer in zip("eaiotnsr" * 8, ["", "7"] * 32)]
    trainer = make_trainer(rolloutd.trl.reward(url, [{"name": "math"}]), rows, folder, 2)
    seen = []
    inner = trainer.reward_funcs[0]

    def watch(**columns):
        given = inner(**columns)
        seen.extend(zip(columns["answer"], given))
        return given

    trainer.reward_funcs[0] = watch
    trainer.train()
    assert seen and all((reward is None) == (answer == "") for answer, reward in seen), seen
    assert all(0 < share < 1 for share in logged(trainer, "rolloutd/failed"))


def main():
    from harness import Rolloutd
    with tempfile.TemporaryDirectory() as folder:
        service = Rolloutd(folder).start()
        try:
            rewards = learns(service.url, folder)
            leaves_out(service.url, folder)
        finally:
            code = service.terminate()
    print(f"reward by step: {' '.join(f'{reward:.2f}' for reward in rewards)}\n\n{2 - bool(code)} passed, {int(bool(code))} failed")
    return code


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
