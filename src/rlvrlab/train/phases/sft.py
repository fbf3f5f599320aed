"""SFT on reference answers: the cold start that gives reinforcement learning something to reinforce."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlvrlab.batch import batch_of
from rlvrlab.errors import UserError
from rlvrlab.objectives.sft import Sft
from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import StepOutcome
from rlvrlab.train.schedule import learning_rate
from rlvrlab.train.update import update
from rlvrlab.types import Count, Positive, Problem


@register("phase", "sft")
@dataclass(frozen=True)
class SftPhase:
    """Maximum likelihood of reference answers: the cold start."""

    steps: Count = 100
    """Updates."""
    batch_size: Count = 32
    """References per update."""
    learning_rate: Positive = 0.02
    """Peak; [optimizer] shapes it."""
    references: Count = 64
    """How many of the training problems come with their reference answer."""

    def prepare(self, lab: Lab, artifacts: Path) -> None:
        """A phase without references would train on nothing."""
        if not self._references(lab):
            raise UserError(f"sft: environment {lab.env.name!r} has no reference answers; leave the phase out")

    def step(self, lab: Lab, phase_step: int) -> StepOutcome:
        """One batch of references, drawn by key."""
        references = self._references(lab)
        draw = generator(lab.recipe.seed, "sft", phase_step)
        chosen = [references[i] for i in draw.choice(len(references), self.batch_size, replace=True)]
        encode, end = lab.engine.tokenizer.encode, lab.engine.tokenizer.end
        batch = batch_of(
            [encode(problem.prompt) for problem, _ in chosen],
            [(*encode(answer), end) for _, answer in chosen],
            horizon=lab.recipe.rollout.max_tokens,
        )
        settings = lab.recipe.optimizer
        rate = learning_rate(self.learning_rate, phase_step, self.steps, settings)
        applied = update(lab.engine, batch, Sft(), rate, settings.max_grad_norm)
        lab.engine.publish()
        return StepOutcome(applied.metrics, skipped=applied.skipped)

    def _references(self, lab: Lab) -> list[tuple[Problem, str]]:
        pairs = [(problem, lab.env.gold(problem)) for problem in lab.train[: self.references]]
        return [(problem, answer) for problem, answer in pairs if answer is not None]
