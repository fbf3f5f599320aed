"""A run folder: every section its files can fill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.record.experiment import made_again
from rlvrlab.report.gather.card_answers import card_answers
from rlvrlab.report.gather.cards import phases
from rlvrlab.report.gather.conflict import conflict
from rlvrlab.report.gather.credit import credit, training_credit
from rlvrlab.report.gather.curves import curves
from rlvrlab.report.gather.evaluation import costs, evaluations_below, pass_at_k, shown_answers
from rlvrlab.report.gather.figures import cost, errors, hacks, signal
from rlvrlab.report.gather.overview import event, health, overview
from rlvrlab.report.gather.rollouts import Answers, training_answers
from rlvrlab.report.gather.skills import forgetting, stage_matrix
from rlvrlab.report.reading import Section, as_table, document, section, words
from rlvrlab.report.run_record import EVENTS, RunRecord


def gather_run(path: Path) -> dict[str, Any]:
    """The document of one run; each section is made on its own, so that one failure does not cost the others."""
    run = RunRecord(path)
    folder, answers = run.folder, Answers()
    sides = evaluations_below(folder)
    shown_answers(sides, answers)
    folder.attempt("answers of cards", lambda: card_answers(run, answers))
    training_answers(folder, answers, "training")
    top = folder.attempt("overview", lambda: overview(run))
    named = {
        "phases": lambda: phases(run),
        "what changed": lambda: recipe(run),
        "what went wrong": lambda: health(top[0]) if top else None,
        "examples": lambda: answers.section("Examples"),
        "learning curves": lambda: curves(run),
        "pass@k": lambda: pass_at_k(sides),
        "interference": lambda: stage_matrix(run),
        "forgetting": lambda: forgetting(run),
        "conflict": lambda: conflict(run),
        "credit in training": lambda: training_credit(run, answers),
        "credit": lambda: credit(folder, "analysis/credit.json"),
        "signal": lambda: signal(run, answers),
        "errors": lambda: errors(run, answers),
        "hack monitor": lambda: hacks(run, answers),
        "events": lambda: events(run),
        "cost": lambda: cost(run),
        "cost of evaluations": lambda: costs(sides, "evaluation_cost", "Cost of evaluations"),
        "provenance": lambda: section("facts", "facts", "Where it ran", run.info, "run_info.json"),
    }
    sections = [*top, *(section for what, make in named.items() for section in folder.attempt(what, make))]
    order = " → ".join(run.phases) or "phases unknown"
    env = as_table(run.recipe.get("env")).get("type") or "unknown environment"
    told = f"{order} on {words(env, 60)} · {path.resolve().name}"
    tones = [one["data"]["answer"]["tone"] for one in sections if one["view"] == "overview"]
    outcome = {"tone": tones[0]} if tones and run.status == "finished" else {}
    return document(folder, "run", run.name, sections, subtitle=told, status=run.status, **outcome)


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
    told = words(" ".join(made_again(run.root, run.config, run.info)), 2000) if run.info.get("command") else ""
    data = {"columns": ["key", "value", "default", "from"], "rows": rows, "command": told}
    note = "The keys that differ from the defaults; every value is in config.json."
    return section("recipe", "table", "What changed", data, "config.json", note)


def events(run: RunRecord) -> Section | None:
    """The last 500 lines of the event log."""
    if not run.events:
        return None
    return section("events", "events", "Events", [event(line) for line in run.events[-500:]], EVENTS)
