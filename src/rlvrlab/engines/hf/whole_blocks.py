"""Which blocks of a model are trained by cpu_blocks.py: those of the Llama family in float32 on a CPU, all frozen but
plain adapters. A block that is something else at the moment of a pass goes its class's own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlvrlab.engines.hf import adapters as lora
from rlvrlab.engines.hf.attention import PackedIndices, active, attend
from rlvrlab.engines.hf.cpu_blocks import Block, Finish, Heads
from rlvrlab.engines.hf.plain_attention import PlainAttention, Sizes, is_short
from rlvrlab.engines.hf.stacked import Part
from rlvrlab.engines.hf.weights import class_of

KINDS = {"LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer"}
"""Blocks of two norms, rotary attention with biases at most, and SwiGLU."""
QKV, FINISH = ("q_proj", "k_proj", "v_proj"), ("o_proj", "gate_proj", "up_proj", "down_proj")


class _Forward:
    """The forward pass of one block."""

    def __init__(self, module: Any) -> None:
        self.module = module
        attention, mlp = module.self_attn, module.mlp
        self.qkv = [attention.q_proj, attention.k_proj, attention.v_proj]
        self.finish = [attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj]
        size = int(attention.head_dim)
        heads, kv_heads = (int(_base(one).out_features) // size for one in self.qkv[:2])
        self.sizes = Sizes(heads, kv_heads, size)
        self.fewest = int(_base(self.qkv[0]).in_features)
        """Inputs of a pass below which merging adapters costs more than it saves."""

    def __call__(self, hidden_states: Tensor, *args: Any, **named: Any) -> Tensor:
        """By three functions, where that is what the block computes now."""
        indices, turns = active(), named.get("position_embeddings")
        parts = [_part(one) for one in (*self.qkv, *self.finish)]
        small = hidden_states.shape[:-1].numel() < self.fewest
        other = args or turns is None or hidden_states.dtype != torch.float32 or not isinstance(indices, PackedIndices)
        if small or other or None in parts:
            return type(self.module).forward(self.module, hidden_states, *args, **named)
        assert isinstance(indices, PackedIndices) and turns is not None
        return self._by_functions(hidden_states[0], turns, [one for one in parts if one is not None], indices)[None]

    def _by_functions(
        self, x_NI: Tensor, turns: tuple[Tensor, Tensor], parts: Sequence[Part], indices: PackedIndices
    ) -> Tensor:
        block, adapters = self._block(parts), [x for part in parts for x in (part.down, part.up)]
        cos, sin = turns[0][0], turns[1][0].clone()
        sin[:, : sin.shape[1] // 2].neg_()  # a rotation is x cos + roll(x, D/2) sin then
        qkv = Heads.apply(x_NI, cos[:, None], sin[:, None], block, *adapters[:6])
        scale, sizes = float(self.module.self_attn.scaling), self.sizes
        if is_short(indices, sizes.head_dim):
            attended = PlainAttention.apply(qkv, indices, sizes, scale)
        else:
            q, k, v = qkv.transpose(0, 1)[None].split([sizes.heads, sizes.kv_heads, sizes.kv_heads], 1)
            attended = attend(q, k, v, indices, scale)[0].flatten(1)
        return Finish.apply(x_NI, attended, block, *adapters[6:])

    def _block(self, parts: Sequence[Part]) -> Block:
        first, second = self.module.input_layernorm, self.module.post_attention_layernorm
        return Block(
            norm1=first.weight,
            norm2=second.weight,
            eps1=first.variance_epsilon,
            eps2=second.variance_epsilon,
            head_dim=self.sizes.head_dim,
            rotated=self.sizes.heads + self.sizes.kv_heads,
            qkv=list(parts[:3]),
            out=[parts[3]],
            gate_up=list(parts[4:6]),
            down=[parts[6]],
        )


def take_over(model: Any) -> int:
    """Give a model's blocks these functions; how many there are."""
    count = 0
    for module in model.modules():
        if class_of(module) in KINDS and _suits(module):
            module.forward = _Forward(module)
            count += 1
    return count


def give_back(model: Any) -> None:
    """Restore the forward methods of Transformers."""
    for one in _taken(model):
        del one.module.forward


def also_small_passes(model: Any) -> None:
    """Compute passes of few inputs this way too, to compare it with the other."""
    for one in _taken(model):
        one.fewest = 0


def _taken(model: Any) -> list[_Forward]:
    found = [module.__dict__.get("forward") for module in model.modules()]
    return [one for one in found if isinstance(one, _Forward)]


def _base(module: Any) -> Any:
    """The linear layer below an adapter, or the layer itself."""
    return module.base_layer if lora.is_adapted(module) else module


def _part(module: Any) -> Part | None:
    """A layer's weights and adapter as they are now; None where it is not the formula of adapters.py at the moment."""
    if not lora.is_adapted(module):
        return Part(module.weight, module.bias, None, None, 1.0)
    (name,), base = module.lora_A.keys(), module.base_layer
    down, up = module.lora_A[name].weight, module.lora_B[name].weight
    if module.disable_adapters or module.merged or module.active_adapters != [name]:
        return None
    if not down.dtype == up.dtype == base.weight.dtype == torch.float32:
        return None
    return Part(base.weight, base.bias, down, up, module.scaling[name])


def _suits(module: Any) -> bool:
    """Frozen but for plain adapters, in float32 on a CPU."""
    attention, mlp = module.self_attn, module.mlp
    linear = [getattr(attention if name in (*QKV, "o_proj") else mlp, name) for name in (*QKV, *FINISH)]
    if not all(lora.is_plain(one) if lora.is_adapted(one) else type(one) is torch.nn.Linear for one in linear):
        return False
    own = [*module.input_layernorm.parameters(), *module.post_attention_layernorm.parameters()]
    own += [x for one in linear for x in _base(one).parameters()]
    plain = all(x.device.type == "cpu" and x.dtype == torch.float32 and not x.requires_grad for x in own)
    return plain and type(mlp.act_fn).__name__ in {"SiLU", "SiLUActivation"} and not attention.attention_dropout
