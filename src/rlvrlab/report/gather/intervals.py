"""Intervals of what a record holds: means over seeds, and differences of shares of which only their own are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from rlvrlab.evals.noise import LEVEL, Interval
from rlvrlab.evals.statistics import newcombe
from rlvrlab.report.reading import Fact, rounded
from rlvrlab.student import t_quantile

Bounds = tuple[float, float] | None
ANY = (-math.inf, math.inf)
CUT = "Intervals are cut at the least and the most that a number can be."
"""Said where `interval` was given these."""


def change(before: tuple[float, Bounds], after: tuple[float, Bounds]) -> Fact:
    """after − before of two shares; bounds from their Wilson intervals."""
    (old, old_bounds), (new, new_bounds) = before, after
    told: Fact = {"value": rounded(new - old, 4), "low": None, "high": None}
    if old_bounds is None or new_bounds is None:
        return told
    ends = newcombe((old, Interval(*old_bounds)), (new, Interval(*new_bounds)))
    return told | {"low": rounded(ends.low, 4), "high": rounded(ends.high, 4)}


def shared_level(count: int) -> float:
    """Level of each of so many intervals that hold together in 95 runs of 100 (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(1, count)


def mean_of(parts: Sequence[tuple[float, Bounds]]) -> Fact:
    """Mean of independent numbers; its bounds from theirs, each side by the root of the sum of squares (MOVER)."""
    value = fmean(one for one, _ in parts)
    told: Fact = {"value": rounded(value, 4), "low": None, "high": None}
    known = [(one, ends) for one, ends in parts if ends is not None]
    if len(known) < len(parts):
        return told
    below, above = (math.hypot(*(one - ends[side] for one, ends in known)) / len(parts) for side in (0, 1))
    return told | {"low": rounded(value - below, 4), "high": rounded(value + above, 4)}


def interval(values: list[float], level: float = LEVEL, within: tuple[float, float] = ANY) -> dict[str, Any]:
    """Mean and t interval over seeds, cut at the least and the most that such a number can be. One seed has no bounds,
    nor have seeds that are all equal: a spread that was not seen is not known to be 0."""
    n, mean = len(values), float(np.mean(values))
    if n < 2 or np.ptp(values) <= 1e-12 * abs(mean):
        return {"value": rounded(mean, 4), "low": None, "high": None, "n": n}
    half = t_quantile(level, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    low, high = max(within[0], mean - half), min(within[1], mean + half)
    return {"value": rounded(mean, 4), "low": rounded(low, 4), "high": rounded(high, 4), "n": n}
