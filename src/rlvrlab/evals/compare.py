"""Two evaluations of the same problems: how much better, how sure, and what could have been seen at all.

Each side is one folder or several (seeds). Problems are paired by content; everything is computed over problems. Many
rows are many chances of a false finding, so the p values of one table are Holm-adjusted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rlvrlab.batch import Floats
from rlvrlab.errors import UserError
from rlvrlab.evals.judged import Judged, from_row
from rlvrlab.evals.statistics import Difference, compare_seeds, holm, pass_at_k
from rlvrlab.record.evaluation import Stored
from rlvrlab.types import Finish

ALPHA = 0.05
Score = Callable[[Sequence[Judged]], float | None]
"""The number that a problem's answers earn; None where they have no value."""


def _mean(value: Callable[[Judged], float | None]) -> Score:
    def over_answers(answers: Sequence[Judged]) -> float | None:
        values = [number for one in answers if (number := value(one)) is not None]
        return float(np.mean(values)) if values else None

    return over_answers


def _if_judged(value: Callable[[Judged], float]) -> Score:
    return _mean(lambda one: None if one.verdict.correct is None else value(one))


def _if_answered(value: Callable[[Judged], float]) -> Score:
    return _mean(lambda one: None if one.answer.completion.finish is Finish.ERROR else value(one))


def pass_at(k: int) -> Score:
    """Unbiased pass@k of a problem; none where fewer than k of its answers were judged."""

    def estimate(answers: Sequence[Judged]) -> float | None:
        judged = [one for one in answers if one.verdict.correct is not None]
        if len(judged) < k:
            return None
        return pass_at_k(len(judged), sum(one.verdict.correct is True for one in judged), k)

    return estimate


ACCEPTED = _if_judged(lambda one: float(one.verdict.correct is True))
MEASURES: dict[str, Score] = {
    "accepted": ACCEPTED,
    "mean_accuracy": _if_judged(lambda one: one.verdict.score),
    "format_rate": _if_judged(lambda one: float(str(one.verdict.error) not in ("format", "syntax"))),
    "truncated": _if_answered(lambda one: float(one.answer.completion.finish is Finish.LENGTH)),
    "gen_tokens": _if_answered(lambda one: float(one.answer.gen_tokens)),
    "avg_entropy": _mean(lambda one: one.answer.entropy),
}
"""What is compared, `accepted` also by skill and by level; EVAL@k adds its pass@k, EVAL@budget what was solved."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    """What is compared: `accepted`, `skill chat`, `level 3`."""
    before: float
    after: float
    difference: Difference
    p_holm: float
    """The p value, Holm-adjusted within its table."""

    @property
    def significant(self) -> bool:
        """Whether the adjusted p value is below ALPHA."""
        return self.p_holm < ALPHA

    @property
    def verdict(self) -> str:
        """`higher`, `lower` or `not shown`."""
        if self.significant:
            return "higher" if self.difference.mean > 0 else "lower"
        return "not shown"


@dataclass(frozen=True)
class Comparison:
    """Everything `rlvr compare` says."""

    data: str
    problems: int
    """Problems that were answered and judged on both sides."""
    left_out: int
    """Problems that are on one side only, or unjudged."""
    seeds: tuple[int, int]
    spread: tuple[float | None, float | None]
    """Standard deviation of `accepted` over seeds, where there are several."""
    measures: tuple[Row, ...]
    by_skill: tuple[Row, ...]
    by_level: tuple[Row, ...]
    notes: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        facts = asdict(self)
        for table in ("measures", "by_skill", "by_level"):
            rows: tuple[Row, ...] = getattr(self, table)
            facts[table] = [
                {**asdict(row), "difference": row.difference._asdict(), "verdict": row.verdict} for row in rows
            ]
        return facts


def compare_folders(before: Sequence[Stored], after: Sequence[Stored], anyway: bool = False) -> Comparison:
    """A paired comparison; refused where the two were not examined alike, unless `anyway`."""
    notes = _unlike([*before, *after], anyway)
    sides = [[first_turns(stored) for stored in side] for side in (before, after)]
    names = {problem.key: problem for stored in (*before, *after) for problem in stored.problems}
    common = _common(sides, ACCEPTED)
    if not common:
        raise UserError("compare: no problem was judged on both sides; evaluate both with the same --size and --seed")
    keys = ("compare", before[0].examined["data"])
    protocol = before[0].examined["protocol"]
    extra: dict[str, Score] = {f"pass@{k}": pass_at(k) for k in protocol["ks"] if k > 1}
    if protocol["budget"] is not None:
        extra = {"solved_at_budget": lambda answers: float(any(one.verdict.correct for one in answers))}
    measured = {name: (score, _common(sides, score)) for name, score in (MEASURES | extra).items()}
    rows = [_row(name, sides, shared, score, *keys) for name, (score, shared) in measured.items() if shared]
    return Comparison(
        data=before[0].examined["data"],
        problems=len(common),
        left_out=len(names) - len(common),
        seeds=(len(before), len(after)),
        spread=(_spread(sides[0], common), _spread(sides[1], common)),
        measures=_adjusted(rows),
        by_skill=_split("skill", sides, common, lambda key: names[key].skill, *keys),
        by_level=_split("level", sides, common, lambda key: str(names[key].meta.get("level", "")), *keys),
        notes=tuple(notes),
    )


Answers = dict[str, list[Judged]]
"""Problem key -> its first-turn answers, for one folder."""


def first_turns(stored: Stored) -> Answers:
    """The answers of an evaluation folder, problem by problem, without repairs after feedback."""
    problems = {problem.id: problem for problem in stored.problems}
    answers: Answers = defaultdict(list)
    for row in stored.rows:
        problem = problems[row["problem"]]
        if row.get("turn", 0) == 0:
            answers[problem.key].append(from_row(row, problem))
    return dict(answers)


def _common(sides: Sequence[Sequence[Answers]], score: Score) -> list[str]:
    """Problems with a value in every folder of both sides, in the first one's order."""
    folders = [folder for side in sides for folder in side]
    return [key for key in folders[0] if all(score(folder.get(key, ())) is not None for folder in folders)]


def _matrix(side: Sequence[Answers], keys: Sequence[str], score: Score) -> Floats:
    """Scores of one side, one row per seed and one column per problem."""
    return np.array([[score(folder[key]) for key in keys] for folder in side], dtype=np.float64)


def _row(
    what: str, sides: Sequence[Sequence[Answers]], keys: Sequence[str], score: Score, *key: object
) -> tuple[str, float, float, Difference]:
    before, after = (_matrix(side, keys, score) for side in sides)
    return what, float(before.mean()), float(after.mean()), compare_seeds(before, after, *key, what)


def _adjusted(rows: Sequence[tuple[str, float, float, Difference]]) -> tuple[Row, ...]:
    adjusted = holm([difference.p for *_, difference in rows])
    return tuple(Row(*row, p) for row, p in zip(rows, adjusted, strict=True))


def _split(
    kind: str, sides: Sequence[Sequence[Answers]], common: Sequence[str], group: Callable[[str], str], *key: object
) -> tuple[Row, ...]:
    """A table by skill or level, where there is more than one."""
    members: dict[str, list[str]] = defaultdict(list)
    for name in common:
        members[group(name)].append(name)
    if len(members) < 2:
        return ()
    return _adjusted([_row(f"{kind} {name}", sides, keys, ACCEPTED, *key) for name, keys in sorted(members.items())])


def _spread(side: Sequence[Answers], common: Sequence[str]) -> float | None:
    if len(side) < 2:
        return None
    return float(_matrix(side, common, ACCEPTED).mean(axis=1).std(ddof=1))


def _unlike(folders: Sequence[Stored], anyway: bool) -> list[str]:
    """Notes on where protocol, data set or scorer differ; a refusal unless `anyway`."""
    first, notes = folders[0].examined, []
    for other in folders[1:]:
        for name, one in (("protocol", "protocol_hash"), ("data set", "data"), ("scorer", "scorer")):
            if other.examined[one] != first[one]:
                text = f"{folders[0].folder} and {other.folder} differ in their {name}"
                notes.append(f"{text}: {first[one]} and {other.examined[one]}")
    if notes and not anyway:
        raise UserError(f"compare: {notes[0]}; evaluate both alike, or --anyway")
    unfinished = [str(one.folder) for one in folders if one.info.get("status") != "finished"]
    return notes + [f"{name}: not finished; compared as far as it goes" for name in unfinished]
