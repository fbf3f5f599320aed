"""GGUF to a Hugging Face folder, for the llama architecture: dequantised by hand, one tensor at a time.

Traps. Transformers refuses to save a model it loaded from GGUF, and its tokenizer conversion forgets that SmolLM reads
numbers digit by digit. llama.cpp keeps the rows of q and k in another order (pairs of RoPE side by side): they are put
back. GGUF lists dimensions from the fastest to the slowest, NumPy the other way round.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.extras import install_hf
from rlvrlab.models.tensors import Tensor, to_bfloat16, write_tensors
from rlvrlab.models.tokenizer import byte_level_bpe, tokenizer_config

PARTS = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}  # fmt: skip
OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
CONTROL_TOKEN = 3
DIGIT_BY_DIGIT = {"type": "Digits", "individual_digits": True}
SPLITTINGS = {"gpt-2": [], "smollm": [DIGIT_BY_DIGIT]}
"""tokenizer.ggml.pre -> what cuts the text before GPT-2's own splitting."""


def convert(source: Path, folder: Path) -> None:
    """Write config, bf16 weights, tokenizer and chat template of a GGUF file into a folder."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise UserError(f"gguf: not installed, and needed to convert; {install_hf()}") from None
    try:
        reader = GGUFReader(source)
        facts = {name: field.contents() for name, field in reader.fields.items()}
        if facts.get("general.architecture") != "llama":
            raise UserError(f"{source.name}: architecture {facts.get('general.architecture')!r}; only llama is read")
        tensors = {}
        for stored in reader.tensors:
            shape = tuple(int(n) for n in reversed(stored.shape))
            # blk.3.attn_q.weight is model.layers.3.self_attn.q_proj.weight
            block = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", stored.name)
            if stored.name not in OUTSIDE and (block is None or block.group(2) not in PARTS):
                raise ValueError(f"unknown tensor {stored.name}")
            name = f"model.layers.{block.group(1)}.{PARTS[block.group(2)]}.weight" if block else OUTSIDE[stored.name]
            tensors[name] = Tensor("BF16", shape, partial(_numbers, stored, shape, facts))
        write_tensors(folder / "model.safetensors", tensors)
        _write(folder / "config.json", _config(facts, {tensor.name for tensor in reader.tensors}))
        _write_tokenizer(folder, facts)
    except (KeyError, ValueError, IndexError) as error:
        raise InfrastructureError(f"{source.name}: cannot be converted ({type(error).__name__}: {error})") from error


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _numbers(stored: Any, shape: tuple[int, ...], facts: dict[str, Any]) -> npt.NDArray[np.uint16]:
    from gguf.quants import dequantize

    numbers = np.asarray(dequantize(stored.data, stored.tensor_type), dtype=np.float32).reshape(shape)
    if ".attn_q." in stored.name or ".attn_k." in stored.name:
        which = "head_count" if ".attn_q." in stored.name else "head_count_kv"
        heads = int(facts[f"llama.attention.{which}"])
        half = shape[0] // heads // 2
        numbers = numbers.reshape(heads, half, 2, shape[1]).swapaxes(1, 2).reshape(shape)
    return to_bfloat16(numbers)


def _config(facts: dict[str, Any], tensors: set[str]) -> dict[str, Any]:
    heads = int(facts["llama.attention.head_count"])
    base = float(facts["llama.rope.freq_base"])
    width = int(facts["llama.embedding_length"])
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": int(facts["llama.vocab_size"]),
        "hidden_size": width,
        "intermediate_size": int(facts["llama.feed_forward_length"]),
        "num_hidden_layers": int(facts["llama.block_count"]),
        "num_attention_heads": heads,
        "num_key_value_heads": int(facts["llama.attention.head_count_kv"]),
        "head_dim": width // heads,
        "hidden_act": "silu",
        "max_position_embeddings": int(facts["llama.context_length"]),
        # stored as float32, so that 1e-5 reads 9.99…e-6
        "rms_norm_eps": float(f"{facts['llama.attention.layer_norm_rms_epsilon']:.4g}"),
        "rope_parameters": {"rope_type": "default", "rope_theta": base},
        "rope_theta": base,
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
        "use_cache": True,
        "dtype": "bfloat16",
    }


def _write_tokenizer(folder: Path, facts: dict[str, Any]) -> None:
    if facts["tokenizer.ggml.model"] != "gpt2" or facts["tokenizer.ggml.pre"] not in SPLITTINGS:
        raise ValueError(f"unknown tokenizer {facts['tokenizer.ggml.model']}/{facts['tokenizer.ggml.pre']}")
    tokens, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    special = {i for i, kind in enumerate(kinds) if kind == CONTROL_TOKEN}
    cuts = SPLITTINGS[facts["tokenizer.ggml.pre"]]
    tokenizer = byte_level_bpe(
        tokens, facts["tokenizer.ggml.merges"], special, cuts, whole_words=False, gpt2_words=True
    )
    _write(folder / "tokenizer.json", tokenizer)
    names = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    named = {name: tokens[facts[f"tokenizer.ggml.{key}_token_id"]] for name, key in names.items()}
    context = int(facts["llama.context_length"])
    _write(folder / "tokenizer_config.json", tokenizer_config(**named, model_max_length=context, padding_side="left"))
    (folder / "chat_template.jinja").write_text(facts["tokenizer.chat_template"], encoding="utf-8")
    ids = {f"{name}_id": facts[f"tokenizer.ggml.{key}_token_id"] for name, key in names.items() if name != "unk_token"}
    _write(folder / "generation_config.json", ids)
