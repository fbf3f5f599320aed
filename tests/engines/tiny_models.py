"""Language models of a few thousand parameters in Hugging Face layout, made on the spot."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

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
