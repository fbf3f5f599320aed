"""Where the time of a run's steps went, phase by phase; record/faster.py says what follows from it.

Read from the `time/…_s` metrics that every step records: the parts of a step never overlap, so they add up to it.
Answers are judged while others are being drawn (rollout/collect.py), so judging costs only what is waited for in the
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rlvrlab.plain_files import number

PARTS = {
    "problems": "choosing problems",
    "limits": "running references for limits",
    "sample": "drawing answers",
    "judge": "waiting for verdicts",
    "reward": "rewards",
    "credit": "credit of steps",
    "score": "scores and advantages",
    "update": "update",
    "critic": "updates of the value function",
    "guard": "the guard, besides the update",
    "publish": "new weights to the sampler",
    "evaluate": "evaluations",
    "record": "record and checkpoints",
}
"""Name in the metrics -> words."""
OF_VERL = {
    "sample": ("time/rollout_s",),
    "judge": ("timing_s/reward",),
    "score": ("timing_s/old_log_prob", "timing_s/ref", "timing_s/values", "timing_s/adv"),
    "critic": ("timing_s/update_critic",),
    "publish": ("timing_s/update_weights",),
    "evaluate": ("timing_s/testing",),
    "record": ("time/checkpoint_s",),
}
"""What verl calls the same parts. Its checkpoints are made within a step, ours after it."""
AFTER = "time/record_s"
"""The only part that a step's own seconds do not hold."""
REST = "everything else"


class Spent(NamedTuple):
    """A part of the steps of one phase."""

    phase: str
    part: str
    """A key of PARTS, or empty for the rest."""
    seconds: float
    """In all steps."""
    share: float
    """Of all steps of the phase."""
    per_step: float

    @property
    def words(self) -> str:
        """What the part is."""
        return PARTS.get(self.part, REST)


def profile_of(rows: Sequence[Mapping[str, Any]]) -> list[Spent]:
    """The parts of each phase, in the order of a step, those that took no time left out."""
    found = []
    steps = [row for row in rows if row.get("time/step_s") is not None]
    for phase in dict.fromkeys(row["phase"] for row in steps):
        own = [row for row in steps if row["phase"] == phase]
        measured = set[str]().union(*own)
        spent = {part: _seconds(own, [name for name in _names(part) if name in measured]) for part in PARTS}
        whole = sum(whole_seconds(row) for row in own)
        spent[""] = max(0.0, whole - sum(spent.values()))
        found += [Spent(phase, part, s, s / whole, s / len(own)) for part, s in spent.items() if s > 0 and whole > 0]
    return found


def whole_seconds(row: Mapping[str, Any]) -> float:
    """What a step took, with what was recorded after it: its parts add up to this; 0 where nobody measured."""
    step = number(row.get("time/step_s"))
    return 0.0 if step is None else step + (number(row.get(AFTER)) or 0.0)


def _names(part: str) -> tuple[str, ...]:
    """The metrics that add up to a part."""
    return f"time/{part}_s", *OF_VERL.get(part, ())


def _seconds(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> float:
    return sum(sum(row.get(name) or 0.0 for name in names) for row in rows) if names else 0.0
