"""A model of the Llama family as it lies in its folder, read without Transformers, whose import takes seconds.

own_model.py makes modules of it; who only draws answers takes the tensors as they are `assembled`, in the shape in
which weights.py takes them from a model. `stored` gives None where a configuration is unusual, or where the files hold
other tensors than exactly those that the configuration asks for: Transformers then reads the folder and says what it
finds.
Suffixes: T positions, D head size.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from rlvrlab import plain_files
from rlvrlab.engines.hf.folder_files import read_json
from rlvrlab.engines.hf.standard import NUMBERS, head_dim, is_standard, kv_heads, theta_of
from rlvrlab.errors import UserError
from rlvrlab.models.tensors import ADAPTER_CONFIG

STORED_AS = {torch.float32, torch.bfloat16, torch.float16}
QKV, GATES = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
NORMS = ("input_layernorm", "post_attention_layernorm")


class Stored(NamedTuple):
    """A model's configuration and its tensors, which are views of the files: nothing is read before it is used."""

    facts: dict[str, Any]
    tensors: dict[str, Tensor]
    generation: bytes | None
    """generation_config.json, where there is one."""

    def assembled(self) -> Any:
        """The model for who draws answers."""
        return _assembled(self.facts, self.tensors)


def stored(folder: Path) -> Stored | None:
    """The model in `folder`."""
    try:
        facts = read_json(folder / "config.json")
        if not is_standard(facts) or (folder / ADAPTER_CONFIG).exists():
            return None
        tensors = _tensors(folder)
        wanted = _wanted(facts) if facts["num_hidden_layers"] < len(tensors) else {}
        generation = folder / "generation_config.json"
        generation_bytes = plain_files.read_bytes(generation) if generation.is_file() else None
    except (UserError, OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, SafetensorError):
        return None
    found = {name: (*tensor.shape,) for name, tensor in tensors.items()}
    known = found == wanted and {tensor.dtype for tensor in tensors.values()} <= STORED_AS
    return Stored(facts, tensors, generation_bytes) if known else None


def config_of(facts: dict[str, Any]) -> Any:
    """What the engine asks a configuration for, as Transformers names it."""
    return SimpleNamespace(
        **{key: facts[key] for key in (*NUMBERS, "model_type", "hidden_act", "rms_norm_eps")},
        num_key_value_heads=kv_heads(facts),
        head_dim=head_dim(facts),
        pad_token_id=facts.get("pad_token_id"),
        tie_word_embeddings=bool(facts.get("tie_word_embeddings")),
        rope_parameters={"rope_type": "default", "rope_theta": theta_of(facts)},
        sliding_window=None,
        _attn_implementation="sdpa",
    )


def _tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors by name, but for rotary frequencies, which some files hold and which are computed."""
    found: dict[str, Tensor] = {}
    for path in _weight_files(folder):
        with safe_open(path, "pt") as file:
            for name in set(file.keys()):
                if name in found:
                    raise ValueError(f"{name} is there twice")
                if not name.endswith(".rotary_emb.inv_freq"):
                    found[name] = file.get_tensor(name)
    return found


def _weight_files(folder: Path) -> list[Path]:
    """Those that Transformers reads: one of this name, else those of the index. Others may lie beside them."""
    whole = folder / "model.safetensors"
    if whole.is_file():
        return [whole]
    index = read_json(folder / "model.safetensors.index.json")
    return [folder / name for name in sorted(set(index["weight_map"].values()))]


def _wanted(facts: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of exactly the tensors that a model with this configuration has."""
    kind, whole, inner = facts["model_type"], facts["hidden_size"], facts["intermediate_size"]
    size = head_dim(facts)
    wide, keys = facts["num_attention_heads"] * size, kv_heads(facts) * size
    maps: dict[str, tuple[int, ...]] = {}
    maps |= {"q_proj": (wide, whole), "k_proj": (keys, whole), "v_proj": (keys, whole), "o_proj": (whole, wide)}
    attention = {f"self_attn.{name}.weight": shape for name, shape in maps.items()}
    biased = QKV if kind == "qwen2" else (*QKV, "o_proj") if facts.get("attention_bias") else ()
    attention |= {f"self_attn.{name}.bias": maps[name][:1] for name in biased}
    if kind == "qwen3":
        attention |= {f"self_attn.{name}.weight": (size,) for name in ("q_norm", "k_norm")}
    mlp: dict[str, tuple[int, ...]] = {f"mlp.{name}.weight": (inner, whole) for name in GATES}
    mlp["mlp.down_proj.weight"] = (whole, inner)
    if facts.get("mlp_bias"):
        mlp |= {f"mlp.{name}.bias": (inner,) for name in GATES} | {"mlp.down_proj.bias": (whole,)}
    block = attention | mlp | {f"{name}.weight": (whole,) for name in NORMS}
    ends = {"model.embed_tokens.weight": (facts["vocab_size"], whole), "model.norm.weight": (whole,)}
    if not facts.get("tie_word_embeddings"):
        ends["lm_head.weight"] = (facts["vocab_size"], whole)
    layers = range(facts["num_hidden_layers"])
    return ends | {f"model.layers.{i}.{name}": shape for i in layers for name, shape in block.items()}


def _assembled(facts: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
    def part(name: str) -> Any:
        return SimpleNamespace(weight=tensors[f"{name}.weight"], bias=tensors.get(f"{name}.bias"))

    def block(name: str) -> Any:
        normed = ("q_norm", "k_norm") if facts["model_type"] == "qwen3" else ()
        own = {one: part(f"{name}.self_attn.{one}") for one in (*QKV, "o_proj", *normed)}
        attention = SimpleNamespace(**own, head_dim=size, scaling=size**-0.5)
        mlp = SimpleNamespace(**{one: part(f"{name}.mlp.{one}") for one in (*GATES, "down_proj")})
        return SimpleNamespace(self_attn=attention, mlp=mlp, **{norm: part(f"{name}.{norm}") for norm in NORMS})

    size, embedding = head_dim(facts), part("model.embed_tokens")
    body = SimpleNamespace(
        embed_tokens=embedding,
        norm=part("model.norm"),
        layers=[block(f"model.layers.{i}") for i in range(facts["num_hidden_layers"])],
        rotary_emb=lambda like, positions_T: _rotary(like, positions_T, theta_of(facts), size),
    )
    head = embedding if facts.get("tie_word_embeddings") else part("lm_head")
    return SimpleNamespace(model=body, lm_head=head, config=config_of(facts))


def _rotary(like: Tensor, positions_T: Tensor, theta: float | None, size: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of all positions (1, T, D), in float32 and then rounded, as Transformers makes them."""
    assert theta is not None
    exponent = torch.arange(0, size, 2, dtype=torch.int64).to(like.device, torch.float32) / size
    angle = positions_T[..., None].float() * (1.0 / theta**exponent)
    angle = torch.cat((angle, angle), -1)
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)
