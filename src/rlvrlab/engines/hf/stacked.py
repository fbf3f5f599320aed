"""Frozen linear layers with adapters that read the same input, as one product each way.

    W = [W₁ + s₁ B₁ A₁; W₂ + s₂ B₂ A₂; …]        y = x Wᵀ        dx = dy W
    dAᵢ = sᵢ (dyᵢ Bᵢ)ᵀ x        dBᵢ = sᵢ dyᵢᵀ (x Aᵢᵀ)

Merging costs as much as a few rows of x, and saves the passes over y and dx that adding small products takes. The
merged matrix is made for each pass and not kept. In float32 it is the matrix that the sampler draws with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Part(NamedTuple):
    """One layer: its frozen weights, and its adapter if it has one."""

    weight: Tensor
    bias: Tensor | None
    down: Tensor | None
    """A, (rank, in)."""
    up: Tensor | None
    """B, (out, rank)."""
    scale: float


class Stack:
    """Layers with one input, the outputs side by side."""

    def __init__(self, parts: Sequence[Part], adapters: Sequence[Tensor | None]) -> None:
        """`adapters` takes the place of the parts' own, A and B in turn: autograd hands out what it watches."""
        pairs = zip(adapters[::2], adapters[1::2], strict=True)
        self.parts = [part._replace(down=down, up=up) for part, (down, up) in zip(parts, pairs, strict=True)]

    def merged(self) -> Tensor:
        """W, (all outputs, in)."""
        if len(self.parts) == 1 and self.parts[0].down is None:
            return self.parts[0].weight
        size = sum(len(part.weight) for part in self.parts)
        out = self.parts[0].weight.new_empty(size, self.parts[0].weight.shape[1])
        for part, rows in zip(self.parts, out.split([len(part.weight) for part in self.parts]), strict=True):
            if part.down is None or part.up is None:
                rows.copy_(part.weight)
            else:
                torch.addmm(part.weight, part.up, part.down, alpha=part.scale, out=rows)
        return out

    def add_biases(self, out: Tensor) -> Tensor:
        """In place, where there are any."""
        for part, columns in zip(self.parts, out.split([len(part.weight) for part in self.parts], 1), strict=True):
            if part.bias is not None:
                columns.add_(part.bias)
        return out

    def slopes(self, x: Tensor, d_out: Tensor) -> list[Tensor | None]:
        """Derivatives by A and B of each part in turn."""
        adapted = [part for part in self.parts if part.down is not None]
        if not adapted:
            return [None] * (2 * len(self.parts))
        downs = torch.cat([part.down for part in adapted if part.down is not None])
        low = x @ downs.T.contiguous()
        d_low, at, found = torch.empty_like(low), 0, list[Any]()
        for part, d_part in zip(self.parts, d_out.split([len(part.weight) for part in self.parts], 1), strict=True):
            if part.down is None or part.up is None:
                found += [None, None]
                continue
            columns = slice(at, at + len(part.down))
            torch.mul(d_part @ part.up, part.scale, out=d_low[:, columns])
            found += [columns, (low[:, columns].T @ d_part).mul_(part.scale).T]
            at += len(part.down)
        d_down = d_low.T @ x
        return [d_down[one] if isinstance(one, slice) else one for one in found]
