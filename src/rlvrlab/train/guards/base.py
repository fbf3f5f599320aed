"""What a guard may do in a training step, and what it must remember.

A guard's recipe table is a frozen dataclass; `build` makes the object that works. Its `memory` is plain data, saved
with every checkpoint. Vectors and snapshots are not saved: they are functions of the parameters at an anchor, whose
checkpoint is kept, and of the memory, so `rebuild` makes them again to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rlvrlab.engines.base import Vector
from rlvrlab.train.protocols.base import Stage
from rlvrlab.types import Problem, Rollout

if TYPE_CHECKING:
    from rlvrlab.train.lab import Lab
    from rlvrlab.train.phases.online import OnlinePhase

Event = tuple[str, str]
"""(kind, words) for logs/events.jsonl."""


@dataclass
class Moment:
    """Where training stands when a guard is asked."""

    lab: Lab
    phase: OnlinePhase
    stage: Stage
    phase_step: int
    step: int
    """Updates done in the whole run: the checkpoint that an anchor set now can be rebuilt from."""
    protected: tuple[str, ...]
    """Skills to protect in this stage."""
    events: list[Event] = field(default_factory=list)

    def say(self, words: str) -> None:
        """Put it on record."""
        self.events.append(("guard", words))

    def key(self, *purpose: object) -> tuple[object, ...]:
        """Randomness of this step."""
        return (self.lab.recipe.seed, "guard", self.phase.name, self.phase_step, *purpose)


class GuardTable(Protocol):
    """The recipe table of a guard."""

    protected: tuple[str, ...]

    def build(self) -> Guard:
        """The object that works."""
        ...


class Guard:
    """Does nothing; derive from it and override what the method needs."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}

    def begin(self, now: Moment) -> None:
        """A stage begins; the parameters are those the stage before ended with."""

    def observe(self, now: Moment, rollouts: Sequence[Rollout]) -> None:
        """Judged answers of this step."""

    def mixed_in(self, now: Moment, chosen: list[Problem], stream: str) -> list[Problem]:
        """The problems of this step, some perhaps replaced."""
        return chosen

    def terms(self, now: Moment) -> list[tuple[Vector, float]]:
        """Gradients of further loss terms, with their weights."""
        return []

    def before_step(self, now: Moment) -> dict[str, float]:
        """The last look at the parameters before the optimiser moves them."""
        return {}

    def after_step(self, now: Moment, applied: Vector) -> dict[str, float]:
        """`applied` is what the optimiser really did; a guard may shift the parameters on."""
        return {}

    def saved(self) -> None:
        """A checkpoint was written; whatever it does not hold must not be used any more."""

    def anchors(self) -> set[int]:
        """Steps whose checkpoints `rebuild` needs."""
        return set()

    def rebuild(self, lab: Lab, step: int) -> None:
        """The engine holds the parameters of that step: make again what was made there."""


def protected_in(stage: Stage, before: Sequence[Stage], listed: Sequence[str]) -> tuple[str, ...]:
    """Listed skills that this stage does not train; without a list, those trained in earlier stages."""
    candidates = listed or [skill for earlier in before for skill in earlier.skills]
    return tuple(dict.fromkeys(skill for skill in candidates if skill not in stage.skills))
