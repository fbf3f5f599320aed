"""A run folder: every section its files can fill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.report.gather.credit import credit, training_credit
from rlvrlab.report.gather.curves import curves
from rlvrlab.report.gather.evaluation import costs, evaluations_below, pass_at_k, shown_answers
from rlvrlab.report.gather.figures import cost, errors, hacks, signal
from rlvrlab.report.gather.overview import event, overview
from rlvrlab.report.gather.reading import Section, as_table, document, number, place, rounded, section, words
from rlvrlab.report.gather.record import EVENTS, RunRecord
from rlvrlab.report.gather.rollouts import Answers, training_answers
from rlvrlab.report.gather.skills import forgetting, stage_matrix

CARD_ROWS = ("accepted_at_1", "pass_ratio_mean", "exec_success_rate", "syntax_error_rate", "zero_reward_rate",
             "recovery_rate", "blind_recovery_rate")  # fmt: skip


def gather_run(path: Path) -> dict[str, Any]:
    """The document of one run; each section is made on its own, so that one failure does not cost the others."""
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
        "cost of evaluations": lambda: costs(sides, "evaluation_cost", "Cost of evaluations"),
        "hack monitor": lambda: hacks(run, answers),
        "credit in training": lambda: training_credit(run, answers),
        "credit": lambda: credit(folder, "analysis/credit.json"),
        "rollouts": lambda: answers.section(),
        "recipe": lambda: recipe(run),
        "events": lambda: events(run),
        "provenance": lambda: section("facts", "facts", "Where it ran", run.info, "run_info.json"),
    }
    sections = [section for what, make in named.items() for section in folder.attempt(what, make)]
    phases = " → ".join(run.phases) or "phases unknown"
    env = as_table(run.recipe.get("env")).get("type") or "unknown environment"
    told = f"{phases} on {words(env, 60)} · {path.resolve().name}"
    return document(folder, "run", run.name, sections, subtitle=told, status=run.status)


def cards(run: RunRecord) -> Section | None:
    """Test results phase by phase, where the recipe asked for cards (eval.test_size)."""
    files = sorted((run.root / "analysis" / "cards").glob("*_*.json"), key=lambda p: p.name)
    every = {path.name: run.folder.table(f"analysis/cards/{path.name}") for path in files}
    cards = {name: card for name, card in every.items() if isinstance(card.get("metrics"), dict)}
    if not cards:
        return None
    measured = [card["metrics"] for card in cards.values()]
    extra = sorted({k for metrics in measured for k in metrics if k.startswith("pass@") and k[5:].isdigit()})
    rows = [key for key in (*CARD_ROWS, *extra) if any(number(metrics.get(key)) is not None for metrics in measured)]
    columns = [f"{card.get('phase', '?')}{' (control)' if card.get('control') else ''}" for card in cards.values()]
    cells = [
        [{"value": rounded(metrics.get(key)), "low": rounded(metrics.get(f"{key}_low")),
          "high": rounded(metrics.get(f"{key}_high")), "from": place(f"analysis/cards/{name}", key=f"metrics.{key}")}
         for name, metrics in zip(cards, measured, strict=True)]
        for key in rows
    ]  # fmt: skip
    data = {"columns": columns, "rows": [row.replace("_", " ") for row in rows], "cells": cells}
    note = "Test problems that nothing was tuned on, greedy, with 95 % intervals."
    return section("phases", "grid", "Phases", data, "analysis/cards/", note)


def recipe(run: RunRecord) -> Section | None:
    """The keys that differ from the defaults, each with where its value was set."""
    changed, origins = run.config.get("changed"), as_table(run.config.get("origins"))
    if not isinstance(changed, dict):
        return None
    rows = [
        [key, words(both.get("value"), 200), words(both.get("default"), 200), words(origins.get(key) or "default", 80)]
        for key, both in changed.items()
        if isinstance(both, dict)
    ]
    command = run.info.get("command")
    told = words(" ".join(map(str, command)), 2000) if isinstance(command, list) else ""
    data = {"columns": ["key", "value", "default", "from"], "rows": rows, "command": told}
    note = "What differs from the defaults; every value is in config.json."
    return section("recipe", "table", "Recipe", data, "config.json", note)


def events(run: RunRecord) -> Section | None:
    """The last 500 lines of the event log."""
    if not run.events:
        return None
    return section("events", "events", "Events", [event(line) for line in run.events[-500:]], EVENTS)
