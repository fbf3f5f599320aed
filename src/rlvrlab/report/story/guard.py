"""What the guard did: how often it bent a step, by how much, and what a bent step was still expected to cost."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

from rlvrlab.report.reading import as_table
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.story.part import Curve, Part, Table, lines, rows_of

ACTIVE, CORRECTION, RELAXED = "guard/active", "guard/correction", "guard/relaxed"
PROTECTED = "guard/protected"
COMPARISON = "What it keeps and what it costs is a comparison with the same recipe without `[guard]` (`rlvr compare`)."
CHANGE, ALLOWED = "/change", "/epsilon"
ROUNDING = 1e-9
"""A smaller expected loss is an error of rounding."""


Drawn = tuple[dict[str, Table], dict[str, str]]
"""Tables, and the pictures of them."""


class Expected(NamedTuple):
    """A step's expected change of a protected skill, to first order, and what it was allowed to lose."""

    change: float
    allowed: float | None
    skill: str
    step: int


def guard(run: RunRecord) -> Part | None:
    """What it did, by what it recorded, and what would tell whether it pays; None where no step asked it."""
    if not run.series(PROTECTED) and not run.series(ACTIVE):
        return None
    bends = bool(run.series(ACTIVE))
    tables, shown = _bent(run) if bends else _recorded(run)
    told = _acted(run, relative="guard_change" in tables) + _cost(run) if bends else _held(run)
    return Part(tables, shown, [f"**Guard** ({_name(run)}). {told} {COMPARISON}"])


def _bent(run: RunRecord) -> Drawn:
    """Of a guard that bends steps: how often and how far, and what a bent step was expected to do to each skill."""
    sizes = {"correction": _curve(run, CORRECTION), "skills that bend the step": _curve(run, ACTIVE)}
    tables: dict[str, Table] = {"guard": (["what", "step", "value"], rows_of(sizes))}
    shown = {"guard": lines("What the guard did", sizes, "size, and number of skills")}
    changes = {_skill(key): _curve(run, key) for key in _changes(run)}
    if changes:
        tables["guard_change"] = (["skill", "step", "expected_change"], rows_of(changes))
        shown["guard_change"] = lines("Expected change of protected skills", changes, "objective, per step")
    return tables, shown


def _recorded(run: RunRecord) -> Drawn:
    """Of a guard that pulls, averages or mixes in: every number that it recorded."""
    curves = {key.removeprefix("guard/"): _curve(run, key) for key in run.keys if key.startswith("guard/")}
    tables: dict[str, Table] = {"guard": (["what", "step", "value"], rows_of(curves))}
    return tables, {"guard": lines("What the guard recorded", curves, "value")}


def _held(run: RunRecord) -> str:
    """In how many steps a guard that bends none had something to protect."""
    steps = _curve(run, PROTECTED)
    held = sum(skills > 0 for _, skills in steps)
    if not held:
        return "No step had a skill that it protects, so it did nothing."
    most = max(skills for _, skills in steps)
    return f"It held {most:.0f} {'skill' if most == 1 else 'skills'} at most, in {held} of {len(steps)} steps."


def _acted(run: RunRecord, *, relative: bool) -> str:
    """How often and by how much; a guard that corrects the step measures by the step, one of the gradient does not."""
    steps = _curve(run, ACTIVE)
    acted = {step for step, skills in steps if skills > 0}
    said = f"It bent {len(acted)} of the {len(steps)} steps in which a skill was protected"
    sizes = [size for step, size in _curve(run, CORRECTION) if step in acted]
    if sizes:
        unit = "of the step's length" if relative else "(norm of what is added to the gradient)"
        said += f", on average by {fmean(sizes):.2g} and at most by {max(sizes):.2g} {unit}"
    cut = sum(value > 0 for _, value in _curve(run, RELAXED))
    return f"{said}; in {cut} the demanded gains contradicted each other and were cut." if cut else f"{said}."


def _cost(run: RunRecord) -> str:
    """The largest loss that a step was expected to cost a protected skill, beside what it was allowed."""
    found = []
    for skill in map(_skill, _changes(run)):
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


def _name(run: RunRecord) -> str:
    return str(as_table(run.recipe.get("guard")).get("type", "?"))


def _changes(run: RunRecord) -> list[str]:
    return [key for key in run.keys if key.startswith("guard/") and key.endswith(CHANGE)]


def _skill(key: str) -> str:
    return key.removeprefix("guard/").removesuffix(CHANGE)
