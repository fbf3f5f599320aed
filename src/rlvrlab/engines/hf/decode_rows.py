"""Where rows sit while the CPU decodes them together, and how finished ones leave.

Suffixes: G groups, R rows, S slots of the rectangle (G, rows per group), K key heads with E query heads each, I any
width, L prompt positions.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlvrlab.batch import Bools, Ints
from rlvrlab.engines.hf.asked import Asked, swap_out
from rlvrlab.engines.hf.blocks import Cache


class Rows:
    """Which row sits where, and the settings of each, in the order of the batch."""

    def __init__(self, asked: Asked, device: torch.device) -> None:
        length_G = np.array([len(p) for p in asked.prompts])
        self.device = device
        self.id_R: Ints = np.arange(len(asked.group_R))
        self.dead_R: Bools = np.zeros(len(asked.group_R), dtype=bool)
        self.group_R: Ints = asked.group_R.copy()
        self.length_G: Ints = length_G
        self.greedy = bool((asked.temperature_R == 0).any())
        self.nucleus = bool((asked.top_p_R < 1).any())
        self._asked = asked
        self._lay_out()

    def _lay_out(self) -> None:
        """Device copies, and the rectangle (G, m) of rows per group that the prefix is attended with."""
        asked, id_R = self._asked, self.id_R
        move = self._move
        self.id, self.group = move(id_R), move(self.group_R)
        self.length = move(self.length_G[self.group_R])
        self.temperature = move(asked.temperature_R[id_R].astype(np.float32))
        self.top_p = move(asked.top_p_R[id_R].astype(np.float32)) if self.nucleus else None
        self.limit = move(asked.limit_R[id_R])
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
