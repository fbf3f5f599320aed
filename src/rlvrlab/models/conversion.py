"""GGUF to a Hugging Face folder, for the llama and qwen2 architectures: dequantised by hand, one tensor at a time.

Traps. Transformers refuses to save a model it loaded from GGUF, and its tokenizer conversion forgets that SmolLM reads
numbers digit by digit. llama.cpp keeps the rows of llama's q and k in another order (pairs of RoPE side by side): they
are put back; qwen2's are in order. GGUF lists dimensions from the fastest to the slowest, NumPy the other way round.
Some files of models whose output is tied to the embedding store both, each rounded on its own.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlvrlab.errors import InfrastructureError, UserError
from rlvrlab.extras import install_hf
from rlvrlab.models.cache import write_files
from rlvrlab.models.gguf_tokenizer import tokenizer_files
from rlvrlab.models.tensors import Tensor, to_bfloat16, write_tensors

PARTS = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}  # fmt: skip
EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"
OUTSIDE = {
    EMBEDDING: "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    OUTPUT: "lm_head.weight",
}
WRONG_FILE = (KeyError, ValueError, IndexError, TypeError, OverflowError, NotImplementedError)
"""What reading a damaged or unknown file raises."""


class Architecture(NamedTuple):
    """How one kind of model differs from the others."""

    theirs: str
    biases: tuple[str, ...]
    paired_rows: bool
    config: dict[str, Any]


ARCHITECTURES = {
    "llama": Architecture("LlamaForCausalLM", (), True, {"attention_bias": False, "mlp_bias": False}),
    "qwen2": Architecture("Qwen2ForCausalLM", ("attn_q", "attn_k", "attn_v"), False, {"use_sliding_window": False}),
}


class Converted(NamedTuple):
    """What was written, for whoever checks it."""

    tensors: int
    parameters: int
    digits: bool
    """Whether its tokenizer reads numbers digit by digit."""


def convert(source: Path, folder: Path, *, tied: bool = False) -> Converted:
    """Write config, bf16 weights, tokenizer and chat template of a GGUF file into a folder.

    `tied`: output and embedding of the model are one matrix; where the file has both, the finer one serves as both.
    """
    try:
        from gguf import GGUFReader
    except ImportError:
        raise UserError(f"gguf: not installed, and needed to convert; {install_hf()}") from None
    try:
        reader = GGUFReader(source)
        facts = {name: field.contents() for name, field in reader.fields.items()}
        kind = facts.get("general.architecture")
        if kind not in ARCHITECTURES:
            raise UserError(f"{source.name}: architecture {kind!r}; only {' and '.join(ARCHITECTURES)} are read")
        tensors = _tensors(reader.tensors, facts, tied)
        files, digits = tokenizer_files(facts, int(facts[f"{kind}.context_length"]))
        files["config.json"] = _config(facts, tensors)
        write_tensors(folder / "model.safetensors", tensors)
        write_files(folder, files)
    except WRONG_FILE as error:
        raise InfrastructureError(f"{source.name}: cannot be converted ({type(error).__name__}: {error})") from error
    return Converted(len(tensors), sum(math.prod(tensor.shape) for tensor in tensors.values()), digits)


def _tensors(found: Any, facts: dict[str, Any], tied: bool) -> dict[str, Tensor]:
    """Every tensor under its name in Transformers; none is missing and none is unknown."""
    kind = facts["general.architecture"]
    stored = {one.name: one for one in found}
    blocks = int(facts[f"{kind}.block_count"])
    if blocks > len(found):
        raise ValueError(f"{blocks} blocks, but only {len(found)} tensors in all")
    wanted = _names(ARCHITECTURES[kind], blocks)
    if unknown := sorted(stored.keys() - wanted.keys()):
        raise ValueError(f"unknown tensor {unknown[0]}")
    if missing := sorted(wanted.keys() - stored.keys() - {OUTPUT}):
        raise ValueError(f"no tensor {missing[0]}")
    if tied and OUTPUT in stored:
        coarse, fine = sorted((stored[EMBEDDING], stored[OUTPUT]), key=lambda one: int(one.n_bytes))
        if tuple(coarse.shape) != tuple(fine.shape):
            raise ValueError("output and embedding differ in shape, so they are not one matrix")
        del stored[coarse.name]
        wanted[fine.name] = OUTSIDE[EMBEDDING]
    tensors = {}
    for name, one in stored.items():
        shape = tuple(int(n) for n in reversed(one.shape))
        tensors[wanted[name]] = Tensor("BF16", shape, partial(_numbers, one, shape, facts))
    return tensors


def _names(architecture: Architecture, blocks: int) -> dict[str, str]:
    """blk.3.attn_q.weight is model.layers.3.self_attn.q_proj.weight, and so on."""
    names = dict(OUTSIDE)
    for block in range(blocks):
        for part, theirs in PARTS.items():
            for which in ("weight", "bias") if part in architecture.biases else ("weight",):
                names[f"blk.{block}.{part}.{which}"] = f"model.layers.{block}.{theirs}.{which}"
    return names


def _numbers(stored: Any, shape: tuple[int, ...], facts: dict[str, Any]) -> npt.NDArray[np.uint16]:
    from gguf.quants import dequantize

    numbers = np.asarray(dequantize(stored.data, stored.tensor_type), dtype=np.float32).reshape(shape)
    kind = facts["general.architecture"]
    rotated = re.search(r"\.attn_(q|k)\.", stored.name)
    if rotated and ARCHITECTURES[kind].paired_rows:
        heads = int(facts[f"{kind}.attention.{'head_count' if rotated.group(1) == 'q' else 'head_count_kv'}"])
        half = shape[0] // heads // 2
        numbers = numbers.reshape(heads, half, 2, shape[1]).swapaxes(1, 2).reshape(shape)
    return to_bfloat16(numbers)


def _config(facts: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    kind = facts["general.architecture"]
    if scaled := [name for name in facts if ".rope.scaling." in name and facts[name] not in ("none", 1.0)]:
        raise ValueError(f"{scaled[0]} = {facts[scaled[0]]!r}: scaled positions are not read")
    architecture = ARCHITECTURES[kind]
    heads, width = int(facts[f"{kind}.attention.head_count"]), int(facts[f"{kind}.embedding_length"])
    base = float(facts[f"{kind}.rope.freq_base"])
    ends = {name: facts.get(f"tokenizer.ggml.{key}_token_id") for name, key in
            (("bos_token_id", "bos"), ("eos_token_id", "eos"), ("pad_token_id", "padding"))}  # fmt: skip
    return {
        "architectures": [architecture.theirs],
        "model_type": kind,
        "vocab_size": tensors[OUTSIDE[EMBEDDING]].shape[0],
        "hidden_size": width,
        "intermediate_size": int(facts[f"{kind}.feed_forward_length"]),
        "num_hidden_layers": int(facts[f"{kind}.block_count"]),
        "num_attention_heads": heads,
        "num_key_value_heads": int(facts[f"{kind}.attention.head_count_kv"]),
        "head_dim": width // heads,
        "hidden_act": "silu",
        "max_position_embeddings": int(facts[f"{kind}.context_length"]),
        # stored as float32, so that 1e-5 reads 9.99…e-6
        "rms_norm_eps": float(f"{facts[f'{kind}.attention.layer_norm_rms_epsilon']:.4g}"),
        "rope_parameters": {"rope_type": "default", "rope_theta": base},
        "rope_theta": base,
        **architecture.config,
        "attention_dropout": 0.0,
        "tie_word_embeddings": OUTSIDE[OUTPUT] not in tensors,
        **ends,
        "use_cache": True,
        "dtype": "bfloat16",
        # the layout written here; without it a large tokenizer is taken for an old Mistral's and warned of
        "transformers_version": "5.0.0",
    }
