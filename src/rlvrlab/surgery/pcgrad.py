"""PCGrad (arXiv 2001.06782): from each gradient, take away what conflicts with the others, one after the other.

    for each i, for j ≠ i in random order:  if cos(gᵢ', g_j) < τ:  gᵢ' −= ⟨gᵢ', g_j⟩ / |g_j|² g_j     d = mean_i gᵢ'

τ is `conflict_threshold`, 0 in the paper. Below 0 mild conflicts are left in; above 0 a pair that agrees too little is
made orthogonal as well, which gives up what it has in common.
Trap: the result depends on the order (0.16 relative spread on four groups); orders are keyed, and averaged over
`orders` draws. Trap: the mean of pairwise projected gradients may still conflict with a group. Trap: TorchJD returns
the sum and the widely copied reference the mean, whatever its `reduction` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

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
            orders = [rng.permutation(size) for _ in range(size)]
            total += pcgrad(scene.gramian_SS, orders, self.conflict_threshold)
        return Weighed(total / (self.orders * size), memory)


def pcgrad(gramian_SS: Floats, orders: list[Ints], threshold: float = 0.0) -> Floats:
    """Weights of Σ gᵢ'; `orders[i]` is the order in which gᵢ meets the others."""
    total, norm_S = np.zeros(len(gramian_SS)), np.sqrt(np.diag(gramian_SS))
    for i, order in enumerate(orders):
        c = np.zeros(len(gramian_SS))
        c[i] = 1.0
        for j in order:
            dot = float(c @ gramian_SS[:, j])
            length = sqrt(max(float(c @ gramian_SS @ c), 0.0))
            if j != i and dot < threshold * length * norm_S[j]:
                c[j] -= dot / gramian_SS[j, j]
        total += c
    return total
