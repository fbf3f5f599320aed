"""What each skill lost since its best evaluation, beyond what picking the best one of many explains.

The peak is the highest of several noisy numbers, so the end lies below it without any change. The end is therefore
compared with every earlier evaluation, at a level that all these comparisons of all skills share (Bonferroni): the loss
is beyond chance where some evaluation was better at that level. docs/statistics.md has the measured error rates.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlvrlab.evals.noise import LEVEL
from rlvrlab.evals.statistics import wilson
from rlvrlab.report.gather.curves import counts
from rlvrlab.report.gather.intervals import change, shared_level
from rlvrlab.report.reading import number
from rlvrlab.report.run_record import RunRecord


class Measured(NamedTuple):
    """One evaluation of a skill."""

    step: int
    share: float
    counted: tuple[int, int] | None
    """Right answers and all; None where the record has no count."""

    def bounds(self, level: float = LEVEL) -> tuple[float, float] | None:
        """The Wilson interval of the share."""
        return None if self.counted is None else wilson(*self.counted, level)


class Loss(NamedTuple):
    """Peak minus end; the interval holds for all skills of a run together."""

    peak: Measured
    value: float
    low: float | None
    """None where no counts are recorded or nothing was measured before the end; 0 where chance explains the loss."""
    high: float | None
    by_chance: float | None
    """Mean loss that a skill would show which stayed at its last success, were its evaluations independent."""

    @property
    def beyond_chance(self) -> bool:
        """Whether some earlier evaluation was better than the end by more than chance."""
        return self.low is not None and self.low > 0


def skill_courses(run: RunRecord) -> dict[str, list[Measured]]:
    """Skill -> its evaluations in the order they were made; skills without any are left out."""
    courses: dict[str, list[Measured]] = {}
    for skill, key in run.skill_keys:
        rows = [(line.row, share) for line in run.metrics if (share := number(line.row.get(key))) is not None]
        if rows:
            courses[skill] = [Measured(row["step"], share, counts(row, key)) for row, share in rows]
    return courses


class Moved(NamedTuple):
    """A skill's end and its change since the first evaluation; the intervals hold for all skills of a run together."""

    end_low: float | None
    end_high: float | None
    value: float
    low: float | None
    high: float | None


def moves(courses: dict[str, list[Measured]]) -> dict[str, Moved]:
    """Where every skill ended, and how far from its start: the one place that decides about these intervals.

    Whoever looks at them picks the worst or the most moved, so they share a level (Bonferroni).
    """
    level, found = shared_level(len(courses)), {}
    for skill, course in courses.items():
        first, end = ((one.share, one.bounds(level)) for one in (course[0], course[-1]))
        changed = change(first, end)
        low, high = (changed["low"], changed["high"]) if len(course) > 1 else (None, None)
        end_low, end_high = end[1] or (None, None)
        found[skill] = Moved(end_low, end_high, end[0] - first[0], low, high)
    return found


def losses(courses: dict[str, list[Measured]]) -> dict[str, Loss]:
    """What every skill lost since its peak."""
    comparisons = sum(len(course) - 1 for course in courses.values())
    return {skill: _loss(course, shared_level(comparisons)) for skill, course in courses.items()}


def _loss(course: list[Measured], level: float) -> Loss:
    *earlier, end = course
    peak = max(course, key=lambda one: one.share)
    value = round(peak.share - end.share, 4)
    if not earlier or any(one.counted is None for one in course):
        return Loss(peak, value, None, None, None)
    gaps = [change((end.share, end.bounds(level)), (one.share, one.bounds(level))) for one in earlier]
    # The end is one of those that the peak is chosen among, and lies 0 below itself.
    low, high = (max(0.0, *(gap[side] for gap in gaps)) for side in ("low", "high"))
    return Loss(peak, value, low, high, _by_chance(course))


def _by_chance(course: list[Measured]) -> float:
    """E[max] − p of as many independent shares as there were evaluations, each of as many answers as at the end."""
    _, answers = course[-1].counted or (0, 1)
    share = min(1.0, max(0.0, course[-1].share))
    if share in (0.0, 1.0):
        return 0.0
    right = np.arange(answers + 1)
    log_ways = math.lgamma(answers + 1) - np.array([math.lgamma(r + 1) + math.lgamma(answers - r + 1) for r in right])
    below = np.cumsum(np.exp(log_ways + right * math.log(share) + (answers - right) * math.log1p(-share)))
    return float((1 - np.minimum(1.0, below[:-1]) ** len(course)).sum()) / answers - share
