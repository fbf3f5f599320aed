"""GradVac (arXiv 2010.05874): pull pairs of gradients towards the cosine they usually have.

    φ̂_ij ← (1 − β) φ̂_ij + β φ_ij;  where φ_ij < φ̂_ij:  gᵢ' += |gᵢ'| (φ̂ √(1−φ²) − φ √(1−φ̂²)) / (|g_j| √(1−φ̂²)) g_j

With φ̂ = 0 it is PCGrad. The targets are remembered by the groups' names, so that groups may come and go.
Assumption: β = 0.5 as in TorchJD; the paper's is 0.01.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed
from rlvrlab.types import Fraction01

TINY = 1e-12


@register("surgery", "gradvac")
@dataclass(frozen=True)
class GradVac(Surgery):
    """Keep pairs of groups at the agreement they usually have."""

    beta: Fraction01 = 0.5
    """Share of a new cosine in the running one."""

    resolves_conflicts: ClassVar[bool] = False

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """The mean over groups; the running cosines in `memory`."""
        rng = generator(*scene.key, "gradvac")
        target = dict(memory)
        total = np.zeros(len(scene.names))
        for i, name in enumerate(scene.names):
            total += self._one(scene, i, [j for j in rng.permutation(len(scene.names)) if j != i], target, name)
        return Weighed(total / len(scene.names), target)

    def _one(self, scene: Scene, i: int, order: list[int], target: Memory, name: str) -> Floats:
        gramian_SS = scene.gramian_SS
        c = np.zeros(len(gramian_SS))
        c[i] = 1.0
        for j in order:
            pair = f"{name}|{scene.names[j]}"
            wanted = float(target.get(pair, 0.0))
            long, short = sqrt(max(float(c @ gramian_SS @ c), 0.0)), sqrt(gramian_SS[j, j])
            phi = float(c @ gramian_SS[:, j]) / max(long * short, 1e-300)
            if phi < wanted:
                sine, wanted_sine = sqrt(max(1 - phi**2, 0.0)), sqrt(max(1 - wanted**2, 0.0))
                c[j] += long * (wanted * sine - phi * wanted_sine) / (short * max(wanted_sine, TINY))
            target[pair] = (1 - self.beta) * wanted + self.beta * phi
        return c
