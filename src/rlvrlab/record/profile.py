"""Where the time of a run's steps went, phase by phase, and what follows from it.

Read from the `time/…_s` metrics that every step records: the parts of a step never overlap, so they add up to it.
Answers are judged while others are being drawn (rollout/collect.py), so judging costs only what is waited for in the
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

PARTS = {
    "sample": "drawing answers",
    "judge": "waiting for verdicts",
    "reward": "rewards",
    "credit": "credit of steps",
    "score": "scores and advantages",
    "update": "update",
    "evaluate": "evaluations",
    "record": "record and checkpoints",
}
"""Name in the metrics -> words."""
REST = "everything else"
MANY = {"judge": 0.2, "credit": 0.3, "evaluate": 0.3, "record": 0.2, "sample": 0.6, "update": 0.6}
"""Share of a phase's time from which a part deserves advice, the most telling first."""


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
        spent = {part: sum(row.get(f"time/{part}_s") or 0.0 for row in own) for part in PARTS}
        whole = sum(row["time/step_s"] for row in own) + spent["record"]
        spent[""] = max(0.0, whole - sum(spent.values()))
        found += [Spent(phase, part, s, s / whole, s / len(own)) for part, s in spent.items() if s > 0 and whole > 0]
    return found


def advice(profile: Sequence[Spent], recipe: Mapping[str, Any]) -> list[str]:
    """What would make the steps shorter, one line per part that takes much of its phase; `recipe` as tables."""
    told = []
    for part, many in MANY.items():
        for spent in (one for one in profile if one.part == part and one.share >= many):
            told.append(f"{spent.phase}: {spent.share:.0%} is {spent.words}; {_remedy(part, recipe)}")
    return told


def _remedy(part: str, recipe: Mapping[str, Any]) -> str:
    pipeline = recipe.get("pipeline") or {}
    if part == "judge":
        if pipeline.get("limits", "fixed") == "fixed":
            return 'stop endless programs sooner with pipeline.limits = "learnt", or lower the environment\'s timeout_s'
        if not pipeline.get("lag"):
            return "judge a step while the next is sampled: pipeline.lag = 1"
        return "give the judge more cores, or servers of its own (`rlvr serve judge`, RLVR_JUDGE)"
    return {
        "credit": "examine fewer answers or steps: see the keys of [credit]",
        "evaluate": "raise eval.every or lower data.dev_size",
        "record": 'raise checkpoint.every, or set record.rollouts = "none"',
        "sample": "lower rollout.max_tokens if few answers reach it, or let servers sample (engine.sampler)",
        "update": "train a LoRA adapter, raise engine.micro_tokens as far as memory allows, or lower rollout.n",
    }[part]
