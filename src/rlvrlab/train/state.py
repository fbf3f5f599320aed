"""Where a run stands: its state and memory, which are small, plain and saved with every checkpoint, and the stage and
moment of a step, which are made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rlvrlab.batch import TokenBatch
from rlvrlab.engines.base import Snapshot, Trainable, Vector
from rlvrlab.record.final import policy_step
from rlvrlab.types import Objective, Problem, Rollout

if TYPE_CHECKING:
    from rlvrlab.credit.base import Remembered
    from rlvrlab.surgery.base import Memory as SurgeryMemory

Event = tuple[str, str]
"""(kind, words) for logs/events.jsonl."""
Ask = Callable[[Sequence[Problem], tuple[object, ...], bool], list[Rollout]]
"""(problems, key, greedy) -> judged answers of the current policy."""
AnchorKl = Callable[[TokenBatch, Snapshot], tuple[Vector, float]]
"""(batch, anchor) -> gradient and value of KL(anchor ‖ current) over the whole vocabulary."""


@dataclass(frozen=True)
class Best:
    """The best held-out accuracy of a phase."""

    step: int
    accuracy: float


@dataclass(frozen=True)
class State:
    """Position in the recipe and what decides about stopping."""

    phase: int = 0
    """Index into recipe.phases."""
    phase_step: int = 0
    """Steps done in this phase, also those in which nothing was learnt."""
    step: int = 0
    """Steps done in all: the number in step_N and global_step_N."""
    best: Best | None = None
    """Best evaluation of this phase."""
    evals_since_best: int = 0
    """For stop.patience."""
    silent_steps: int = 0
    """Steps in a row without signal."""
    skipped_steps: int = 0
    """Steps in a row whose update was not finite."""
    kept: tuple[int, ...] = ()
    """Checkpoints of finished phases, their best and their last: never pruned."""
    origin: int | None = None
    """Checkpoint whose policy this phase starts from; after a control arm not the newest. None: before training."""
    unended: State | None = None
    """After the last phase: where it stood before its last evaluation, for a run that is made longer."""

    def stepped(self, *, silent: bool, skipped: bool) -> State:
        """After one step."""
        return replace(
            self,
            phase_step=self.phase_step + 1,
            step=self.step + 1,
            silent_steps=self.silent_steps + 1 if silent else 0,
            skipped_steps=self.skipped_steps + 1 if skipped else 0,
        )

    def evaluated(self, accuracy: float) -> State:
        """After an evaluation; ties keep the earlier checkpoint."""
        if self.best is None or accuracy > self.best.accuracy:
            return replace(self, best=Best(self.step, accuracy), evals_since_best=0)
        return replace(self, evals_since_best=self.evals_since_best + 1)

    def next_phase(self, *, control: bool = False) -> State:
        """Into the next phase, with a best of its own; after a control arm it starts where that one started."""
        best = () if self.best is None else (self.best.step,)
        origin = self.started_from if control else self.step
        return State(phase=self.phase + 1, step=self.step, kept=(*self.kept, *best, self.step), origin=origin)

    def without_phase(self) -> State:
        """Past a phase that found nothing to learn: the next one starts where it would have."""
        return State(phase=self.phase + 1, step=self.step, kept=self.kept, origin=self.origin)

    @property
    def started_from(self) -> int:
        """The checkpoint this phase began with; in states of older versions, the last one kept."""
        return self.kept[-1] if self.origin is None else self.origin

    @property
    def returns(self) -> bool:
        """Does the next phase start from another policy than that of the newest checkpoint?"""
        return policy_step(self.step, self.phase_step, self.origin) != self.step

    def covers(self, phase: int, phase_step: int) -> bool:
        """Had that step been recorded when this state was saved? A phase that has not begun has recorded nothing."""
        return phase < self.phase or (phase == self.phase and phase_step <= self.phase_step and self.phase_step > 0)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> State:
        """Back from plain data."""
        best, unended = data["best"], data.get("unended")
        read: dict[str, Any] = {"best": best and Best(**best), "kept": tuple(data["kept"])}
        return cls(**{**data, **read, "unended": unended and cls.from_json(unended)})


class Kept(NamedTuple):
    """What a guard remembers from step to step."""

    memory: dict[str, Any] = {}  # noqa: RUF012 -- never changed in place: a guard hands back a new one
    """Plain data, saved with every checkpoint."""
    live: dict[str, Any] = {}  # noqa: RUF012
    """Vectors, snapshots and whatever else can be made again; never saved."""
    vectors: dict[str, Vector] = {}  # noqa: RUF012
    """Vectors that cannot be made again; the engine saves them with every checkpoint."""


NOTHING = Kept()


class Difficulty(NamedTuple):
    """Pass rates of the whole run and the borders between groups of equal difficulty."""

    rates: Mapping[str, float] = {}
    edges: Sequence[float] = ()
    observed: int = 0
    """Collections seen."""


InFlight = dict[str, Any]
"""Answers drawn for a step to come: its phase and number, and the groups with their tokens and log-probs."""


@dataclass(frozen=True)
class Memory:
    """What protocol, surgery and guard remember from step to step. A step takes one and gives the next one back."""

    stage: tuple[str, int] | None = None
    """Phase and index of the stage that has begun."""
    surgery: SurgeryMemory = field(default_factory=dict)
    """Plain data of the surgery method."""
    difficulty: Difficulty = field(default_factory=Difficulty)
    """Running pass rates, where groups are made by difficulty."""
    guard: Kept = field(default_factory=Kept)
    """What the guard remembers; its live part is not saved."""
    in_flight: InFlight | None = None
    """Answers drawn for the next step, where the recipe has a pipeline."""
    credit: Remembered = field(default_factory=dict)
    """What deleting statements has cost so far, where the step credit learns from it."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        stage = None if self.stage is None else list(self.stage)
        known = {"stage": stage, "surgery": self.surgery, **self.difficulty._asdict(), "guard": self.guard.memory}
        known |= {"credit": {name: list(row) for name, row in self.credit.items()}} if self.credit else {}
        return known if self.in_flight is None else {**known, "in_flight": self.in_flight}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Memory:
        """Back from plain data; a guard's live part has to be rebuilt from its anchors."""
        difficulty = Difficulty(**{name: data[name] for name in Difficulty._fields})
        stage = None if data["stage"] is None else (data["stage"][0], data["stage"][1])
        credit = {name: tuple(row) for name, row in data.get("credit", {}).items()}
        return cls(stage, data["surgery"], difficulty, Kept(data["guard"]), data.get("in_flight"), credit)


@dataclass(frozen=True)
class Stage:
    """A stretch of a phase with one choice of problems."""

    index: int
    name: str
    skills: tuple[str, ...]
    """Trained in it."""
    first: int
    """Phase step at which it begins."""
    last: int
    """Phase step at which it is over."""
    carry: bool = False
    """Optimiser and reference go on from the stage before."""
    max_tokens: int | None = None
    """Longest answer in this stage; None takes rollout.max_tokens."""


def stage_at(stages: Sequence[Stage], phase_step: int) -> Stage:
    """The stage that a step belongs to."""
    return next((stage for stage in stages if stage.first <= phase_step < stage.last), stages[-1])


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
