"""nano: a transformer small enough to learn minicode on two CPU cores in minutes, built here from a seed.

An ordinary LlamaForCausalLM (RMSNorm before, RoPE, SwiGLU, no biases) in an ordinary folder. Embeddings start at
N(0, 0.5): at 0.02, or tied to the head, SFT on the same references solves a third as much. The head starts at
N(0, 0.09): nearer to 0, a third less is learnt in the same steps. The RoPE base is 1000. The two matrices that write
into the residual stream start smaller by √(2 · layers).

    size        width  layers  heads  MLP   parameters
    nano          128       3      4   352     0.70 M     the demo's
    nano-2m       192       4      6   512     1.9 M
    nano-10m      384       6      6   896    10.0 M
"""

from __future__ import annotations

import hashlib
import json
import math
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rlvrlab.models.cache import write_files
from rlvrlab.models.card import front_matter
from rlvrlab.models.tensors import Tensor, write_tensors
from rlvrlab.models.tokenizer import END, END_ID, PAD, PAD_ID, nano_tokenizer, nano_vocabulary, tokenizer_config
from rlvrlab.randomness import generator

CONTEXT = 2048
ROPE_BASE = 1000.0
EMBEDDING_SCALE, HEAD_SCALE, MATRIX_GAIN = 0.5, 0.09, 0.6
LARGEST_SEED = 2**63 - 1
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
)
"""nano continues text: a conversation is its messages one after the other, and an answer ends with the end token."""


class Size(NamedTuple):
    """Shape of a nano."""

    width: int
    layers: int
    heads: int
    mlp: int


SIZES = {"nano": Size(128, 3, 4, 352), "nano-2m": Size(192, 4, 6, 512), "nano-10m": Size(384, 6, 6, 896)}


def shapes(size: Size) -> dict[str, tuple[int, ...]]:
    """Every tensor of the model under Llama's names."""
    vocabulary, width = len(nano_vocabulary()), size.width
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocabulary, width)}
    for layer in range(size.layers):
        below = f"model.layers.{layer}."
        found |= {f"{below}self_attn.{part}_proj.weight": (width, width) for part in "qkvo"}
        found |= {f"{below}mlp.{part}_proj.weight": (size.mlp, width) for part in ("gate", "up")}
        found[f"{below}mlp.down_proj.weight"] = (width, size.mlp)
        found |= {f"{below}{part}_layernorm.weight": (width,) for part in ("input", "post_attention")}
    return found | {"model.norm.weight": (width,), "lm_head.weight": (vocabulary, width)}


def parameters(size: Size) -> int:
    """How many numbers a nano of that size has."""
    return sum(math.prod(shape) for shape in shapes(size).values())


def build(folder: Path, name: str, seed: int) -> None:
    """Write the model into an empty folder; the same name and seed give the same bytes."""
    size = SIZES[name]
    weights = {
        tensor: Tensor("F32", shape, partial(_initial, tensor, shape, size, name, seed))
        for tensor, shape in shapes(size).items()
    }
    write_tensors(folder / "model.safetensors", weights)
    write_files(folder, _descriptions(name, seed))


def fingerprint(name: str) -> str:
    """Changes when anything but the seed changes what is built: a cached model is never an older recipe's."""
    content = json.dumps([_descriptions(name, 0), EMBEDDING_SCALE, HEAD_SCALE, MATRIX_GAIN], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def _initial(tensor: str, shape: tuple[int, ...], size: Size, name: str, seed: int) -> npt.NDArray[np.float32]:
    if len(shape) == 1:
        return np.ones(shape, dtype=np.float32)
    if tensor.startswith("model.embed"):
        scale = EMBEDDING_SCALE
    elif tensor.startswith("lm_head"):
        scale = HEAD_SCALE
    else:
        writes = tensor.endswith(("o_proj.weight", "down_proj.weight"))
        scale = MATRIX_GAIN / math.sqrt(shape[1]) / (math.sqrt(2 * size.layers) if writes else 1.0)
    draw = generator("nano", name, seed, tensor).standard_normal(shape, dtype=np.float32)
    return draw * np.float32(scale)


def _descriptions(name: str, seed: int) -> dict[str, Any]:
    """Every file beside the weights, as text or plain data."""
    head = front_matter(license="apache-2.0", library_name="transformers", pipeline_tag="text-generation")
    count = parameters(SIZES[name])
    card = (
        f"{head}\n# {name}\n\nAn untrained transformer of {count:,} parameters with random weights of "
        f"seed {seed}, built by rlvrlab:\n\n    rlvr model get {name} --seed {seed} -o DIR\n\n"
        "Its tokenizer knows the words of the minicode tasks and writes everything else byte by byte. "
        "It is made to be trained in minutes on a CPU; it knows nothing yet.\n"
    )
    return {
        "config.json": _config(SIZES[name]),
        "generation_config.json": {"eos_token_id": END_ID, "pad_token_id": PAD_ID},
        "tokenizer.json": nano_tokenizer(),
        "tokenizer_config.json": tokenizer_config(
            eos_token=END, pad_token=PAD, model_max_length=CONTEXT, padding_side="left"
        ),
        "chat_template.jinja": CHAT_TEMPLATE,
        "README.md": card,
    }


def _config(size: Size) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(nano_vocabulary()),
        "hidden_size": size.width,
        "intermediate_size": size.mlp,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.heads,
        "head_dim": size.width // size.heads,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_BASE},
        "rope_theta": ROPE_BASE,
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": END_ID,
        "pad_token_id": PAD_ID,
        "initializer_range": 0.02,
        "use_cache": True,
        "dtype": "float32",
    }
