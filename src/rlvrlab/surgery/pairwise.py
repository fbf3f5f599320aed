"""Conflicts taken away pair by pair: PCGrad (arXiv 2001.06782) and GradVac (arXiv 2010.05874).

    pcgrad    for each i, for j ≠ i in random order:  if ⟨gᵢ', g_j⟩ < 0:  gᵢ' −= ⟨gᵢ', g_j⟩ / |g_j|² g_j; d = mean_i gᵢ'
    gradvac   φ̂_ij ← (1 − β) φ̂_ij + β φ_ij;  where φ_ij < φ̂_ij:
              gᵢ' += |gᵢ'| (φ̂ √(1−φ²) − φ √(1−φ̂²)) / (|g_j| √(1−φ̂²)) g_j

GradVac pulls pairs of gradients towards the cosine they usually have; with φ̂ = 0 it is PCGrad. The targets are
remembered by the groups' names, so that groups may come and go. Assumption: β = 0.5 as in TorchJD; the paper's is 0.01.
Trap: PCGrad's result depends on the order (0.16 relative spread on four groups); orders are keyed, and averaged over
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
from rlvrlab.types import Count, Fraction01

TINY = 1e-12


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


@register("surgery", "gradvac")
@dataclass(frozen=True)
class GradVac(Surgery):
    """Keep pairs of groups at the agreement they usually have."""

    beta: Fraction01 = 0.5
    """Share of a new cosine in the running one."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """The mean over groups; the running cosines in `memory`."""
        rng = generator(*scene.key, "gradvac")
        gramian_SS, target = scene.gramian_SS, dict(memory)
        total = np.zeros(len(scene.names))
        for i, name in enumerate(scene.names):
            c = np.zeros(len(scene.names))
            c[i] = 1.0
            for j in [j for j in rng.permutation(len(scene.names)) if j != i]:
                pair = f"{name}|{scene.names[j]}"
                wanted = float(target.get(pair, 0.0))
                long, short = sqrt(max(float(c @ gramian_SS @ c), 0.0)), sqrt(gramian_SS[j, j])
                phi = float(c @ gramian_SS[:, j]) / max(long * short, 1e-300)
                if phi < wanted:
                    sine, wanted_sine = sqrt(max(1 - phi**2, 0.0)), sqrt(max(1 - wanted**2, 0.0))
                    c[j] += long * (wanted * sine - phi * wanted_sine) / (short * max(wanted_sine, TINY))
                target[pair] = (1 - self.beta) * wanted + self.beta * phi
            total += c
        return Weighed(total / len(scene.names), target)
