"""rolloutd.vllm refuses a model with tied embeddings, and untie() makes a copy that computes the same: untied.py FOLDER-WITH-A-TOKENIZER"""
import os
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "client", "python"))
import rolloutd.vllm  # noqa: E402


def make_tied(folder, tokenizer):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, tie_word_embeddings=True)
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tied, untied, shared = (os.path.join(folder, name) for name in ("tied", "untied", "shared"))
        make_tied(tied, sys.argv[1])
        rolloutd.vllm.untie(tied, untied)
        before, after = (AutoModelForCausalLM.from_pretrained(name) for name in (tied, untied))
        ids = torch.arange(10).unsqueeze(0)
        assert torch.equal(before(ids).logits, after(ids).logits)
        assert not after.config.tie_word_embeddings and after.lm_head.weight.data_ptr() != after.model.embed_tokens.weight.data_ptr()
        assert AutoTokenizer.from_pretrained(untied).vocab_size == AutoTokenizer.from_pretrained(sys.argv[1]).vocab_size
        weights = rolloutd.vllm.Weights("http://127.0.0.1:1", shared, untied)
        try:
            weights.push(before, 1)
        except ValueError as refusal:
            assert "untie" in str(refusal)
        else:
            raise AssertionError("tied embeddings were not refused")
    print("a model is untied, and computes the same")


if __name__ == "__main__":
    main()
