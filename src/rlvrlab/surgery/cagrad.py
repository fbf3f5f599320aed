"""CAGrad (arXiv 2110.14048): near the mean gradient, the direction whose worst group gains most.

    max_d min_i ⟨gᵢ, d⟩   subject to   |d − g₀| ≤ c |g₀|,   g₀ the mean
    d = g₀ + c |g₀| g_w / |g_w|,   w = argmin over the simplex of ⟨g_w, g₀⟩ + c |g₀| |g_w|

Solved by turns: √x = min_t (x/t + t)/2 makes the second term quadratic for a given t = |g_w|. c = 0 is the mean, a
large c approaches MGDA. Weights are divided by 1 + c, so that a group alone is trained as without surgery; TorchJD does
not divide, the authors' code divides by 1 + c².
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed
from rlvrlab.surgery.mgda import shortest
from rlvrlab.types import NonNegative

TURNS = 500
ENOUGH = 1e-13


@register("surgery", "cagrad")
@dataclass(frozen=True)
class CaGrad(Surgery):
    """Lift the worst group without leaving the neighbourhood of the mean."""

    c: NonNegative = 0.5
    """Radius of the neighbourhood, in lengths of the mean gradient."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """On the scale of the mean."""
        return Weighed(cagrad(scene.gramian_SS, self.c) / (1 + self.c), memory)


def cagrad(gramian_SS: Floats, c: float) -> Floats:
    """Weights of g₀ + c |g₀| g_w / |g_w|; at a Pareto-stationary point, where nothing helps every group, the mean's."""
    size = len(gramian_SS)
    mean_S = np.full(size, 1 / size)
    length = c * sqrt(max(float(mean_S @ gramian_SS @ mean_S), 0.0))
    if length == 0:
        return mean_S
    along_S = gramian_SS @ mean_S
    weight_S, t = mean_S, 0.0
    for _ in range(TURNS):
        before, t = t, sqrt(max(float(weight_S @ gramian_SS @ weight_S), 0.0))
        if t <= ENOUGH * length:
            return mean_S
        if abs(t - before) <= ENOUGH * t:
            break
        # min ½ wᵀAw + bᵀw on the simplex: there bᵀw = wᵀ(b1ᵀ)w, so it is a shortest vector; a constant keeps it convex.
        cross = np.add.outer(along_S, along_S)
        excess = float(mean_S @ along_S) * t / length
        weight_S = shortest(length / t * gramian_SS + cross + 2 * excess + float(np.abs(cross).max()))
    return mean_S + length / t * weight_S
