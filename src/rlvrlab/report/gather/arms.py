"""Several runs: grouped into arms (one recipe, several seeds), with bands over seeds, and learning against keeping."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from rlvrlab.record.settings import differing, settings
from rlvrlab.report.gather.curves import FIRST, clock, panel, skill_curve, thinned
from rlvrlab.report.gather.intervals import CUT, interval
from rlvrlab.report.gather.skills import ALONE, ONE_RUN, StageTable
from rlvrlab.report.reading import Fact, Section, rounded, section, words
from rlvrlab.report.run_record import METRICS, RunRecord
from rlvrlab.skills.metrics import Retention, limits
from rlvrlab.skills.pareto import front

Arms = Mapping[str, Sequence[RunRecord]]


def arms_of(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Runs with equal recipes together, named by what tells them from the others."""
    groups: dict[tuple[str, int], list[RunRecord]] = defaultdict(list)
    seen: Counter[tuple[str, str]] = Counter()
    for run in runs:
        recipe, seed = words(settings(run.recipe), 10**7), words(run.recipe.get("seed"), 40)
        groups[recipe, seen[recipe, seed]].append(run)  # a seed run again is no second seed: an arm of its own
        seen[recipe, seed] += 1
    firsts = [group[0] for group in groups.values()]
    apart, named = differing([settings(run.recipe) for run in firsts]), len({run.name for run in firsts}) == len(firsts)
    arms: dict[str, list[RunRecord]] = {}
    for group in groups.values():
        first, name = group[0], group[0].name
        if not named and apart:  # `learning_rate=0.05, type=pcgrad`
            mine = settings(first.recipe)
            name = ", ".join(f"{key.rpartition('.')[2]}={words(mine.get(key), 30)}" for key in apart[:3])
        arms[name if name not in arms else f"{name} ({first.root.name})"] = group
    return arms


def arm_curves(arms: Arms) -> Section | None:
    """One line per arm; the band is the range over seeds, or the interval of a single run."""
    first = next(iter(arms.values()))[0]
    keys = first.accuracy_keys[:1]
    if not keys:
        return None
    skills = [panel(skill, _lines(arms, key)) for skill, key in first.skill_keys]
    others = [
        panel(key, _lines(arms, key)) for key in FIRST if any(key in run.keys for g in arms.values() for run in g)
    ]
    main = panel("accepted@1", _lines(arms, keys[0]))
    clocks = {name: clock(group[0]) for name, group in arms.items()}
    data = {"main": main, "skills": skills, "others": others, "marks": first.marks, "clock": clock(first),
            "clocks": clocks}  # fmt: skip
    seeds = max(len(group) for group in arms.values())
    band = "the range over seeds" if seeds > 1 else "its 95 % interval"
    first_seed = "Answers, tokens and time are those of an arm's first seed."
    note = f"accepted@1 on dev problems of each arm; the band is {band}. {first_seed}"
    return section("curves", "curves", "Learning curves", data, METRICS, note)


def _lines(arms: Arms, key: str) -> list[Fact]:
    """One line per arm that has the metric."""
    lines = []
    for name, group in arms.items():
        if len(group) > 1:  # mean and range at each step over the seeds that have a value there
            by_step: dict[int, list[float]] = defaultdict(list)
            for step, value, _ in (point for run in group for point in run.series(key)):
                by_step[step].append(value)
            steps = sorted(by_step)
            line = thinned([(step, sum(by_step[step]) / len(by_step[step]), 0) for step in steps])
            line.pop("line")
            if "binned" not in line:
                line["low"] = [rounded(min(by_step[step])) for step in steps]
                line["high"] = [rounded(max(by_step[step])) for step in steps]
            line["seeds"] = len(group)
        else:
            line = skill_curve(group[0], key)
            low, high = (
                {step: value for step, value, _ in group[0].series(f"{key}_{side}")} for side in ("low", "high")
            )
            if low and "binned" not in line:
                line["low"] = [rounded(low.get(step)) for step in line["x"]]
                line["high"] = [rounded(high.get(step)) for step in line["x"]]
        if line["x"]:
            lines.append({"name": name, "key": key, "points": len(line["x"]) <= 40, **line})
    return lines


def arm_matrix(arms: Arms) -> list[Section]:
    """Change over each stage with intervals over seeds, one matrix per arm."""
    matrices = []
    for number, (name, group) in enumerate(arms.items()):
        tables = [table for run in group if (table := StageTable(run)).complete]
        if not tables or len({(tuple(t.skills), tuple(s["skill"] for s in t.stages)) for t in tables}) != 1:
            continue
        first = tables[0]
        cells = first.cells()
        if len(tables) > 1:
            change = np.array([np.diff(np.array(table.rows), axis=0) for table in tables])  # seeds × stages × skills
            source = {"file": METRICS}
            cells = [
                [interval([float(v) for v in change[:, i, j]], within=(-1.0, 1.0))
                 | {"from": source, "link": {"skill": skill}}
                 for j, skill in enumerate(first.skills)]
                for i in range(len(first.stages))
            ]  # fmt: skip
        certain = len(tables) > 1 or first.certain
        data = {"rows": [stage["skill"] for stage in first.stages], "columns": first.skills, "cells": cells,
                "row_title": "trained on", "column_title": "success on", "certain": certain}  # fmt: skip
        how = f"95 % t interval over {len(tables)} seeds. {CUT}" if len(tables) > 1 else ONE_RUN[certain]
        note = f"{name}: change of success on dev problems while the row's skill was trained; {how} {ALONE}"
        title = "Interference" if len(arms) == 1 else f"Interference: {words(name, 60)}"
        matrices.append(section(f"interference_{number}", "matrix", title, data, METRICS, note))
    return matrices


def arm_pareto(arms: Arms) -> Section | None:
    """Learning the new against keeping the old, where skills were trained one after the other."""
    kept = {
        name: [retained for run in group if (retained := StageTable(run).retention()) is not None]
        for name, group in arms.items()
    }
    kept = {name: runs for name, runs in kept.items() if runs}
    return retention_pareto(kept, METRICS) if len(kept) > 1 else None


def retention_pareto(
    arms: Mapping[str, Sequence[Retention]], source: str, name: str = "pareto", title: str = "Pareto"
) -> Section:
    """One point per arm with intervals over its runs; those that no other one dominates are joined."""
    points: list[Fact] = [
        {"name": arm, "group": arm.split()[0], "x": interval([one.learning for one in runs], within=limits("learning")),
         "y": interval([1 - one.forgetting for one in runs], within=(0.0, 2.0)), "from": {"file": source}}
        for arm, runs in arms.items()
    ]  # fmt: skip
    places = np.array([[point["x"]["value"], point["y"]["value"]] for point in points])
    best = {int(index) for index in front(places)}
    data = {
        "points": [point | {"front": i in best} for i, point in enumerate(points)],
        "x_title": "learning: success right after a skill's own stage",
        "y_title": "kept: 1 − forgetting",
    }
    note = (
        "Up and to the right is better; the line joins what nothing else dominates. "
        f"Crosses are 95 % t intervals over seeds. {CUT}"
    )
    return section(name, "pareto", title, data, source, note)
