"""What a guard may do in a training step, and what it must remember.

A guard is a frozen dataclass: its fields are its recipe keys, and it has no state of its own. What it remembers is
handed to it and handed back, as `Kept`. The plain part is saved with every checkpoint, and so are the few vectors that
depend on the whole way here. What lives beside them is not: it is a function of the parameters at an anchor, whose
checkpoint is kept, and of the plain part, so `rebuild` makes it again to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from rlvrlab.batch import TokenBatch
from rlvrlab.engines.base import Snapshot, Trainable, Vector
from rlvrlab.train.protocols.base import Stage
from rlvrlab.types import Objective, Problem, Rollout

Event = tuple[str, str]
"""(kind, words) for logs/events.jsonl."""
Ask = Callable[[Sequence[Problem], tuple[object, ...], bool], list[Rollout]]
"""(problems, key, greedy) -> judged answers of the current policy."""
AnchorKl = Callable[[TokenBatch, Snapshot], tuple[Vector, float]]
"""(batch, anchor) -> gradient and value of KL(anchor ‖ current) over the whole vocabulary."""


class Kept(NamedTuple):
    """What a guard remembers from step to step."""

    memory: dict[str, Any] = {}  # noqa: RUF012 -- never changed in place: a guard hands back a new one
    """Plain data, saved with every checkpoint."""
    live: dict[str, Any] = {}  # noqa: RUF012
    """Vectors, snapshots and whatever else can be made again; never saved."""
    vectors: dict[str, Vector] = {}  # noqa: RUF012
    """Vectors that cannot be made again; the engine saves them with every checkpoint."""


NOTHING = Kept()


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
class Place:
    """Where training stands, as far as it can be known without a policy."""

    stage: Stage
    protected: tuple[str, ...]
    """Skills to protect in this stage."""
    phase: str
    phase_step: int
    step: int
    """Updates done in the whole run: the checkpoint that an anchor set now can be rebuilt from."""
    seed: int
    train: Sequence[Problem]
    """All training problems."""

    def key(self, *purpose: object) -> tuple[object, ...]:
        """A key for what is random in this step."""
        return (self.seed, "guard", self.phase, self.phase_step, *purpose)


@dataclass(frozen=True)
class Moment(Place):
    """Where training stands when a guard is asked, and what the guard may use."""

    engine: Trainable
    answers: int = 1
    """Answers drawn to each problem (rollout.n)."""
    ask: Ask | None = None
    """Draws and judges answers; None where nothing can be sampled in the middle of a step (verl)."""
    policy_loss: Callable[[list[Rollout]], tuple[TokenBatch, Objective]] | None = None
    """Batch and objective with which the phase itself would train on these answers."""
    anchor_kl: AnchorKl | None = None
    """The engine's verb; None where whole distributions cannot be had (verl)."""
    events: list[Event] = field(default_factory=list)
    """What protocol, surgery and guard have to say about this step."""

    def say(self, words: str) -> None:
        """Put a guard's remark on record."""
        self.events.append(("guard", words))

    def asked(self, problems: Sequence[Problem], *purpose: object, greedy: bool = False) -> list[Rollout]:
        """Judged answers to a guard's own problems; none where nothing can be sampled."""
        return self.ask(problems, self.key(*purpose), greedy) if self.ask and problems else []


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


def protected_in(stage: Stage, stages: Sequence[Stage], guard: Guard) -> tuple[str, ...]:
    """Listed skills, or without a list those of earlier stages, that this stage does not train.

    Where a stage trains several skills at once, a guard that can also protects each of them from the others.
    """
    together = stage.skills if guard.protects_trained and len(stage.skills) > 1 else ()
    earlier = [skill for before in stages[: stage.index] for skill in before.skills]
    wanted = dict.fromkeys(guard.protected or [*earlier, *together])
    return tuple(skill for skill in wanted if skill not in stage.skills or skill in together)
