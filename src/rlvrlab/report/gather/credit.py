"""Which steps of an answer earned its reward: as training kept it with its answers, and as `rlvr credit` found it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.report.gather.rollouts import Answers
from rlvrlab.report.reading import Fact, Folder, Section, as_table, document, place, rounded, section, words
from rlvrlab.report.run_record import RunRecord

LONGEST = 20_000
MOST = 50
USUAL = ["delete", "truncate"]
"""Interventions of a recipe that names none."""


def credit(folder: Folder, name: str) -> Section | None:
    """Credit as a file holds it; None where nobody has measured it."""
    if not (folder.root / name).exists():
        return None
    file = folder.table(name)
    answers = file.get("answers")
    rows = [one for one in answers if isinstance(one, dict)] if isinstance(answers, list) else []
    shown = [_answer(one, one.get("text"), place(name, key="answers")) for one in rows[:MOST]]
    if not shown:
        return None
    estimator, label = words(file.get("estimator") or "unknown", 40), words(file.get("label") or "", 40)
    data = {"estimator": estimator, "label": label, "answers": shown}
    return section("credit", "credit", "Credit", data, name, _note(estimator))


def training_credit(run: RunRecord, answers: Answers) -> Section | None:
    """Credit as training measured it, for at most MOST of the answers shown, spread over the steps."""
    if not answers.credited:
        if any(value for _, value, _ in run.series("credit/steps")):
            text = "no answer shown has the credit of its steps beside it; `rlvr credit RUN` measures it for some"
            run.folder.miss("credit in training", text)
        return None
    different = list({(str(one[0]["problem"]), str(one[0]["completion"])): one for one in answers.credited}.values())
    telling = [one for one in different if any(as_table(step).get("credit") for step in one[0]["steps"])]
    chosen = telling or different
    some = [chosen[i * len(chosen) // min(MOST, len(chosen))] for i in range(min(MOST, len(chosen)))]
    shown = [_answer(row, row.get("completion"), place(file, line, step)) for row, file, line, step in some]
    table = as_table(run.recipe.get("credit"))
    estimator, kinds = words(table.get("estimator") or "leave_one_out", 40), table.get("intervention_types", USUAL)
    if estimator == "leave_one_out" and not (kinds == ["delete"] and table.get("replay", "fixed") == "fixed"):
        told = " and ".join(words(kind, 20) for kind in kinds) if isinstance(kinds, list) else words(kinds, 40)
        estimator += f": {told}"  # what was done to the steps, unless they were simply deleted
    unbiased = [value for _, value, _ in run.series("credit/unbiased")]
    label = ("unbiased" if unbiased[-1] else "shaping") if unbiased else ""
    left = "those in which no step matters are left out" if telling else "in none of them does a step matter"
    note = f"{_note(estimator)} {len(shown)} of {len(different)} different answers with credit on this page; {left}."
    data = {"estimator": estimator, "label": label, "answers": shown}
    return section("credit_training", "credit", "Credit in training", data, "rollouts/", note)


def _note(estimator: str) -> str:
    if estimator == "leave_one_out":
        return "Each step is deleted and the rest judged again: the number is what success loses without it."
    return f"Credit of each step by {estimator.replace('_', ' ')}, in units of reward."


def gather_credit(path: Path) -> dict[str, Any]:
    """The page of a credit file by itself."""
    folder = Folder(path.parent)
    sections = folder.attempt("credit", lambda: credit(folder, path.name))
    return document(folder, "credit", path.stem, sections, subtitle="which steps earned the reward")


def _answer(one: dict[str, Any], text: Any, source: Fact) -> Fact:
    text = text if isinstance(text, str) else ""
    steps = [
        {
            "start": step["start"],
            "end": step["end"],
            "kind": words(step.get("kind") or "", 40),
            "credit": rounded(step.get("credit"), 4),
            **({"advantage": rounded(step["advantage"], 4)} if "advantage" in step else {}),
            **({"examined": False} if step.get("examined") is False else {}),
        }
        for step in one.get("steps") or ()
        if isinstance(step, dict) and isinstance(step.get("start"), int) and isinstance(step.get("end"), int)
    ]
    correct = one.get("correct")
    return {
        "id": words(one.get("id") or "?", 300),
        "problem": words(one.get("problem") or "", 300),
        "correct": correct if isinstance(correct, bool) else None,
        "reward": rounded(one.get("reward")),
        "text": text[:LONGEST],
        "steps": sorted((s for s in steps if 0 <= s["start"] < s["end"] <= LONGEST), key=lambda s: s["start"]),
        "most": max((abs(step["credit"]) for step in steps if step["credit"] is not None), default=0.0),
        "from": source,
    }
