"""Language models of a few thousand parameters in Hugging Face layout, made on the spot."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

SIZES = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
CHARACTERS = "0123456789+-*/()=. \nabcdefghijklmnopqrstuvwxyz"


def write_tokenizer(folder: Path, *, chat: bool = True) -> int:
    """One token per character; returns the vocabulary's size."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    vocab = {token: i for i, token in enumerate(["<pad>", "<eos>", "<unk>", *CHARACTERS])}
    inner = Tokenizer(models.BPE(vocab, [], unk_token="<unk>"))
    inner.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>", pad_token="<pad>", unk_token="<unk>")
    if chat:
        tokenizer.chat_template = "{% for m in messages %}{{ m.role }} {{ m.content }}\n{% endfor %}a "
    tokenizer.save_pretrained(folder)
    return len(vocab)


def write_model(folder: Path, kind: str = "llama", seed: int = 0) -> Path:
    """A folder that `engine.model` can name."""
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config, GraniteConfig, LlamaConfig, Qwen2Config
    from transformers.utils import logging

    logging.disable_progress_bar()
    vocab = write_tokenizer(folder)
    shared = {"vocab_size": vocab, "eos_token_id": 1, "bos_token_id": None, "pad_token_id": 0}
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 2, "max_position_embeddings": 128}
    config = {
        "llama": lambda: LlamaConfig(**shared, **sizes, tie_word_embeddings=False),
        "qwen2": lambda: Qwen2Config(**shared, **sizes, tie_word_embeddings=True),
        "granite": lambda: GraniteConfig(**shared, **sizes, tie_word_embeddings=False, logits_scaling=4.0),
        "gpt2": lambda: GPT2Config(**shared, n_embd=16, n_layer=2, n_head=4, n_positions=128),
    }[kind]()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config)
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:  # the usual 0.02 makes a model that hardly reads its input
                torch.nn.init.normal_(parameter, 0.0, 0.5 if "emb" in name or "wte" in name else 0.25)
    model.save_pretrained(folder)
    return folder


@cache
def tiny(kind: str = "llama") -> str:
    """A folder for the whole session."""
    folder = Path(tempfile.mkdtemp(prefix="tiny_model_"))
    atexit.register(shutil.rmtree, folder, True)
    return str(write_model(folder, kind))


def of_kind(kind: str, folder: Path, **more: Any) -> Path:
    """A model with every tensor drawn at random, biases and norms too."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    keys: dict[str, Any] = {"tie_word_embeddings": True} if kind == "qwen2" else {"head_dim": 8}
    if kind == "mistral":
        keys["sliding_window"] = None
    if kind == "llama with biases":
        keys |= {"attention_bias": True, "mlp_bias": True}
    keys |= more
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind.partition(" ")[0], **(SIZES | keys)))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.2, 0.3)
    model.to(torch.bfloat16).save_pretrained(folder)
    return folder


def by_bytes(folder: Path, splitting: str, kind: str, named: str) -> Path:
    """A tokenizer over single bytes with two merges and special tokens, as `rlvr model get` writes them."""
    from tokenizers.pre_tokenizers import ByteLevel

    from rlvrlab.models.gguf_tokenizer import SPLITTINGS
    from rlvrlab.models.tokenizer import byte_level_bpe, tokenizer_config

    letters = sorted(ByteLevel.alphabet())
    tokens = ["<|end|>", "<|start|>", "<|endoftext|>", *letters, "th", "the"]
    form = SPLITTINGS[splitting]
    made = byte_level_bpe(
        tokens, ["t h", "th e"], {0, 1, 2}, form.cuts, whole_words=False, gpt2_words=form.gpt2_words,
        whole_tokens=set(), normalizer=form.normalizer,
    )  # fmt: skip
    template = (
        "{%- for m in messages %}{% if m.role == 'odd' %}{{ raise_exception('odd role') }}{% endif %}"
        "<|start|>{{ m.role }}\n{{ m.content | trim }}{{ {'é': m.role} | tojson }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}{% if tools %}tools{% endif %}{{ eos_token }}"
    )
    facts = tokenizer_config(eos_token="<|end|>", bos_token="<|start|>", pad_token="<|end|>")
    (folder / "tokenizer.json").write_text(json.dumps(made))
    (folder / "tokenizer_config.json").write_text(json.dumps(facts | {"tokenizer_class": named}))
    (folder / "chat_template.jinja").write_text(template)
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    return folder


def whole(kind: str, folder: Path, **more: Any) -> Path:
    """A model of Llama or Qwen with a tokenizer of its own kind, which is read without Transformers."""
    by_bytes(
        folder,
        *(("smollm", "llama", "PreTrainedTokenizerFast") if kind == "llama" else ("qwen2", kind, "Qwen2Tokenizer")),
    )
    return of_kind(kind, folder, **({"vocab_size": 300, "pad_token_id": 0, "max_position_embeddings": 512} | more))
