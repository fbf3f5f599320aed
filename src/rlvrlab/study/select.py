"""Which arm wins: weighted, lexicographic or Pareto; ties go to the cheaper arm. Pure: scores in, decision out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.errors import UserError
from rlvrlab.evals.statistics import Difference, compare_suites, holm
from rlvrlab.study.measures import direction, is_cost
from rlvrlab.study.schema import Select

SAME_COST = 0.01
"""Relative difference below which two costs are one."""
COMBINED = "score"
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


@dataclass(frozen=True)
class Compared:
    """The leader against one other arm."""

    metric: str
    arm: str
    versus: str
    difference: Difference
    p_holm: float
    tied: bool

    def plain(self) -> dict[str, Any]:
        """The comparison as the decision log keeps it: one flat row."""
        whole = asdict(self)
        return {**{k: v for k, v in whole.items() if k != "difference"}, **self.difference.facts()}


@dataclass(frozen=True)
class Recommendation:
    """The arm a rule chooses, and the comparisons it rests on."""

    chosen: str
    runner_up: str | None
    significant: bool
    words: str
    comparisons: tuple[Compared, ...] = ()
    front: tuple[str, ...] | None = None
    score: Mapping[str, float] = field(default_factory=dict)


def choose(rule: Select, metrics: Mapping[str, float], candidates: Sequence[Candidate]) -> Recommendation:
    """`metrics` are the rule's own with their weights, or the usual ones where it names none."""
    if not candidates:
        raise UserError("no arm has a finished trial; nothing can be chosen")
    if len(candidates) == 1:
        only = candidates[0].arm
        return Recommendation(
            only, None, False, f"{only}: the only arm that finished, so nothing was compared", score={}
        )
    how = {"weighted": _weighted, "lexicographic": _lexicographic, "pareto": _pareto}[rule.rule]
    return how(_Contest(rule, metrics, candidates))


@dataclass
class _Contest:
    rule: Select
    metrics: Mapping[str, float]
    candidates: Sequence[Candidate]

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

    def matrix(self, arm: str, metric: str) -> Floats:
        """Seeds × shared problems, turned so that more is better."""
        rows = [[column[key] for key in self.common[metric]] for column in self.by_name[arm].scores[metric]]
        return direction(metric) * np.array(rows, dtype=np.float64)

    def value(self, arm: str, metric: str) -> float:
        """A metric's mean, turned so that more is better."""
        if is_cost(metric):
            return -float(self.by_name[arm].costs[metric.partition(".")[2]])
        return float(self.matrix(arm, metric).mean())

    def blocks(self, arm: str) -> Blocks:
        """Metrics times their weights; those over the same problems are added up to one block."""
        total = sum(self.metrics.values())
        blocks: dict[tuple[str, ...], Floats] = {}
        for metric, weight in self.metrics.items():
            key = tuple(self.common[metric])
            part = weight / total * self.matrix(arm, metric)
            blocks[key] = blocks[key] + part if key in blocks else part
        return list(blocks.values())

    def versus(self, metric: str, leader: str, others: Sequence[str]) -> list[Compared]:
        """The leader against each, p values Holm-adjusted together."""
        if is_cost(metric):  # counted, not sampled
            rows, a = [], self.value(leader, metric)
            for other in others:
                b = self.value(other, metric)
                tied = abs(a - b) <= max(SAME_COST * max(abs(a), abs(b)), self.rule.min_effect)
                exact = Difference(a - b, a - b, a - b, 0)
                rows.append(Compared(metric, leader, other, exact, 0.0, tied))
            return rows

        def blocks(arm: str) -> Blocks:
            return self.blocks(arm) if metric == COMBINED else [self.matrix(arm, metric)]

        made = [compare_blocks(blocks(other), blocks(leader)) for other in others]
        adjusted = holm([chance(one) for one in made])
        return [
            Compared(metric, leader, other, one, p, p >= self.rule.alpha or one.mean < self.rule.min_effect)
            for other, one, p in zip(others, made, adjusted, strict=True)
        ]

    def together(self, rows: Sequence[Compared]) -> list[Compared]:
        """p values Holm-adjusted over several metrics: any of them may decide, so all are chances of a false find."""
        sampled = [one for one in rows if one.difference.problems]
        adjusted = dict(zip(map(id, sampled), holm([chance(one.difference) for one in sampled]), strict=True))
        return [
            replace(one, p_holm=p, tied=p >= self.rule.alpha or one.difference.mean < self.rule.min_effect)
            if (p := adjusted.get(id(one))) is not None
            else one
            for one in rows
        ]

    def cheapest(self, arms: Sequence[str], key: Callable[[str], float]) -> str:
        """The least cost; of equal costs the highest `key`."""
        least = min(self.cost(arm) for arm in arms)
        return max((arm for arm in arms if self.cost(arm) <= least * (1 + SAME_COST)), key=key)

    def cost(self, arm: str) -> float:
        """What an arm costs, in the unit the rule breaks ties by."""
        return float(self.by_name[arm].costs[self.rule.cost])


def _weighted(contest: _Contest) -> Recommendation:
    value = {one.arm: score(contest.blocks(one.arm)) for one in contest.candidates}
    order = sorted(value, key=lambda arm: -value[arm])
    compared = contest.versus(COMBINED, order[0], order[1:])
    tied = [order[0], *(one.versus for one in compared if one.tied)]
    chosen = contest.cheapest(tied, value.__getitem__)
    runner_up = next(arm for arm in [*tied, *order] if arm != chosen)
    return Recommendation(
        chosen, runner_up, len(tied) == 1, _words(contest, chosen, order[0], tied), tuple(compared), None, value
    )


def _lexicographic(contest: _Contest) -> Recommendation:
    left = [one.arm for one in contest.candidates]
    compared: list[Compared] = []
    tied = left  # what no suite tells apart: a lower cost is a reason to take one, not a finding
    for metric in contest.metrics:
        leader = max(left, key=lambda arm: contest.value(arm, metric))
        rows = contest.versus(metric, leader, [arm for arm in left if arm != leader])
        compared += rows
        left = [leader, *(one.versus for one in rows if one.tied)]
        tied = tied if is_cost(metric) else left
        if len(left) == 1:
            break
    first = next(iter(contest.metrics))
    value = {arm: contest.value(arm, first) for arm in contest.by_name}
    chosen = contest.cheapest(left, value.__getitem__)
    order = sorted(value, key=lambda arm: -value[arm])
    runner_up = next(arm for arm in [*left, *tied, *order] if arm != chosen)
    if len(left) == 1 < len(tied):
        others = ", ".join(arm for arm in tied if arm != chosen)
        words = f"{chosen}: not distinguishable from {others} by any suite; taken for its lower {compared[-1].metric}"
    else:
        words = _words(contest, chosen, left[0], left)
    return Recommendation(chosen, runner_up, len(tied) == 1, words, tuple(compared), None, value)


def _pareto(contest: _Contest) -> Recommendation:
    arms = [one.arm for one in contest.candidates]
    compared: list[Compared] = []
    beaten: set[str] = set()
    values = {arm: [contest.value(arm, metric) for metric in contest.metrics] for arm in arms}
    for arm in arms:
        behind = [o for o in arms if o != arm and all(a >= b for a, b in zip(values[arm], values[o], strict=True))]
        rows = contest.together([one for metric in contest.metrics for one in contest.versus(metric, arm, behind)])
        for other in behind:
            own = [one for one in rows if one.versus == other]
            if any(not one.tied for one in own):
                beaten.add(other)
                compared += own
    front = [arm for arm in arms if arm not in beaten]
    sampled = {metric: weight for metric, weight in contest.metrics.items() if not is_cost(metric)}
    value = {arm: float(sum(w * contest.value(arm, metric) for metric, w in sampled.items())) for arm in arms}
    chosen = contest.cheapest(front, value.__getitem__)
    if not compared:  # nobody dominates anybody: show what was looked at
        rest = [arm for arm in arms if arm != chosen]
        compared = contest.together([one for m in contest.metrics for one in contest.versus(m, chosen, rest)])
    runner_up = next((arm for arm in [*front, *sorted(arms, key=lambda arm: -value[arm])] if arm != chosen), None)
    listed = ", ".join(front)
    words = f"{chosen}: alone on the front" if len(front) == 1 else f"{chosen}: the cheapest of the front ({listed})"
    shown = {one.versus for one in compared if one.arm == chosen and not one.tied and one.difference.problems}
    significant = len(front) == 1 and shown == {arm for arm in arms if arm != chosen}
    if len(front) == 1 and not significant:
        words += ", for its cost: no suite tells it from all others"
    return Recommendation(chosen, runner_up, significant, words, tuple(compared), tuple(front), value)


def chance(difference: Difference) -> float:
    """The p value; with two seeds that of the interval, which no table prints."""
    if difference.p is not None or difference.noise is None:
        return difference.p or 0.0
    return difference.noise.p()


def score(blocks: Blocks) -> float:
    """An arm's value: the sum over suites of its mean over seeds and problems."""
    return float(sum(block_SP.mean() for block_SP in blocks))


def compare_blocks(before: Blocks, after: Blocks) -> Difference:
    """How much higher `after` scores than `before`, paired over the same problems; seeds are the runs of both."""
    return compare_suites(before, after)


def _words(contest: _Contest, chosen: str, leader: str, tied: Sequence[str]) -> str:
    if len(tied) == 1:
        return f"{chosen}: better than every other arm"
    others = ", ".join(arm for arm in tied if arm != chosen)
    if contest.cost(chosen) < min(contest.cost(arm) for arm in tied if arm != chosen) * (1 - SAME_COST):
        lead = "" if chosen == leader else f" ({leader} leads, but not beyond chance and min_effect)"
        return f"{chosen}: not distinguishable from {others}{lead}; taken because it is cheaper ({contest.rule.cost})"
    return f"{chosen}: not distinguishable from {others}; taken because its value is the highest among the cheapest"
