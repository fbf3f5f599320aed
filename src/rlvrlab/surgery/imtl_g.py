"""IMTL-G (Liu et al., ICLR 2021): the combination whose projections on all unit gradients are equal.

    w ∝ G⁺ |g|,   Σ w = 1

Trap: weights may be negative, and grow without bound where the sum of G⁺|g| nears 0; then the mean is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed

NEAR_ZERO = 1e-9


@register("surgery", "imtl_g")
@dataclass(frozen=True)
class ImtlG(Surgery):
    """Every group gains the same, measured along its own unit gradient."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """Closed form by the pseudo-inverse, so duplicate groups do no harm."""
        norm_S = np.sqrt(np.diag(scene.gramian_SS))
        weight_S = np.asarray(np.linalg.pinv(scene.gramian_SS, hermitian=True) @ norm_S, dtype=np.float64)
        total = float(weight_S.sum())
        if abs(total) <= NEAR_ZERO * float(np.abs(weight_S).sum()):
            return Weighed(np.full(len(norm_S), 1 / len(norm_S)), memory)
        return Weighed(weight_S / total, memory)
