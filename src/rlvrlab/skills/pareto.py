"""Learning the new against keeping the old: the points nobody dominates, and the area under them.

A point is (gain, retention), both to be maximised. Suffixes: N points, R runs (random seeds).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.randomness import generator

RESAMPLES = 2000


class Area(NamedTuple):
    """A hypervolume with its 95 % interval over seeds."""

    value: float
    low: float
    high: float


class AreaDifference(NamedTuple):
    """Hypervolume of one method minus another's, resampling the seeds they share."""

    mean: float
    low: float
    high: float
    share_above: float
    """Share of the resamples in which the first method's is larger."""


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


def area(point_RN2: Floats, reference: tuple[float, float], *key: object) -> Area:
    """The hypervolume of the curve of seed means; the interval resamples seeds, all settings of a seed together."""
    values = _resampled(point_RN2, reference, *key)
    low, high = np.percentile(values, [2.5, 97.5])
    return Area(hypervolume(np.mean(point_RN2, axis=0), reference), float(low), float(high))


def compare_areas(one_RN2: Floats, other_RN2: Floats, reference: tuple[float, float], *key: object) -> AreaDifference:
    """The difference of two hypervolumes, paired by seed: both methods see the same resampled seeds."""
    difference = _resampled(one_RN2, reference, *key) - _resampled(other_RN2, reference, *key)
    low, high = np.percentile(difference, [2.5, 97.5])
    mean = hypervolume(np.mean(one_RN2, axis=0), reference) - hypervolume(np.mean(other_RN2, axis=0), reference)
    return AreaDifference(mean, float(low), float(high), float((difference > 0).mean()))


def _resampled(point_RN2: Floats, reference: tuple[float, float], *key: object) -> Floats:
    runs = np.asarray(point_RN2, dtype=np.float64)
    index = generator(*key, "hypervolume").integers(0, len(runs), (RESAMPLES, len(runs)))
    return np.array([hypervolume(runs[chosen].mean(axis=0), reference) for chosen in index])
