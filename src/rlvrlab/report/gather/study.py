"""A study's folder: the chain of stages, every arm with its numbers, every decision with its reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError
from rlvrlab.report.gather.arms import arm_curves, arm_pareto
from rlvrlab.report.gather.intervals import CUT
from rlvrlab.report.gather.stages import stage_state, trials_words
from rlvrlab.report.gather.verdict import cautions, verdict
from rlvrlab.report.reading import (
    Folder,
    Section,
    as_list,
    as_table,
    document,
    place,
    rounded,
    section,
    words,
)
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.status import study_state

STUDY, SCHEMA = "study.json", 2
MOST_RUNS = 60
"""A stage of more runs than this gets no curves: reading them would take too long."""
KEPT = (
    "lost: since each skill's peak, the best of its evaluations; lost by chance: what that would be had no skill "
    "moved; forgetting takes the best of several stages, too. Backward transfer chooses nothing. "
    f"{CUT}"
)
"""How to read what a run kept: numbers that were chosen as the best of several are never negative."""
TOLD = ("time", "stage", "kind", "rule", "chosen", "recommended", "runner_up", "by", "who", "reason", "words",
        "outcome")  # fmt: skip
"""The keys of a decision that are shown as text."""


def gather_study(path: Path) -> dict[str, Any]:
    """The document of one study: its chain, each stage's arms, decisions and trials."""
    folder = Folder(path)
    study = folder.table(STUDY)
    folder.refuse_version(STUDY, study, SCHEMA)
    stages = _tables(study.get("stages"))
    status = study_state(path, words(study.get("status") or "unknown", 40))
    sections = [
        *folder.attempt("verdict", lambda: verdict(study)),
        *folder.attempt("chain", lambda: _chain(study, stages, status == "running")),
        *(section for index, stage in enumerate(stages) for section in _stage(folder, study, stage, index)),
        *folder.attempt("decisions", lambda: _decisions(study)),
        *folder.attempt("trials", lambda: _trials(study)),
    ]
    title, told = words(study.get("name") or path.resolve().name, 80), words(study.get("question") or "", 300)
    return document(folder, "study", title, sections, subtitle=told, status=status)


def _tables(value: Any) -> list[dict[str, Any]]:
    return [one for one in as_list(value) if isinstance(one, dict)]


def _chain(study: dict[str, Any], stages: list[dict[str, Any]], going: bool) -> Section:
    """One box per stage with its arms and what was chosen, and the words of caution."""
    decisions = {str(one.get("id")): one for one in _tables(study.get("decisions"))}
    boxes = [
        {
            "name": words(stage.get("name") or "?", 60),
            "question": words(stage.get("question") or "", 300),
            "status": _standing(stage, decisions.get(str(stage.get("decision"))), going),
            "needs": [words(one, 60) for one in as_list(stage.get("needs"))],
            "arms": [
                {"name": words(arm.get("name") or "?", 80), "dropped": words(arm.get("dropped") or "", 200),
                 "chosen": arm.get("chosen") is True, "trials": _trials_of(arm)}
                for arm in _tables(stage.get("arms"))
            ],
            "inputs": [
                f"{key} = {words(as_table(given).get('value'), 60)}"
                for key, given in as_table(stage.get("inputs")).items()
            ],
            "decision": words(as_table(decisions.get(str(stage.get("decision")))).get("words") or "", 500),
        }
        for stage in stages
    ]  # fmt: skip
    data = {"stages": boxes, **cautions(study), "from": place(STUDY, key="stages")}
    return section("chain", "chain", "Chain", data, STUDY)


def _standing(stage: dict[str, Any], decision: dict[str, Any] | None, going: bool) -> str:
    return stage_state(stage.get("kind"), words(stage.get("status") or "?", 30), decision, going)


def _trials_of(arm: dict[str, Any]) -> str:
    finished = arm.get("finished")
    return trials_words(finished if isinstance(finished, int) else None, len(as_list(arm.get("trials"))))


def _stage(folder: Folder, study: dict[str, Any], stage: dict[str, Any], index: int) -> list[Section]:
    """The numbers of a stage's arms, and their curves where the runs lie inside the study's folder."""
    name = words(stage.get("name") or f"stage {index + 1}", 60)
    arms = _tables(stage.get("arms"))
    runs = _runs(folder, study, arms)
    sections = folder.attempt(f"stage {name}", lambda: _arms_table(study, arms, name, index))
    sections += folder.attempt(f"retention of {name}", lambda: _retention_table(arms, name, index))
    if runs and sum(map(len, runs.values())) <= MOST_RUNS:
        more = [
            *folder.attempt(f"curves of {name}", lambda: arm_curves(runs)),
            *folder.attempt(f"pareto of {name}", lambda: arm_pareto(runs)),
        ]
        sections += [one | {"id": f"{one['id']}_{index}", "title": f"{name}: {one['title'].lower()}"} for one in more]
    return sections


def _runs(folder: Folder, study: dict[str, Any], arms: list[dict[str, Any]]) -> dict[str, list[RunRecord]]:
    """The arms' runs that lie inside the study's folder, whatever its file says; one that is refused is noted."""
    trials, runs = as_table(study.get("trials")), dict[str, list[RunRecord]]()
    for arm in arms:
        for trial in as_list(arm.get("trials")):
            path = folder.inside(as_table(trials.get(str(trial))).get("run"))
            if path is None:
                continue
            try:
                record = RunRecord(path)
            except LabError as error:
                folder.miss(f"run of {words(trial, 60)}", f"could not be shown ({words(str(error), 300)})")
            else:
                runs.setdefault(words(arm.get("name") or "?", 80), []).append(record)
    return runs


def _arms_table(study: dict[str, Any], arms: list[dict[str, Any]], name: str, index: int) -> Section | None:
    """The numbers of a stage: one row per arm, one column per metric."""
    metrics, cells = _cells(arms, "metrics", ("value", "low", "high"), index)
    if not metrics:
        return None
    for row in cells:
        for key, cell in zip(metrics, row, strict=True):
            cell["plain"] = as_table(as_table(study.get("metrics")).get(key)).get("unit", "share") != "share"
    rows = [f"{words(arm.get('name') or '?', 80)}{' ★' if arm.get('chosen') else ''}" for arm in arms]
    data = {"columns": metrics, "rows": rows, "cells": cells}
    note = "★ is the arm that was chosen; 95 % intervals for new seeds and problems."
    return section(f"stage_{index}", "grid", f"{name}: arms", data, STUDY, note)


def _retention_table(arms: list[dict[str, Any]], name: str, index: int) -> Section | None:
    """What each arm kept of its skills: average, worst, forgetting."""
    names, cells = _cells(arms, "retention", ("value", "low", "high", "n"), index)
    if not names:
        return None
    data = {"columns": names, "rows": [words(arm.get("name") or "?", 80) for arm in arms], "cells": cells}
    note = f"Skills on dev problems at the end of training; 95 % t intervals over seeds. {KEPT}"
    return section(f"retention_{index}", "grid", f"{name}: what was kept", data, STUDY, note)


def _cells(
    arms: list[dict[str, Any]], part: str, sides: tuple[str, ...], index: int
) -> tuple[list[str], list[list[dict[str, Any]]]]:
    """What the arms' tables of that name hold: their keys, and for each arm the numbers with their place."""
    tables = [as_table(arm.get(part)) for arm in arms]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    sources = {key: place(STUDY, key=f"stages[{index}].arms[].{part}.{key}") for key in keys}
    return keys, [
        [{side: rounded(as_table(table.get(key)).get(side)) for side in sides} | {"from": sources[key]} for key in keys]
        for table in tables
    ]


def _decisions(study: dict[str, Any]) -> Section | None:
    rows = []
    for index, one in enumerate(map(as_table, as_list(study.get("decisions")))):
        comparisons = [
            {key: words(compared.get(key), 80) for key in ("metric", "arm", "versus", "outcome")}
            | {key: rounded(compared.get(key)) for key in ("mean", "low", "high", "p")}
            | {"share": _of_shares(study, compared)}
            for compared in map(as_table, as_list(one.get("comparisons")))
        ]
        told = {key: words(one.get(key) if one.get(key) is not None else "", 500) for key in TOLD}
        rows.append({**told, "comparisons": comparisons, "from": place(STUDY, key=f"decisions[{index}]")})
    return section("decisions", "decisions", "Decisions", rows, STUDY) if rows else None


def _of_shares(study: dict[str, Any], compared: dict[str, Any]) -> bool:
    """Whether a comparison is told in points; earlier versions did not record it."""
    unit = as_table(as_table(study.get("metrics")).get(str(compared.get("metric")))).get("unit", "share")
    known = unit == "share" and not str(compared.get("metric")).startswith("cost.")
    return compared.get("share", known) is True


def _trials(study: dict[str, Any]) -> Section | None:
    rows = [
        [words(key, 60), words(one.get("seed"), 20), words(one.get("status") or "?", 30),
         words(one.get("seconds"), 20), words(one.get("run") or "", 200)]
        for key, one in as_table(study.get("trials")).items()
        if isinstance(one, dict)
    ]  # fmt: skip
    data = {"columns": ["trial", "seed", "status", "seconds", "run folder"], "rows": rows, "command": ""}
    return section("trials", "table", "Trials", data, STUDY) if rows else None
