"""Nash-MTL (arXiv 2202.01017): the bargain that maximises the product of the groups' gains.

    G a = 1/a,  a > 0        the minimiser of ½ aᵀGa − Σ log aᵢ, which is convex: Newton's method with halved steps

Weights are scaled to add up to 1. Trap: TorchJD clips the norm, keeps weights between updates and raises on a zero
Gramian; here every update is solved anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed

ROUNDS = 200
RIDGE = 1e-10


@register("surgery", "nash")
@dataclass(frozen=True)
class Nash(Surgery):
    """A fair bargain between the groups."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """On unit gradients first, for the conditioning; then back."""
        norm_S = np.sqrt(np.diag(scene.gramian_SS))
        bargain_S = nash(scene.gramian_SS / np.outer(norm_S, norm_S)) / norm_S
        return Weighed(bargain_S / bargain_S.sum(), memory)


def nash(gramian_SS: Floats) -> Floats:
    """a with G a = 1/a; exactly opposed gradients have none, a small ridge gives them equal shares."""
    G = gramian_SS + RIDGE * np.eye(len(gramian_SS))
    a = 1 / np.sqrt(np.maximum(G.sum(axis=1), RIDGE) if (G.sum(axis=1) > 0).all() else np.diag(G))
    for _ in range(ROUNDS):
        slope = G @ a - 1 / a
        newton = np.linalg.solve(G + np.diag(1 / a**2), -slope)
        decrement = float(-slope @ newton)
        if decrement <= 1e-24:
            break
        share = 1.0
        while (a + share * newton).min() <= 0 or _cost(G, a + share * newton) > _cost(G, a) - 0.25 * share * decrement:
            share /= 2
            if share < 1e-12:
                return a
        a = a + share * newton
    return a


def _cost(G: Floats, a: Floats) -> float:
    return float(a @ G @ a / 2 - np.log(a).sum())
