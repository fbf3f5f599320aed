"""Is this run healthy? Ranges for the field's metrics, each with what it means and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rlvrlab.errors import ForeignCode, UnknownName
from rlvrlab.evals.hacks.signals import BACKWARD_SHARE, HELD_OUT_FALL, Finding, Trend, findings, rollout_metrics
from rlvrlab.recipe.presets import PRESETS
from rlvrlab.record.summary import dev_key
from rlvrlab.registry import find
from rlvrlab.shares import percent
from rlvrlab.types import Rollout

if TYPE_CHECKING:
    from rlvrlab.record.run import Run

__all__ = ["ONLINE", "RANGES", "Finding", "Range", "Standing", "Watch", "examine", "health_of", "ranges_of"]

PERSISTS = 3
"""Steps in a row that something must be seen before it is said: one step, or one group, is often an accident."""
CLEAR = 0.1
"""A share of right answers that is no accident, and the fall that is none."""
RECOVERS = 5
"""Steps in a row without it after which that is taken back."""


class Range(NamedTuple):
    """What is normal for one metric."""

    metric: str
    low: float | None
    high: float | None
    meaning: str
    """What being outside says."""
    remedy: str
    alarm: bool = False
    """Worth an event and a line in EXPERIMENT.md, not only a light."""
    after: int = PERSISTS
    """Steps in a row that must show it before it counts."""

    def holds(self, value: float) -> bool:
        """Is the value within the range?"""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        bounds = f"{self.low:g}–{self.high:g}" if self.low is not None and self.high is not None else ""
        return f"{self.metric} {bounds or (f'≥ {self.low:g}' if self.low is not None else f'≤ {self.high:g}')}"


RANGES = (
    Range("actor/entropy", 0.01, None, "mode collapse: the policy hardly varies its answers any more",
          "set kl.coef = 0.04, lower the learning rate, or go back to an earlier checkpoint", alarm=True),
    Range("groups/zero_variance", None, 0.95, "nearly all groups earned one and the same reward: little is learnt",
          "all wrong: more SFT or easier problems, or a lower learning rate if they were right before; "
          "all right: harder ones; or filter.dead_groups=refill", alarm=True),
    Range("response_length/clip_ratio", None, 0.5, "most answers are cut off before they end",
          "raise rollout.max_tokens, or teach the policy to end by SFT", alarm=True),
    Range("actor/pg_clipfrac", None, 0.3, "most tokens are held by the clip: steps are too large for the batch",
          "fewer epochs or a lower learning rate"),
    Range("actor/kl", None, 1.0, "far from the reference policy", "raise kl.coef or stop earlier"),
    Range("groups/unjudged_rows", None, 0.0, "some answers could not be judged; they are left out, not counted wrong",
          "look at logs/events.jsonl and the rollouts' detail", alarm=True, after=1),
    Range("tree/shared", 0.05, None, "answers of a tree share hardly any tokens: it costs what single answers cost",
          "branch later: raise credit.every, or put more of rollout.n into the last of credit.branches"),
    Range("tree/beside", None, 0.5, "most answers ended before they could branch, so few steps are compared",
          "branch earlier: lower credit.every, or branch by tokens (credit.boundary)"),
    Range("sft/nll", None, 12.0, "worse than a blind guess over 160,000 tokens: the updates are ruining the policy",
          "start again with a lower learning rate", alarm=True),
    Range("dpo/chosen_reward", -1.0, None, "chosen answers become less likely, together with rejected ones",
          "raise dpo.sft_coef or dpo.beta, or lower the learning rate"),
)  # fmt: skip
"""What is normal whatever is trained."""
AFTER = {one.metric: one.after for one in RANGES} | {HELD_OUT_FALL: 1, BACKWARD_SHARE: 1}
ONLINE = (
    "actor/entropy", "actor/grad_norm", "groups/zero_variance", "response_length/clip_ratio", "actor/pg_clipfrac",
    "actor/kl", "groups/unjudged_rows", "tree/shared", "tree/beside",
)  # fmt: skip
"""What on-line phases are watched by. Every phase says which ranges hold for it (`Phase.health`)."""


def ranges_of(preset: object) -> tuple[Range, ...]:
    """What is normal for a policy of this engine, size and way of tuning; `preset` is the name that a run recorded.

    Where it is not known, nothing is said of what depends on it.
    """
    known = PRESETS.get(str(preset))
    if known is None:
        return RANGES
    norm = Range("actor/grad_norm", *known.grad_norm, f"outside what a policy of its kind ({known.name}) trains at",
                 "compare with earlier steps: a sudden jump wants a lower learning rate")  # fmt: skip
    return (*RANGES, norm)


def health_of(phase: object) -> tuple[str, ...]:
    """The ranges that hold in a phase that a record names; none where that name is not known here."""
    try:
        health: tuple[str, ...] = find("phase", str(phase)).health
    except (UnknownName, ForeignCode):
        return ()
    return health


class News(NamedTuple):
    """What changed in a run's health with a step."""

    found: list[Finding]
    """Seen for long enough, and not said before."""
    recovered: list[str]
    """Metrics whose finding does not hold any more."""

    def tell(self, run: Run, step: int) -> None:
        """Warnings for new alarms, and withdrawals of old ones."""
        for finding in self.found:
            if finding.alarm:
                run.warn(finding.metric, finding.text, step=step)
        for metric in self.recovered:
            run.withdraw(metric, f"{metric} has been as it should be for {RECOVERS} steps", step=step)


class Standing:
    """Findings that persist: each counts after some steps in a row that show it, until RECOVERS in a row do not."""

    def __init__(self, preset: object = None) -> None:
        self._ranges = ranges_of(preset)
        self.now: dict[str, Finding] = {}
        self.ever: set[str] = set()
        self._bad: Counter[str] = Counter()
        self._good: Counter[str] = Counter()
        self._phase: object = None

    def add(self, health: Collection[str], row: Mapping[str, Any]) -> News:
        """Take in a step; a phase counts anew, and a metric only where it was measured."""
        if row.get("phase") != self._phase:
            self._phase, self._bad, self._good = row.get("phase"), Counter(), Counter()
        measured = {key for key, value in row.items() if isinstance(value, int | float)}
        seen = {finding.metric: finding for finding in examine(health, row, self._ranges) + findings(row)}
        for metric in seen:
            self._bad[metric], self._good[metric] = self._bad[metric] + 1, 0
        for metric in (measured - seen.keys()) & {*self._bad, *self.now}:
            self._bad[metric], self._good[metric] = 0, self._good[metric] + 1
        found = [one for metric, one in seen.items() if self._bad[metric] >= AFTER.get(metric, PERSISTS)]
        found = [one for one in found if one.metric not in self.now]
        recovered = [metric for metric in self.now if self._good[metric] >= RECOVERS]
        self.now = {metric: one for metric, one in self.now.items() if metric not in recovered}
        self.now |= {one.metric: one for one in found}
        self.ever |= self.now.keys()
        return News(found, recovered)

    def light(self, watched: Range, value: float) -> str:
        """How a watched metric stands by its newest value: "good" only where nothing about it wants a look.

        What persists is an "alarm", or a "notice" where the range is none to be alarmed by. A value that is outside
        without having been so for long, and an alarm that has recovered, are a "notice".
        """
        if watched.metric in self.now and watched.alarm:
            return "alarm"
        recovered = watched.alarm and watched.metric in self.ever
        return "notice" if watched.metric in self.now or recovered or not watched.holds(value) else "good"


class Ability:
    """What a policy could do earlier in its run: a fall to no right answers is no cold start."""

    def __init__(self) -> None:
        self._where: tuple[object, object] = (None, None)
        self._share = self._best = 0.0
        """Best share of right answers in a step of this phase and stage, and best evaluation of the run."""
        self._fell: tuple[str, str] | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in a step."""
        here = row.get("phase"), row.get("stage/index")
        self._where, self._share = here, max(self._share if here == self._where else 0.0, row.get("train/acc") or 0.0)
        key = dev_key(row)
        now = None if key is None else row[key]
        if now is None:
            return
        self._best = max(self._best, now)
        if now > self._best / 2 or self._best - now < CLEAR:
            self._fell = None
        elif self._fell is None:
            self._fell = str(row.get("phase")), f"from {percent(self._best)} to {percent(now)} of the dev problems"

    def lost(self, row: Mapping[str, Any]) -> str:
        """In words, how a policy whose answers are all wrong in this step fell; empty where it could never do more."""
        if row.get("train/acc") or row.get("groups/all_wrong") != row.get("groups/collected"):
            return ""
        phase, words = self._fell or (str(row.get("phase")), "")
        if not words and self._share >= CLEAR:
            words = f"from {percent(self._share)} of a step's answers to none"
        if not words:
            return ""
        fell = f"no signal: every answer is wrong, because the policy lost in {phase} what it could do ({words})"
        remedy = f"start again with a lower {phase}.learning_rate, or look at what the reward pays for"
        return f"{fell}; {remedy} (`rlvr check reward RECIPE`)"


class Watch:
    """The monitors of a run: health ranges, and whether the reward is earned (see hacks/)."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = (), preset: object = None, *, control: bool = False) -> None:
        """`control`: the reward is a control arm, so nothing is asked about how it is earned."""
        rows, self._control = list(rows), control
        self._trend, self._standing, self._ability = Trend(rows, control=control), Standing(preset), Ability()
        for row in rows:
            self.examine(health_of(row.get("phase")), row)

    def measure(self, row: Mapping[str, Any], rollouts: Sequence[Rollout]) -> dict[str, float]:
        """Further metrics of a step, under hack/."""
        found = rollout_metrics(rollouts, control=self._control)
        return found | self._trend.metrics({**row, **found})

    def examine(self, health: Collection[str], row: Mapping[str, Any]) -> News:
        """What persists and what has recovered with a step's row; `health` are the ranges that hold in its phase."""
        self._ability.add(row)
        return self._standing.add(health, row)

    def lost(self, row: Mapping[str, Any]) -> str:
        """How the policy fell that has no right answer in this step, the last one examined; empty where it did not."""
        return self._ability.lost(row)


def examine(health: Collection[str], metrics: Mapping[str, Any], ranges: Sequence[Range] = RANGES) -> list[Finding]:
    """Metrics of one step that are outside the ranges named in `health`."""
    outside = [(r, metrics[r.metric]) for r in ranges if r.metric in health and metrics.get(r.metric) is not None]
    return [
        Finding(r.metric, value, f"{r.metric} is {value:.3g}: {r.meaning}; {r.remedy}", r.alarm)
        for r, value in outside
        if not r.holds(value)
    ]
