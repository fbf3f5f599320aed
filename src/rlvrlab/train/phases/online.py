"""GRPO, PPO and REINFORCE. They differ in what they declare; their step is train/step.py.

`grpo_turns` is multi-turn repair on-line: a failed try of each group is answered with the judge's feedback, and its
second tries form a group of their own. Trap: the failures of a good policy are mostly problems it cannot solve at all,
so groups of second tries are often dead; on small policies `repair` (learning from hindsight) wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.engines.base import Engine
from rlvrlab.errors import TrainingDiverged
from rlvrlab.objectives.value import value_loss
from rlvrlab.registry import register
from rlvrlab.rollout.turns import Context, try_again
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Critic, Estimators, OnlinePhase, StepOutcome
from rlvrlab.train.state import Memory, State
from rlvrlab.train.step import online_step
from rlvrlab.types import Count, NonNegative, Positive, Rollout


@register("phase", "grpo")
@dataclass(frozen=True)
class Grpo(OnlinePhase):
    """GRPO (arXiv 2402.03300): better or worse than the other answers to the same problem."""

    default_advantage: ClassVar[str] = "grpo"
    default_objective: ClassVar[str] = "ppo_clip"

    def step(self, lab: Lab, data: Estimators, state: State, memory: Memory) -> StepOutcome:
        """The on-line step."""
        return online_step(lab, self, data, state, memory)


@register("phase", "reinforce")
@dataclass(frozen=True)
class Reinforce(Grpo):
    """REINFORCE: the plain policy gradient with a leave-one-out baseline."""

    default_advantage: ClassVar[str] = "rloo"
    default_objective: ClassVar[str] = "reinforce"


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

        values = [engine.fit_values(batch, loss, self.value_learning_rate) for _ in range(self.value_epochs)]
        if not all(map(math.isfinite, values)):
            raise TrainingDiverged(f"ppo: the critic's loss is {values[-1]}; lower ppo.value_learning_rate")
        return {"critic/vf_loss": values[0]}


@register("phase", "grpo_turns")
@dataclass(frozen=True)
class GrpoTurns(Grpo):
    """GRPO over first tries and over second tries that answer the judge's feedback."""

    context: Context = "fresh"
    """fresh: feedback stands alone. conversation: it follows the tokens of the first turn."""

    tries: ClassVar[int] = 2

    def second_tries(self, lab: Lab, firsts: Sequence[Rollout], phase_step: int) -> list[Rollout]:
        """The first failed answer of each group is told what went wrong and tried again rollout.n times."""
        failed = {rollout.group_id: rollout for rollout in reversed(firsts) if rollout.verdict.correct is False}
        return try_again(
            lab.engine,
            lab.env,
            lab.reward,
            list(failed.values()),
            n=lab.recipe.rollout.n,
            sampling=lab.sampling,
            key=(lab.recipe.seed, self.name, phase_step),
            context=self.context,
        )
