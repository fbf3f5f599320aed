"""What each skill gained and lost: success after every stage, forgetting since the peak, the worst skill."""

from __future__ import annotations

from math import isnan
from statistics import fmean
from typing import NamedTuple

from rlvrlab.report.gather.intervals import mean_of
from rlvrlab.report.gather.peaks import Loss, Measured, Moved, losses, moves, skill_courses
from rlvrlab.report.gather.skills import StageTable
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.story.part import Part, Table, bars, heat, lines
from rlvrlab.shares import cell, difference, hundredths, percent


class End(NamedTuple):
    """A skill's success at the start, at its peak and at the end, and what was lost since the peak.

    Every interval holds for all skills together.
    """

    skill: str
    start: float
    peak: float
    end: float
    end_low: float | None
    end_high: float | None
    change: float
    """Since the start."""
    change_low: float | None
    change_high: float | None
    lost: float
    lost_low: float | None
    """Above 0 only where the loss is more than picking the best of several evaluations explains."""
    lost_high: float | None


def skills(run: RunRecord) -> Part | None:
    """None where fewer than two skills were examined."""
    courses = skill_courses(run)
    if len(courses) < 2:
        return None
    table, marks = StageTable(run), [(stage["x"], stage["skill"]) for stage in run.stages]
    lost, moved = losses(courses), moves(courses)
    ends = [_end(skill, course, lost[skill], moved[skill]) for skill, course in courses.items()]
    measured = [
        [skill, one.step, one.share, *(one.bounds() or (None, None))]
        for skill, course in courses.items()
        for one in course
    ]
    tables: dict[str, Table] = {
        "forgetting_curves": (["skill", "step", "success", "low_alone", "high_alone"], measured),
        "skills_end": (list(End._fields), ends),
    }
    drawn = {skill: [(one.step, one.share) for one in course] for skill, course in courses.items()}
    changes = [(one.skill, -one.lost, _negative(one.lost_high), _negative(one.lost_low)) for one in ends]
    shown = {
        "forgetting_curves": lines("Success on every skill", drawn, "success on dev problems", marks),
        "skills_end": bars("Change since each skill's peak", changes, "end − peak"),
    }
    if table.complete:
        names = ["before", *(f"after {stage['skill']}" for stage in table.stages)]
        tables["retention"] = (["stage", *table.skills], [[n, *row] for n, row in zip(names, table.rows, strict=True)])
        shown["retention"] = heat("Success after every stage", names, table.skills, table.rows)
    if (retained := table.retention()) is not None:
        numbers = [[name, value] for name, value in retained._asdict().items() if not isnan(value)]
        tables["retention_metrics"] = (["metric", "value"], numbers)
    return Part(tables, shown, _sentences(table, courses, ends))


def kept(run: RunRecord) -> dict[str, float]:
    """What a run kept of its skills, as shares; empty where fewer than two were examined.

    `lost` is the mean loss since each skill's peak, and `lost_by_chance` what it would be had no skill moved. The names
    of skills/metrics.py are there where one skill was trained after the other.
    """
    courses = skill_courses(run)
    if len(courses) < 2:
        return {}
    last, lost = [course[-1].share for course in courses.values()], losses(courses).values()
    told = {"average": fmean(last), "worst": min(last), "lost": fmean(one.value for one in lost)}
    chances = [one.by_chance for one in lost if one.by_chance is not None]
    if len(chances) == len(courses):
        told["lost_by_chance"] = fmean(chances)
    retained = StageTable(run).retention()
    if retained is not None:
        told |= {"forgetting": retained.forgetting, "backward_transfer": retained.backward_transfer}
        told["learning"] = retained.learning
    return told


def _end(skill: str, course: list[Measured], lost: Loss, moved: Moved) -> End:
    shares = (course[0].share, lost.peak.share, course[-1].share)
    return End(
        skill,
        *shares,
        moved.end_low,
        moved.end_high,
        moved.value,
        moved.low,
        moved.high,
        lost.value,
        lost.low,
        lost.high,
    )


def _negative(value: float | None) -> float | None:
    return None if value is None else -value


def _sentences(table: StageTable, courses: dict[str, list[Measured]], ends: list[End]) -> list[str]:
    worst = min(ends, key=lambda one: one.end)
    average = mean_of([(course[-1].share, course[-1].bounds()) for course in courses.values()])
    moved = [f"{one.skill} {difference(one.change, one.change_low, one.change_high)}" for one in ends]
    said = [
        f"**Skills.** The average over {len(ends)} skills ends at "
        f"{percent(average['value'], average['low'], average['high'])}; the worst is {worst.skill} "
        f"with {percent(worst.end, worst.end_low, worst.end_high)}. "
        f"From start to end, in points: {', '.join(moved)}. Intervals of single skills hold for all of them together."
    ]
    fallen = [one for one in ends if one.lost_low is not None and one.lost_low > 0]
    if all(one.lost_low is None for one in ends):
        said.append("**Forgetting.** The record does not tell whether a loss since a peak is more than chance.")
    elif fallen:
        lost = [f"{one.skill} {cell(one.lost, one.lost_low, one.lost_high)}" for one in fallen]
        held = "intervals hold for all skills together and count the choice of the peak in"
        said.append(f"**Forgetting.** Lost since the peak beyond chance, in points: {', '.join(lost)}; {held}.")
    else:
        said.append("**Forgetting.** No skill lost more since its peak than chance explains.")
    retained = table.retention()
    if retained is not None and not isnan(retained.forgetting):
        back, learnt = table.backward_transfer(), table.learning()
        said.append(
            f"Skills trained before the last stage lost {hundredths(retained.forgetting)} points since their peak on "
            f"average; backward transfer {difference(retained.backward_transfer, back['low'], back['high'])}, "
            f"learning {percent(retained.learning, learnt['low'], learnt['high'])}, forward transfer "
            f"{difference(retained.forward_transfer)}, oscillation {hundredths(retained.oscillation)} points a stage."
        )
    return said
