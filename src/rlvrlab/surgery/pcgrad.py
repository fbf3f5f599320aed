"""PCGrad (arXiv 2001.06782): from each gradient, take away what conflicts with the others, one after the other.

    for each i, for j ≠ i in random order:  if ⟨gᵢ', g_j⟩ < 0:  gᵢ' −= ⟨gᵢ', g_j⟩ / |g_j|² g_j          d = mean_i gᵢ'

Trap: the result depends on the order (0.16 relative spread on four groups); orders are keyed, and averaged over
`orders` draws. Trap: the mean of pairwise projected gradients may still conflict with a group. Trap: TorchJD returns
the sum and the widely copied reference the mean, whatever its `reduction` says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed
from rlvrlab.types import Count


@register("surgery", "pcgrad")
@dataclass(frozen=True)
class PcGrad(Surgery):
    """Project conflicts away, pair by pair."""

    orders: Count = 4
    """Random orders to average over."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """The mean over groups and orders."""
        rng = generator(*scene.key, "pcgrad")
        size = len(scene.names)
        total = np.zeros(size)
        for _ in range(self.orders):
            total += pcgrad(scene.gramian_SS, [rng.permutation(size) for _ in range(size)])
        return Weighed(total / (self.orders * size), memory)


def pcgrad(gramian_SS: Floats, orders: list[Ints]) -> Floats:
    """Weights of Σ gᵢ'; `orders[i]` is the order in which gᵢ meets the others."""
    total = np.zeros(len(gramian_SS))
    for i, order in enumerate(orders):
        c = np.zeros(len(gramian_SS))
        c[i] = 1.0
        for j in order:
            dot = float(c @ gramian_SS[:, j])
            if j != i and dot < 0:
                c[j] -= dot / gramian_SS[j, j]
        total += c
    return total
