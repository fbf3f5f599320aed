"""Uncertainty of what was measured on finitely many problems, by finitely many training runs.

Two things are drawn by chance: problems, and the seeds of training runs. A seed is the unit of replication of a
comparison between recipes: with several runs on a side, the interval holds for new seeds and new problems. With one run
on each side nothing is known about seeds, and the interval holds for new problems only; `Difference.over` says which.
docs/statistics.md has the formulas and the measured coverage.

Arrays: `score_P` one number per problem (a mean over its samples), `score_SP` one row per seed. Intervals are
two-sided, 95 % unless a level is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.errors import UserError
from rlvrlab.evals.noise import LEVEL, Interval, Noise, added, never_certain, over_problems, over_seeds, residual
from rlvrlab.randomness import generator
from rlvrlab.student import beta_quantile, normal_quantile

RESAMPLES = 10_000
FEW = 5
"""Fewer right answers than this, or fewer wrong ones, are rare."""
Scores = Floats | Sequence[float]
LEAST_P = 0.0001
"""Below it a p value is not told exactly, as on the page (assets/dom.js)."""
MOST_SEEDS, MANY_SEEDS = 1000, 100
"""Where `seeds_needed` gives up in planning, and after a comparison."""


class Difference(NamedTuple):
    """Two policies on the same problems: after − before."""

    mean: float
    low: float
    high: float
    problems: int
    seeds: tuple[int, int] = (1, 1)
    """Runs before and after."""
    paired: bool = False
    """Whether run i before and run i after share their seed and were compared with each other."""
    tests: int = 1
    """How many comparisons interval and p are adjusted for together (Bonferroni); 1: not adjusted."""
    noise: Noise | None = None
    """What interval, p and power follow from; None where nothing is random."""

    @property
    def p(self) -> float | None:
        """Two-sided, below 0.05 exactly where the interval excludes 0; None with two seeds, too few to test."""
        if self.noise is None:
            return float(self.mean == 0)
        return None if 2 in self.seeds else min(1.0, self.tests * self.noise.p())

    @property
    def detectable(self) -> float | None:
        """Smallest true difference that a comparison of this size and noise would find 4 times out of 5.

        None where that is more than there can be, as it often is for shares with two seeds.
        """
        if self.noise is None:
            return 0.0
        least = self.noise.reach(1 - (1 - LEVEL) / self.tests)
        return least if least <= self.noise.bound else None

    @property
    def seeds_needed(self) -> int | None:
        """Runs on each side that would find a difference as large as this one 4 times out of 5; None: too many."""
        now = min(self.seeds)
        if self.noise is None or now < 2:
            return None
        level, wanted = 1 - (1 - LEVEL) / self.tests, abs(self.mean)
        return next((n for n in range(3, MANY_SEEDS) if self.noise.resized(now, n).reach(level) <= wanted), None)

    @property
    def over(self) -> str:
        """What the interval holds for: `problems`, or `seeds and problems`."""
        return "seeds and problems" if max(self.seeds) > 1 else "problems"

    @property
    def caution(self) -> str:
        """What a reader must know about the seeds, in words."""
        if max(self.seeds) == 1:
            return "One run on each side: intervals and p hold for new problems; how much seeds differ is not known."
        words = "Intervals hold for new seeds and new problems" + (", runs compared in pairs." if self.paired else ".")
        if 1 in self.seeds:
            words += " The side with one run is taken for the one policy it is."
        words += " Two seeds are too few for a p value." if 2 in self.seeds else ""
        if self.detectable is not None or min(self.seeds) < 2:
            return words
        needed = self.seeds_needed
        more = f"{needed} a side would find one of this size" if needed else f"{MANY_SEEDS} a side would not be enough"
        none = f"No difference would be found reliably with {min(self.seeds)} seeds, however large (no MDE)"
        return f"{words} {none}; {more}."

    @property
    def verdict(self) -> str:
        """`higher` or `lower` where the interval excludes 0, else `not shown`."""
        return Interval(self.low, self.high).verdict

    @property
    def p_words(self) -> str:
        """The p value as tables show it."""
        return p_cell(self.p)

    @property
    def p_told(self) -> str:
        """The p value within a sentence."""
        return p_told(self.p)

    def interval(self, level: float = LEVEL) -> Interval:
        """The interval of another level; where nothing is random (no noise), the difference itself."""
        return Interval(self.mean, self.mean) if self.noise is None else self.noise.interval(level)

    def adjusted(self, tests: int) -> Difference:
        """Interval and p as one of `tests` comparisons that are looked at together, by Bonferroni's rule."""
        low, high = self.interval(1 - (1 - LEVEL) / tests)
        return self._replace(low=low, high=high, tests=tests)

    def not_worse(self, margin: float, alpha: float = 1 - LEVEL) -> bool:
        """Non-inferiority: is it shown, at one-sided level alpha, that after is less than `margin` below before?"""
        return self.interval(1 - 2 * alpha).low > -margin

    def equivalent(self, margin: float, alpha: float = 1 - LEVEL) -> bool:
        """Two one-sided tests: is it shown that the two differ by less than `margin` either way?"""
        low, high = self.interval(1 - 2 * alpha)
        return -margin < low and high < margin

    def facts(self) -> dict[str, object]:
        """As plain JSON values, with what the interval holds for and what it is adjusted for in words."""
        kept = {name: value for name, value in self._asdict().items() if name != "noise"}
        kept |= {"p": self.p, "detectable": self.detectable, "level": LEVEL}
        return kept | {"over": self.over, "verdict": self.verdict, "caution": self.caution}


class Estimate(NamedTuple):
    """The mean of one arm with its interval."""

    value: float
    low: float
    high: float
    problems: int
    seeds: int
    spread: float | None
    """Standard deviation of the runs' means over seeds; None for a single run."""

    @property
    def over(self) -> str:
        """What the interval holds for: `problems`, or `seeds and problems`."""
        return "seeds and problems" if self.seeds > 1 else "problems"

    def named(self, name: str) -> dict[str, float]:
        """The mean under a name, and the ends of its interval under NAME_low and NAME_high."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def wilson(successes: int, trials: int, level: float = LEVEL) -> Interval:
    """Wilson score interval of a proportion; (0, 1) when nothing was tried. Sound for small samples and at 0 or 1.

    Where fewer than five are right, or wrong, the bound towards that edge is Jeffreys' if it is further out: Wilson's
    alone misses rare successes too often.
    """
    if trials == 0:
        return Interval(0.0, 1.0)
    low, high = _score_interval(successes / trials, trials, normal_quantile(level))
    misses, tail = trials - successes, (1 - level) / 2
    if 0 < successes < min(FEW, misses):
        low = min(low, beta_quantile(tail, successes + 0.5, misses + 0.5))
    if 0 < misses < min(FEW, successes):
        high = max(high, 1 - beta_quantile(tail, misses + 0.5, successes + 0.5))
    return Interval(low, high)


def proportion(successes: int, trials: int) -> Estimate:
    """The share of successes with its Wilson interval; 0 where nothing was tried."""
    return Estimate(successes / max(1, trials), *wilson(successes, trials), trials, 1, None)


def _score_interval(share: float, trials: float, z: float) -> Interval:
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def newcombe(before: tuple[float, Interval], after: tuple[float, Interval]) -> Interval:
    """The interval of after − before, of two shares that are known by their Wilson intervals alone.

    Newcombe 1998, method 10. Two intervals that touch can still differ beyond chance.
    """
    (old, old_ends), (new, new_ends) = before, after
    low = new - old - math.hypot(new - new_ends.low, old_ends.high - old)
    high = new - old + math.hypot(new_ends.high - new, old - old_ends.low)
    return Interval(low, high)


def estimate(score_SP: Scores, *, share: bool | None = None, level: float = LEVEL) -> Estimate:
    """The mean of one arm: a row per run (seed), a column per problem. A plain list is one run.

    `share`: the scores lie in [0, 1] by their nature (None: these do). Their interval is then Wilson's, with the number
    of trials that has the variance found: exactly Wilson's for right-or-wrong scores of one run, and honest where all
    are 0, all 1, or all the same partial credit.
    """
    scores_SP = np.atleast_2d(np.asarray(score_SP, dtype=np.float64))
    seeds, problems = scores_SP.shape
    if problems == 0:
        return Estimate(0.0, 0.0, 1.0, 0, seeds, None)
    share = bool((np.abs(scores_SP - 0.5) <= 0.5).all()) if share is None else share
    mean, means_S, score_P = float(scores_SP.mean()), scores_SP.mean(axis=1), scores_SP.mean(axis=0)
    spread = float(means_S.std(ddof=1)) if seeds > 1 else None
    kinds = np.unique(scores_SP.round(9))
    if share and seeds == 1 and len(kinds) < 3:
        # Scores are either `least` or `most`, as right or wrong ones are: a share between the two.
        least, most = float(kinds[0]), float(kinds[-1])
        low, high = wilson(int((score_P > (least + most) / 2).sum()), problems, level)
        interval = Interval(least + (most - least) * low, least + (most - least) * high)
    else:
        _, by_problem = over_problems(score_P, share=False)
        by_problem = _with_one_more(score_P, by_problem) if share and seeds == 1 else by_problem
        noise = Noise(mean, *over_seeds(means_S), *by_problem, residual(scores_SP))
        if not share:
            return Estimate(mean, *never_certain(noise, scores_SP).interval(level), problems, seeds, spread)
        interval = _share_interval(mean, noise.half_width(level), level)
    return Estimate(mean, *_with_overlooked(mean, interval, score_P, level), problems, seeds, spread)


def _with_one_more(score_P: Floats, by_problem: tuple[float, float]) -> tuple[float, float]:
    """Where fewer than five problems are far from the others, the variance had there been one more of them."""
    problems, (variance, df) = len(score_P), by_problem
    distance_P = np.abs(score_P - np.median(score_P))
    furthest = float(distance_P.max())
    if (distance_P > furthest / 2).sum() >= FEW:
        return by_problem
    return (variance * problems * df + furthest**2) / problems**2, df


def _share_interval(mean: float, half: float, level: float) -> Interval:
    """Wilson's interval with as many trials as give this half-width."""
    if math.isinf(half):
        return Interval(0.0, 1.0)
    if half < 1e-9:
        return Interval(mean, mean)
    z = normal_quantile(level)
    return _score_interval(mean, mean * (1 - mean) * z * z / (half * half), z)


def share_estimate(mean: float, half: float, score_P: Floats, level: float = LEVEL) -> Estimate:
    """A share whose t interval has this half-width, as one run on these problems has it: inside 0 and 1, and never
    certain."""
    interval = _with_overlooked(mean, _share_interval(mean, half, level), score_P, level)
    return Estimate(mean, *interval, len(score_P), 1, None)


def _with_overlooked(mean: float, interval: Interval, score_P: Floats, level: float) -> Interval:
    """The same, with room for problems worse than the worst seen or better than the best: right up to 0 and 1, and as
    many of them as can be overlooked by chance (Wilson's bound of 0 of n). An independent error, added as such."""
    overlooked = wilson(0, len(score_P), level).high
    least, most = float(score_P.min()), float(score_P.max())
    low = mean - math.hypot(mean - interval.low, least * overlooked) if least > 0 else interval.low
    high = mean + math.hypot(interval.high - mean, (1 - most) * overlooked) if most < 1 else interval.high
    return Interval(max(0.0, low), min(1.0, high))


def compare(before_P: Scores, after_P: Scores, *, share: bool | None = None) -> Difference:
    """One run on each side, paired by problem, in the same order: the interval holds for new problems."""
    return compare_seeds(before_P, after_P, share=share)


def compare_seeds(
    before_SP: Scores, after_SP: Scores, *, paired: bool = False, share: bool | None = None
) -> Difference:
    """Several runs on each side (rows: seeds, columns: the same problems); sides need not have as many.

    `paired`: row i of both sides has the same seed. One run against several is taken for the one policy it is (a base
    model): the interval then holds for new seeds of the other side.
    """
    return compare_suites([before_SP], [after_SP], paired=paired, share=share)


def compare_suites(
    before: Sequence[Scores], after: Sequence[Scores], *, paired: bool = False, share: bool | None = None
) -> Difference:
    """The same for the sum over several sets of problems (strata), each an array of the same runs × its problems.

    `share`: scores lie in [0, 1], times a weight that is at most 1 (None: these do).
    """
    old, new = ([np.atleast_2d(np.asarray(one, dtype=np.float64)) for one in side] for side in (before, after))
    sizes, seeds = [block.shape[1] for block in old], (len(old[0]), len(new[0]))
    if sizes != [block.shape[1] for block in new] or 0 in sizes:
        told = [block.shape[1] for block in new]
        raise UserError(f"compare: {sizes} and {told} problems; both sides need the same ones, at least one")
    if paired and seeds[0] != seeds[1]:
        raise UserError(f"compare: {seeds[0]} and {seeds[1]} runs; pairs of seeds need as many on both sides")
    share = all(bool((np.abs(block) <= 1).all()) for block in (*old, *new)) if share is None else share
    noise = _noise(old, new, paired, share)
    mean = float(sum(b.mean() - a.mean() for a, b in zip(old, new, strict=True)))
    return Difference(mean, *noise.interval(), sum(sizes), seeds, paired and seeds[0] > 1, noise=noise)


def _noise(old: Sequence[Floats], new: Sequence[Floats], paired: bool, share: bool) -> Noise:
    both = list(zip(old, new, strict=True))
    centres, by_problem = zip(*(over_problems(b.mean(axis=0) - a.mean(axis=0), share) for a, b in both), strict=True)
    sides = [[b - a for a, b in both]] if paired else [old, new]
    noise = Noise(
        sum(centres),
        *added([over_seeds(np.sum([block.mean(axis=1) for block in side], axis=0)) for side in sides]),
        *added(by_problem),
        shared=sum(residual(block) for side in sides for block in side),
        bound=float(len(both)) if share else math.inf,
    )
    return noise if share else never_certain(noise, *old, *new)


def seeds_needed(effect: float, spread: float, problems: int) -> int | None:
    """The fewest runs on each side, 3 or more, that find a true `effect` 4 times out of 5; None: no number would.

    `spread` is the standard deviation of run means over seeds as it was measured on so many problems.
    """
    if problems < 2:
        raise UserError(f"{problems} problems: two of each, seeds and problems, are the least to plan with")
    planned = ((n, Noise(0.0, 2 * spread**2 / n, 2 * n - 2, 0.0, problems - 1)) for n in range(3, MOST_SEEDS))
    return next((seeds for seeds, noise in planned if noise.reach() <= effect), None)


def sign_flip(delta_P: Floats, *key: object, resamples: int = RESAMPLES) -> float:
    """Two-sided permutation p: how often random signs move the mean at least as far. Never exactly 0."""
    signs = generator(*key, "sign flip").integers(0, 2, (resamples, len(delta_P)), dtype=np.int8) * 2 - 1
    reached = np.abs(signs @ delta_P) >= abs(float(delta_P.sum())) - 1e-12
    return float((1 + reached.sum()) / (1 + resamples))


def p_cell(p: float | None) -> str:
    """A p value for a column: two digits, none below LEAST_P, which no normal approximation is good for."""
    return "–" if p is None else f"< {LEAST_P}" if p < LEAST_P else f"{p:.2g}"


def p_told(p: float | None) -> str:
    """A p value for a sentence, as `p = 0.038` or `p < 0.0001`."""
    cell = p_cell(p)
    return f"p {cell}" if cell.startswith("<") else f"p = {cell}"


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values of several comparisons; the chance of any false finding stays at the level."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = worst
    return adjusted
