"""How rows look at their prompts in a decoding step in float32 on a CPU.

Where all groups have equally many rows, copies go from one room to another that all blocks use in turn; where rows have
left, by index. Suffixes: G groups, W rows per group, R rows, K key heads with E query heads each, D head size, L prompt
positions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlvrlab.engines.hf.decode_rows import Rows
from rlvrlab.engines.hf.weights import Weights


class Heads:
    """Queries, keys and values of one token: room that all blocks use in turn, and how it is looked at."""

    def __init__(self, weights: Weights, alive: int) -> None:
        shape, like = weights.shape, {"device": weights.device}
        heads, kv_heads, size = shape.heads, shape.kv_heads, shape.head_dim
        self.all = torch.empty((heads + 2 * kv_heads) * size, alive, **like)
        by_head = self.all.view(-1, size, alive)
        self.qk = by_head[: heads + kv_heads]
        self.first, self.second = self.qk.chunk(2, 1)
        self.turned = torch.empty(self.qk.shape, **like)
        self.turned_first, self.turned_second = self.turned.chunk(2, 1)
        self.q_by_features = by_head[:heads]
        self.q_RKED = torch.empty(alive, kv_heads, heads // kv_heads, size, **like)
        self.q_flat = self.q_RKED.flatten(0, 1)
        self._q_RHD, self._new_q_RHD = self.q_RKED.flatten(1, 2), self.q_by_features.permute(2, 0, 1)
        self.kv_2RKD = by_head[heads:].view(2, kv_heads, size, alive).permute(0, 3, 1, 2)

    def by_rows(self) -> Tensor:
        """Queries (R·K, E, D), turned from features to rows."""
        self._q_RHD.copy_(self._new_q_RHD)
        return self.q_flat


class EqualGroups:
    """As many rows in each group."""

    def __init__(self, rows: Rows, heads: Heads) -> None:
        alive, kv_heads, each, size = heads.q_RKED.shape
        groups, width, longest = len(rows.length_G), rows.width, rows.longest
        like = {"device": heads.all.device}

        def room(last: int) -> tuple[Tensor, Tensor]:
            """By groups (G·K, W·E, last), and the same by rows (G, W, K, E, last)."""
            flat = torch.empty(groups * kv_heads, width * each, last, **like)
            return flat, flat.view(groups, kv_heads, width, each, last).transpose(1, 2)

        self.bias = None if rows.bias is None else rows.bias[:, :, :, None]
        self.asked, self._asked_by_rows = room(size)
        by_features = heads.q_by_features.view(kv_heads, each, size, groups, width)
        self._new_q = by_features.permute(3, 4, 0, 1, 2)
        self.scores, self.scores_by_rows = room(longest)
        self.share, self.share_by_rows = room(longest)
        self.found, self.found_by_rows = room(size)
        self.out = torch.empty(groups, width, kv_heads, each, size, **like)
        self.out_flat = self.out.view(alive * kv_heads, each, size)

    def seen(self, prefix_k: Tensor) -> Tensor:
        """Scores of the prompts' positions (G, W, K, E, L)."""
        self._asked_by_rows.copy_(self._new_q)
        torch.bmm(self.asked, prefix_k, out=self.scores)
        return self.scores_by_rows if self.bias is None else self.scores_by_rows.add_(self.bias)

    def attended(self, of_prompt: Tensor, prefix_v: Tensor) -> Tensor:
        """What the prompts' values add up to with these weights (R·K, E, D)."""
        self.share_by_rows.copy_(of_prompt)
        torch.bmm(self.share, prefix_v, out=self.found)
        self.out.copy_(self.found_by_rows)
        return self.out_flat


class RaggedGroups:
    """Rows have left, or never were as many in each group."""

    def __init__(self, rows: Rows, heads: Heads) -> None:
        self.rows, self.heads = rows, heads

    def seen(self, prefix_k: Tensor) -> Tensor:
        """Scores of the prompts' positions (R, K, E, L)."""
        asked = self.rows.by_group(self.heads.q_RKED)
        scores = torch.bmm(asked.flatten(0, 1), prefix_k).view(*asked.shape[:-1], -1)
        return self.rows.by_row(scores if self.rows.bias is None else scores.add_(self.rows.bias))

    def attended(self, of_prompt: Tensor, prefix_v: Tensor) -> Tensor:
        """What the prompts' values add up to with these weights (R·K, E, D)."""
        share = self.rows.by_group(of_prompt)
        found = torch.bmm(share.flatten(0, 1), prefix_v).view(*share.shape[:-1], -1)
        return self.rows.by_row(found).flatten(0, 1)
