"""Equal weights: w = 1/S. The control without which a "gain" of surgery over pooling is only reweighting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed


@register("surgery", "equal")
@dataclass(frozen=True)
class Equal(Surgery):
    """Every group counts the same, however many rows it has."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """1/S each."""
        return Weighed(np.full(len(scene.names), 1 / len(scene.names)), memory)
