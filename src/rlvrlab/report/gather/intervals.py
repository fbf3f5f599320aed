"""The difference of two shares of which only their Wilson intervals are known."""

from __future__ import annotations

from rlvrlab.evals.noise import Interval
from rlvrlab.evals.statistics import newcombe
from rlvrlab.report.gather.reading import Fact, rounded

Bounds = tuple[float, float] | None


def change(before: tuple[float, Bounds], after: tuple[float, Bounds]) -> Fact:
    """after − before of two shares; bounds from their Wilson intervals."""
    (old, old_bounds), (new, new_bounds) = before, after
    told: Fact = {"value": rounded(new - old, 4), "low": None, "high": None}
    if old_bounds is None or new_bounds is None:
        return told
    ends = newcombe((old, Interval(*old_bounds)), (new, Interval(*new_bounds)))
    return told | {"low": rounded(ends.low, 4), "high": rounded(ends.high, 4)}
