"""Which arm wins: weighted, lexicographic, Pareto or balanced. Pure: scores in, decision out.

The arm with the highest mean leads, and its lead over every other arm has an interval at a level shared by all pairs of
arms, metrics and looks (Bonferroni), since who leads is seen in the same data. The interval alone decides:

    equivalent   both bounds are within the margin: the arms differ by less than anybody cares about
    better       its lower bound is above 0
    undecided    neither

Among the leader and what is equivalent to it the cheapest arm is taken. Where any arm is undecided the leader is taken:
a lower cost is no reason to take a worse mean that was not shown to be as good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.errors import UserError
from rlvrlab.evals.statistics import Difference, compare_suites
from rlvrlab.study.measures import describe, difference_words, direction, is_cost, size_words
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

    def plain(self) -> dict[str, Any]:
        """The comparison as the decision log keeps it: one flat row."""
        row = {name: value for name, value in self.__dict__.items() if name != "enough"}
        return {**row, "enough": self.enough._asdict() if self.enough else None}

    @property
    def text(self) -> str:
        """The other arm with how far it is behind: `a +5.0 [−1.0, +11.0] points`."""
        return f"{self.versus} {self.lead}"

    @property
    def lead(self) -> str:
        """How far the other arm is behind."""
        return difference_words(self.mean, self.low, self.high, self.share)


@dataclass(frozen=True)
class Recommendation:
    """The arm a rule chooses, and the comparisons it rests on."""

    chosen: str
    runner_up: str | None
    outcome: Outcome | Literal["alone"]
    words: str
    comparisons: tuple[Compared, ...] = ()
    front: tuple[str, ...] | None = None
    score: Mapping[str, float] = field(default_factory=dict)
    alike: tuple[tuple[str, ...], ...] = ()
    """Groups of arms that scored the same on every problem in every trial."""


def choose(
    rule: Select, metrics: Mapping[str, float], candidates: Sequence[Candidate], arms: int | None = None
) -> Recommendation:
    """`metrics` are the rule's own with their weights, or the usual ones; `arms`: how many there were at first."""
    if not candidates:
        raise UserError("no arm has a finished trial; nothing can be chosen")
    if len(candidates) == 1:
        only = candidates[0].arm
        return Recommendation(only, None, "alone", f"{only}: the only arm that finished, so nothing was compared")
    rules = {"weighted": _weighted, "lexicographic": _lexicographic, "pareto": _pareto, "balanced": _balanced}
    contest = Contest(rule, metrics, candidates, arms or len(candidates))
    found = rules[rule.rule](contest)
    words = "; ".join([found.words, *map(alike_words, contest.alike)])
    return replace(found, words=words, alike=contest.alike)


def level(rule: Select, arms: int, metrics: int) -> float:
    """The level of one comparison: `alpha` shared by all pairs of arms, metrics that are asked and looks."""
    asked = 1 if rule.rule == "weighted" else max(1, metrics)
    return rule.alpha / (max(1, arms * (arms - 1) // 2) * asked * (1 + rule.extend))


@dataclass
class Contest:
    """The candidates of a stage on the problems that all of them answered."""

    rule: Select
    metrics: Mapping[str, float]
    candidates: Sequence[Candidate]
    arms: int

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
        return level(self.rule, self.arms, len(self.common))

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
        size = enough(found, self.rule.margin, self.alpha) if outcome == "undecided" else None
        p = None if found.p is None else min(1.0, found.p * self.rule.alpha / self.alpha)
        reach = found.noise.reach(1 - self.alpha)
        least = reach if reach <= found.noise.bound else None
        return Compared(metric, leader, other, outcome, found.mean, low, high, p, least, found.problems,
                        min(found.seeds), share, size)  # fmt: skip

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


def _settled(contest: Contest, leader: str, rows: Sequence[Compared], value: Callable[[str], float]) -> tuple[str, str]:
    """The arm to take, and the decision in one sentence, from the leader's comparisons with all others."""
    open_rows = [one for one in rows if one.outcome == "undecided"]
    even = [one for one in rows if one.outcome == "equivalent"]
    if open_rows:
        return leader, _undecided_words(leader, open_rows)
    if not even:
        return leader, f"{leader}: better than every other arm; ahead of {', '.join(one.text for one in rows)}"
    chosen = contest.cheapest([leader, *(one.versus for one in even)], value)
    margin = f"{100 * contest.rule.margin:g} points" if even[0].share else f"{contest.rule.margin:g}"
    within = f"within the margin of {margin}"
    others = ", ".join(one.text for one in even)
    if chosen == leader:
        return leader, f"{leader}: ahead of {others}, {within}; taken because nothing equivalent is cheaper"
    row = next(one for one in even if one.versus == chosen)
    how = f"{chosen}: equivalent to {leader}, which leads by {row.lead}, {within}"
    return chosen, f"{how}; taken because it is cheaper ({contest.rule.cost})"


def alike_words(arms: Sequence[str]) -> str:
    """That arms cannot be told apart by what they scored, whatever number of seeds would decide about the others."""
    same = f"{', '.join(arms[:-1])} and {arms[-1]} scored the same on every problem in every trial"
    return f"{same}, so more seeds are not expected to tell them apart"


def _undecided_words(leader: str, rows: Sequence[Compared]) -> str:
    words = f"undecided: {leader} has the highest mean and goes on, ahead of {', '.join(one.text for one in rows)}"
    sizes = [one.enough for one in rows]
    if any(size is None for size in sizes):
        return f"{words}; no affordable number of seeds and problems would decide a difference this small"
    seeds, problems = (max(size[i] for size in sizes if size) for i in (0, 1))
    now = rows[0]
    more = [f"{seeds} seeds instead of {now.seeds}"] if seeds > now.seeds else []
    more += [f"{problems} problems instead of {now.problems}"] if problems > now.problems else []
    how = " and ".join(more) or "the same size once more"
    return f"{words}; about {how} would decide it, if the differences are what they look like"


def _worst(rows: Sequence[Compared]) -> Outcome:
    """The outcome of a decision: undecided as soon as one comparison is, else equivalent as soon as one is."""
    outcomes = {one.outcome for one in rows}
    return "undecided" if "undecided" in outcomes else "equivalent" if "equivalent" in outcomes else "better"


def _weighted(contest: Contest, among: Sequence[str] = ()) -> Recommendation:
    value = {one.arm: score(contest.combined(one.arm)) for one in contest.candidates}
    order = sorted(among or value, key=lambda arm: -value[arm])
    rows = contest.versus(COMBINED, order[0], order[1:])
    chosen, words = _settled(contest, order[0], rows, value.__getitem__)
    rest = [arm for arm in [*order, *sorted(value, key=lambda arm: -value[arm])] if arm != chosen]
    return Recommendation(chosen, rest[0], _worst(rows), words, tuple(rows), None, value)


def _lexicographic(contest: Contest) -> Recommendation:
    """The next metric is asked only among arms that are equivalent by the ones before it."""
    left = [one.arm for one in contest.candidates]
    compared: list[Compared] = []
    first = next(iter(contest.metrics))
    value = {arm: contest.value(arm, first) for arm in contest.by_name}
    order = sorted(value, key=lambda arm: -value[arm])
    outcome: Outcome = "better"
    chosen, words = left[0], ""
    for metric in contest.metrics:
        leader = max(left, key=lambda arm: contest.value(arm, metric))
        rows = contest.versus(metric, leader, [arm for arm in left if arm != leader])
        compared += rows
        chosen, words = _settled(contest, leader, rows, value.__getitem__)
        if is_cost(metric) and len(left) > 1:
            words = f"{leader}: equivalent by every suite within the margin; taken for its lower {metric}"
            outcome = "equivalent"
        elif _worst(rows) == "undecided":
            outcome, words = "undecided", f"by {metric} {words}"
            break
        elif _worst(rows) == "equivalent":
            outcome = "equivalent"
        left = [leader, *(one.versus for one in rows if one.outcome == "equivalent")]
        if len(left) == 1:
            break
    runner_up = next(arm for arm in [*left, *order] if arm != chosen)
    return Recommendation(chosen, runner_up, outcome, words, tuple(compared), None, value)


def _pareto(contest: Contest) -> Recommendation:
    """Arms that nobody dominates; among them the weighted score decides."""
    arms = [one.arm for one in contest.candidates]
    beaten: dict[str, list[Compared]] = {}
    for arm in arms:
        for other in (one for one in arms if one != arm):
            rows = [one for metric in contest.metrics for one in contest.versus(metric, arm, [other])]
            if _dominates(rows):
                beaten.setdefault(other, rows)
    front = [arm for arm in arms if arm not in beaten] or arms  # within margins three can beat one another in a circle
    listed = ", ".join(front)
    against = [row for rows in beaten.values() for row in rows]
    if len(front) > 1:
        found = _weighted(contest, front)
        words = f"{found.words} (by the weighted score, among the front: {listed})"
        return Recommendation(found.chosen, found.runner_up, found.outcome, words, (*found.comparisons, *against),
                              tuple(front), found.score)  # fmt: skip
    value = {arm: score(contest.combined(arm)) for arm in arms}
    shown = all(any(row.outcome == "better" and row.problems for row in rows) for rows in beaten.values())
    words = f"{front[0]}: alone on the front" + ("" if shown else ", for its cost: equivalent by every suite to others")
    runner_up = next(arm for arm in sorted(arms, key=lambda arm: -value[arm]) if arm != front[0])
    outcome: Outcome = "better" if shown else "equivalent"
    return Recommendation(front[0], runner_up, outcome, words, tuple(against), tuple(front), value)


def _balanced(contest: Contest) -> Recommendation:
    """The arm that loses least where it loses most, against the best arm of each metric (minimax regret).

    Each other arm is compared with it by the metric in which that arm falls furthest behind; there the leader is never
    behind. A weight of 2 makes a lost point count twice.
    """
    arms, metrics = [one.arm for one in contest.candidates], list(contest.common)
    best = {metric: max(contest.value(arm, metric) for arm in arms) for metric in metrics}
    lost = {
        arm: {metric: contest.metrics[metric] * (best[metric] - contest.value(arm, metric)) for metric in metrics}
        for arm in arms
    }
    value = {arm: -max(lost[arm].values()) for arm in arms}
    overall = {arm: score(contest.combined(arm)) for arm in arms}
    order = sorted(arms, key=lambda arm: (-value[arm], -overall[arm]))
    leader, others = order[0], order[1:]
    rows = [row for arm in others for row in contest.versus(max(lost[arm], key=lost[arm].__getitem__), leader, [arm])]
    chosen, words = _settled(contest, leader, rows, value.__getitem__)
    worst = max(lost[leader], key=lost[leader].__getitem__)
    most = size_words(lost[leader][worst], describe(worst)["unit"] == "share")
    words = f"{words} (balanced: {leader} loses at most {most}, in {worst})"
    runner_up = next(arm for arm in order if arm != chosen)
    return Recommendation(chosen, runner_up, _worst(rows), words, tuple(rows), None, value)


def _dominates(rows: Sequence[Compared]) -> bool:
    """Nowhere behind beyond the margin; better by one suite, or equivalent by all of them and cheaper."""
    if any(one.mean < 0 and one.outcome != "equivalent" for one in rows):
        return False
    sampled = [one for one in rows if one.problems]
    if any(one.outcome == "better" for one in sampled):
        return True
    cheaper = any(one.outcome == "better" for one in rows if not one.problems)
    return cheaper and bool(sampled) and all(one.outcome == "equivalent" for one in sampled)
