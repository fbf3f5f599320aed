"""Two folders or more: what differs in the recipe, what differs in the result, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlvrlab.errors import LabError
from rlvrlab.evals.compare import QUESTIONS, compare_folders
from rlvrlab.evals.matching import matching
from rlvrlab.evals.statistics import compare_seeds
from rlvrlab.record.evaluation import Stored
from rlvrlab.record.final import standing
from rlvrlab.record.settings import APART, differing, settings
from rlvrlab.report.gather.arms import Arms, arm_curves, arm_matrix, arm_pareto, arms_of
from rlvrlab.report.gather.cards import CardRecord, end_cards
from rlvrlab.report.gather.evaluation import (
    EvaluationRecord,
    costs,
    error_bars,
    evaluations_below,
    pass_at_k,
    shown_answers,
    tell_apart,
)
from rlvrlab.report.gather.of_seeds import mean_of_seeds
from rlvrlab.report.gather.opening import opening
from rlvrlab.report.gather.overview import result
from rlvrlab.report.gather.rollouts import MOST, Answers, training_answers
from rlvrlab.report.reading import STRANGE, Fact, Folder, Section, document, number, place, rounded, section, words
from rlvrlab.report.run_record import RunRecord


def gather_runs(paths: Sequence[Path]) -> dict[str, Any]:
    """Runs side by side; equal recipes are seeds of one arm; a seed that is there twice stands apart."""
    runs = [RunRecord(path) for path in paths]
    arms = arms_of(runs)
    folder = Folder(paths[0].parent)
    answers = Answers()
    interference = []
    try:
        interference = arm_matrix(arms)
    except STRANGE as error:
        folder.miss("interference", f"could not be shown ({words(str(error), 100)})")
    paired = folder.attempt("paired test", lambda: _paired_test(arms, folder))

    def alone() -> Fact | None:
        return mean_of_seeds(runs) if len(arms) == 1 else None

    sections = [
        *folder.attempt("answer", lambda: opening(next(iter(paired), None), folder.missing, alone())),
        *folder.attempt("arms", lambda: _runs_table(arms)),
        *folder.attempt("learning curves", lambda: arm_curves(arms)),
        *paired,
        *folder.attempt("recipes", lambda: _recipe_diff(arms)),
        *interference,
        *folder.attempt("pareto", lambda: arm_pareto(arms)),
        *folder.attempt("rollouts", lambda: _answers(arms, answers)),
    ]
    folder.missing += [
        {"what": f"{run.root.name}/{one['what']}", "why": one["why"]} for run in runs for one in run.folder.missing
    ]
    several = " against ".join(words(name, 60) for name in list(arms)[:3])
    title = several if len(arms) > 1 else f"{runs[0].name}: {len(runs)} seed{'s' if len(runs) > 1 else ''}"
    told = f"{len(runs)} runs in {len(arms)} arm{'s' if len(arms) > 1 else ''}"
    status = ", ".join(sorted({run.status for run in runs}))
    return document(folder, "comparison", title, sections, subtitle=told, status=status)


FACTS = ("arm", "run", "seed", "status", "steps", "result", "low", "high", "measured on")
"""The columns of the table of runs before those of the keys that differ."""


def _runs_table(arms: Arms) -> Section:
    """Every run with its result and the keys that differ: to sort, to group by arm, to draw against each other."""
    keys = differing([settings(run.recipe) for group in arms.values() for run in group])
    rows = []
    for name, group in arms.items():
        for run in group:
            last = run.metrics[-1].row.get("step") if run.metrics else None
            found = result(run)[:1]
            told = [(rounded(one.accuracy), rounded(one.low), rounded(one.high), one.role) for one in found]
            mine, seed = settings(run.recipe), words(run.recipe.get("seed", "?"), 20)
            numbers = told[0] if told else (None, None, None, "")
            changed = [_plain(mine.get(key)) for key in keys]
            rows.append([name, run.root.name, seed, run.status, last, *numbers, *changed])
    data = {"columns": [*FACTS, *keys], "rows": rows, "keys": keys}
    note = f"Runs whose recipes differ only in {', '.join(APART)} are seeds of one arm; a repeated seed stands apart."
    return section("arms", "runs", "Runs", data, "config.json", note)


def _plain(value: Any) -> float | str | None:
    """A number as a number, so that it can be drawn; anything else as text."""
    exact = number(value)
    return exact if exact is not None else None if value is None else words(value, 80)


def _recipe_diff(arms: Arms) -> Section:
    first = [settings(group[0].recipe) for group in arms.values()]
    rows = [[key, *(words(table.get(key), 200) for table in first)] for key in differing(first)]
    note = "Only keys that differ." if rows else "The recipes are the same, up to the seed."
    data = {"columns": ["key", *arms], "rows": rows, "command": ""}
    return section("recipe", "table", "Recipe diff", data, "config.json", note)


def _paired_test(arms: Arms, folder: Folder) -> Section | None:
    """The first two arms on the same problems, from evaluations of their final checkpoints, else from their cards."""
    if len(arms) < 2:
        return None
    names, groups = list(arms)[:2], list(arms.values())[:2]
    examined = [[run.root for run in group if standing(run.root)] for group in groups]
    found = _compared(lambda: matching(examined[0], examined[1]), names, folder) if all(examined) else None
    if found is not None:
        return found
    cards = [[(run, card) for run in group for card in end_cards(run)[-1:]] for group in groups]
    if all(cards):
        return _card_test(cards, names, folder)
    text = (
        "verdicts on the same problems are not recorded on both sides; set eval.test_size, "
        "or `rlvr eval --run RUN` for each"
    )
    folder.miss("paired test", text)
    return None


def _card_test(cards: list[list[tuple[RunRecord, CardRecord]]], names: list[str], folder: Folder) -> Section | None:
    """The last cards of two arms, paired on the problems that all of them have a verdict on."""
    every = [card for group in cards for _, card in group]
    shared = sorted(set.intersection(*(set(card.outcomes) for card in every)))
    if not shared:
        text = "the cards of the two sides are on different problems; `rlvr eval --run RUN` for each asks the same"
        folder.miss("paired test", text)
        return None
    before, after = (np.array([[card.outcomes[key] for key in shared] for _, card in group]) for group in cards)
    difference = compare_seeds(before, after)
    row = {"what": "accepted@1 on test problems", "before": rounded(before.mean()), "after": rounded(after.mean()),
           "difference": difference.facts(), "verdict": difference.verdict}  # fmt: skip
    left = len(set.union(*(set(card.outcomes) for card in every))) - len(shared)
    count = f"{len(shared)} test problems{f', {left} not judged on every side left out' if left else ''}."
    told = "; ".join(f"{run.root.name}: {card.phase}, step {card.step}" for group in cards for run, card in group)
    notes = [count, f"Cards: {told}."]
    if len({words(run.recipe.get("env"), 10**6) for group in cards for run, _ in group}) > 1:
        notes.append("The environments' settings differ: problems of one name are taken to be the same.")
    asked = [card.asked for card in every if card.asked]
    if unlike := [name for name, fact, _ in QUESTIONS if len({words(one.get(fact), 10**6) for one in asked}) > 1]:
        notes.append(f"The cards differ in their {', '.join(unlike)}; `rlvr eval --run RUN` for each asks the same.")
    tables = [{"title": "", "rows": [row]}]
    data = {"names": names, "tables": tables, "notes": notes, "from": place("analysis/cards/")}
    note = f"Paired by problem, greedy answers at the end of each run's last phase. {difference.caution}"
    return section("paired", "paired", "Paired test", data, "analysis/cards/", note)


def comparison_table(
    before: EvaluationRecord, after: EvaluationRecord, names: list[str], folder: Folder
) -> Section | None:
    """The paired test of `rlvr compare`, as a section."""
    first, second = before.stored, after.stored
    if first is None or second is None:
        folder.miss("paired test", "one side's answers cannot be read")
        return None
    return _compared(lambda: ([first], [second]), names, folder)


def _compared(
    sides: Callable[[], tuple[Sequence[Stored], Sequence[Stored]]], names: list[str], folder: Folder
) -> Section | None:
    try:
        compared = compare_folders(*sides())
    except LabError as error:
        folder.miss("paired test", words(str(error), 400))
        return None
    facts, question = compared.facts(), compared.measures[0].what
    titles = {"measures": "", "by_skill": f"{question}, by skill", "by_level": f"{question}, by level"}
    tables = [{"title": title, "rows": facts[key]} for key, title in titles.items() if facts[key]]
    notes = [
        f"{compared.about}; seeds: {compared.seeds[0]} and {compared.seeds[1]}.",
        compared.caution,
        compared.adjustment,
        *compared.notes,
    ]
    data = {"names": names, "tables": tables, "notes": notes, "from": place("samples.jsonl")}
    note = "Paired by problem. MDE: the smallest true difference a comparison like this finds 4 times in 5."
    return section("paired", "paired", "Paired test", data, "samples.jsonl", note)


def _answers(arms: Arms, answers: Answers) -> Section | None:
    """Answers of the first run of each arm; evaluations first, because there all were asked the same."""
    runs = [(name, group[0]) for name, group in arms.items()][:4]
    sides = []
    for name, run in runs:
        stands = [one.folder for one in standing(run.root)[-1:]]
        for one in (record for record in evaluations_below(run.folder) if record.root in stands):
            one.side = f"{words(name, 60)} · evaluation"
            sides.append(one)
    if len(sides) == len(runs):
        shown_answers(sides, answers)
    share = (MOST - len(answers)) // len(runs)
    for name, run in runs:
        if not answers.full:
            training_answers(run.folder, answers, words(name, 60), share)
    return answers.section()


def gather_evaluations(paths: Sequence[Path]) -> dict[str, Any]:
    """Evaluations side by side: the first against the last."""
    sides = tell_apart([EvaluationRecord(Folder(path)) for path in paths])
    names = [one.side for one in sides]
    folder, answers = Folder(paths[0].parent), Answers()
    shown_answers(sides, answers)
    ends = [names[0], names[-1]]
    paired = folder.attempt("paired test", lambda: comparison_table(sides[0], sides[-1], ends, folder))
    sections = [
        *folder.attempt("answer", lambda: opening(next(iter(paired), None), folder.missing)),
        *paired,
        *folder.attempt("pass@k", lambda: pass_at_k(sides)),
        *folder.attempt("errors", lambda: error_bars(sides)),
        *folder.attempt("cost", lambda: costs(sides)),
        *folder.attempt("rollouts", lambda: answers.section("Answers, side by side", "samples.jsonl")),
    ]
    folder.missing += [
        {"what": f"{side.root.name}/{one['what']}", "why": one["why"]} for side in sides for one in side.folder.missing
    ]
    title = " against ".join(dict.fromkeys((names[0], names[-1])))
    data = words(sides[0].examined.get("data") or "", 80)
    return document(folder, "comparison", title, sections, subtitle=data)
