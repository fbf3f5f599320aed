"""Is this run healthy? Ranges for the field's metrics, each with what it means and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rlvrlab.errors import UnknownName
from rlvrlab.evals.hacks.signals import Finding, Trend, findings, rollout_metrics
from rlvrlab.registry import find
from rlvrlab.types import Rollout

__all__ = ["ONLINE", "RANGES", "Finding", "Range", "Watch", "examine", "health_of"]


class Range(NamedTuple):
    """What is normal for one metric."""

    metric: str
    low: float | None
    high: float | None
    meaning: str
    """What being outside says."""
    remedy: str
    """What to try."""
    alarm: bool = False
    """Worth an event and a line in EXPERIMENT.md at once, not only a light."""

    def holds(self, value: float) -> bool:
        """Is the value within the range?"""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        bounds = f"{self.low:g}–{self.high:g}" if self.low is not None and self.high is not None else ""
        return f"{self.metric} {bounds or (f'≥ {self.low:g}' if self.low is not None else f'≤ {self.high:g}')}"


RANGES = (
    Range("actor/entropy", 0.01, None, "mode collapse: the policy hardly varies its answers any more",
          "lower the learning rate, set entropy.coef or kl.coef, or go back to an earlier checkpoint", alarm=True),
    Range("actor/grad_norm", 0.05, 0.2, "outside the range large models train in; small policies run higher",
          "compare with earlier steps rather than with the range; a sudden jump wants a lower learning rate"),
    Range("groups/zero_variance", None, 0.95, "nearly all groups earned one and the same reward: little is learnt",
          "all wrong: more SFT or easier problems; all right: harder ones; or filter.dead_groups=refill", alarm=True),
    Range("response_length/clip_ratio", None, 0.5, "most answers are cut off before they end",
          "raise rollout.max_tokens, or teach the policy to end by SFT", alarm=True),
    Range("actor/pg_clipfrac", None, 0.3, "most tokens are held by the clip: steps are too large for the batch",
          "fewer epochs or a lower learning rate"),
    Range("actor/kl", None, 1.0, "far from the reference policy", "raise kl.coef or stop earlier"),
    Range("groups/unjudged_rows", None, 0.0, "some answers could not be judged; they are left out, not counted wrong",
          "look at logs/events.jsonl and the rollouts' detail", alarm=True),
    Range("sft/nll", None, 12.0, "worse than a blind guess over 160,000 tokens: the updates are ruining the policy",
          "start again with a lower learning rate", alarm=True),
    Range("dpo/chosen_reward", -1.0, None, "chosen answers become less likely, together with rejected ones",
          "raise dpo.sft_coef or dpo.beta, or lower the learning rate"),
)  # fmt: skip
ONLINE = (
    "actor/entropy", "actor/grad_norm", "groups/zero_variance", "response_length/clip_ratio", "actor/pg_clipfrac",
    "actor/kl", "groups/unjudged_rows",
)  # fmt: skip
"""What on-line phases are watched by. Every phase says which ranges hold for it (`Phase.health`)."""


def health_of(phase: object) -> tuple[str, ...]:
    """The ranges that hold in a phase that a record names; none where that name is not known here."""
    try:
        health: tuple[str, ...] = find("phase", str(phase)).health
    except UnknownName:
        return ()
    return health


class Watch:
    """The monitors of a run: health ranges, and whether the reward is earned (see hacks/)."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._trend = Trend(rows)

    def measure(self, row: Mapping[str, Any], rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Further metrics of a step, under hack/."""
        return rollout_metrics(rollouts) | self._trend.metrics(row)

    def examine(self, health: Collection[str], row: Mapping[str, Any]) -> list[Finding]:
        """What is not normal in a step's row; `health` are the ranges that hold in its phase."""
        return examine(health, row) + findings(row)


def examine(health: Collection[str], metrics: Mapping[str, float]) -> list[Finding]:
    """Metrics of one step that are outside the ranges named in `health`."""
    outside = [(r, metrics[r.metric]) for r in RANGES if r.metric in health and r.metric in metrics]
    return [
        Finding(r.metric, value, f"{r.metric} is {value:.3g}: {r.meaning}; {r.remedy}", r.alarm)
        for r, value in outside
        if not r.holds(value)
    ]
