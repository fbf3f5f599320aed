"""A block of the Llama family on packed tokens, the key/value cache, and the prefill of prompts on any device.

Suffixes: N packed tokens, G prompts, R rows, H heads, K key heads, D head size, L prompt positions, T new tokens,
I any width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, silu

from rlvrlab.engines.hf.weights import Layer, Weights

PREFILL_TOKENS = {"cpu": 4096, "cuda": 65536}
"""Prompt tokens computed at once."""


def rotate(x_NHD: Tensor, cos_ND: Tensor, sin_ND: Tensor) -> Tensor:
    """Rotary position embedding; the sine carries its signs."""
    return torch.addcmul(x_NHD * cos_ND[:, None], x_NHD.roll(x_NHD.shape[-1] // 2, -1), sin_ND[:, None])


def heads(
    weights: Weights, layer: Layer, x_NI: Tensor, cos_ND: Tensor, sin_ND: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Rotated queries (N, H, D), rotated keys and values (N, K, D)."""
    shape = weights.shape
    qkv_NHD = weights.project(weights.normalise(x_NI, layer.norm1), layer.qkv, layer.qkv_bias)
    qkv_NHD = qkv_NHD.view(len(x_NI), -1, shape.head_dim)
    qk_NHD, v_NKD = qkv_NHD.split([shape.heads + shape.kv_heads, shape.kv_heads], 1)
    if layer.q_norm is not None and layer.k_norm is not None:
        q, k = qk_NHD.split([shape.heads, shape.kv_heads], 1)
        qk_NHD = torch.cat((weights.normalise(q, layer.q_norm), weights.normalise(k, layer.k_norm)), 1)
    q_NHD, k_NKD = rotate(qk_NHD, cos_ND, sin_ND).split([shape.heads, shape.kv_heads], 1)
    return q_NHD, k_NKD, v_NKD


def finish_block(weights: Weights, layer: Layer, x_NI: Tensor, attended_NI: Tensor) -> Tensor:
    """The output projection and the MLP, with their residuals."""
    x_NI = weights.add_projection(x_NI, attended_NI, layer.out, layer.out_bias)
    h = weights.project(weights.normalise(x_NI, layer.norm2), layer.gate_up, layer.gate_up_bias)
    gate, up = h.chunk(2, -1)
    return weights.add_projection(x_NI, silu(gate).mul_(up), layer.down, layer.down_bias)


@dataclass(slots=True)
class Cache:
    """Keys and values: of prompts by group, of new tokens by row."""

    prefix_k: list[Tensor]
    """Per layer (G, K, L, D)."""
    prefix_v: list[Tensor]
    own_k: list[Tensor]
    """Per layer (R, K, T, D)."""
    own_v: list[Tensor]


def new_cache(weights: Weights, groups: int, length: int, rows: int, new_tokens: int) -> Cache:
    """Room for a wave; prompts are zeroed, because masked positions are still multiplied by zero."""
    shape, like = weights.shape, {"device": weights.device, "dtype": weights.dtype}
    prefix = (shape.layers, 2, groups, shape.kv_heads, length, shape.head_dim)
    own = (shape.layers, 2, rows, shape.kv_heads, new_tokens, shape.head_dim)
    prefix_kv, own_kv = torch.zeros(prefix, **like), torch.zeros(own, **like)
    return Cache(*(list(kv[:, half]) for kv in (prefix_kv, own_kv) for half in (0, 1)))


def prefill(weights: Weights, prompts: Sequence[tuple[int, ...]], cache: Cache) -> Tensor:
    """Fill the prompts' keys and values; the scores after each prompt (G, V)."""
    logits, start, budget = [], 0, PREFILL_TOKENS.get(weights.device.type, 4096)
    while start < len(prompts):
        stop, tokens = start, 0
        while stop < len(prompts) and (stop == start or tokens + len(prompts[stop]) <= budget):
            tokens += len(prompts[stop])
            stop += 1
        logits.append(_prefill(weights, prompts[start:stop], cache, start))
        start = stop
    return torch.cat(logits)


def _prefill(weights: Weights, prompts: Sequence[tuple[int, ...]], cache: Cache, first: int) -> Tensor:
    """Packed: linear maps see no padding. Prompts are padded on the right for attention alone, where the causal mask
    already hides what comes later."""
    length_G = np.array([len(p) for p in prompts])
    length = int(length_G.max())
    position = np.concatenate([np.arange(n) for n in length_G])
    place = torch.from_numpy(np.repeat(np.arange(len(prompts)) * length, length_G) + position).to(weights.device)
    tokens = torch.from_numpy(np.concatenate([np.asarray(p, dtype=np.int64) for p in prompts])).to(weights.device)
    at = torch.from_numpy(position).to(weights.device)
    cos_ND, sin_ND = weights.cos_TD[at], weights.sin_TD[at]
    x_NI = weights.embedding[tokens]
    for i, layer in enumerate(weights.layers):
        q, k, v = heads(weights, layer, x_NI, cos_ND, sin_ND)
        padded = [_pad(t, place, len(prompts), length) for t in (q, k, v)]
        chosen = slice(first, first + len(prompts))
        cache.prefix_k[i][chosen, :, :length] = padded[1]
        cache.prefix_v[i][chosen, :, :length] = padded[2]
        attended = (
            _causal(padded[0], padded[1], padded[2], weights.shape.scale)
            .transpose(1, 2)
            .reshape(-1, q.shape[1] * q.shape[2])
        )
        x_NI = finish_block(weights, layer, x_NI, attended[place])
    last = torch.from_numpy(np.cumsum(length_G) - 1).to(weights.device)
    return weights.logits(x_NI[last])


def _pad(x_NHD: Tensor, place_N: Tensor, groups: int, length: int) -> Tensor:
    """(G, H, L, D) with zeros behind each prompt."""
    padded = x_NHD.new_zeros(groups * length, *x_NHD.shape[1:])
    padded[place_N] = x_NHD
    return padded.view(groups, length, *x_NHD.shape[1:]).transpose(1, 2)


def _causal(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    if q.shape[1] == k.shape[1]:
        return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    if q.device.type == "cuda":
        return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True)
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
