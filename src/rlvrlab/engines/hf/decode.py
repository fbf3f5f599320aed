"""Decoding without graphs: the path of the CPU.

The keys and values of a prompt are stored once per group; the n rows of the group attend to them together, and each row
to its own new tokens. The two halves of a softmax are joined by their log-sums:
    softmax over (prefix, own) = lerp(o_prefix, o_own, sigmoid(lse_own − lse_prefix)).
Linear maps see only living rows. Suffixes: G groups, R rows, S slots of the rectangle (G, rows per group), H heads,
D head size, L prompt positions, T new tokens, V vocabulary.
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
    kv_heads, groups, width = cache.own_k[i].shape[1], len(rows.length_G), rows.width
    q = q_RHD.reshape(len(q_RHD), kv_heads, -1, q_RHD.shape[-1])
    own, own_lse = _attention(q, cache.own_k[i][: len(q), :, :used], cache.own_v[i][: len(q), :, :used], None, scale)
    asked = q if rows.dense else q[rows.row_of_slot]
    repeat, size = q.shape[2], q.shape[3]
    asked = asked.view(groups, width, kv_heads, repeat, size).transpose(1, 2).reshape(groups, kv_heads, -1, size)
    prefix_k, prefix_v = cache.prefix_k[i][:groups, :, : rows.longest], cache.prefix_v[i][:groups, :, : rows.longest]
    prefix, prefix_lse = _attention(asked, prefix_k, prefix_v, rows.bias, scale)
    prefix = prefix.reshape(groups, kv_heads, width, repeat, size).transpose(1, 2).reshape(-1, kv_heads, repeat, size)
    prefix_lse = prefix_lse.reshape(groups, kv_heads, width, repeat).transpose(1, 2).reshape(-1, kv_heads, repeat)
    if not rows.dense:
        prefix, prefix_lse = prefix[rows.slot], prefix_lse[rows.slot]
    share = torch.sigmoid(own_lse - prefix_lse)[..., None]
    return torch.lerp(prefix.float(), own.float(), share).to(q.dtype).reshape(len(q), -1)


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
