"""Uncertainty of what was measured on finitely many problems.

Problems are the unit: samples of one problem are not independent, so everything that resamples, resamples problems.
Arrays: `score_P` one number per problem (a mean over its samples), P problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.errors import UserError
from rlvrlab.randomness import generator

Z95 = 1.959963984540054
Z80 = 0.8416212335729143
RESAMPLES = 10_000


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """Two policies on the same problems: after − before."""

    mean: float
    low: float
    high: float
    p: float
    """Two-sided; exact McNemar for right-or-wrong scores, sign-flip permutation otherwise."""
    detectable: float
    """Smallest true difference that a comparison of this size and noise would find 4 times out of 5."""
    problems: int


def wilson(successes: int, trials: int, z: float = Z95) -> Interval:
    """Wilson score interval of a proportion; (0, 1) when nothing was tried. Sound for small samples and at 0 or 1."""
    if trials == 0:
        return Interval(0.0, 1.0)
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Probability that k samples drawn without replacement hold a right one: 1 − C(n−c, k) / C(n, k)."""
    check_k(samples, k, correct)
    if samples - correct < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(samples - correct + 1, samples + 1))


def pass_hat_k(samples: int, correct: int, k: int) -> float:
    """Probability that all k samples are right: C(c, k) / C(n, k). Reliability, where pass@k is reach."""
    check_k(samples, k, correct)
    return math.comb(correct, k) / math.comb(samples, k)


def bootstrap(score_P: Floats | Sequence[float], *key: object, resamples: int = RESAMPLES) -> Interval:
    """Percentile interval of the mean, over problems."""
    scores = np.asarray(score_P, dtype=np.float64)
    if len(scores) == 0:
        return Interval(0.0, 1.0)
    low, high = np.percentile(_resampled_means(scores, resamples, *key), [2.5, 97.5])
    return Interval(float(low), float(high))


def compare(before_P: Floats | Sequence[float], after_P: Floats | Sequence[float], *key: object) -> Difference:
    """Paired comparison on the same problems, in the same order."""
    before, after = np.asarray(before_P, dtype=np.float64), np.asarray(after_P, dtype=np.float64)
    if before.shape != after.shape or len(before) == 0:
        raise UserError(
            f"compare: {len(before)} and {len(after)} problems; both sides need the same ones, at least one"
        )
    delta = after - before
    low, high = np.percentile(_resampled_means(delta, RESAMPLES, *key), [2.5, 97.5])
    binary = bool(np.isin(before, (0.0, 1.0)).all() and np.isin(after, (0.0, 1.0)).all())
    p = mcnemar(int((delta < 0).sum()), int((delta > 0).sum())) if binary else sign_flip(delta, *key)
    spread = float(delta.std(ddof=1)) if len(delta) > 1 else math.inf
    detectable = (Z95 + Z80) * spread / math.sqrt(len(delta))
    return Difference(float(delta.mean()), float(low), float(high), p, detectable, len(delta))


def compare_seeds(before_SP: Floats, after_SP: Floats, *key: object) -> Difference:
    """The same for several runs of each side (rows: seeds, columns: the same problems); seeds need not be as many.

    Both levels are resampled, problems for both sides together: the interval holds for new problems and new seeds. With
    one seed on each side there is nothing to say about seeds, and this is `compare`.
    """
    before_SP, after_SP = np.atleast_2d(before_SP), np.atleast_2d(after_SP)
    if len(before_SP) == len(after_SP) == 1:
        return compare(before_SP[0], after_SP[0], *key)
    if before_SP.shape[1] != after_SP.shape[1] or before_SP.shape[1] == 0:
        raise UserError(
            f"compare: {before_SP.shape[1]} and {after_SP.shape[1]} problems; both sides need the same, at least one"
        )
    rng, problems, means = generator(*key, "seeds"), before_SP.shape[1], []
    block = max(1, 1_000_000 // problems)  # as in _resampled_means
    for start in range(0, RESAMPLES, block):
        count = min(block, RESAMPLES - start)
        delta_RP = np.zeros((count, problems))
        for sign, side_SP in ((-1.0, before_SP), (1.0, after_SP)):
            seeds_RS = rng.multinomial(len(side_SP), np.full(len(side_SP), 1 / len(side_SP)), count) / len(side_SP)
            delta_RP += sign * (seeds_RS @ side_SP)
        index = rng.integers(0, problems, (count, problems))
        means.append(np.take_along_axis(delta_RP, index, axis=1).mean(axis=1))
    return resampled_difference(float(after_SP.mean() - before_SP.mean()), np.concatenate(means), problems)


def resampled_difference(mean: float, drawn_R: Floats, problems: int) -> Difference:
    """A difference and, from its resamples, a percentile interval, p (twice the smaller tail) and detectable size."""
    low, high = np.percentile(drawn_R, [2.5, 97.5])
    tail = min(int((drawn_R <= 0).sum()), int((drawn_R >= 0).sum()))
    p = min(1.0, 2 * (1 + tail) / (1 + len(drawn_R)))
    return Difference(mean, float(low), float(high), p, (Z95 + Z80) * float(drawn_R.std()), problems)


def mcnemar(lost: int, won: int) -> float:
    """Exact two-sided p of `lost` against `won` discordant problems under a fair coin."""
    n = lost + won
    tail = sum(math.comb(n, i) for i in range(min(lost, won) + 1)) / 2**n
    return min(1.0, 2 * tail)


def sign_flip(delta_P: Floats, *key: object, resamples: int = RESAMPLES) -> float:
    """Two-sided permutation p: how often random signs move the mean at least as far. Never exactly 0."""
    signs = generator(*key, "sign flip").integers(0, 2, (resamples, len(delta_P)), dtype=np.int8) * 2 - 1
    reached = np.abs(signs @ delta_P) >= abs(float(delta_P.sum())) - 1e-12
    return float((1 + reached.sum()) / (1 + resamples))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values of several comparisons; the chance of any false finding stays at the level."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = worst
    return adjusted


def _resampled_means(scores: Floats, resamples: int, *key: object) -> Floats:
    # In blocks: 10,000 resamples of thousands of problems would not fit in memory at once.
    rng, means = generator(*key, "bootstrap"), []
    block = max(1, 2_000_000 // len(scores))
    for start in range(0, resamples, block):
        index = rng.integers(0, len(scores), (min(block, resamples - start), len(scores)))
        means.append(scores[index].mean(axis=1))
    return np.concatenate(means)


def check_k(samples: int, k: int, correct: int = 0) -> None:
    """Refuse what has no meaning: more drawn than there are."""
    if not 1 <= k <= samples:
        raise UserError(
            f"k = {k} of {samples} samples: k must be between 1 and the number of samples; draw more samples"
        )
    if not 0 <= correct <= samples:
        raise UserError(f"{correct} correct of {samples} samples is impossible")
