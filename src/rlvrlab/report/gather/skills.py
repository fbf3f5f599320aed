"""Skills against each other: what each stage of training did to every skill, what was forgotten, and the trade-off."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlvrlab.report.gather.curves import bounds, skill_curve
from rlvrlab.report.gather.intervals import Bounds, change, interval, mean_of
from rlvrlab.report.gather.peaks import losses, skill_courses
from rlvrlab.report.reading import Fact, Section, rounded, section
from rlvrlab.report.run_record import METRICS, RunRecord
from rlvrlab.skills.metrics import Retention, retention

ONE_RUN = {
    True: "95 % interval (Newcombe) of this one run, rather too wide because the same problems are asked twice.",
    False: "this run recorded no counts per skill, so no cell has an interval and none is called significant.",
}
"""What a note says about the cells of a single run, by whether they have intervals."""
ALONE = "Each cell stands alone: where nothing happens, one of 20 is coloured by chance."
"""Interval and colour of a cell agree, and neither is adjusted for the other cells."""


class StageTable:
    """Success on every skill before training and after each stage."""

    def __init__(self, run: RunRecord) -> None:
        self.skills = [skill for skill, _ in run.skill_keys]
        keys = [key for _, key in run.skill_keys]
        self.stages = run.stages
        self.rows: list[list[float]] = []
        self.bounds: list[list[Bounds]] = []
        """Wilson intervals of the entries of `rows`."""
        self.lines: list[int] = []
        if not self.stages or not keys:
            return
        until = [stage["x"] for stage in self.stages[1:]] + [math.inf]
        measured = [line for line in run.metrics if all(isinstance(line.row.get(key), int | float) for key in keys)]
        before = [line for line in measured if line.row["step"] < self.stages[0]["x"]]
        ends = [before[-1:]] + [
            [line for line in measured if stage["x"] <= line.row["step"] < bound][-1:]
            for stage, bound in zip(self.stages, until, strict=True)
        ]
        for end in ends:
            if not end:
                break
            self.rows.append([float(end[0].row[key]) for key in keys])
            self.bounds.append([bounds(end[0].row, key) for key in keys])
            self.lines.append(end[0].number)

    @property
    def complete(self) -> bool:
        """Whether success was measured before training and at the end of every stage."""
        return bool(self.stages) and len(self.rows) == len(self.stages) + 1

    @property
    def certain(self) -> bool:
        """Whether all cells have intervals."""
        return all(one is not None for row in self.bounds for one in row)

    def cells(self) -> list[list[Fact]]:
        """The change of every skill over each stage, with the line it was read from."""
        return [
            [
                change((self.rows[i][j], self.bounds[i][j]), (self.rows[i + 1][j], self.bounds[i + 1][j]))
                | {"from": {"file": METRICS, "line": self.lines[i + 1], "step": stage["x"]}, "link": {"skill": skill}}
                for j, skill in enumerate(self.skills)
            ]
            for i, stage in enumerate(self.stages)
        ]

    @property
    def order(self) -> list[int]:
        """The index in `skills` of each stage's skill."""
        return [self.skills.index(stage["skill"]) for stage in self.stages if stage["skill"] in self.skills]

    def retention(self) -> Retention | None:
        """Average, forgetting and the like, where every stage trains one known skill."""
        if not self.complete or len(self.order) != len(self.stages):
            return None
        return retention(np.array(self.rows), self.order)

    def backward_transfer(self) -> Fact:
        """Change of every skill since its own stage, mean over those trained before the last one, with an interval."""
        past = [(skill, i) for skill, i in self._own.items() if i < len(self.order)]
        found = [change(self._cell(i, skill), self._cell(-1, skill)) for skill, i in past]
        ends = [None if one["low"] is None else (one["low"], one["high"]) for one in found]
        return mean_of([(one["value"], both) for one, both in zip(found, ends, strict=True)])

    def learning(self) -> Fact:
        """Success on each skill right after its own stage, mean, with an interval."""
        return mean_of([self._cell(i, skill) for skill, i in self._own.items()])

    @property
    def _own(self) -> dict[int, int]:
        """Skill -> the row after its own stage."""
        return {skill: i + 1 for i, skill in enumerate(self.order)}

    def _cell(self, row: int, skill: int) -> tuple[float, Bounds]:
        return self.rows[row][skill], self.bounds[row][skill]


def forgetting(run: RunRecord) -> Section | None:
    """Success on every skill over steps, with its peak, and what is left of it."""
    keys = run.skill_keys
    if len(keys) < 2:
        return None
    lost, curves = losses(skill_courses(run)), []
    for skill, key in keys:
        if skill in lost:
            curve = {"name": skill, "key": key, **skill_curve(run, key), "points": True}
            one = lost[skill]
            told = {"value": rounded(one.value), "low": rounded(one.low), "high": rounded(one.high)}
            curves.append(curve | {"peak": [one.peak.step, rounded(one.peak.share)], "lost": told})
    retained = StageTable(run).retention()
    measured = {} if retained is None else {name: rounded(value) for name, value in retained._asdict().items()}
    numbers = [{"name": n.replace("_", " "), "value": value} for n, value in measured.items() if value is not None]
    data = {
        "curves": curves,
        "marks": [{"x": stage["x"], "name": stage["skill"]} for stage in run.stages],
        "numbers": numbers,
    }
    note = (
        "A ring marks each skill's peak; the label at the end says what is lost since, where that is more than chance. "
        "The peak is the best of several evaluations, so the end lies below it without any change: intervals of the "
        "loss count that choice in, for all skills together. Bands, where counts are recorded: 95 % intervals."
    )
    return section("forgetting", "forgetting", "Forgetting", data, METRICS, note)


def stage_matrix(run: RunRecord) -> Section | None:
    """Rows: the skill of a stage. Columns: the skill affected. Cells: change of held-out success over the stage."""
    table = StageTable(run)
    if not table.complete:
        return None
    data = {"rows": [stage["skill"] for stage in table.stages], "columns": table.skills, "cells": table.cells(),
            "row_title": "trained on", "column_title": "success on", "certain": table.certain}  # fmt: skip
    note = (
        f"Change of success on dev problems while the row's skill was trained; {ONE_RUN[table.certain]} {ALONE} "
        "A report of several seeds has intervals over seeds."
    )
    return section("interference", "matrix", "Interference", data, METRICS, note)


def mean_matrix(
    names: list[str], matrices: list[Any], title: str, source: str, note: str, name: str = "interference"
) -> Section:
    """A matrix of means over seeds; `matrices` has one per seed, and every cell gets its interval."""
    stack = np.array(matrices, dtype=np.float64)
    cells = [
        [interval([float(v) for v in stack[:, i, j]]) | {"from": {"file": source}} for j in range(stack.shape[2])]
        for i in range(stack.shape[1])
    ]
    data = {"rows": names, "columns": names, "cells": cells, "row_title": "one step on", "column_title": "changes",
            "certain": len(matrices) > 1}  # fmt: skip
    return section(name, "matrix", title, data, source, note)
