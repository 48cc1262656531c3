"""New weights for a running vLLM (with VLLM_SERVER_DEV_MODE=1), by a folder that both can read.

    weights = rolloutd.vllm.Weights("http://127.0.0.1:8000", "/dev/shm/weights", "/models/smollm2")
    with client.policy("my-run", 13, mode="wait"):
        weights.push(model, 13)
"""
from __future__ import annotations

import os
from typing import Any, Mapping, Optional

from ._link import Link, encode


class Weights:
    """folder: on a memory disk; it gets the weights. model_folder: what vLLM was started on (configuration, tokenizer)."""

    def __init__(self, url: str, folder: str, model_folder: str, *, token: Optional[str] = None, timeout_s: float = 600.0) -> None:
        self.link, self.folder, self.timeout_s = Link(url, token, 10.0, timeout_s), folder, timeout_s
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(model_folder):
            if not name.endswith((".safetensors", ".safetensors.index.json", ".bin")) and not os.path.lexists(os.path.join(folder, name)):
                os.symlink(os.path.abspath(os.path.join(model_folder, name)), os.path.join(folder, name))

    def push(self, model: Any, version: object) -> None:
        """model: of transformers, or a dict of its tensors. Raises Error; vLLM keeps serving in any case, with the old weights or the new.

        ValueError for a model with tied embeddings: vLLM's reload leaves the output layer as it was, without a word. Untie it first."""
        config = getattr(model, "config", None)
        if config is not None and getattr(config, "tie_word_embeddings", False):
            raise ValueError("the model's embeddings are tied: vLLM would keep its old output layer; start it and the trainer on a copy "
                             "by rolloutd.vllm.untie")
        self.save(model if isinstance(model, Mapping) else model.state_dict())
        self.post("/pause?mode=wait")
        try:
            self.post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": self.folder}, "timeout": self.timeout_s})
            self.post("/reset_prefix_cache", {})
            self.post("/update_weight_version", {"new_version": str(version)})
        finally:
            self.post("/resume", {})

    def save(self, tensors: Mapping[str, Any]) -> None:
        """Written beside and renamed: vLLM never reads half a file."""
        from safetensors.torch import save_file

        path = os.path.join(self.folder, "model.safetensors")
        save_file({name: value.detach().contiguous() for name, value in tensors.items()}, path + ".new", {"format": "pt"})
        os.replace(path + ".new", path)

    def post(self, path: str, body: Optional[Mapping[str, Any]] = None) -> None:
        self.link.request("POST", path, None if body is None else encode(body), {"Content-Type": "application/json"}, self.timeout_s)


def untie(source: str, folder: str) -> None:
    """Writes a copy of a model, with its tokenizer, whose output layer is a tensor of its own: for vLLM and the trainer. It computes the same
    numbers. source: a folder, or a name at Hugging Face."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(source)
    head = model.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.detach().clone())
    model.config.tie_word_embeddings = False
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def worst_difference(batch: Mapping[str, Any], logprobs: Mapping[str, Any]) -> float:
    """The largest difference between the engine's log-probabilities of a batch and a trainer's (by rollout id, a number for each token), to be
    looked at after the first update: more than about 0.1 says that the engine has other weights."""
    worst = 0.0
    for group in batch["groups"]:
        for rollout in group["rollouts"]:
            if rollout["id"] in logprobs and rollout.get("logprobs") is not None:
                pairs = zip(rollout["logprobs"], list(logprobs[rollout["id"]]))
                worst = max([worst] + [abs(float(ours) - float(theirs)) for ours, theirs in pairs if ours is not None])
    return worst
