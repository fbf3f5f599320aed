"""What each skill gained and lost: success after every stage, forgetting since the peak, the worst skill."""

from __future__ import annotations

from typing import NamedTuple

from rlvrlab.report.gather.curves import bounds, skill_keys, stages
from rlvrlab.report.gather.newcombe import Bounds, change
from rlvrlab.report.gather.record import RunRecord
from rlvrlab.report.gather.skills import StageTable
from rlvrlab.report.story import pictures
from rlvrlab.report.story.part import Part, Table, bracket, points

Measured = tuple[int, float, Bounds]
"""Step, share and its Wilson interval."""


class End(NamedTuple):
    """A skill's success at the start, at its peak and at the end, and what was lost since the peak."""

    skill: str
    start: float
    peak: float
    end: float
    end_low: float | None
    end_high: float | None
    lost: float
    lost_low: float | None
    lost_high: float | None


def skills(run: RunRecord) -> Part | None:
    """None where fewer than two skills were examined."""
    curves = _curves(run)
    if len(curves) < 2:
        return None
    table, marks = StageTable(run), [(stage["x"], stage["skill"]) for stage in stages(run)]
    ends = [_end(skill, curve) for skill, curve in curves.items()]
    course = [[s, x, y, *(span or (None, None))] for s, curve in curves.items() for x, y, span in curve]
    tables: dict[str, Table] = {
        "forgetting_curves": (["skill", "step", "success", "low", "high"], course),
        "skills_end": (list(End._fields), ends),
    }
    drawn = {skill: [(x, y) for x, y, _ in curve] for skill, curve in curves.items()}
    lost = [(one.skill, -one.lost, _negative(one.lost_high), _negative(one.lost_low)) for one in ends]
    shown = {
        "forgetting_curves": pictures.lines("Success on every skill", drawn, "held-out success", marks),
        "skills_end": pictures.bars("Change since each skill's peak", lost, "end − peak"),
    }
    if table.complete:
        names = ["before", *(f"after {stage['skill']}" for stage in table.stages)]
        tables["retention"] = (["stage", *table.skills], [[n, *row] for n, row in zip(names, table.rows, strict=True)])
        shown["retention"] = pictures.heat("Success after every stage", names, table.skills, table.rows)
    return Part(tables, shown, _sentences(table, ends))


def kept(run: RunRecord) -> dict[str, float]:
    """What a run kept of its skills, as shares; empty where fewer than two were examined.

    `lost` is the mean loss since each skill's peak. The names of skills/metrics.py are there where one skill was
    trained after the other.
    """
    ends = [_end(skill, curve) for skill, curve in _curves(run).items()]
    if len(ends) < 2:
        return {}
    last, lost = [one.end for one in ends], [one.lost for one in ends]
    told = {"average": sum(last) / len(last), "worst": min(last), "lost": sum(lost) / len(lost)}
    retained = StageTable(run).retention()
    if retained is not None:
        told |= {"forgetting": retained.forgetting, "backward_transfer": retained.backward_transfer}
        told["learning"] = retained.learning
    return told


def _curves(run: RunRecord) -> dict[str, list[Measured]]:
    curves: dict[str, list[Measured]] = {}
    for skill, key in skill_keys(run):
        rows = [line.row for line in run.metrics if isinstance(line.row.get(key), int | float)]
        if rows:
            curves[skill] = [(row["step"], float(row[key]), bounds(row, key)) for row in rows]
    return curves


def _end(skill: str, curve: list[Measured]) -> End:
    peak, last = max(curve, key=lambda one: one[1]), curve[-1]
    lost = change((last[1], last[2]), (peak[1], peak[2]))
    low, high = last[2] or (None, None)
    return End(skill, curve[0][1], peak[1], last[1], low, high, lost["value"], lost["low"], lost["high"])


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _sentences(table: StageTable, ends: list[End]) -> list[str]:
    worst = min(ends, key=lambda one: one.end)
    average = sum(one.end for one in ends) / len(ends)
    moved = [f"{one.skill} {points(one.end - one.start)}" for one in ends]
    said = [
        f"**Skills.** The average over {len(ends)} skills ends at {100 * average:.1f} %; the worst is {worst.skill} "
        f"with {100 * worst.end:.1f} %{bracket(worst.end_low, worst.end_high, 100, 1)}. From start to end, in points: "
        f"{', '.join(moved)}."
    ]
    fallen = [one for one in ends if one.lost_low is not None and one.lost_low > 0]
    if fallen:
        lost = [f"{one.skill} {100 * one.lost:.1f}{bracket(one.lost_low, one.lost_high, 100, 1)}" for one in fallen]
        said.append(f"**Forgetting.** Lost since the peak beyond chance, in points: {', '.join(lost)}.")
    else:
        said.append("**Forgetting.** No skill lost more since its peak than chance explains.")
    retained = table.retention()
    if retained is not None:
        said.append(
            f"Skills trained before the last stage lost {100 * retained.forgetting:.1f} points since their peak on "
            f"average; backward transfer {points(retained.backward_transfer)}, learning "
            f"{100 * retained.learning:.1f} %."
        )
    return said
