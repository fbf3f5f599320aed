"""Where a study stands, as the board sees it: arms, stages, and what is wanted next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlvrlab.report.gather.stages import stage_state
from rlvrlab.study.chain import Trial
from rlvrlab.study.schema import Settings, Stage

EXTENSION = "extension"
"""A decision to run more seeds."""


@dataclass
class ArmView:
    """One arm with its trials."""

    name: str
    own: Settings
    settings: Settings
    trials: list[Trial]
    dropped: str | None = None
    """The halving round that dropped it, in words."""


@dataclass
class StageView:
    """Where one stage stands: blocked, running, waiting (for a person), decided or failed."""

    name: str
    kind: str
    stage: Stage
    needs: list[str]
    suites: dict[str, str]
    """Suites its trials are examined on: name -> hash."""
    status: str = "blocked"
    arms: list[ArmView] = field(default_factory=list)
    inputs: Settings = field(default_factory=dict)
    decision: dict[str, Any] | None = None
    due: str | None = None
    """What has to be decided now: choice, halving or confirmation."""
    evidence: str = ""
    round: int = 0
    """Halving rounds that are over."""
    small: dict[str, list[Trial]] = field(default_factory=dict)
    """Arm -> trials of the halving round that is due."""
    note: str = ""
    look: int = 1
    """Which of the looks it declared this is, or will be."""
    sequence: list[str] = field(default_factory=list)
    """Evidence of the looks it declared and has taken, this one included."""
    earlier: list[dict[str, Any]] = field(default_factory=list)
    """Decisions that looked at its arms before, none of which it declared (past.py)."""
    chosen: str | None = None
    """The arm that won, of a stage that asks test problems."""

    def state(self, going: bool) -> str:
        """Its status in one word for a person; `going` tells whether a process works on the study."""
        return stage_state(self.kind, self.status, self.decision, going)

    @property
    def live(self) -> list[ArmView]:
        """Arms that no halving round dropped."""
        return [arm for arm in self.arms if arm.dropped is None]


@dataclass
class Survey:
    """Where the whole study stands, and what it wants next."""

    stages: list[StageView]
    wanted: dict[str, tuple[Trial, dict[str, str]]]
    """Trial id -> the trial and the suites it has to be examined on; first come, first run."""
    owners: dict[str, list[tuple[str, str]]]
    """Trial id -> (stage, arm) that ask for it, the first one first."""
    choices: dict[str, str]
