"""Learning the new against keeping the old: the points nobody dominates, and the area under them.

A point is (gain, retention), both to be maximised. Suffixes: N points, R runs (random seeds).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.student import t_quantile

LEVEL = 0.95


class Area(NamedTuple):
    """A hypervolume, or the difference of two, with its 95 % interval over seeds."""

    value: float
    low: float
    high: float


def front(point_N2: Floats) -> Ints:
    """Indices of the points that no other point equals or beats in both and beats in one."""
    points = np.asarray(point_N2, dtype=np.float64)
    better = (points[:, None] >= points[None]).all(axis=2) & (points[:, None] > points[None]).any(axis=2)
    return np.flatnonzero(~better.any(axis=0))


def hypervolume(point_N2: Floats, reference: tuple[float, float]) -> float:
    """Area dominated by the points and above the reference point."""
    points = np.asarray(point_N2, dtype=np.float64).reshape(-1, 2)
    points = points[(points > np.asarray(reference)).all(axis=1)]
    area, reached = 0.0, reference[1]
    for gain, kept in sorted(points.tolist(), reverse=True):
        if kept > reached:
            area += (gain - reference[0]) * (kept - reached)
            reached = kept
    return area


def area(point_RN2: Floats, reference: tuple[float, float]) -> Area:
    """The hypervolume of the curve of seed means; the interval leaves out seeds, all settings of a seed together."""
    return _over_seeds(lambda chosen: hypervolume(point_RN2[chosen].mean(axis=0), reference), len(point_RN2))


def compare_areas(one_RN2: Floats, other_RN2: Floats, reference: tuple[float, float]) -> Area:
    """The first hypervolume minus the second, paired by seed."""

    def gap(chosen: Ints) -> float:
        curves = (points[chosen].mean(axis=0) for points in (one_RN2, other_RN2))
        first, second = (hypervolume(curve, reference) for curve in curves)
        return first - second

    return _over_seeds(gap, len(one_RN2))


def _over_seeds(value: Callable[[Ints], float], seeds: int) -> Area:
    """Student's t over the jackknife's pseudo-values, one per seed: how the value moves when that seed is left out.

    A percentile bootstrap of a handful of seeds is too narrow (docs/statistics.md).
    """
    everyone = np.arange(seeds)
    whole = value(everyone)
    if seeds < 2:
        return Area(whole, -np.inf, np.inf)
    without_R = np.array([value(np.delete(everyone, seed)) for seed in everyone])
    error = math.sqrt((seeds - 1) / seeds * float(((without_R - without_R.mean()) ** 2).sum()))
    half = t_quantile(LEVEL, seeds - 1) * error
    return Area(whole, whole - half, whole + half)
