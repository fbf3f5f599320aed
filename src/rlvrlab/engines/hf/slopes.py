"""Gradients of tensors of which the slopes are known.

Given slopes, torch.autograd imports SymPy to compare two shapes, which takes two seconds before the first update. A
number whose gradient they are needs none.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Along(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, out: Tensor, slope: Tensor) -> Tensor:
        assert out.shape == slope.shape, "a slope for every value"
        ctx.save_for_backward(slope)
        return out.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *one: Any) -> Any:
        return ctx.saved_tensors[0], None


def along(out: Tensor, slope: Tensor) -> Tensor:
    """A number to go back from: its gradient by `out` is `slope`, and its value means nothing."""
    return _Along.apply(out, slope)
