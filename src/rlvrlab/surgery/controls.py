"""The controls of every other surgery: pooling, equal weights, equal norms.

    mean           w = share of the batch         every token counts the same, so large groups lead: no surgery at all
    equal          w = 1/S                        without it, a "gain" over pooling may be only reweighting
    norm_balance   w_i = mean|g| / (S |g_i|)      no group leads by the size of its gradient alone

Trap: the gradient of a group that has almost nothing left to learn is small and noisy; norm_balance magnifies it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed


@register("surgery", "mean")
@dataclass(frozen=True)
class Mean(Surgery):
    """Pool the groups: weights are their shares of the batch."""

    resolves_conflicts: ClassVar[bool] = False

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """A dead group keeps its share of the mean, as it would in one pooled loss."""
        return Weighed(scene.share_S, memory)


@register("surgery", "equal")
@dataclass(frozen=True)
class Equal(Surgery):
    """Every group counts the same, however many rows it has."""

    resolves_conflicts: ClassVar[bool] = False

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """1/S each."""
        return Weighed(np.full(len(scene.names), 1 / len(scene.names)), memory)


@register("surgery", "norm_balance")
@dataclass(frozen=True)
class NormBalance(Surgery):
    """Every group's gradient is brought to the mean length."""

    resolves_conflicts: ClassVar[bool] = False

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """Inverse norms."""
        norm_S = np.sqrt(np.diag(scene.gramian_SS))
        return Weighed(norm_S.mean() / (norm_S * len(norm_S)), memory)
