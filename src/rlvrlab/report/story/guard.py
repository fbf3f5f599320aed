"""What the guard did: how often it bent a step, by how much, and what a bent step was still expected to cost."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

from rlvrlab.report.reading import as_table
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.story import pictures
from rlvrlab.report.story.part import Part, rows_of
from rlvrlab.report.story.pictures import Curve

ACTIVE, CORRECTION, RELAXED = "guard/active", "guard/correction", "guard/relaxed"
CHANGE, ALLOWED = "/change", "/epsilon"
ROUNDING = 1e-9
"""A smaller expected loss is an error of rounding."""


class Expected(NamedTuple):
    """A step's expected change of a protected skill, to first order, and what it was allowed to lose."""

    change: float
    allowed: float | None
    skill: str
    step: int


def guard(run: RunRecord) -> Part | None:
    """None where no guard that bends steps had a skill to protect."""
    if not run.series(ACTIVE):
        return None
    sizes = {"correction": _curve(run, CORRECTION), "skills that bend the step": _curve(run, ACTIVE)}
    tables = {"guard": (["what", "step", "value"], rows_of(sizes))}
    shown = {"guard": pictures.lines("What the guard did", sizes, "size, and number of skills")}
    changes = {_skill(key): _curve(run, key) for key in run.keys if key.startswith("guard/") and key.endswith(CHANGE)}
    if changes:
        tables["guard_change"] = (["skill", "step", "expected_change"], rows_of(changes))
        shown["guard_change"] = pictures.lines("Expected change of protected skills", changes, "objective, per step")
    return Part(tables, shown, [_acted(run, relative=bool(changes)) + _cost(run, list(changes))])


def _acted(run: RunRecord, *, relative: bool) -> str:
    """How often and by how much; a guard that corrects the step measures by the step, one of the gradient does not."""
    steps = _curve(run, ACTIVE)
    acted = {step for step, skills in steps if skills > 0}
    name = as_table(run.recipe.get("guard")).get("type", "?")
    said = f"**Guard** ({name}). It bent {len(acted)} of the {len(steps)} steps in which a skill was protected"
    sizes = [size for step, size in _curve(run, CORRECTION) if step in acted]
    if sizes:
        unit = "of the step's length" if relative else "(norm of what is added to the gradient)"
        said += f", on average by {fmean(sizes):.2g} and at most by {max(sizes):.2g} {unit}"
    cut = sum(value > 0 for _, value in _curve(run, RELAXED))
    return f"{said}; in {cut} the demanded gains contradicted each other and were cut." if cut else f"{said}."


def _cost(run: RunRecord, skills: list[str]) -> str:
    """The largest loss that a step was expected to cost a protected skill, beside what it was allowed."""
    found = []
    for skill in skills:
        allowed = dict(_curve(run, f"guard/{skill}{ALLOWED}"))
        found += [Expected(y, allowed.get(x), skill, int(x)) for x, y in _curve(run, f"guard/{skill}{CHANGE}")]
    if not found:
        return ""
    worst = min(found)
    if worst.change >= -ROUNDING:
        return " No step was expected to cost a protected skill anything (to first order)."
    beside = "" if worst.allowed is None else f", where {worst.allowed:.2g} was allowed"
    return (
        f" The most that a step was expected to cost a protected skill (to first order, in its objective) is "
        f"{-worst.change:.2g}: {worst.skill}, step {worst.step}{beside}."
    )


def _curve(run: RunRecord, key: str) -> Curve:
    return [(x, y) for x, y, _ in run.series(key)]


def _skill(key: str) -> str:
    return key.removeprefix("guard/").removesuffix(CHANGE)
