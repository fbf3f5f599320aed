"""GRPO, PPO and REINFORCE: sample, judge, credit, update. They differ in their defaults, not in their step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.errors import TrainingDiverged
from rlvrlab.evals.monitors import no_signal
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.value import value_loss
from rlvrlab.registry import find, register
from rlvrlab.rollout.collect import collect
from rlvrlab.stopwatch import timed
from rlvrlab.train.batches import AdvantageFunction, assemble, credit, minibatches, score
from rlvrlab.train.credit import StepCredits, step_credits
from rlvrlab.train.credit_record import step_rows
from rlvrlab.train.groups import ALL_RIGHT, ALL_WRONG, UNJUDGED, Sorted, metrics_of, sort_groups
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import StepOutcome
from rlvrlab.train.schedule import learning_rate
from rlvrlab.train.update import Applied, mean_metrics
from rlvrlab.types import Count, NonNegative, Objective, Positive, Rollout


@dataclass(frozen=True)
class OnlinePhase:
    """What all three share."""

    steps: Count = 200
    """Collections."""
    batch_size: Count = 16
    """Problems per collection; each gets rollout.n answers."""
    learning_rate: Positive = 0.01
    """Peak; [optimizer] shapes it."""
    minibatches: Count = 1
    """Parts a collection is updated in."""
    epochs: Count = 1
    """Passes over a collection."""

    name: ClassVar[str]
    default_advantage: ClassVar[str]
    default_objective: ClassVar[str]
    critic: ClassVar[bool] = False

    def prepare(self, lab: Lab, artifacts: Path) -> None:
        """The reference policy is frozen by the loop when the phase begins; nothing else is needed."""

    def step(self, lab: Lab, phase_step: int) -> StepOutcome:
        """One collection and the updates on it."""
        now = lab.rules.enter(lab, self, phase_step)
        rollouts, kinds = self._collect(lab, phase_step)
        lab.rules.observe(rollouts)
        with timed("credit"):
            steps = step_credits(lab, rollouts)
        metrics = metrics_of(rollouts, kinds) | steps.metrics | lab.rules.facts()
        spoken = steps.speaking(kinds.dead)
        used = rollouts if lab.recipe.filter.dead_groups == "keep" else [*kinds.live, *spoken]
        silent = not kinds.live and not spoken
        if not used or (silent and not self.critic):
            note = _why_silent(kinds)
            return StepOutcome(metrics, rollouts, silent=True, notes=[note], events=now.events, steps=step_rows(steps))
        batch, counts = self._credited(lab, used, steps)
        applied = self._updates(lab, batch, used, phase_step)
        metrics |= counts | mean_metrics([one.metrics for one in applied])
        metrics |= self._fit_critic(lab, batch, phase_step)
        lab.engine.publish()
        skipped = any(one.skipped for one in applied)
        told = step_rows(steps, batch, used)
        return StepOutcome(metrics, rollouts, silent=silent, skipped=skipped, events=now.events, steps=told)

    def _collect(self, lab: Lab, phase_step: int) -> tuple[list[Rollout], Sorted]:
        """A batch of problems; with refill, others in place of those whose group is dead."""
        rollouts: list[Rollout] = []
        by_parts = getattr(self._advantage(lab), "by_parts", False)
        kinds = sort_groups(rollouts)
        refills = lab.recipe.filter.max_refills if lab.recipe.filter.dead_groups == "refill" else 0
        for attempt in range(1 + refills):
            stream = self.name if attempt == 0 else f"{self.name}/refill{attempt}"
            rollouts += collect(
                lab.engine,
                lab.env,
                lab.reward,
                lab.rules.problems(lab, stream, phase_step, self.batch_size),
                n=lab.recipe.rollout.n,
                sampling=lab.rules.sampling(lab),
                key=(lab.recipe.seed, stream, phase_step),
            )
            kinds = sort_groups(rollouts, by_parts=by_parts)
            if len(kinds.live) >= self.batch_size * lab.recipe.rollout.n:
                break
        return rollouts, kinds

    def _credited(self, lab: Lab, rollouts: list[Rollout], steps: StepCredits) -> tuple[TokenBatch, dict[str, float]]:
        reused = self.minibatches * self.epochs > 1
        batch = assemble(rollouts, lab.recipe.rollout.max_tokens)
        batch = score(batch, lab.engine, lab.recipe, reused=reused, critic=self.critic)
        batch, counts = credit(batch, rollouts, self._advantage(lab), lab.recipe)
        return steps.on(batch, rollouts), counts

    def _advantage(self, lab: Lab) -> AdvantageFunction:
        chosen: AdvantageFunction = lab.resolved.build("advantage") or find("advantage", self.default_advantage)()
        return chosen

    def _updates(self, lab: Lab, batch: TokenBatch, used: list[Rollout], phase_step: int) -> list[Applied]:
        settings = lab.recipe.optimizer
        rate = learning_rate(self.learning_rate, phase_step, self.steps, settings)
        objective = self._objective(lab)
        parts = minibatches(batch, self.minibatches, self.epochs, lab.recipe.seed, self.name, phase_step)
        clip = settings.max_grad_norm
        with timed("update"):
            return [lab.rules.update(part, used, objective, rate, clip, i) for i, part in enumerate(parts)]

    def _objective(self, lab: Lab) -> Objective:
        recipe = lab.recipe
        objective: Any = lab.resolved.build("objective") or find("objective", self.default_objective)()
        kl_in_loss = recipe.kl.coef if recipe.kl.place == "loss" else 0.0
        if not kl_in_loss and not recipe.entropy.coef:
            return objective
        return Regularised(objective, kl_in_loss, recipe.kl.estimator, recipe.entropy.coef)

    def _fit_critic(self, lab: Lab, batch: TokenBatch, phase_step: int) -> dict[str, float]:
        return {}


def _why_silent(kinds: Sorted) -> str:
    if kinds.reasons[UNJUDGED] == kinds.groups:
        return "no signal: not one answer could be judged; look at `detail` in the rollouts, then mend the judge"
    return no_signal(kinds.reasons[ALL_WRONG], kinds.reasons[ALL_RIGHT])


@register("phase", "grpo")
@dataclass(frozen=True)
class Grpo(OnlinePhase):
    """GRPO (arXiv 2402.03300): better or worse than the other answers to the same problem."""

    default_advantage: ClassVar[str] = "grpo"
    default_objective: ClassVar[str] = "ppo_clip"


@register("phase", "reinforce")
@dataclass(frozen=True)
class Reinforce(OnlinePhase):
    """REINFORCE: the plain policy gradient with a leave-one-out baseline."""

    default_advantage: ClassVar[str] = "rloo"
    default_objective: ClassVar[str] = "reinforce"


@register("phase", "ppo")
@dataclass(frozen=True)
class Ppo(OnlinePhase):
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
    default_objective: ClassVar[str] = "ppo_clip"
    critic: ClassVar[bool] = True

    def _fit_critic(self, lab: Lab, batch: TokenBatch, phase_step: int) -> dict[str, float]:
        def loss(value_BT: Floats, part: TokenBatch) -> tuple[float, Floats]:
            found = value_loss(value_BT, part, clip=self.value_clip)
            return found.value, found.c_value_BT

        values = [lab.engine.fit_values(batch, loss, self.value_learning_rate) for _ in range(self.value_epochs)]
        if not all(map(math.isfinite, values)):
            raise TrainingDiverged(f"ppo: the critic's loss is {values[-1]}; lower ppo.value_learning_rate")
        return {"critic/vf_loss": values[0]}
