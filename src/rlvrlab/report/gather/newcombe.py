"""The difference of two shares of which only their Wilson intervals are known."""

from __future__ import annotations

import math

from rlvrlab.report.gather.reading import Fact, rounded

Bounds = tuple[float, float] | None


def change(before: tuple[float, Bounds], after: tuple[float, Bounds]) -> Fact:
    """after − before of two shares; bounds from their Wilson intervals (Newcombe 1998, method 10)."""
    (old, old_bounds), (new, new_bounds) = before, after
    told: Fact = {"value": rounded(new - old, 4), "low": None, "high": None}
    if old_bounds is None or new_bounds is None:
        return told
    low = new - old - math.hypot(new - new_bounds[0], old_bounds[1] - old)
    high = new - old + math.hypot(new_bounds[1] - new, old - old_bounds[0])
    return told | {"low": rounded(low, 4), "high": rounded(high, 4)}
