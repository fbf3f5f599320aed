"""Intervals and p values once more, from what docs/statistics.md says in words, with scipy and nothing of rlvrlab."""

from __future__ import annotations

import math

import numpy as np
import scipy


class Expected:
    """h² = t(ν)² · V_seeds + t(P − 1)² · max(0, V_problems − V_answers), and at least t(P − 1)² · V_problems."""

    def __init__(self, before: np.ndarray, after: np.ndarray, share: bool, paired: bool = False) -> None:
        self.before, self.after, self.runs = before, after, (len(before), len(after))
        delta = after.mean(axis=0) - before.mean(axis=0)
        self.mean, problems = float(delta.mean()), len(delta)
        self.problems_df = max(1, problems - 1)
        if share:
            moved = delta[np.abs(delta) > 1e-12]
            size = math.sqrt(float((moved**2).mean())) if len(moved) else 1.0
            longer = np.append(delta, [size, -size])
            self.centre, self.by_problem = float(longer.mean()), float(longer.var()) / len(longer)
        else:
            self.centre = self.mean
            self.by_problem = float(delta.var(ddof=1)) / problems if problems > 1 else math.inf
        sides = [after - before] if paired else [before, after]
        parts = [(float(one.mean(axis=1).var(ddof=1)) / len(one), len(one) - 1) for one in sides if len(one) > 1]
        self.by_seed = sum(part for part, _ in parts)
        if not share and self.by_problem + self.by_seed < 1e-20:  # nothing varies: one problem won, and one lost
            largest = float(max(np.abs(before).max(), np.abs(after).max()))
            self.by_problem = 2 * largest**2 / (self.problems_df + 3) ** 2
        spread = [part**2 / df for part, df in parts if part]
        self.seeds_df = self.by_seed**2 / sum(spread) if spread else sum(df for _, df in parts)
        self.by_answer = sum(self.residual(one) for one in sides if len(one) > 1 and one.shape[1] > 1)

    @staticmethod
    def residual(score: np.ndarray) -> float:
        """Two-way analysis of variance: the mean square of what neither run nor problem explains, over all answers."""
        runs, problems = score.shape
        fitted = score.mean(axis=1)[:, None] + score.mean(axis=0)[None, :] - score.mean()
        return float(((score - fitted) ** 2).sum()) / ((runs - 1) * (problems - 1)) / (runs * problems)

    def half(self, level: float) -> float:
        of_problems = scipy.stats.t.ppf((1 + level) / 2, self.problems_df) ** 2
        least = of_problems * self.by_problem
        if not self.seeds_df:
            return math.sqrt(least)
        of_seeds = scipy.stats.t.ppf((1 + level) / 2, self.seeds_df) ** 2
        more = of_seeds * self.by_seed + of_problems * max(0.0, self.by_problem - self.by_answer)
        return math.sqrt(max(least, more))

    def p(self, tests: int) -> float | None:
        if 2 in self.runs:
            return None
        if self.centre == 0:
            return 1.0
        excess = lambda log_p: self.half(-math.expm1(log_p)) - abs(self.centre)  # noqa: E731
        if excess(math.log(1e-15)) < 0:
            return 0.0
        return min(1.0, tests * math.exp(scipy.optimize.brentq(excess, math.log(1e-15), -1e-9, xtol=1e-12)))


def jeffreys_or_wilson(right: int, n: int) -> tuple[float, float]:
    low, high = scipy.stats.binomtest(right, n).proportion_ci(method="wilson") if n else (0.0, 1.0)
    if 0 < right < min(5, n - right):
        low = min(low, scipy.stats.beta.ppf(0.025, right + 0.5, n - right + 0.5))
    if 0 < n - right < min(5, right):
        high = max(high, scipy.stats.beta.ppf(0.975, right + 0.5, n - right + 0.5))
    return max(0.0, low), min(1.0, high)


def arm_interval(score: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Of one arm's share, runs × problems, two runs or more: Wilson's with the trials that have the half-width found,
    and room for problems better or worse than any that was seen."""
    runs, problems = score.shape
    mean, by_problem = float(score.mean()), float(score.mean(axis=0).var(ddof=1)) / problems
    by_seed, by_answer = float(score.mean(axis=1).var(ddof=1)) / runs, Expected.residual(score)
    of_problems = scipy.stats.t.ppf((1 + level) / 2, problems - 1) ** 2
    of_seeds = scipy.stats.t.ppf((1 + level) / 2, runs - 1) ** 2
    more = of_seeds * by_seed + of_problems * max(0.0, by_problem - by_answer)
    half, z = math.sqrt(max(of_problems * by_problem, more)), scipy.stats.norm.ppf((1 + level) / 2)
    if half > 1e-9:
        trials = mean * (1 - mean) * z**2 / half**2
        centre = (mean + z**2 / (2 * trials)) / (1 + z**2 / trials)
        reach = z / (1 + z**2 / trials) * math.sqrt(mean * (1 - mean) / trials + z**2 / (4 * trials**2))
        low, high = max(0.0, centre - reach), min(1.0, centre + reach)
    else:
        low = high = mean
    overlooked = z**2 / (problems + z**2)
    least, most = score.mean(axis=0).min(), score.mean(axis=0).max()
    low = mean - math.hypot(mean - low, least * overlooked)
    high = mean + math.hypot(high - mean, (1 - most) * overlooked)
    return max(0.0, low), min(1.0, high)
