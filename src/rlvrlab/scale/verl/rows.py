"""Rows of verl's batches: which group they belong to, and how ranks with unequal numbers of them keep in step.

FSDP's collectives need every rank to make the same number of passes, so a rank that has fewer rows of a group than
another repeats its shortest row with nothing to train on in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlvrlab.batch import Floats, Ints


@dataclass(frozen=True)
class Ranks:
    """The processes among which rows are divided."""

    size: int = 1
    rank: int = 0
    group: Any = None
    device: Any = "cpu"

    def total(self, array: Any) -> Floats:
        """Added up over all of them."""
        return self._reduced(array, "SUM")

    def largest(self, array: Any) -> Floats:
        """The largest of any of them."""
        return self._reduced(array, "MAX")

    def _reduced(self, array: Any, how: str) -> Floats:
        given = np.asarray(array, dtype=np.float64)
        if self.size == 1:
            return given
        import torch

        tensor = torch.tensor(given, device=self.device)
        torch.distributed.all_reduce(tensor, op=getattr(torch.distributed.ReduceOp, how), group=self.group)
        return np.asarray(tensor.cpu().numpy())


def counts(data: Any, label_B: Ints, groups: int, ranks: Ranks) -> Floats:
    """Per group over all ranks: rows with loss, tokens with loss, and the most rows (of any kind) on one rank."""
    tokens_B = np.array([int(row.sum()) for row in data["loss_mask"].unbind()])
    sums, most = np.zeros((groups, 2)), np.zeros(groups)
    for s in range(groups):
        own = label_B == s
        sums[s] = (tokens_B[own] > 0).sum(), tokens_B[own].sum()
        most[s] = own.sum()
    sums, most = ranks.total(sums), ranks.largest(most)
    return np.column_stack([sums, most])


def part_of(data: Any, rows: Sequence[int], size: int) -> Any:
    """Some rows, filled up to `size` with a row that trains nothing."""
    from verl.utils import tensordict_utils as tu

    lengths = data["input_ids"].offsets().diff().tolist()
    filler = int(np.argmin(lengths))
    missing = size - len(rows)
    part = tu.index_select_tensor_dict(data, [*rows, *([filler] * missing)])
    if missing:
        for name in ("response_mask", "loss_mask"):
            pieces = list(part[name].unbind())
            pieces[len(rows) :] = [piece.new_zeros(piece.shape) for piece in pieces[len(rows) :]]
            part[name] = tu.nested_tensor_from_tensor_list(pieces)
    return part
