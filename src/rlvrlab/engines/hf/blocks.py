"""A block of the Llama family on packed tokens, the key/value cache, and the prefill of prompts on any device.

Suffixes: N packed tokens, G prompts, R rows, H heads, K key heads, D head size, L prompt positions, T new tokens,
I any width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    qkv_NHD = qkv_NHD.contiguous().view(len(x_NI), -1, shape.head_dim)
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
    """Keys and values: of prompts, one to a slot, and of new tokens by row."""

    prefix_k: list[Tensor]
    """Per layer (G, K, L, D)."""
    prefix_v: list[Tensor]
    own_k: list[Tensor]
    """Per layer (R, K, T, D)."""
    own_v: list[Tensor]
    own_kv: list[Tensor] = field(default_factory=list)
    """The memory of both, where it is one: per layer (2, R, K, T, D)."""


def new_cache(
    weights: Weights, groups: int, length: int, rows: int, new_tokens: int, *, masked_own: bool = True
) -> Cache:
    """Room for prompts and rows, zeroed, because masked positions are still multiplied by zero; where new tokens are
    read only behind their writing (`masked_own` False), their room stays as it is."""
    shape, like = weights.shape, {"device": weights.device, "dtype": weights.dtype}
    prefix = (shape.layers, 2, groups, shape.kv_heads, length, shape.head_dim)
    own = (shape.layers, 2, rows, shape.kv_heads, new_tokens, shape.head_dim)
    prefix_kv, own_kv = torch.zeros(prefix, **like), (torch.zeros if masked_own else torch.empty)(own, **like)
    prefix_k, prefix_v, own_k, own_v = (list(kv[:, half]) for kv in (prefix_kv, own_kv) for half in (0, 1))
    return Cache(prefix_k, prefix_v, own_k, own_v, list(own_kv))


class Part(NamedTuple):
    """Tokens that are to be computed in one row of the cache, behind those that are known there."""

    row: int
    known: int
    tokens: tuple[int, ...]


def prefill(
    weights: Weights,
    prompts: Sequence[tuple[int, ...]],
    begun_G: Sequence[int],
    cache: Cache,
    slots: Sequence[int] | None = None,
) -> Tensor:
    """Fill the prompts' keys and values into these slots, or the first ones; the scores after each prompt (G, V).

    So many of a prompt's last tokens are an answer that has begun. What comes before them is computed once for all
    prompts that share it, such as the branches of a tree."""
    slots = range(len(prompts)) if slots is None else slots
    rows_of: dict[tuple[int, ...], list[int]] = {}
    for row, prompt, begun in zip(slots, prompts, begun_G, strict=True):
        if 0 < begun < len(prompt):
            rows_of.setdefault(prompt[: len(prompt) - begun], []).append(row)
    shared = {base: rows for base, rows in rows_of.items() if len(rows) > 1}
    known = {row: len(base) for base, rows in shared.items() for row in rows}
    if shared:
        _fill(weights, [Part(rows[0], 0, base) for base, rows in shared.items()], cache)
        source = torch.tensor([rows[0] for rows in shared.values() for _ in rows], device=weights.device)
        to, longest = torch.tensor(list(known), device=weights.device), max(known.values())
        for kv in (*cache.prefix_k, *cache.prefix_v):
            kv[to, :, :longest] = kv[source, :, :longest]
    starts = ((row, known.get(row, 0), prompt) for row, prompt in zip(slots, prompts, strict=True))
    parts = [Part(row, start, prompt[start:]) for row, start, prompt in starts]
    return _fill(weights, parts, cache)


def _fill(weights: Weights, parts: Sequence[Part], cache: Cache) -> Tensor:
    """Compute the parts, so many tokens at once; the scores after each."""
    logits, start, budget = [], 0, PREFILL_TOKENS.get(weights.device.type, 4096)
    while start < len(parts):
        stop, tokens = start, 0
        while stop < len(parts) and (stop == start or tokens + len(parts[stop].tokens) <= budget):
            tokens += len(parts[stop].tokens)
            stop += 1
        logits.append(_compute(weights, parts[start:stop], cache))
        start = stop
    return torch.cat(logits)


def hidden_states(weights: Weights, sequences: Sequence[tuple[int, ...]]) -> Tensor:
    """What the output layer reads at every token of the sequences, one behind the other (N, I)."""
    x_NI, _ = _packed(weights, [Part(row, 0, tokens) for row, tokens in enumerate(sequences)], None)
    return weights.normalise(x_NI, weights.norm)


def _compute(weights: Weights, parts: Sequence[Part], cache: Cache) -> Tensor:
    """Fill the cache with the parts' keys and values; the scores after each."""
    x_NI, last = _packed(weights, parts, cache)
    return weights.logits(x_NI[last])


def _packed(weights: Weights, parts: Sequence[Part], cache: Cache | None) -> tuple[Tensor, Tensor]:
    """The last block's output at all tokens, and the places of the parts' last ones. Without a cache nothing is known
    before the parts. Linear maps see no padding; parts are padded on the right for attention alone, where the causal
    mask already hides what comes later."""
    length_G, known_G, row_G = np.array([(len(part.tokens), part.known, part.row) for part in parts]).T
    length, total = int(length_G.max()), int((known_G + length_G).max())
    step_N = np.concatenate([np.arange(n) for n in length_G])
    tokens_N = np.concatenate([np.asarray(part.tokens, dtype=np.int64) for part in parts])
    numbers = np.stack([np.repeat(start_G, length_G) for start_G in (np.arange(len(parts)) * length, known_G, row_G)])
    numbers[:2] += step_N
    place, at, row, tokens, rows, last = (
        torch.from_numpy(one).to(weights.device)
        for one in (*numbers, tokens_N, np.ascontiguousarray(row_G), np.cumsum(length_G) - 1)
    )
    seen = None
    if known_G.any():  # (G, 1, L new positions, all): each new token sees what is known and what is new up to itself
        own_GL = known_G[:, None] + np.arange(length)
        seen = torch.from_numpy(np.arange(total) <= own_GL[:, None, :, None]).to(weights.device)
    weights.reach(total)
    cos_ND, sin_ND = weights.cos_TD[at], weights.sin_TD[at]
    x_NI = weights.embedding[tokens]
    for i, layer in enumerate(weights.layers):
        q, k, v = heads(weights, layer, x_NI, cos_ND, sin_ND)
        if cache is not None:
            cache.prefix_k[i][row, :, at], cache.prefix_v[i][row, :, at] = k, v
        asked, keys, values = (_pad(one, place, len(parts), length) for one in (q, k, v))
        if cache is not None and seen is not None:
            keys, values = cache.prefix_k[i][rows, :, :total], cache.prefix_v[i][rows, :, :total]
        attended = _attend(asked, keys, values, weights.shape.scale, seen).transpose(1, 2)
        x_NI = finish_block(weights, layer, x_NI, attended.reshape(-1, q.shape[1] * q.shape[2])[place])
    return x_NI, last


def _pad(x_NHD: Tensor, place_N: Tensor, groups: int, length: int) -> Tensor:
    """(G, H, L, D) with zeros behind each prompt."""
    padded = x_NHD.new_zeros(groups * length, *x_NHD.shape[1:])
    padded[place_N] = x_NHD
    return padded.view(groups, length, *x_NHD.shape[1:]).transpose(1, 2)


def _attend(q: Tensor, k: Tensor, v: Tensor, scale: float, seen: Tensor | None) -> Tensor:
    """Attention to what is seen; None: to everything up to the token itself, from the first position on."""
    mask: dict[str, Any] = {"is_causal": True} if seen is None else {"attn_mask": seen}
    if q.shape[1] == k.shape[1]:
        return scaled_dot_product_attention(q, k, v, scale=scale, **mask)
    if q.device.type == "cuda" and seen is None:
        return scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=True, **mask)
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    return scaled_dot_product_attention(q, k, v, scale=scale, **mask)
