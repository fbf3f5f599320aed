"""MGDA (Désidéri 2012; arXiv 1810.04650): the shortest convex combination of the gradients.

    min_w |Σ wᵢ gᵢ|²,  w ≥ 0,  Σ w = 1        solved exactly: w = λ / Σ λ with λ = argmin ½ λᵀGλ − 1ᵀλ, λ ≥ 0

Trap: it favours the group with the smallest gradient, which with rewards that are 0 or 1 is the one that has nothing
left to learn or cannot start: in imbalanced mixtures its worst group is the worst of all methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed
from rlvrlab.surgery.quadratic import nonnegative_qp

RIDGE = 1e-12


@register("surgery", "mgda")
@dataclass(frozen=True)
class Mgda(Surgery):
    """The direction in which every group gains at least as much as its own length."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """Exact, not by Frank–Wolfe steps."""
        return Weighed(shortest(scene.gramian_SS), memory)


def shortest(gramian_SS: Floats) -> Floats:
    """Weights of the shortest vector in the convex hull of the rows."""
    size = len(gramian_SS)
    ridge = RIDGE * float(np.trace(gramian_SS)) / size  # so that a hull around 0 has an answer too
    multiplier_S = nonnegative_qp(gramian_SS + ridge * np.eye(size), -np.ones(size))
    return multiplier_S / multiplier_S.sum()
