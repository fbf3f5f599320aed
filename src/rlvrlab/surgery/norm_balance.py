"""Norm balance: w_i = mean|g| / (S |g_i|), so that no group leads by the size of its gradient alone.

Trap: the gradient of a group that has almost nothing left to learn is small and noisy; this magnifies it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed


@register("surgery", "norm_balance")
@dataclass(frozen=True)
class NormBalance(Surgery):
    """Every group's gradient is brought to the mean length."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """Inverse norms."""
        norm_S = np.sqrt(np.diag(scene.gramian_SS))
        return Weighed(norm_S.mean() / (norm_S * len(norm_S)), memory)
