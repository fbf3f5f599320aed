"""What the loop needs from a phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rlvrlab.train.lab import Lab
from rlvrlab.types import Rollout

StepRow = dict[str, Any]
"""A step of an answer with its credit, see train/credit_record.py."""


@dataclass(frozen=True)
class StepOutcome:
    """What one step did."""

    metrics: dict[str, float]
    rollouts: list[Rollout] = field(default_factory=list)
    """Judged answers, for the record."""
    silent: bool = False
    """No group had signal, so nothing was learnt."""
    skipped: bool = False
    """The update was not finite and was not applied."""
    notes: list[str] = field(default_factory=list)
    """Plain words for events.jsonl."""
    events: list[tuple[str, str]] = field(default_factory=list)
    """(kind, words) of what surgery, guard and protocol have to say; no warnings."""
    steps: dict[str, list[StepRow]] = field(default_factory=dict)
    """Steps of answers with their credit, by rollout, for the record; empty without [credit]."""


class Phase(Protocol):
    """A stretch of training with one kind of step."""

    name: str
    steps: int
    batch_size: int

    def prepare(self, lab: Lab, artifacts: Path) -> None:
        """Before the phase's next step; called again after a resume, when what it made is already there."""
        ...

    def step(self, lab: Lab, phase_step: int) -> StepOutcome:
        """One step; a pure function of recipe, policy and `phase_step`."""
        ...
