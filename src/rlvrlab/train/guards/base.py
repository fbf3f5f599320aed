"""What a guard may do in a training step, and what it must remember.

A guard is a frozen dataclass: its fields are its recipe keys, and it has no state of its own. What it remembers is
handed to it and handed back, as `Kept`. The plain part is saved with every checkpoint, and so are the few vectors that
depend on the whole way here. What lives beside them is not: it is a function of the parameters at an anchor, whose
checkpoint is kept, and of the plain part, so `rebuild` makes it again to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rlvrlab.engines.base import Trainable, Vector
from rlvrlab.train.state import Kept, Moment, Place, Stage
from rlvrlab.types import Problem, Rollout


class Gradient(NamedTuple):
    """What the optimiser would be handed: Σ wᵢgᵢ, gradients of losses."""

    vectors: Sequence[Vector]
    weights: Sequence[float]


class Terms(NamedTuple):
    """What a guard adds to it."""

    vectors: list[Vector]
    weights: list[float]
    metrics: dict[str, float]


class Settled(NamedTuple):
    """What a guard did once the updates of a step were over."""

    kept: Kept
    moved: bool
    """Are the parameters others than before?"""
    metrics: dict[str, float]


@dataclass(frozen=True)
class Guard:
    """Protects skills that are not being trained. This one does nothing: override what the method needs."""

    name: ClassVar[str]
    """Under which it is registered."""

    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained; empty protects those of earlier stages."""
    protects_trained: ClassVar[bool] = False
    """In a stage of several skills, does it also protect each skill from the others that are trained with it?"""
    needs_answers: ClassVar[bool] = False
    """Does it remember skills by answers to a few problems, which no plan can count before the run?

    Where none can be sampled, references take their place.
    """
    settles: ClassVar[bool] = False
    """Does it act between steps, with vectors of its own? Where the trainer has no such moment, it is refused."""

    @property
    def needs_sampling(self) -> bool:
        """Must answers be drawn in the middle of a step? Where the trainer cannot do that, the guard is refused."""
        return False

    @property
    def needs_distributions(self) -> bool:
        """Does it compare whole distributions with an anchor's? Where the trainer cannot do that, it is refused."""
        return False

    @property
    def passes(self) -> float:
        """Passes over its whole memory in one update, in units of a forward and backward pass; for the plan."""
        return 0.0

    def protected_in(self, stage: Stage, stages: Sequence[Stage]) -> tuple[str, ...]:
        """Listed skills, or without a list those of earlier stages, that this stage does not train.

        Where a stage trains several skills at once, a guard that can also protects each of them from the others.
        """
        together = stage.skills if self.protects_trained and len(stage.skills) > 1 else ()
        earlier = [skill for before in stages[: stage.index] for skill in before.skills]
        wanted = dict.fromkeys(self.protected or [*earlier, *together])
        return tuple(skill for skill in wanted if skill not in stage.skills or skill in together)

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """A stage begins; the parameters are those the stage before ended with."""
        return kept

    def observe(self, now: Moment, kept: Kept, rollouts: Sequence[Rollout]) -> Kept:
        """Look at the judged answers of this step before they are trained on."""
        return kept

    def mixed_in(self, place: Place, chosen: list[Problem], stream: str) -> list[Problem]:
        """The problems of this step, some perhaps replaced."""
        return chosen

    def terms(self, now: Moment, kept: Kept, gradient: Gradient) -> Terms:
        """Further vectors for the optimiser, with their weights; the caller releases them."""
        return Terms([], [], {})

    def before_step(self, now: Moment, kept: Kept) -> tuple[Kept, dict[str, float]]:
        """The last look at the parameters before the optimiser moves them."""
        return kept, {}

    def after_step(self, now: Moment, kept: Kept, applied: Vector) -> tuple[Kept, dict[str, float]]:
        """`applied` is what the optimiser really did; a guard may shift the parameters on."""
        return kept, {}

    def settle(self, now: Moment, kept: Kept) -> Settled:
        """The updates of a step are over, or there were none; the parameters have not been published yet."""
        return Settled(kept, False, {})

    def saved(self, kept: Kept) -> Kept:
        """A checkpoint was written: drop what a resumed run would not have either."""
        return kept

    def anchors(self, kept: Kept) -> set[int]:
        """Steps whose checkpoints `rebuild` needs."""
        return set()

    def rebuild(self, engine: Trainable, kept: Kept, step: int) -> Kept:
        """The engine holds the parameters of that step: make again what was made there."""
        return kept
