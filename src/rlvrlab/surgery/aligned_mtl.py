"""Aligned-MTL (Senushkin et al., CVPR 2023): make the gradients orthogonal and of one length before averaging.

    w = √σ V Σ^(−1/2) Vᵀ 1/S,   G = V Σ Vᵀ,   σ the smallest eigenvalue (or the mean of them)

Trap: with `smallest`, one nearly redundant group shrinks the whole update; Adam hides it, SGD does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed


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
