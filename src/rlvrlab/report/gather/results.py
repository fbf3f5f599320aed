"""Result lines of an interference study: measured interference (matrix.jsonl) and what guards keep (guards.jsonl)."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.evals.metrics import grouped
from rlvrlab.report.gather.arms import retention_pareto
from rlvrlab.report.gather.intervals import CUT, interval
from rlvrlab.report.gather.skills import ALONE, mean_matrix
from rlvrlab.report.reading import Folder, Section, document, section, words
from rlvrlab.skills.metrics import Retention, limits, retention

MATRIX, GUARDS = "matrix.jsonl", "guards.jsonl"
NUMBERS = ("average", "worst", "forgetting", "learning")


def gather_results(path: Path) -> dict[str, Any]:
    """The document of a folder of result lines."""
    folder = Folder(path)
    by_stage = grouped([line.row for line in folder.lines(MATRIX, "")], lambda row: row.get("after_stage"))
    sections: list[Section] = []
    for stage, rows in by_stage.items():
        when = "before training" if stage == 0 else f"after stage {stage}"
        for kind, how in (("measured_SS", "measured"), ("predicted_SS", "predicted from gradients")):
            sections += folder.attempt(MATRIX, partial(_matrix, rows, kind, how, f"{stage}_{kind}", when))
    variants: dict[str, dict[str, list[Retention]]] = defaultdict(lambda: defaultdict(list))
    for line in folder.lines(GUARDS, ""):
        table = np.array(line.row.get("table"), dtype=np.float64)
        if table.ndim == 2 and len(table) > 1:
            arm = variants[words(line.row.get("variant"), 80)][words(line.row.get("name"), 80)]
            arm.append(retention(table, list(range(len(table) - 1))))
    for number, (variant, arms) in enumerate(variants.items()):
        title = f"Pareto: {variant}"
        sections += folder.attempt(GUARDS, partial(retention_pareto, arms, GUARDS, f"pareto_{number}", title))
        sections += folder.attempt(GUARDS, partial(_guard_table, arms, variant, number))
    name = path.resolve().parent.name if path.name == "results" else path.resolve().name
    return document(folder, "study", name, sections, subtitle="result lines, seed by seed")


def _matrix(rows: list[dict[str, Any]], kind: str, how: str, name: str, when: str) -> Section:
    counts = Counter(_skills(row, kind) for row in rows)
    names = counts.most_common(1)[0][0]  # a seed in which a skill had no gradient has a smaller matrix
    matrices = [row[kind] for row in rows if _skills(row, kind) == names]
    left = f" ({len(rows) - len(matrices)} with other skills left out)" if len(matrices) < len(rows) else ""
    seeds = f"95 % t interval over {len(matrices)} seeds{left}. Grey: the interval holds 0. {ALONE}"
    note = f"Change of reward per unit of step length, {how}; {seeds}"
    return mean_matrix(list(names), matrices, f"Interference {when}, {how}", MATRIX, note, f"matrix_{name}")


def _skills(row: dict[str, Any], kind: str) -> tuple[str, ...]:
    """The skills of a row's matrix as recorded; numbered where the file does not name them."""
    named = row.get("skills")
    if isinstance(named, list) and len(named) == len(row[kind]):
        return tuple(words(name, 60) for name in named)
    return tuple(f"skill {i + 1}" for i in range(len(row[kind])))


def _guard_table(arms: dict[str, list[Retention]], variant: str, number: int) -> Section:
    cells = [
        [
            interval([getattr(one, key) for one in runs], within=limits(key)) | {"from": {"file": GUARDS}}
            for key in NUMBERS
        ]
        for runs in arms.values()
    ]
    data = {"columns": list(NUMBERS), "rows": [f"{name} ({len(runs)})" for name, runs in arms.items()], "cells": cells}
    told = "Mean and 95 % t interval over all seeds in the file (their number in brackets), also those used for tuning."
    return section(f"guards_{number}", "grid", f"Guards: {variant}", data, GUARDS, f"{told} {CUT}")
