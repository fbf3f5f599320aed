"""How much better one arm is than another, for new seeds and new problems; and what a plan could show at all.

Two things vary: another seed trains another policy, and other problems are easier or harder. Their variances are added,

    se² = s_a²/S_a + s_b²/S_b + Σ_suites v/P,

with s² the variance over an arm's seeds (their mean scores), v that of the paired difference over problems, S seeds and
P problems, and the interval is Student's t with Satterthwaite's degrees of freedom: with few seeds it is wide, as it
must be. What a seed does to single problems is in both parts, so the interval is somewhat too wide. With one seed on
each side nothing is known about seeds, and the interval speaks of problems only.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.evals.statistics import Z80
from rlvrlab.study.student import student_quantile, student_tail

Blocks = Sequence[Floats]
"""One array (an arm's seeds × the problems that all arms share) per suite; its score is the sum of their means."""
MOST_SEEDS, MOST_TIMES = 100, 64
"""How far it is looked for a size that would decide: seeds, and times the problems."""


class Spread(NamedTuple):
    """What makes a difference uncertain, each as a variance of one unit."""

    seeds: tuple[tuple[float, int], ...]
    """(variance over seeds, number of seeds) of each side; empty where seeds say nothing."""
    problems: tuple[tuple[float, int], ...]
    """(variance over problems, number of problems) of each suite."""

    def error(self) -> tuple[float, float]:
        """Standard error and degrees of freedom."""
        parts = [(variance / count, count - 1) for variance, count in (*self.seeds, *self.problems)]
        total = sum(part for part, _ in parts)
        below = sum(part * part / max(freedom, 1) for part, freedom in parts)
        return math.sqrt(total), total * total / below if below > 0 else math.inf

    def sized(self, seeds: int, times: int) -> Spread:
        """The same with another number of seeds and `times` as many problems."""
        more = tuple((variance, seeds) for variance, _ in self.seeds)
        return Spread(more, tuple((variance, times * count) for variance, count in self.problems))

    def reach(self, alpha: float) -> float:
        """The smallest true difference that is shown at level `alpha`, two-sided, 4 times out of 5."""
        error, freedom = self.error()
        return (student_quantile(1 - alpha / 2, freedom) + Z80) * error


class Contrast(NamedTuple):
    """One arm minus another."""

    mean: float
    low: float
    high: float
    p: float
    """Two-sided, of this comparison alone."""
    spread: Spread
    problems: int
    seeds: int
    """Of the side that has fewer."""


def contrast(before: Blocks, after: Blocks, alpha: float, spans: Sequence[float]) -> Contrast:
    """`after` − `before` with a 1 − `alpha` interval; `spans`: the largest difference one problem can make, by suite.

    Two made-up problems, one gained and one lost by a whole span, join each suite's variance (Bonett and Price, 2012):
    without them two arms that answer every problem alike would differ by exactly nothing.
    """
    mean = score(after) - score(before)
    sides = [sum(block_SP.mean(axis=1) for block_SP in side) for side in (before, after)]
    counts = [len(side_S) for side_S in sides]
    known = [float(side_S.var(ddof=1)) for side_S in sides if len(side_S) > 1]
    variances = [float(side_S.var(ddof=1)) if len(side_S) > 1 else known[0] for side_S in sides] if known else []
    problems = []
    for old_SP, new_SP, span in zip(before, after, spans, strict=True):
        delta_P = new_SP.mean(axis=0) - old_SP.mean(axis=0)
        squares = float(((delta_P - delta_P.mean()) ** 2).sum()) + 2 * span**2
        problems.append((squares / (len(delta_P) + 1), len(delta_P)))
    spread = Spread(tuple(zip(variances, counts, strict=True)) if variances else (), tuple(problems))
    error, freedom = spread.error()
    half = student_quantile(1 - alpha / 2, freedom) * error
    p = 2 * student_tail(abs(mean) / error, freedom) if error > 0 else float(mean == 0)
    return Contrast(mean, mean - half, mean + half, p, spread, sum(count for _, count in problems), min(counts))


def score(blocks: Blocks) -> float:
    """An arm's value: the sum over suites of its mean over seeds and problems."""
    return float(sum(block_SP.mean() for block_SP in blocks))


def interval(score_SP: Floats, span: float, alpha: float = 0.05) -> tuple[float, float]:
    """The interval of one arm's mean, for new seeds and new problems alike."""
    found = contrast([np.zeros((1, score_SP.shape[1]))], [score_SP], alpha, [span])
    if len(score_SP) > 1:  # the side of zeros has no seeds: what it was lent is taken back
        own = Spread(found.spread.seeds[1:], found.spread.problems)
        error, freedom = own.error()
        half = student_quantile(1 - alpha / 2, freedom) * error
        return found.mean - half, found.mean + half
    return found.low, found.high


class Size(NamedTuple):
    """A study that would decide 4 times out of 5, were the difference what it looks like."""

    seeds: int
    problems: int


def enough(found: Contrast, margin: float, alpha: float) -> Size | None:
    """How many seeds, and where they do not suffice problems, would show a difference or equivalence."""
    wanted = max(abs(found.mean), margin - abs(found.mean))
    if wanted <= 0:
        return None
    most = MOST_SEEDS if found.spread.seeds else found.seeds
    times = 1
    while times <= MOST_TIMES and found.spread.sized(most, times).reach(alpha) > wanted:
        times *= 2
    if times > MOST_TIMES:
        return None
    sizes = range(found.seeds, most + 1)  # every seed more shows smaller differences
    fits = bisect_left(sizes, True, key=lambda seeds: found.spread.sized(seeds, times).reach(alpha) <= wanted)
    return Size(sizes[fits], times * found.problems)


def planned_reach(seeds: int, problems: Sequence[tuple[float, int]], seed_spread: float, alpha: float) -> float:
    """What a comparison could show before anything was run.

    `problems` are (weight, number) of each suite; half of all answers are taken to be right, independently in the two
    arms. `seed_spread` is the standard deviation over seeds that is assumed; one seed says nothing about it.
    """
    variance = seed_spread**2
    lent = ((variance, seeds), (variance, seeds)) if seeds > 1 else ()
    return Spread(lent, tuple((0.5 * weight**2, count) for weight, count in problems)).reach(alpha)
