"""Decoding without graphs: the path of the CPU.

The keys and values of a prompt are stored once per group; the n rows of the group attend to them together, and each row
to its own new tokens. In float32 one softmax goes over both; in half precision torch's kernel, which rounds less, makes
two, which are joined by their log-sums: lerp(o_prefix, o_own, sigmoid(lse_own − lse_prefix)).
Linear maps see only living rows. Suffixes: G groups, R rows, S slots of the rectangle (G, rows per group), H heads,
K key heads with E query heads each, D head size, I any width, L prompt positions, T new tokens, V vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Bools, Ints
from rlvrlab.engines.hf.blocks import Cache, finish_block, heads, new_cache, prefill
from rlvrlab.engines.hf.draw import draw, scaled
from rlvrlab.engines.hf.wave import Drawn, Ended, Stopped, Wave, swap_out
from rlvrlab.engines.hf.weights import Weights

DEAD_SHARE = 1 / 16
"""Finished rows are removed when they are at least this share of the batch."""
STOP_EVERY = 8
"""Steps between two looks for stop strings."""


class Rows:
    """Which row sits where, and the settings of each, in the order of the batch."""

    def __init__(self, wave: Wave, device: torch.device) -> None:
        length_G = np.array([len(p) for p in wave.prompts])
        self.device = device
        self.id_R: Ints = np.arange(len(wave.group_R))
        self.dead_R: Bools = np.zeros(len(wave.group_R), dtype=bool)
        self.group_R: Ints = wave.group_R.copy()
        self.length_G: Ints = length_G
        self.greedy = bool((wave.temperature_R == 0).any())
        self.nucleus = bool((wave.top_p_R < 1).any())
        self._wave = wave
        self._lay_out()

    def _lay_out(self) -> None:
        """Device copies, and the rectangle (G, m) of rows per group that the prefix is attended with."""
        wave, id_R = self._wave, self.id_R
        move = self._move
        self.id, self.group = move(id_R), move(self.group_R)
        self.length = move(self.length_G[self.group_R])
        self.temperature = move(wave.temperature_R[id_R].astype(np.float32))
        self.top_p = move(wave.top_p_R[id_R].astype(np.float32)) if self.nucleus else None
        self.limit = move(wave.limit_R[id_R])
        order = np.argsort(self.group_R, kind="stable")
        groups = len(self.length_G)
        count_G = np.bincount(self.group_R, minlength=groups)
        self.width = int(count_G.max())
        within = np.arange(len(order)) - np.repeat(np.cumsum(count_G) - count_G, count_G)
        slot_R = np.empty(len(order), dtype=np.int64)
        slot_R[order] = np.repeat(np.arange(groups), count_G) * self.width + within
        self.dense = groups * self.width == len(order) and bool((slot_R == np.arange(len(order))).all())
        row_S = np.zeros(groups * self.width, dtype=np.int64)
        row_S[slot_R] = np.arange(len(order))
        self.slot, self.row_of_slot = move(slot_R), move(row_S)
        longest = int(self.length_G.max())
        self.longest = longest
        seen_GL = np.arange(longest)[None] < self.length_G[:, None]
        bias_GL = np.where(seen_GL, 0.0, -np.inf).astype(np.float32)
        self.bias = None if seen_GL.all() else move(bias_GL)[:, None, None]

    def _move(self, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def __len__(self) -> int:
        return len(self.id_R)

    def by_group(self, x_RKEI: Tensor) -> Tensor:
        """(G, K, rows per group · E, I) of what rows have: K key heads with E query heads each."""
        x = x_RKEI if self.dense else x_RKEI[self.row_of_slot]
        kv_heads, each, size = x.shape[1:]
        x = x.reshape(-1, self.width, kv_heads, each, size).transpose(1, 2)
        return x.reshape(-1, kv_heads, self.width * each, size)

    def by_row(self, x_GKSI: Tensor) -> Tensor:
        """The same the other way."""
        groups, kv_heads, slots, size = x_GKSI.shape
        x = x_GKSI.reshape(groups, kv_heads, self.width, slots // self.width, size).transpose(1, 2)
        x_RKEI = x.reshape(groups * self.width, kv_heads, -1, size)
        return x_RKEI if self.dense else x_RKEI[self.slot]

    def remove_dead(self, cache: Cache, used: int) -> None:
        """Forget finished rows, and prompts that nobody needs any more."""
        rows = swap_out(self.dead_R)
        self.dead_R = np.zeros(rows.alive, dtype=bool)
        self.id_R[rows.to], self.group_R[rows.to] = self.id_R[rows.source], self.group_R[rows.source]
        self.id_R, self.group_R = self.id_R[: rows.alive], self.group_R[: rows.alive]
        to, source = self._move(rows.to), self._move(rows.source)
        for kv in (*cache.own_k, *cache.own_v):
            kv[to, :, :used] = kv[source, :, :used]
        if not rows.alive:
            return
        wanted_G = np.bincount(self.group_R, minlength=len(self.length_G)) > 0
        if not wanted_G.all():
            groups = swap_out(~wanted_G)
            renamed_G = np.arange(len(wanted_G))
            renamed_G[groups.source] = groups.to
            self.group_R = renamed_G[self.group_R]
            self.length_G[groups.to] = self.length_G[groups.source]
            self.length_G = self.length_G[: groups.alive]
            to, source = self._move(groups.to), self._move(groups.source)
            for kv in (*cache.prefix_k, *cache.prefix_v):
                kv[to] = kv[source]
        self._lay_out()


def attend(q_RHD: Tensor, i: int, cache: Cache, rows: Rows, used: int, scale: float) -> Tensor:
    """(R, H·D): attention over the group's prompt and the row's own new tokens."""
    alive, kv_heads, size = len(q_RHD), cache.own_k[i].shape[1], q_RHD.shape[-1]
    groups, longest = len(rows.length_G), rows.longest
    q = q_RHD.contiguous().view(alive, kv_heads, -1, size)
    own_k, own_v = cache.own_k[i][:alive, :, :used], cache.own_v[i][:alive, :, :used]
    prefix_k, prefix_v = cache.prefix_k[i][:groups, :, :longest], cache.prefix_v[i][:groups, :, :longest]
    if q.dtype != torch.float32:
        own, own_lse = _attention(q, own_k, own_v, None, scale)
        prefix, prefix_lse = _attention(rows.by_group(q), prefix_k, prefix_v, rows.bias, scale)
        share = torch.sigmoid(own_lse - rows.by_row(prefix_lse[..., None])[..., 0])[..., None]
        return torch.lerp(rows.by_row(prefix).float(), own.float(), share).to(q.dtype).reshape(alive, -1)
    q = q * scale
    seen = _products(rows.by_group(q), prefix_k.mT)
    if rows.bias is not None:
        seen += rows.bias
    score = q.new_empty(*q.shape[:-1], longest + used)
    score[..., :longest], score[..., longest:] = rows.by_row(seen), _products(q, own_k.mT)
    share = score.softmax(-1)
    out = rows.by_row(_products(rows.by_group(share[..., :longest]), prefix_v)).flatten(0, 1)
    out = out.baddbmm_(share[..., longest:].flatten(0, 1), own_v.flatten(0, 1))
    return out.view(alive, -1)


def _products(a: Tensor, b: Tensor) -> Tensor:
    """Matrix by matrix; matmul would copy a part of the cache where this takes it as it lies."""
    return torch.bmm(a.flatten(0, 1), b.flatten(0, 1)).view(*a.shape[:-1], b.shape[-1])


def _attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float) -> tuple[Tensor, Tensor]:
    """Attention and the log-sum of its weights, which the public function keeps to itself."""
    bias = None if bias is None else bias.to(q.dtype)
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, attn_mask=bias, scale=scale)


def decode(weights: Weights, wave: Wave, stopped: Stopped | None, ended: Ended | None = None) -> Drawn:
    """All rows of a wave until each has ended; what is drawn behind a row's end is to be ignored."""
    rows = Rows(wave, weights.device)
    cache = new_cache(weights, len(wave.prompts), rows.longest, len(rows), wave.new_tokens)
    uniform_RT = torch.from_numpy(wave.uniform_RT).to(weights.device)
    token_RT = torch.zeros(len(rows), wave.new_tokens, dtype=torch.long, device=weights.device)
    logp_RT = torch.zeros(token_RT.shape, device=weights.device)
    logits_RV = prefill(weights, wave.prompts, wave.begun_G, cache)[rows.group]
    # Every step multiplies by the prompts' keys, and in float32 it is faster by them in this order.
    if weights.dtype == torch.float32:
        cache.prefix_k = [k_GKLD.mT.contiguous().mT for k_GKLD in cache.prefix_k]
    for t in range(wave.new_tokens):
        z_RV = scaled(logits_RV, rows.temperature, rows.top_p)
        token_R, logp_R = draw(z_RV, uniform_RT[rows.id, t], rows.temperature == 0 if rows.greedy else None)
        token_RT[rows.id, t], logp_RT[rows.id, t] = token_R, logp_R
        rows.dead_R |= token_R.cpu().numpy() == wave.end
        rows.dead_R |= wave.limit_R[rows.id_R] <= t + 1
        if stopped is not None and t % STOP_EVERY == STOP_EVERY - 1:
            rows.dead_R |= stopped(rows.id_R, token_RT[rows.id, : t + 1].cpu().numpy())
        if rows.dead_R.all():
            break
        if rows.dead_R.sum() >= DEAD_SHARE * len(rows):
            gone = rows.id_R[rows.dead_R]
            rows.remove_dead(cache, t)
            if ended is not None:
                ended(gone, Drawn(token_RT[gone].cpu().numpy(), logp_RT[gone].double().cpu().numpy()))
        logits_RV = _step(weights, token_RT[rows.id, t], rows, cache, t)
    return Drawn(token_RT.cpu().numpy(), logp_RT.double().cpu().numpy())


def _step(weights: Weights, token_R: Tensor, rows: Rows, cache: Cache, t: int) -> Tensor:
    """Scores of the next token (R, V); writes the keys and values of this one."""
    position_R = rows.length + t
    cos_RD, sin_RD = weights.cos_TD[position_R], weights.sin_TD[position_R]
    x_RI = weights.embedding[token_R]
    alive = len(rows)
    for i, layer in enumerate(weights.layers):
        q, k, v = heads(weights, layer, x_RI, cos_RD, sin_RD)
        cache.own_k[i][:alive, :, t], cache.own_v[i][:alive, :, t] = k, v
        x_RI = finish_block(weights, layer, x_RI, attend(q, i, cache, rows, t + 1, weights.shape.scale))
    return weights.logits(x_RI)
