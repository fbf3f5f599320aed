"""Arms against each other on the problems that all of them answered: means, intervals, costs, and no rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.errors import UserError
from rlvrlab.evals.statistics import Difference, compare_suites
from rlvrlab.study.looks import level_of
from rlvrlab.study.measures import describe, difference_words, direction, is_cost
from rlvrlab.study.power import Size, enough
from rlvrlab.study.schema import Select

SAME_COST = 0.01
"""Relative difference below which two costs are one."""
COMBINED = "score"
Outcome = Literal["better", "equivalent", "undecided"]
Blocks = Sequence[Floats]
"""One array (an arm's seeds × the problems that all arms share) per suite; its score is the sum of their means."""


@dataclass(frozen=True)
class Candidate:
    """An arm with its finished trials."""

    arm: str
    trials: tuple[str, ...]
    scores: Mapping[str, Sequence[Mapping[str, float]]]
    """Metric -> one {problem: score} per trial."""
    costs: Mapping[str, float]
    """tokens, answers, seconds of one trial's training, mean over seeds."""
    seeds: tuple[int, ...] = ()
    """Of the trials, in their order; needed only where arms are compared seed by seed."""


@dataclass(frozen=True)
class Compared:
    """The leader against one other arm."""

    metric: str
    arm: str
    versus: str
    outcome: Outcome
    mean: float
    low: float
    high: float
    p: float | None
    """Two-sided, adjusted for all pairs of arms, metrics and looks; None with two seeds, too few; of a cost 0 or 1."""
    detectable: float | None
    """The smallest true difference that a comparison like this would show 4 times out of 5; None: no possible one."""
    problems: int
    """0 for a cost, which is counted and not sampled."""
    seeds: int
    share: bool = True
    """Whether it is told in points; else in the metric's own unit."""
    enough: Size | None = None
    """The size that would decide an undecided comparison; None where it is decided, or none was found."""
    scatter: float | None = None
    """The standard deviation over seeds that was seen, of both arms together: what a plan assumes as seed_spread."""

    enough_undeclared: Size | None = None
    """The same at a look that was not declared, which has half the level."""

    def plain(self) -> dict[str, Any]:
        """The comparison as the decision log keeps it: one flat row."""
        sizes = {"enough": self.enough, "enough_undeclared": self.enough_undeclared}
        row = {name: value for name, value in self.__dict__.items() if name not in sizes}
        return {**row, **{name: size._asdict() if size else None for name, size in sizes.items()}}

    @property
    def text(self) -> str:
        """The other arm with how far it is behind: `a +5.0 [−1.0, +11.0] points`."""
        return f"{self.versus} {self.lead}"

    @property
    def lead(self) -> str:
        """How far the other arm is behind."""
        return difference_words(self.mean, self.low, self.high, self.share)


def level(rule: Select, arms: int, metrics: int, undeclared: int = 0) -> float:
    """The level of one comparison: `alpha` shared by all pairs of arms, metrics that are asked and looks."""
    asked = 1 if rule.rule == "weighted" else max(1, metrics)
    return level_of(rule.alpha, 1 + rule.extend, undeclared) / (max(1, arms * (arms - 1) // 2) * asked)


@dataclass
class Contest:
    """The candidates of a stage on the problems that all of them answered."""

    rule: Select
    metrics: Mapping[str, float]
    candidates: Sequence[Candidate]
    arms: int
    undeclared: int = 0
    """Rounds of looks that nobody declared, this one included."""

    def __post_init__(self) -> None:
        self.by_name = {one.arm: one for one in self.candidates}
        self.common: dict[str, list[str]] = {}
        for metric in self.metrics:
            if is_cost(metric):
                continue
            columns = [column for one in self.candidates for column in one.scores.get(metric, ({},))]
            self.common[metric] = [key for key in columns[0] if all(key in column for column in columns)]
            if not self.common[metric]:
                raise UserError(f"{metric}: the arms share no judged problem; look at their evaluations")

    @cached_property
    def alpha(self) -> float:
        """The level of one comparison."""
        return level(self.rule, self.arms, len(self.common), self.undeclared)

    @cached_property
    def runs(self) -> dict[str, Sequence[int]]:
        """The rows of each arm that count: all of its trials, or where pairs are compared those of shared seeds."""
        if not self.rule.paired:
            return {one.arm: range(len(one.trials)) for one in self.candidates}
        shared = [seed for seed in self.candidates[0].seeds if all(seed in one.seeds for one in self.candidates)]
        if not shared:
            raise UserError("the arms share no finished seed, and select.paired compares them seed by seed")
        return {one.arm: [one.seeds.index(seed) for seed in shared] for one in self.candidates}

    @cached_property
    def alike(self) -> tuple[tuple[str, ...], ...]:
        """Groups of arms with the same score on every problem in every trial: what differs had no effect that shows."""
        groups: dict[tuple[bytes, ...], list[str]] = {}
        for arm in self.by_name if self.common else ():
            groups.setdefault(tuple(self.matrix(arm, metric).tobytes() for metric in self.common), []).append(arm)
        return tuple(tuple(arms) for arms in groups.values() if len(arms) > 1)

    def matrix(self, arm: str, metric: str) -> Floats:
        """Seeds × shared problems, turned so that more is better."""
        columns = self.by_name[arm].scores[metric]
        rows = [[columns[run][key] for key in self.common[metric]] for run in self.runs[arm]]
        return direction(metric) * np.array(rows, dtype=np.float64)

    def value(self, arm: str, metric: str) -> float:
        """A metric's mean, turned so that more is better."""
        if is_cost(metric):
            return -float(self.by_name[arm].costs[metric.partition(".")[2]])
        return float(self.matrix(arm, metric).mean())

    def combined(self, arm: str) -> Blocks:
        """Metrics times their weights; those over the same problems are added up to one block."""
        total = sum(weight for metric, weight in self.metrics.items() if not is_cost(metric))
        blocks: dict[tuple[str, ...], Floats] = {}
        for metric, keys in self.common.items():
            part = self.metrics[metric] / total * self.matrix(arm, metric)
            blocks[tuple(keys)] = blocks[tuple(keys)] + part if tuple(keys) in blocks else part
        return list(blocks.values())

    def versus(self, metric: str, leader: str, others: Sequence[str]) -> list[Compared]:
        """The leader against each of the others by one metric, or by the weighted score."""
        if is_cost(metric):
            return [self._priced(metric, leader, other) for other in others]

        def blocks(arm: str) -> Blocks:
            return self.combined(arm) if metric == COMBINED else [self.matrix(arm, metric)]

        asked = self.common if metric == COMBINED else [metric]
        share = all(describe(one)["unit"] == "share" for one in asked)
        paired = self.rule.paired
        found = [compare_suites(blocks(other), blocks(leader), paired=paired, share=share) for other in others]
        return [self._judged(metric, leader, other, one, share) for other, one in zip(others, found, strict=True)]

    def _judged(self, metric: str, leader: str, other: str, found: Difference, share: bool) -> Compared:
        assert found.noise is not None
        low, high = found.interval(1 - self.alpha)
        outcome: Outcome = "undecided"
        if -self.rule.margin < low and high < self.rule.margin:
            outcome = "equivalent"
        elif low > 0:
            outcome = "better"
        sizes = [enough(found, self.rule.margin, self.alpha / share) for share in (1, 2) if outcome == "undecided"]
        p = None if found.p is None else min(1.0, found.p * self.rule.alpha / self.alpha)
        reach = found.noise.reach(1 - self.alpha)
        least = reach if reach <= found.noise.bound else None
        seeds = min(found.seeds)
        scatter = math.sqrt(found.noise.seeds * seeds / 2) if found.noise.seeds_df else None
        return Compared(metric, leader, other, outcome, found.mean, low, high, p, least, found.problems, seeds, share,
                        sizes[0] if sizes else None, scatter, sizes[1] if sizes else None)  # fmt: skip

    def _priced(self, metric: str, leader: str, other: str) -> Compared:
        """Two costs, which are counted and not sampled."""
        a, b = self.value(leader, metric), self.value(other, metric)
        same = abs(a - b) <= SAME_COST * max(abs(a), abs(b))
        outcome: Outcome = "equivalent" if same else "better" if a > b else "undecided"
        return Compared(metric, leader, other, outcome, a - b, a - b, a - b, float(same), 0.0, 0, 0, share=False)

    def cost(self, arm: str) -> float:
        """What the rule calls the cost of an arm."""
        return float(self.by_name[arm].costs[self.rule.cost])

    def cheapest(self, arms: Sequence[str], value: Callable[[str], float]) -> str:
        """The cheapest; of those that cost the same the one of the highest value."""
        least = min(map(self.cost, arms))
        return max((arm for arm in arms if self.cost(arm) <= least * (1 + SAME_COST)), key=value)


def score(blocks: Blocks) -> float:
    """An arm's value: the sum over suites of its mean over seeds and problems."""
    return float(sum(block_SP.mean() for block_SP in blocks))
