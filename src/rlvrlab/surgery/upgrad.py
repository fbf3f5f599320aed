"""UPGrad (arXiv 2406.16232): project each gradient onto the cone of directions that harm nobody, then average.

    d = mean_i P(gᵢ),   P(u) the nearest direction with ⟨g_j, ·⟩ ≥ 0 for all j

Never conflicts with any group. Trap: TorchJD's default adds a ridge of 1e-4 of the trace; with norms spread over a
factor of 100 its result conflicts in nearly every case. Here the projection is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed
from rlvrlab.surgery.quadratic import nonnegative_qp


@register("surgery", "upgrad")
@dataclass(frozen=True)
class UpGrad(Surgery):
    """The mean of the gradients after each was made harmless."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """One small quadratic program per group."""
        size = len(scene.names)
        added = [nonnegative_qp(scene.gramian_SS, row_S) for row_S in scene.gramian_SS]
        return Weighed((1 + np.sum(added, axis=0)) / size, memory)
