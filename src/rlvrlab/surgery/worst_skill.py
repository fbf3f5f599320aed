"""Worst-skill reweighting, after MT-GRPO (arXiv 2602.05547): what succeeds least counts most.

    w_s ∝ exp(−(running success of s) / temperature)

The running success is remembered by the group's name. Trap: dead groups have no gradient, so a skill that never
succeeds gets a large weight on nothing; it is left out before the weights are shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed
from rlvrlab.types import Memory01, Positive


@register("surgery", "worst_skill")
@dataclass(frozen=True)
class WorstSkill(Surgery):
    """Weights by how badly a group does."""

    temperature: Positive = 0.25
    """Small ones look only at the worst group."""
    momentum: Memory01 = 0.9
    """Weight of the old running success when a new one arrives."""

    resolves_conflicts: ClassVar[bool] = False

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """A softmax over failures."""
        running = dict(memory)
        for name, success in zip(scene.names, scene.success_S, strict=True):
            before = float(running.get(name, success))
            running[name] = self.momentum * before + (1 - self.momentum) * float(success)
        failing_S = -np.array([running[name] for name in scene.names]) / self.temperature
        weight_S = np.exp(failing_S - failing_S.max())
        return Weighed(weight_S / weight_S.sum(), running)
