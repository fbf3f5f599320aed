"""REINFORCE with a leave-one-out baseline; the step itself is train/step.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.registry import register
from rlvrlab.train.phases.grpo import Grpo


@register("phase", "reinforce")
@dataclass(frozen=True)
class Reinforce(Grpo):
    """REINFORCE: the plain policy gradient with a leave-one-out baseline."""

    default_advantage: ClassVar[str] = "rloo"
    default_objective: ClassVar[str] = "reinforce"
