"""A study's folder: the chain of stages, every arm with its numbers, every decision with its reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.report.gather.arms import arm_curves, arm_pareto
from rlvrlab.report.gather.reading import Fact, Folder, Section, as_table, document, place, rounded, section, words
from rlvrlab.report.gather.record import RunRecord

STUDY, SCHEMA = "study.json", 1
MOST_RUNS = 60


def gather_study(path: Path) -> dict[str, Any]:
    """The page of one study."""
    folder = Folder(path)
    found = folder.table(STUDY)
    if found and found.get("schema") != SCHEMA:
        folder.miss(
            STUDY, f"schema {found.get('schema')}, this version knows {SCHEMA}; shown as far as it is understood"
        )
    stages = [stage for stage in _list(found.get("stages")) if isinstance(stage, dict)]
    sections = [
        *folder.attempt("chain", lambda: _chain(found, stages)),
        *(one for index, stage in enumerate(stages) for one in _stage(folder, found, stage, index)),
        *folder.attempt("decisions", lambda: _decisions(found)),
        *folder.attempt("trials", lambda: _trials(found)),
    ]
    title, told = words(found.get("name") or path.resolve().name, 80), words(found.get("question") or "", 300)
    return document(folder, "study", title, sections, subtitle=told, status=words(found.get("status") or "unknown", 40))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _chain(found: dict[str, Any], stages: list[dict[str, Any]]) -> Section:
    """Boxes with their arms and what was chosen, and the words of caution."""
    decisions = {str(one.get("id")): one for one in _list(found.get("decisions")) if isinstance(one, dict)}
    boxes = [_box(stage, as_table(decisions.get(str(stage.get("decision"))))) for stage in stages]
    caveats = [words(as_table(one).get("text") or one, 500) for one in _list(found.get("caveats"))]
    failures = [
        f"{words(as_table(one).get('trial'), 40)}: {words(as_table(one).get('why'), 300)}"
        for one in _list(found.get("failures"))
    ]
    data = {"stages": boxes, "caveats": caveats, "failures": failures, "from": place(STUDY, key="stages")}
    return section("chain", "chain", "Chain", data, STUDY)


def _box(stage: dict[str, Any], decision: dict[str, Any]) -> Fact:
    arms = [arm for arm in _list(stage.get("arms")) if isinstance(arm, dict)]
    return {
        "name": words(stage.get("name") or "?", 60),
        "question": words(stage.get("question") or "", 300),
        "status": words(stage.get("status") or "?", 30),
        "needs": [words(one, 60) for one in _list(stage.get("needs"))],
        "arms": [_arm(arm) for arm in arms],
        "inputs": [f"{k} = {words(as_table(v).get('value'), 60)}" for k, v in as_table(stage.get("inputs")).items()],
        "decision": words(decision.get("words") or "", 500),
    }


def _arm(arm: dict[str, Any]) -> Fact:
    told = {"name": words(arm.get("name") or "?", 80), "dropped": words(arm.get("dropped") or "", 200)}
    return told | {"chosen": arm.get("chosen") is True, "trials": len(_list(arm.get("trials")))}


def _stage(folder: Folder, found: dict[str, Any], stage: dict[str, Any], index: int) -> list[Section]:
    name = words(stage.get("name") or f"stage {index + 1}", 60)
    arms = [arm for arm in _list(stage.get("arms")) if isinstance(arm, dict)]
    runs: dict[str, list[RunRecord]] = {}
    for arm in arms:
        mine = _runs(folder, found, _list(arm.get("trials")))
        if mine:
            runs[words(arm.get("name") or "?", 80)] = mine
    sections = folder.attempt(f"stage {name}", lambda: _numbers(found, arms, name, index))
    if runs and sum(map(len, runs.values())) <= MOST_RUNS:
        more = [
            *folder.attempt(f"curves of {name}", lambda: arm_curves(runs)),
            *folder.attempt(f"pareto of {name}", lambda: arm_pareto(runs)),
        ]
        sections += [one | {"id": f"{one['id']}_{index}", "title": f"{name}: {one['title'].lower()}"} for one in more]
    return sections


def _runs(folder: Folder, found: dict[str, Any], trials: list[Any]) -> list[RunRecord]:
    records = []
    for trial in trials:
        run = as_table(as_table(found.get("trials")).get(str(trial))).get("run")
        path = (folder.root / run).resolve() if isinstance(run, str) else None
        # A study never reads outside its own folder, whatever its file says.
        if path is not None and path.is_dir() and path.is_relative_to(folder.root.resolve()):
            records.append(RunRecord(path))
    return records


def _numbers(found: dict[str, Any], arms: list[dict[str, Any]], name: str, index: int) -> Section | None:
    """Arms down, metrics across."""
    metrics = list(dict.fromkeys(key for arm in arms for key in as_table(arm.get("metrics"))))
    if not metrics:
        return None
    units = {key: as_table(as_table(found.get("metrics")).get(key)).get("unit", "share") for key in metrics}
    source = f"stages[{index}].arms[].metrics"
    cells = [
        [_cell(as_table(as_table(arm.get("metrics")).get(key)), units[key], f"{source}.{key}") for key in metrics]
        for arm in arms
    ]
    rows = [f"{words(arm.get('name') or '?', 80)}{' ★' if arm.get('chosen') else ''}" for arm in arms]
    note = "★ is the arm that was chosen; 95 % intervals."
    return section(
        f"stage_{index}", "grid", f"{name}: arms", {"columns": metrics, "rows": rows, "cells": cells}, STUDY, note
    )


def _cell(numbers: dict[str, Any], unit: Any, key: str) -> Fact:
    told = {side: rounded(numbers.get(side)) for side in ("value", "low", "high")}
    return {**told, "plain": unit != "share", "from": place(STUDY, key=key)}


def _decisions(found: dict[str, Any]) -> Section | None:
    rows = [_decision(as_table(one), number) for number, one in enumerate(_list(found.get("decisions")))]
    return section("decisions", "decisions", "Decisions", rows, STUDY) if rows else None


TOLD = ("time", "stage", "kind", "rule", "chosen", "recommended", "runner_up", "by", "who", "reason", "words")
COMPARED = ("mean", "low", "high", "p_holm")


def _decision(one: dict[str, Any], index: int) -> Fact:
    comparisons = [
        {key: words(c.get(key), 80) for key in ("metric", "arm", "versus", "tied")}
        | {key: rounded(c.get(key)) for key in COMPARED}
        for c in map(as_table, _list(one.get("comparisons")))
    ]
    told: Fact = {key: words(one.get(key) if one.get(key) is not None else "", 500) for key in TOLD}
    source = place(STUDY, key=f"decisions[{index}]")
    return told | {"significant": one.get("significant") is True, "comparisons": comparisons, "from": source}


def _trials(found: dict[str, Any]) -> Section | None:
    rows = [
        [
            words(key, 60),
            words(one.get("seed"), 20),
            words(one.get("status") or "?", 30),
            words(one.get("seconds"), 20),
            words(one.get("run") or "", 200),
        ]
        for key, one in as_table(found.get("trials")).items()
        if isinstance(one, dict)
    ]
    data = {"columns": ["trial", "seed", "status", "seconds", "run folder"], "rows": rows, "command": ""}
    return section("trials", "table", "Trials", data, STUDY) if rows else None
