"""Several evaluations of one folder, side by side: `rlvr phase0` and `rlvr suite -o`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.evals.metrics import card_columns
from rlvrlab.record.evaluation import INFO, SAMPLES
from rlvrlab.report.gather.evaluation import EvaluationRecord, costs, error_bars, shown_answers, tell_apart
from rlvrlab.report.gather.rollouts import Answers
from rlvrlab.report.reading import Folder, Section, document, place, rounded, section, words

COLUMNS = {
    "accepted_at_1": "accepted@1",
    "pass_ratio_mean": "pass ratio",
    "exec_success_rate": "ran to the end",
    "syntax_error_rate": "syntax errors",
    "format_rate": "in the demanded form",
    "zero_reward_rate": "verifier gave 0",
    "truncated_rate": "cut off",
    "recovery_rate": "recovered",
    "blind_recovery_rate": "blind second try",
    "solved_at_budget": "solved within the budget",
    "hack/integrity_weak": "integrity: weak",
}
"""Shares that the table of all data sets shows, where they were measured."""


def gather_suite(path: Path) -> dict[str, Any]:
    """The document of a folder whose sub-folders are evaluations."""
    folder = Folder(path)
    below = sorted(info.parent for info in path.glob(f"*/*/{INFO}") if (info.parent / SAMPLES).exists())
    sides = [EvaluationRecord(folder, f"{one.relative_to(path).as_posix()}/") for one in below]
    many = len({one.side for one in sides}) > 1
    for one in sides:
        data = words(one.examined.get("data") or one.root.name, 60)
        one.side = f"{data} · {one.side}" if many else data
    sides = tell_apart(sides)
    answers = Answers()
    shown_answers(sides, answers)
    info = folder.table(INFO, "") if (path / INFO).exists() else {}
    sections = [
        *folder.attempt("overview", lambda: _table(sides)),
        *folder.attempt("errors", lambda: error_bars(sides)),
        *folder.attempt("cost", lambda: costs(sides)),
        *folder.attempt("rollouts", lambda: answers.section("Answers", "evaluations/")),
        *folder.attempt("facts", lambda: section("facts", "facts", "What was examined", info, INFO) if info else None),
    ]
    status = words(info.get("status") or "", 40)
    told = f"{len(sides)} evaluations"
    return document(folder, "suite", path.resolve().name, sections, subtitle=told, status=status)


def _table(sides: list[EvaluationRecord]) -> Section | None:
    measured = [(one, _telling(one.numbers())) for one in sides]
    several = {k for _, m in measured for k in m if k.startswith("pass@") and k[5:].isdigit()}
    further = sorted(several, key=lambda k: int(k[5:]))
    keys = [key for key in (*COLUMNS, *further) if any(m.get(key) is not None for _, m in measured)]
    if not keys:
        return None
    cells = [
        [{"value": rounded(m.get(key)), "low": rounded(m.get(f"{key}_low")), "high": rounded(m.get(f"{key}_high")),
          "from": place(f"{one.below}metrics.json", key=key)} for key in keys]
        for one, m in measured
    ]  # fmt: skip
    rows = [f"{one.side} ({m.get('problems', '?')})" for one, m in measured]
    data = {"columns": [COLUMNS.get(key, key) for key in keys], "rows": rows, "cells": cells}
    note = "Shares with 95 % intervals over problems; the number of problems is in brackets."
    return section("suite", "grid", "Data sets", data, "metrics.json", note)


def _telling(metrics: dict[str, Any]) -> dict[str, Any]:
    """Without the shares that say nothing about answers of this kind (`card_columns`)."""
    kept = card_columns(metrics)
    return {
        key: value for key, value in metrics.items() if key not in ("syntax_error_rate", "format_rate") or key in kept
    }
