"""A run folder: every section its files can fill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.report.gather.credit import credit, training_credit
from rlvrlab.report.gather.curves import curves
from rlvrlab.report.gather.evaluation import costs, evaluations_below, pass_at_k, shown_answers
from rlvrlab.report.gather.figures import cost, errors, hacks, signal
from rlvrlab.report.gather.overview import overview
from rlvrlab.report.gather.reading import Fact, Section, document, number, place, rounded, section, words
from rlvrlab.report.gather.record import EVENTS, RunRecord
from rlvrlab.report.gather.rollouts import Answers, training_answers
from rlvrlab.report.gather.skills import forgetting, stage_matrix

CARD_ROWS = ("accepted_at_1", "pass_ratio_mean", "exec_success_rate", "syntax_error_rate", "zero_reward_rate",
             "recovery_rate", "blind_recovery_rate")  # fmt: skip


def gather_run(path: Path) -> dict[str, Any]:
    """The page of one run."""
    run = RunRecord(path)
    folder, answers = run.folder, Answers()
    sides = evaluations_below(folder)
    shown_answers(sides, answers)
    training_answers(folder, answers, "training")
    named = {
        "overview": lambda: overview(run),
        "phases": lambda: cards(run),
        "learning curves": lambda: curves(run),
        "pass@k": lambda: pass_at_k(sides),
        "interference": lambda: stage_matrix(run),
        "forgetting": lambda: forgetting(run),
        "signal": lambda: signal(run, answers),
        "errors": lambda: errors(run, answers),
        "cost": lambda: cost(run),
        "cost of evaluations": lambda: _renamed(costs(sides), "evaluation_cost", "Cost of evaluations"),
        "hack monitor": lambda: hacks(run, answers),
        "credit in training": lambda: training_credit(run, answers),
        "credit": lambda: credit(folder, "analysis/credit.json"),
        "rollouts": lambda: answers.section(),
        "recipe": lambda: recipe(run),
        "events": lambda: events(run),
        "provenance": lambda: section("facts", "facts", "Where it ran", run.info, "run_info.json"),
    }
    sections = [found for what, make in named.items() for found in folder.attempt(what, make)]
    phases = " → ".join(run.phases) or "phases unknown"
    env = run.recipe.get("env")
    kind = env.get("type") if isinstance(env, dict) else None
    told = f"{phases} on {words(kind or 'unknown environment', 60)} · {path.resolve().name}"
    return document(folder, "run", run.name, sections, subtitle=told, status=run.status)


def _renamed(found: Section | None, name: str, title: str) -> Section | None:
    return None if found is None else found | {"id": name, "title": title}


def cards(run: RunRecord) -> Section | None:
    """Phase by phase on test problems, where the recipe asked for it."""
    files = sorted((run.root / "analysis" / "cards").glob("*_*.json"), key=lambda p: p.name)
    found = [(path.name, run.folder.table(f"analysis/cards/{path.name}")) for path in files]
    found = [(name, card) for name, card in found if isinstance(card.get("metrics"), dict)]
    if not found:
        return None
    extra = sorted({k for _, card in found for k in card["metrics"] if k.startswith("pass@") and k[5:].isdigit()})
    rows = [
        key for key in (*CARD_ROWS, *extra) if any(number(card["metrics"].get(key)) is not None for _, card in found)
    ]
    columns = [f"{card.get('phase', '?')}{' (control)' if card.get('control') else ''}" for _, card in found]
    cells = [[_cell(name, card["metrics"], key) for name, card in found] for key in rows]
    data = {"columns": columns, "rows": [row.replace("_", " ") for row in rows], "cells": cells}
    return section(
        "phases",
        "grid",
        "Phases",
        data,
        "analysis/cards/",
        "Test problems that nothing was tuned on, greedy, with 95 % intervals.",
    )


def _cell(name: str, metrics: dict[str, Any], key: str) -> Fact:
    bounds = {side: rounded(metrics.get(f"{key}_{side}")) for side in ("low", "high")}
    return {"value": rounded(metrics.get(key)), **bounds, "from": place(f"analysis/cards/{name}", key=f"metrics.{key}")}


def recipe(run: RunRecord) -> Section | None:
    """What differs from the defaults, and from where."""
    changed, origins = run.config.get("changed"), run.config.get("origins")
    if not isinstance(changed, dict):
        return None
    origins = origins if isinstance(origins, dict) else {}
    rows = [
        [key, words(both.get("value"), 200), words(both.get("default"), 200), words(origins.get(key) or "default", 80)]
        for key, both in changed.items()
        if isinstance(both, dict)
    ]
    data = {"columns": ["key", "value", "default", "from"], "rows": rows, "command": _command(run)}
    return section(
        "recipe",
        "table",
        "Recipe",
        data,
        "config.json",
        "What differs from the defaults; every value is in config.json.",
    )


def _command(run: RunRecord) -> str:
    command = run.info.get("command")
    return words(" ".join(map(str, command)), 2000) if isinstance(command, list) else ""


def events(run: RunRecord) -> Section | None:
    """What happened, in words."""
    if not run.events:
        return None
    rows = [
        {"time": words(line.row.get("time") or "", 40), "kind": words(line.row.get("kind") or "", 40),
         "text": words(line.row.get("text") or "", 1000), "from": place(EVENTS, line.number, line.row.get("step"))}
        for line in run.events[-500:]
    ]  # fmt: skip
    return section("events", "events", "Events", rows, EVENTS)
