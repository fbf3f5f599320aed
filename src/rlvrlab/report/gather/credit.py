"""Which lines of an answer earned its reward, as `rlvr credit` wrote it down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlvrlab.report.gather.reading import Fact, Folder, Section, document, number, place, rounded, section, words

LONGEST = 20_000
MOST = 50


def credit(folder: Folder, name: str, expected: bool = False) -> Section | None:
    """None where nobody has measured credit."""
    if not (folder.root / name).exists():
        if expected:
            folder.miss(name, "step credit per answer is not kept by training; `rlvr credit RUN` measures it for some")
        return None
    found = folder.table(name)
    answers = found.get("answers")
    shown = [_answer(one, name) for one in answers[:MOST] if isinstance(one, dict)] if isinstance(answers, list) else []
    if not shown:
        return None
    estimator = words(found.get("estimator") or "unknown", 40)
    note = (
        "Each step is deleted and the rest judged again: the number is what success loses without it."
        if estimator == "leave_one_out"
        else f"Credit of each step by {estimator}, in units of reward."
    )
    data = {"estimator": estimator, "label": words(found.get("label") or "", 40), "answers": shown}
    return section("credit", "credit", "Credit", data, name, note)


def gather_credit(path: Path) -> dict[str, Any]:
    """The page of a credit file by itself."""
    folder = Folder(path.parent)
    sections = folder.attempt("credit", lambda: credit(folder, path.name))
    return document(folder, "credit", path.stem, sections, subtitle="which steps earned the reward")


def _answer(one: dict[str, Any], file: str) -> Fact:
    text = str(one.get("text", ""))
    steps = [
        {
            "start": step["start"],
            "end": step["end"],
            "kind": words(step.get("kind") or "", 40),
            "credit": rounded(step.get("credit"), 4),
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
        "most": max((abs(v) for step in steps if (v := number(step["credit"])) is not None), default=0.0),
        "from": place(file, key="answers"),
    }
