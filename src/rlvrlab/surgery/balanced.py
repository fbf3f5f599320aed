"""Closed forms that give every group its due: Aligned-MTL (CVPR 2023) and IMTL-G (ICLR 2021).

    aligned_mtl   w = √σ V Σ^(−1/2) Vᵀ 1/S,   G = V Σ Vᵀ      gradients orthogonal and of one length before averaging;
                                                              σ the smallest eigenvalue, or the mean of them
    imtl_g        w ∝ G⁺ |g|,   Σ w = 1                       equal projections on all unit gradients

Trap: with `smallest`, one nearly redundant group shrinks the whole update; Adam hides it, SGD does not. Trap: IMTL-G's
weights may be negative, and grow without bound where the sum of G⁺|g| nears 0; then the mean is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed

NEAR_ZERO = 1e-9


@register("surgery", "aligned_mtl")
@dataclass(frozen=True)
class AlignedMtl(Surgery):
    """Remove the conflict by making the system of gradients well conditioned."""

    length: Literal["smallest", "mean"] = "smallest"
    """Which eigenvalue all directions are brought to."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """Within the span of the gradients; directions nobody has stay out."""
        value_S, vector_SS = np.linalg.eigh(scene.gramian_SS)
        kept = value_S > value_S.max() * len(value_S) * np.finfo(np.float64).eps
        value_K, vector_SK = value_S[kept], vector_SS[:, kept]
        length = value_K.min() if self.length == "smallest" else value_K.mean()
        weight_S = np.sqrt(length) * (vector_SK / np.sqrt(value_K)) @ vector_SK.sum(axis=0) / len(value_S)
        return Weighed(weight_S, memory)


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
