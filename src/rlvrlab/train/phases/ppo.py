"""PPO: the on-line step of train/step.py with a learned value function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.base import Engine
from rlvrlab.errors import TrainingDiverged
from rlvrlab.notes import timed
from rlvrlab.objectives.value import value_loss
from rlvrlab.registry import register
from rlvrlab.train.phases.base import Critic
from rlvrlab.train.phases.grpo import Grpo
from rlvrlab.types import Count, NonNegative, Positive


@register("phase", "ppo")
@dataclass(frozen=True)
class Ppo(Grpo):
    """PPO (arXiv 1707.06347): token advantages from a learned value function."""

    epochs: Count = 2
    """Passes over a collection."""
    value_learning_rate: Positive = 0.02
    """Of the critic."""
    value_epochs: Count = 4
    """Critic updates per collection."""
    value_clip: NonNegative | None = None
    """How far a value may move from what it was at collection; None does not clip."""

    default_advantage: ClassVar[str] = "gae"

    @property
    def critic(self) -> Critic:
        """A linear or learned head, trained on the returns of each collection."""
        return Critic(self.value_learning_rate, self.value_epochs, self.value_clip)

    def fit_critic(self, engine: Engine, batch: TokenBatch) -> dict[str, float]:
        """Several regressions on the returns of the collection."""

        def loss(value_BT: Floats, part: TokenBatch) -> tuple[float, Floats]:
            fitted = value_loss(value_BT, part, clip=self.value_clip)
            return fitted.value, fitted.c_value_BT

        with timed("critic"):
            values = [engine.fit_values(batch, loss, self.value_learning_rate) for _ in range(self.value_epochs)]
        if not all(map(math.isfinite, values)):
            raise TrainingDiverged(f"ppo: the critic's loss is {values[-1]}; lower ppo.value_learning_rate")
        return {"critic/vf_loss": values[0]}
