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
    """An arm's value."""
    return float(sum(block_SP.mean() for block_SP in blocks))


def compare_blocks(before: Blocks, after: Blocks, *key: object) -> Difference:
    """after − before."""
    if len(before) == 1:
        return compare_seeds(before[0], after[0], *key)
    problems = sum(block_SP.shape[1] for block_SP in before)
    return resampled_difference(score(after) - score(before), _drawn(before, after, *key), problems)


def _drawn(before: Blocks, after: Blocks, *key: object) -> Floats:
    rng = generator(*key, "strata")
    found_R = np.zeros(RESAMPLES)
    shares = [_seed_shares(rng, len(side[0])) for side in (before, after)]
    for old_SP, new_SP in zip(before, after, strict=True):
        problems = old_SP.shape[1]
        rows = max(1, 1_000_000 // problems)  # in slices: thousands of problems would not fit in memory at once
        for start in range(0, RESAMPLES, rows):
            part = slice(start, start + rows)
            delta_RP = shares[1][part] @ new_SP - shares[0][part] @ old_SP
            index = rng.integers(0, problems, delta_RP.shape)
            found_R[part] += np.take_along_axis(delta_RP, index, axis=1).mean(axis=1)
    return found_R


def _seed_shares(rng: np.random.Generator, seeds: int) -> Floats:
    """How much each seed counts in each resample."""
    if seeds == 1:
        return np.ones((RESAMPLES, 1))
    return rng.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES) / seeds
