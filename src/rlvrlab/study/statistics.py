"""Is one arm better than another? Paired over the same problems, pooled over seeds, several suites at once.

A block holds one suite: rows are an arm's seeds, columns the problems that all arms share. One block is
evals/statistics.py's comparison. Several are resampled suite by suite (strata), while a seed is drawn once for all of
them: the same run answered every suite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.evals.statistics import RESAMPLES, Difference, compare_seeds, resampled_difference
from rlvrlab.randomness import generator

Blocks = Sequence[Floats]
"""One array (seeds × problems) per suite; the arm's score is the sum of their means."""


def score(blocks: Blocks) -> float:
    """An arm's value: the sum over suites of its mean over seeds and problems."""
    return float(sum(block_SP.mean() for block_SP in blocks))


def compare_blocks(before: Blocks, after: Blocks, *key: object) -> Difference:
    """How much higher `after` scores than `before`; several suites are resampled as the head of this file says."""
    if len(before) == 1:
        return compare_seeds(before[0], after[0], *key)
    rng = generator(*key, "strata")
    drawn_R = np.zeros(RESAMPLES)
    shares = []  # how much each seed counts in each resample (resamples × seeds)
    for seeds in (len(before[0]), len(after[0])):
        if seeds == 1:
            shares.append(np.ones((RESAMPLES, 1)))
        else:
            shares.append(rng.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES) / seeds)
    for old_SP, new_SP in zip(before, after, strict=True):
        problems = old_SP.shape[1]
        rows = max(1, 1_000_000 // problems)  # in slices: thousands of problems would not fit in memory at once
        for start in range(0, RESAMPLES, rows):
            part = slice(start, start + rows)
            delta_RP = shares[1][part] @ new_SP - shares[0][part] @ old_SP
            index = rng.integers(0, problems, delta_RP.shape)
            drawn_R[part] += np.take_along_axis(delta_RP, index, axis=1).mean(axis=1)
    return resampled_difference(score(after) - score(before), drawn_R, sum(block_SP.shape[1] for block_SP in before))
