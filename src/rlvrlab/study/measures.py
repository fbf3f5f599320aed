"""What a trial's evaluations say, metric by metric and problem by problem.

A metric is `<suite>.<measure>`, or `<suite>/<member>.<measure>` for one member of a named suite; `cost.tokens`,
`cost.answers` and `cost.seconds` are what training took. A suite of several members counts each of them alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rlvrlab.evals.compare import LESS_IS_BETTER, PLAIN, first_turns, pass_at
from rlvrlab.evals.compare import MEASURES as COMPARED
from rlvrlab.record.evaluation import Stored
from rlvrlab.shares import difference, hundredths
from rlvrlab.study.schema import Suite

MEASURES = tuple(COMPARED)
COSTS = "cost"
COST_UNITS = {"tokens": "tokens", "answers": "answers", "seconds": "seconds"}
_PASS = re.compile(r"pass@([1-9]\d{0,4})", re.ASCII)
Scores = dict[str, dict[str, float]]
"""Measure -> problem -> score."""


def suite_of(metric: str) -> str:
    """`cross` of cross.accepted and of cross/countdown.accepted."""
    return metric.partition(".")[0].partition("/")[0]


def is_cost(metric: str) -> bool:
    """True of `cost.tokens` and the like, which are counted and not sampled."""
    return suite_of(metric) == COSTS


def pass_k(measure: str) -> int | None:
    """8 of pass@8; None of any other measure."""
    match = _PASS.fullmatch(measure)
    return int(match[1]) if match else None


def metric_names(suites: Mapping[str, Suite]) -> list[str]:
    """What a selection rule may name, members of named suites aside."""
    names = [f"{name}.{measure}" for name in suites for measure in MEASURES]
    names += [f"{name}.pass@{suite.n}" for name, suite in suites.items() if suite.n > 1]
    return [*names, *(f"{COSTS}.{unit}" for unit in COST_UNITS)]


def describe(metric: str) -> dict[str, str]:
    """A metric's suite, measure, direction and unit, as study.json keeps them."""
    suite, _, measure = metric.partition(".")
    if suite == COSTS:
        return {"suite": "", "measure": measure, "better": "lower", "unit": COST_UNITS[measure]}
    # Tokens and entropy are neither good nor bad; a rule that names them all the same asks for less, as of a cost.
    better = "lower" if measure in LESS_IS_BETTER or measure in PLAIN else "higher"
    return {"suite": suite, "measure": measure, "better": better, "unit": PLAIN.get(measure, "share")}


def of_shares(compared: Mapping[str, Any]) -> bool:
    """Whether a stored comparison is one of shares, told in points; earlier versions did not record it."""
    return bool(compared.get("share", describe(compared["metric"])["unit"] == "share"))


def difference_words(mean: float, low: float, high: float, share: bool) -> str:
    """`+1.5 [−2.7, +5.6] points` for shares, `+12.000 [−3.000, +27.000]` in a metric's own unit."""
    words = f"{difference(mean, low, high)} points" if share else difference(mean, low, high, 1, 3)
    return words.replace("-", "−")


def size_words(size: float, share: bool) -> str:
    """`6.0 points` for shares, `0.0595` in a metric's own unit."""
    return f"{hundredths(size)} points" if share else f"{size:.3g}"


def direction(metric: str) -> float:
    """1 where more is better, −1 where less is."""
    return 1.0 if describe(metric)["better"] == "higher" else -1.0


def scores_of(stored: Stored, ks: Iterable[int]) -> Scores:
    """Every measure of one evaluation folder, per problem; what could not be judged is left out."""
    answers, measures = first_turns(stored), COMPARED | {f"pass@{k}": pass_at(k) for k in ks if k > 1}
    columns = {
        name: {key: value for key, own in answers.items() if (value := score(own)) is not None}
        for name, score in measures.items()
    }
    return {name: column for name, column in columns.items() if column}


def pooled(by_member: Mapping[str, Scores], metric: str) -> dict[str, float]:
    """Problem -> score of one metric; scores are scaled so that their plain mean counts every member alike."""
    owner, _, measure = metric.partition(".")
    only = owner.partition("/")[2]
    columns = {m: s[measure] for m, s in by_member.items() if s.get(measure) and (not only or m == only)}
    total = sum(len(column) for column in columns.values())
    scores: dict[str, float] = {}
    for member, column in columns.items():
        scale = total / (len(columns) * len(column))
        scores |= {f"{member}:{problem}": scale * score for problem, score in column.items()}
    return scores
