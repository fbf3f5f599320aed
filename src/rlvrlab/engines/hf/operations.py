"""A decoding step's state on the device, and its operations in plain torch: the reference of the Triton kernels, and
their stand-in. Nothing here waits for the host.

Suffixes: R rows, K key heads, D head size, L prompt positions, T new tokens, V vocabulary, I any width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, silu

from rlvrlab.engines.hf.blocks import Cache, rotate
from rlvrlab.engines.hf.draw import draw, scaled
from rlvrlab.engines.hf.weights import Layer, Weights

LENGTH_BUCKET = 64
"""New tokens per graph of the plain-torch operations."""


@dataclass(slots=True)
class State:
    """What a step reads and writes; the addresses are baked into graphs."""

    token: Tensor
    """(R) the newest token of each row, input of the next step."""
    step: Tensor
    """(R) new tokens already in the own cache; stands still once the row has ended."""
    group: Tensor
    """(R) where the prompt of the row lies."""
    length: Tensor
    """(R) tokens of the row's prompt."""
    limit: Tensor
    """(R) most new tokens of the row."""
    temperature: Tensor
    top_p: Tensor
    uniform: Tensor
    """(R, T) the numbers that tokens are drawn with."""
    living: Tensor
    """(R) 1, or 0 where the row has ended or there is none."""
    out_token: Tensor
    """(R, T) the tokens drawn so far."""
    out_logp: Tensor
    end: Tensor
    """(1) the token that ends a row."""

    def by_place(self) -> tuple[Tensor, ...]:
        """What there is of each row."""
        settings = self.limit, self.temperature, self.top_p, self.uniform
        return (self.token, self.step, self.group, self.length, *settings, self.living, self.out_token, self.out_logp)


def new_state(device: torch.device, rows: int, new_tokens: int) -> State:
    """Buffers for `rows` rows."""

    def zeros(*shape: int, dtype: Any = torch.int32) -> Tensor:
        return torch.zeros(shape, device=device, dtype=dtype)

    return State(
        token=zeros(rows, dtype=torch.int64),
        step=zeros(rows),
        group=zeros(rows),
        length=zeros(rows),
        limit=zeros(rows),
        temperature=zeros(rows, dtype=torch.float32),
        top_p=zeros(rows, dtype=torch.float32),
        uniform=zeros(rows, new_tokens, dtype=torch.float64),
        living=zeros(rows),
        out_token=zeros(rows, new_tokens, dtype=torch.int64),
        out_logp=zeros(rows, new_tokens, dtype=torch.float32),
        end=zeros(1),
    )


class TorchOperations:
    """What a step consists of besides matrix products, in plain torch; kernels.py has the same fused."""

    length_bucket: int | None = LENGTH_BUCKET
    """New tokens per graph; None when lengths are read on the device and one graph serves all."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def add_norm(self, x_RI: Tensor, y_RI: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The residual sum and its norm."""
        x_RI = x_RI if y_RI is None else x_RI + y_RI
        return x_RI, self.weights.normalise(x_RI, weight)

    def gate(self, gate_up_RI: Tensor) -> Tensor:
        """silu(gate) · up."""
        gate, up = gate_up_RI.chunk(2, -1)
        return silu(gate) * up

    def attend(self, i: int, layer: Layer, qkv_RI: Tensor, state: State, cache: Cache, used: int) -> Tensor:
        """Rotate, write this token's key and value, attend to the prompt and to the own tokens, `used` at most."""
        shape, rows = self.weights.shape, len(qkv_RI)
        qkv = qkv_RI.view(rows, -1, shape.head_dim)
        q, k, v = qkv.split([shape.heads, shape.kv_heads, shape.kv_heads], 1)
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = self.weights.normalise(q, layer.q_norm), self.weights.normalise(k, layer.k_norm)
        group = state.group[:rows].long()
        length_R, step_R = state.length[:rows], state.step[:rows]
        position_R = (length_R + step_R).long()
        cos, sin = self.weights.cos_TD[position_R], self.weights.sin_TD[position_R]
        own_k, own_v = cache.own_k[i][:rows], cache.own_v[i][:rows]
        row, at = torch.arange(rows, device=q.device), step_R.long()
        own_k[row, :, at], own_v[row, :, at] = rotate(k, cos, sin), v
        keys = torch.cat((cache.prefix_k[i][group], own_k[:, :, :used]), 2)
        values = torch.cat((cache.prefix_v[i][group], own_v[:, :, :used]), 2)
        prompt = cache.prefix_k[i].shape[2]
        seen_R = torch.arange(prompt, device=q.device) < length_R[:, None]
        own_R = torch.arange(used, device=q.device) <= step_R[:, None]
        mask = torch.cat((seen_R, own_R), 1)[:, None, None]
        asked = rotate(q, cos, sin).view(rows, shape.kv_heads, shape.repeat, shape.head_dim)
        return scaled_dot_product_attention(asked, keys, values, mask, scale=shape.scale).reshape(rows, -1)

    def choose(self, logits_RV: Tensor, state: State, nucleus: bool) -> None:
        """Draw each row's token number `state.step` and write it down; rows that had ended stay as they are."""
        rows = len(logits_RV)
        alive = state.living[:rows] != 0
        row, at = torch.arange(rows, device=logits_RV.device), state.step[:rows].long()
        temperature = state.temperature[:rows]
        z_RV = scaled(logits_RV, temperature, state.top_p[:rows] if nucleus else None)
        token, logp = draw(z_RV, state.uniform[row, at], temperature == 0)
        state.out_token[row, at] = torch.where(alive, token, state.out_token[row, at])
        state.out_logp[row, at] = torch.where(alive, logp, state.out_logp[row, at])
        state.token[:rows] = token
        state.living[:rows] &= (token != state.end) & (at + 1 < state.limit[:rows])
