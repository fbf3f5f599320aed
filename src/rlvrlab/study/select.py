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
from typing import Literal

from rlvrlab.errors import UserError
from rlvrlab.study.contest import COMBINED, Candidate, Compared, Contest, Outcome, score
from rlvrlab.study.measures import describe, is_cost, size_words
from rlvrlab.study.schema import Select


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
    rule: Select, metrics: Mapping[str, float], candidates: Sequence[Candidate], arms: int | None = None,
    undeclared: int = 0,
) -> Recommendation:  # fmt: skip
    """`metrics` are the rule's own with their weights, or the usual ones; `arms`: how many there were at first.

    `undeclared` are the rounds of looks that nobody declared (looks.py), this one included.
    """
    if not candidates:
        raise UserError("no arm has a finished trial; nothing can be chosen")
    if len(candidates) == 1:
        only = candidates[0].arm
        return Recommendation(only, None, "alone", f"{only}: the only arm that finished, so nothing was compared")
    rules = {"weighted": _weighted, "lexicographic": _lexicographic, "pareto": _pareto, "balanced": _balanced}
    contest = Contest(rule, metrics, candidates, arms or len(candidates), undeclared)
    found = rules[rule.rule](contest)
    words = "; ".join([found.words, *map(alike_words, contest.alike)])
    return replace(found, words=words, alike=contest.alike)


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
