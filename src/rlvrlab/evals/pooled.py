"""A mean over answers, or steps of answers, of which several belong to one problem: problems are the unit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rlvrlab.evals.noise import LEVEL
from rlvrlab.evals.statistics import Estimate, estimate, share_estimate
from rlvrlab.student import t_quantile


def estimate_pooled(groups: Sequence[Sequence[float]], *, share: bool | None = None) -> Estimate:
    """The mean of all numbers, one sequence per problem, with an interval for new problems.

    Numbers of one problem are alike, so the variance is that of the problems' sums around the mean (a ratio of two
    sums). With one number a problem it is `estimate`. One problem alone has no interval: (0, 1), or without bounds
    where the numbers are no shares.
    """
    kept = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    if all(len(group) == 1 for group in kept):
        return estimate([float(group[0]) for group in kept], share=share)
    everything = np.concatenate(kept)
    share = bool((np.abs(everything - 0.5) <= 0.5).all()) if share is None else share
    mean, problems = float(everything.mean()), len(kept)
    if problems == 1:
        return Estimate(mean, *((0.0, 1.0) if share else (-math.inf, math.inf)), 1, 1, None)
    sums = np.array([(group - mean).sum() for group in kept])
    error = math.sqrt(problems / (problems - 1) * float(sums @ sums)) / len(everything)
    half = t_quantile(LEVEL, problems - 1) * error
    if share:
        return share_estimate(mean, half, np.array([group.mean() for group in kept]), LEVEL)
    return Estimate(mean, mean - half, mean + half, problems, 1, None)
