"""Where the uncertainty of a mean comes from: the seeds of training runs, the problems, and single answers.

Arrays: one row per seed (S), one column per problem (P).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.student import t_quantile, t_shift, t_tails

LEVEL = 0.95
POWER = 0.8
LEAST_P = 1e-15
"""Smaller p values over seeds are told as this."""


class Interval(NamedTuple):
    """Both ends; 95 % unless said otherwise."""

    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Of a difference: `higher` or `lower` where the interval excludes 0, else `not shown`."""
        return "higher" if self.low > 0 else "lower" if self.high < 0 else "not shown"


class Noise(NamedTuple):
    """The variance of a mean over seeds and problems, in parts: enough for an interval of any level."""

    centre: float
    """The middle of the interval: the mean, drawn towards 0 by the two made-up problems (see `over_problems`)."""
    seeds: float
    """Variance of the mean because of the seeds, from the spread of the runs' means; 0 with a single run."""
    seeds_df: float
    """Its degrees of freedom; 0 where no side has two runs."""
    problems: float
    """Variance of the mean because of the problems, from the spread of the problems' means over seeds."""
    problems_df: float
    shared: float = 0.0
    """Chance of single answers, which both of the above contain: counted once."""
    bound: float = math.inf
    """The largest difference there can be, where that is known: 1 for shares."""

    def half_width(self, level: float = LEVEL) -> float:
        """The t intervals of the two sources, added as independent errors are; never less than problems alone give."""
        return math.sqrt(sum(square for square, _ in self._squares(level)))

    def _squares(self, level: float) -> list[tuple[float, float]]:
        """What each source adds to the square of the half-width, with its degrees of freedom."""
        problems = t_quantile(level, self.problems_df) ** 2
        alone = problems * self.problems, self.problems_df
        if not self.seeds_df:
            return [alone]
        seeds = t_quantile(level, self.seeds_df) ** 2 * self.seeds, self.seeds_df
        rest = problems * max(0.0, self.problems - self.shared), self.problems_df
        return [alone] if alone[0] > seeds[0] + rest[0] else [seeds, rest]

    @property
    def whole(self) -> float:
        """The variance of the mean for all reasons."""
        return (
            max(self.problems, self.seeds + max(0.0, self.problems - self.shared)) if self.seeds_df else self.problems
        )

    def interval(self, level: float = LEVEL) -> Interval:
        """The interval of this level."""
        half = self.half_width(level)
        return Interval(max(-self.bound, self.centre - half), min(self.bound, self.centre + half))

    def reach(self, level: float = LEVEL) -> float:
        """The smallest true difference that is shown at this level 4 times out of 5.

        The half-width varies from sample to sample as well: with few degrees of freedom a lucky narrow one is no rule.
        Two sources vary like one with degrees of freedom between theirs (Welch–Satterthwaite), which tells up to 5 %
        too much where one of them has a single degree of freedom.
        """
        square, df = added(self._squares(level))
        if square == 0 or math.isinf(square):
            return math.sqrt(square)
        return math.sqrt(self.whole) * t_shift(math.sqrt(square / self.whole), df, POWER)

    def resized(self, before: int, after: int, times: int = 1) -> Noise:
        """The same noise had there been `after` runs on each side instead of `before`, and `times` the problems."""
        shared = self.shared * before / (after * times)
        problems = max(0.0, self.problems - self.shared) / times + shared
        df = self.seeds_df * (after - 1) / (before - 1) if before > 1 else self.seeds_df
        return self._replace(seeds=self.seeds * before / after, seeds_df=df, problems=problems, shared=shared,
                             problems_df=self.problems_df * times)  # fmt: skip

    def p(self) -> float:
        """One minus the highest level at which the interval still excludes 0, so that the two never disagree."""
        size = abs(self.centre)
        if size == 0:
            return 1.0
        if not self.seeds_df:
            return t_tails(size / math.sqrt(self.problems), self.problems_df) if self.problems else 0.0
        return self._inverted(size)

    def _inverted(self, size: float) -> float:
        """The p at which the half-width is `size`, by false position on ln p between two bounds in closed form."""
        parts = ((self.seeds, self.seeds_df), (self.problems, self.problems_df))
        one = max(t_tails(_ratio(size, variance), df) for variance, df in parts)
        most = t_tails(_ratio(size, self.whole), min(self.seeds_df, self.problems_df))
        low, high = math.log(max(one, LEAST_P)), math.log(max(most, LEAST_P))
        above, below = self._excess(low, size), self._excess(high, size)
        if above < 1e-9:  # one source alone decides, as problems do where runs differ less than their answers
            return math.exp(low)
        while below < 0 and high - low > 1e-9:
            middle = low + (high - low) * min(0.95, max(0.05, above / (above - below)))
            excess = self._excess(middle, size)
            low, above, high, below = (middle, excess, high, below) if excess > 0 else (low, above, middle, excess)
        return math.exp(high)

    def _excess(self, log_p: float, size: float) -> float:
        """How far the interval of level 1 − p reaches beyond `size`, as a logarithm."""
        half = self.half_width(-math.expm1(min(log_p, -1e-12)))
        return math.log(half / size) if half else -math.inf


def _ratio(size: float, variance: float) -> float:
    return size / math.sqrt(variance) if variance else math.inf


def over_problems(delta_P: Floats, share: bool) -> tuple[float, tuple[float, float]]:
    """Centre of the interval of a mean difference; its variance because of the problems drawn, degrees of freedom.

    For shares two made-up problems are added, one won and one lost (Bonett & Price 2012; for scores other than 0 and 1,
    by the root mean square of the differences there are): rare differences, and none at all, have honest intervals.
    """
    problems, total, squares = len(delta_P), float(delta_P.sum()), float(delta_P @ delta_P)
    df = max(1, problems - 1)
    if not share:
        return total / problems, (float(delta_P.var(ddof=1)) / problems if problems > 1 else math.inf, df)
    differing = int((np.abs(delta_P) > 1e-12).sum())
    made_up = squares / differing if differing else 1.0
    problems += 2
    centre = total / problems
    return centre, (((squares + 2 * made_up) / problems - centre * centre) / problems, df)


def never_certain(noise: Noise, *blocks: Floats) -> Noise:
    """The same, or where no score varies at all, what one problem won and one lost by the largest score would add.

    `blocks` are the scores. Equal numbers of tokens, say, tell nothing about a problem that has another one.
    """
    largest = max(float(np.abs(block).max()) for block in blocks)
    if noise.seeds + noise.problems > (1e-12 * largest) ** 2:
        return noise
    return noise._replace(problems=2 * (largest or 1.0) ** 2 / (noise.problems_df + 3) ** 2)


def over_seeds(means_S: Floats) -> tuple[float, float]:
    """Variance of a side's mean because of its seeds, and the degrees of freedom; of one run nothing is known."""
    return (float(means_S.var(ddof=1)) / len(means_S), len(means_S) - 1) if len(means_S) > 1 else (0.0, 0)


def added(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Variances of independent errors added, with their degrees of freedom (Welch–Satterthwaite)."""
    variance = sum(part for part, _ in parts)
    if variance == 0 or math.isinf(variance):
        return variance, sum(df for _, df in parts)
    return variance, variance**2 / sum(part**2 / df for part, df in parts if part)


def residual(score_SP: Floats) -> float:
    """Variance of the mean because of single answers: what neither the run nor the problem explains."""
    seeds, problems = score_SP.shape
    if seeds < 2 or problems < 2:
        return 0.0
    rest_SP = score_SP - score_SP.mean(axis=1, keepdims=True) - score_SP.mean(axis=0) + score_SP.mean()
    return float((rest_SP**2).sum()) / ((seeds - 1) * (problems - 1) * seeds * problems)
