"""Several models on several members: one table with intervals and corrected comparisons to the first model."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.errors import LabError, one_line
from rlvrlab.evals.answering import Answerer
from rlvrlab.evals.evaluate import Evaluation, Observer, evaluate
from rlvrlab.evals.kept import evaluate_into
from rlvrlab.evals.statistics import Difference, compare, estimate
from rlvrlab.evals.suites.base import Ready, Skipped
from rlvrlab.plain_files import file_name
from rlvrlab.record.files import utc_now
from rlvrlab.record.final import note_look
from rlvrlab.shares import pass_at_k


@dataclass(frozen=True)
class Model:
    """A model to examine: one column of the table."""

    name: str
    open: Callable[[], Answerer]
    """Loads it; called when its turn comes, so that one model is in memory at a time."""
    run: Path | None = None
    """The run folder it comes from, where looks at test problems are counted."""


@dataclass(frozen=True)
class Cell:
    """The result of one model on one member."""

    model: str
    member: str
    group: str
    metric: str
    """accepted@1 or pass@k."""
    value: float
    low: float
    high: float
    problems: int
    unjudged: int
    bounds: tuple[float, float]
    """The value with every unjudged answer counted as wrong, and as right."""
    protocol: str
    """Hash of the protocol; only cells of one protocol can be compared."""
    versus: Difference | None = None
    """Paired difference to the first model, on the problems judged for both, adjusted for all of the table."""

    @property
    def significant(self) -> bool:
        """Whether the model is better or worse than the first one beyond chance."""
        return self.versus is not None and self.versus.verdict != "not shown"


@dataclass(frozen=True)
class Examined:
    """The results of all models on all members."""

    cells: tuple[Cell, ...]
    averages: tuple[Cell, ...]
    """Per model the plain mean over members, each counting alike."""
    skipped: tuple[Skipped, ...]
    """Members and models that could not be examined, each with its reason."""

    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "cells": [_plain(cell) for cell in self.cells],
            "averages": [_plain(cell) for cell in self.averages],
            "skipped": [asdict(one) for one in self.skipped],
        }


Scores = dict[str, float]
"""Problem -> its score, for problems that were judged."""
Progress = Callable[[str, str], None]


def examine(
    models: Sequence[Model], members: Iterable[Ready | Skipped], *, seed: int = 0, output: Path | None = None,
    progress: Progress | None = None, observe: Observer | None = None,
) -> Examined:  # fmt: skip
    """Every model on every member; with `output` each pair has a folder there, which a second call resumes."""
    given = list(members)
    ready = [one for one in given if isinstance(one, Ready)]
    skipped = [one for one in given if isinstance(one, Skipped)]
    cells: list[Cell] = []
    scores: dict[tuple[str, str], Scores] = {}
    for model in models:
        try:
            answerer = model.open()
        except LabError as error:  # one broken model must not cost the others their table
            skipped.append(Skipped(model.name, one_line(error)))
            continue
        for one in ready:
            if progress:
                progress(model.name, one.member.name)
            name, asked = one.member.name, (answerer, one.env, one.problems, one.protocol)
            if output is None:
                if model.run is not None:
                    note_look(model.run, name, one.problems, f"rlvr suite, nothing kept, {utc_now()}")
                evaluation = evaluate(*asked, seed=seed, data=name, observe=observe)
            else:
                folder = output / file_name(model.name) / file_name(name)
                facts = {"scorer_type": one.member.env, "scorer_folder": str(Path().resolve()), "data_file": one.file}
                kept = evaluate_into(folder, *asked, seed=seed, data=name, facts=facts, run=model.run, observe=observe)
                evaluation = kept.evaluation
            scores[model.name, name] = scores_of(evaluation)
            cells.append(_cell(model.name, one, evaluation, scores[model.name, name]))
    return Examined(*compared(cells, scores), tuple(skipped))


def compared(
    cells: Sequence[Cell], scores: Mapping[tuple[str, str], Scores]
) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
    """The cells with their differences to the first model, adjusted for the whole table; and averages by model.

    `scores` are those of every model and member that has a cell.
    """
    names = list(dict.fromkeys(cell.model for cell in cells))
    differences: dict[int, Difference] = {}
    for index, cell in enumerate(cells):
        before, after = scores[names[0], cell.member], scores[cell.model, cell.member]
        both = [key for key in before if key in after]
        if cell.model != names[0] and both:
            differences[index] = compare([before[key] for key in both], [after[key] for key in both])
    adjusted = {index: one.adjusted(len(differences)) for index, one in differences.items()}
    told = [replace(cell, versus=adjusted.get(index)) for index, cell in enumerate(cells)]
    averages = [_average(name, [cell for cell in told if cell.model == name]) for name in names]
    return tuple(told), tuple(averages)


def scores_of(evaluation: Evaluation, unjudged: bool | None = None) -> Scores:
    """accepted for one answer, unbiased pass@k for n of them; problems with too few judged answers are left out.

    `unjudged` says what an unjudged answer counts as; None leaves it out.
    """
    k = max(evaluation.protocol.ks, default=1)
    counts: dict[str, list[bool]] = defaultdict(list)
    for one in evaluation.judged:
        right = unjudged if one.verdict.correct is None else one.verdict.correct
        if right is not None and one.turn == 0:
            counts[one.problem.id].append(right)
    return {name: pass_at_k(len(right), sum(right), k) for name, right in counts.items() if len(right) >= k}


def _cell(model: str, one: Ready, evaluation: Evaluation, scores: Scores) -> Cell:
    k = max(evaluation.protocol.ks, default=1)
    values = list(scores.values())
    binary = k == 1 and evaluation.protocol.n == 1
    found = estimate(values)
    return Cell(
        model=model,
        member=one.member.name,
        group=one.member.group,
        metric="accepted@1" if binary else f"pass@{k}",
        value=found.value,
        low=found.low,
        high=found.high,
        problems=len(values),
        unjudged=sum(j.verdict.correct is None for j in evaluation.judged),
        bounds=(_mean(scores_of(evaluation, False)), _mean(scores_of(evaluation, True))),
        protocol=evaluation.protocol.hash,
    )


def _average(model: str, cells: Sequence[Cell]) -> Cell:
    """Members are independent samples of problems: the squares of their intervals' arms are added (Zou & Donner)."""
    mean = float(np.mean([cell.value for cell in cells]))
    below = math.sqrt(sum((cell.value - cell.low) ** 2 for cell in cells)) / len(cells)
    above = math.sqrt(sum((cell.high - cell.value) ** 2 for cell in cells)) / len(cells)
    problems, missing = sum(cell.problems for cell in cells), sum(cell.unjudged for cell in cells)
    bounds = float(np.mean([cell.bounds[0] for cell in cells])), float(np.mean([cell.bounds[1] for cell in cells]))
    return Cell(model, "average", "", "mean", mean, mean - below, mean + above, problems, missing, bounds, "")


def _mean(scores: Scores) -> float:
    return float(np.mean(list(scores.values()))) if scores else 0.0


def _plain(cell: Cell) -> dict[str, Any]:
    versus = None if cell.versus is None else cell.versus.facts()
    return {**asdict(cell), "versus": versus, "significant": cell.significant}
