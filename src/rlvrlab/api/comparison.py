"""Compare two examinations from Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from rlvrlab.api.evaluation import Folder, evaluate
from rlvrlab.api.short_errors import short_errors
from rlvrlab.api.shown import html_table
from rlvrlab.cli.names import RUN_AT
from rlvrlab.errors import NotAlike, UserError
from rlvrlab.evals.compare import Comparison as Compared
from rlvrlab.evals.compare_runs import compare_named
from rlvrlab.evals.statistics import p_told
from rlvrlab.record.final import split_run, standing
from rlvrlab.shares import percent, points


@dataclass(frozen=True)
class Comparison:
    """Two evaluations of the same problems; `accepted` is what most want to know."""

    data: str
    problems: int
    """Problems judged on both sides."""
    before: float
    """Share accepted on the first side."""
    after: float
    """Share accepted on the second side."""
    difference: float
    """after − before."""
    interval: tuple[float, float]
    """95 % interval of the difference."""
    p: float | None
    """Two-sided p value of the difference in `accepted`; None with two seeds on a side, too few to test."""
    verdict: str
    """higher, lower or not shown."""
    compared: Compared
    """All measures, by skill and by level."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to mind: sides that were examined differently, or not to the end."""
        return self.compared.notes

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return json.loads(json.dumps(self.compared.facts()))

    def __repr__(self) -> str:
        both = f"{self.compared.measures[0].what} {percent(self.before)} before, {percent(self.after)} after"
        told = points(self.difference, *self.interval) + ("" if self.p is None else f", {p_told(self.p)}")
        lines = [f"Comparison({self.compared.about}: {both}, {told}, {self.verdict})", *self._below]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        head = ("", "before", "after", "difference [95 %]", "p", "")
        rows = []
        for row in (*self.compared.measures, *self.compared.by_skill):
            mean, low, high = (f"{value:+z.3g}" for value in row.difference[:3])
            gap = f"{mean} [{low}, {high}]"
            rows.append((row.what, f"{row.before:.3g}", f"{row.after:.3g}", gap, row.difference.p_words, row.verdict))
        return html_table(self.compared.about, head, rows, self._below)

    @property
    def _below(self) -> list[str]:
        """Who was compared, and whatever changes the reading."""
        told = [self.compared.who, *self.compared.settings_words, self.compared.not_shown, self.compared.caution]
        return [*filter(None, told), *(f"note: {note}" for note in self.notes)]


@short_errors
def compare(
    before: Folder | Sequence[Folder],
    after: Folder | Sequence[Folder],
    *,
    anyway: bool = False,
    paired: bool | None = None,
) -> Comparison:
    """A paired comparison of two evaluations or runs; several on a side are seeds.

    A run stands for its last checkpoint, "DIR@20", "DIR@best" or "DIR@base" for another one; of its evaluations there,
    those on the most test problems are taken that ask the same of both sides, and where there are none, the cards that
    training made (`Run.cards`). A checkpoint that has neither is evaluated on its run's test problems first.
    """
    sides: list[list[str]] = []
    for side in (before, after):
        named = [side] if isinstance(side, str | PathLike) else list(side) if isinstance(side, Sequence) else [side]
        if odd := [one for one in named if not isinstance(one, str | PathLike)]:
            raise UserError(f"compare: an evaluation, a run, a folder or a list of them, not {odd[0]!r:.60}")
        sides.append([fspath(one) for one in named])
    if not all(sides):
        raise UserError("compare: name two evaluations or runs")
    sides = [[RUN_AT.convert(one, None, None) for one in side] for side in sides]
    first, second = ([Path(one) for one in side] for side in sides)
    try:
        compared = compare_named(first, second, anyway, paired)
    except NotAlike:
        runs = [split_run(str(one)) for one in (*first, *second)]
        missing = [(run, which) for run, which in runs if (run / "config.json").is_file() and not standing(run, which)]
        if not missing:
            raise
        for run, which in missing:
            evaluate(f"{run}@{which}", progress=False)
        compared = compare_named(first, second, anyway, paired)
    accepted = compared.measures[0]
    gap = accepted.difference
    return Comparison(
        compared.data, compared.problems, accepted.before, accepted.after, gap.mean, (gap.low, gap.high),
        gap.p, accepted.verdict, compared,
    )  # fmt: skip
