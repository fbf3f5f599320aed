"""Judge stored answers again, without asking anyone: the record must lead to the same verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rlvrlab.types import Environment, Finish, Problem

BATCH = 256
CLOSE = 1e-9
"""Scores within this of each other are equal."""
COMPARED = ("correct", "score", "error", "answer", "passed", "total")


@dataclass(frozen=True)
class Change:
    """One answer that is judged differently now."""

    problem: str
    sample: Any
    fields: dict[str, tuple[Any, Any]]
    """Field of the verdict -> (stored value, value now)."""
    completion: str


@dataclass(frozen=True)
class Rescored:
    """What came out of judging stored answers again."""

    answers: int
    """How many answers were judged again."""
    skipped: int
    """Answers without a stored verdict: there is nothing to compare."""
    changes: tuple[Change, ...]
    unjudged: int
    """Answers that could not be judged now; that is infrastructure, not a difference."""

    @property
    def same(self) -> bool:
        """Whether every verdict is as stored."""
        return not self.changes


def rescore(env: Environment, stored: Iterable[tuple[Problem, Mapping[str, Any]]]) -> Rescored:
    """Rows need completion, finish, correct, score, error; more is compared where it is there."""
    waiting = iter(stored)
    answers = skipped = unjudged = 0
    changes: list[Change] = []
    while chunk := list(islice(waiting, BATCH)):
        items = [(p, row) for p, row in chunk if row["finish"] != Finish.ERROR.value and row["correct"] is not None]
        skipped += len(chunk) - len(items)
        verdicts = env.verify_many([(problem, row["completion"]) for problem, row in items])
        for (problem, row), verdict in zip(items, verdicts, strict=True):
            answers += 1
            if verdict.correct is None:
                unjudged += 1
                continue
            now = {name: getattr(verdict, name) for name in COMPARED} | {"error": str(verdict.error)}
            differing = {k: (row[k], v) for k, v in now.items() if k in row and not _equal(row[k], v)}
            if differing:
                changes.append(Change(problem.id, row.get("sample", row.get("id")), differing, row["completion"]))
    return Rescored(answers, skipped, tuple(changes), unjudged)


def _equal(stored: Any, now: Any) -> bool:
    if isinstance(stored, int | float) and isinstance(now, int | float) and not isinstance(stored, bool):
        return abs(stored - now) <= CLOSE
    return bool(stored == now)
