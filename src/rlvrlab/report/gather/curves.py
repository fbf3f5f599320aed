"""Metrics over steps, thinned to what a picture can show; bands of intervals or of seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any

from rlvrlab.evals.statistics import wilson
from rlvrlab.record.profile import whole_seconds
from rlvrlab.report.reading import Fact, Line, Section, as_table, number, rounded, section
from rlvrlab.report.run_record import METRICS, RunRecord

POINTS = 400
"""Longest curve that is shown point by point; longer ones are averaged in bins, with their range as a band."""
FIRST = ("train/acc", "critic/rewards/mean", "groups/zero_variance", "actor/entropy", "actor/grad_norm",
         "response_length/mean", "actor/loss", "actor/kl", "sft/nll", "time/step_s")  # fmt: skip
UNTOLD = {"step", "phase", "phase_step"}


def curves(run: RunRecord) -> Section | None:
    """Held-out accuracy with its interval, every skill, then every other metric."""
    if not run.metrics:
        return None
    main = [line for key in run.accuracy_keys for line in _held_out(run, key)]
    training = thinned(run.series("train/acc"))
    if len(training["x"]) > 1:
        main.append({"name": "training answers", "key": "train/acc", "faint": True, **training})
    skills = [panel(name, [{"name": name, "key": key, **skill_curve(run, key)}]) for name, key in run.skill_keys]
    taken = {one["key"] for one in main} | {k for _, key in run.skill_keys for k in (key, count_key(key))} | UNTOLD
    names = [key for key in (*FIRST, *sorted(run.keys)) if key not in taken and not key.endswith(("_low", "_high"))]
    others = [panel(key, [{"name": key, "key": key, **by_phase(run, key)}]) for key in dict.fromkeys(names)]
    data = {
        "main": panel("accepted@1", main),
        "skills": skills,
        "others": [one for one in others if len(one["series"][0]["x"]) > 1],
        "marks": run.marks,
        "clock": clock(run),
    }
    note = (
        "accepted@1 on dev problems with its 95 % interval; "
        "the other line is the share of sampled training answers that are right."
    )
    return section("curves", "curves", "Learning curves", data, METRICS, note)


def _held_out(run: RunRecord, key: str) -> list[Fact]:
    """The held-out accuracy of the policy that went on, and a branch for each control arm."""
    name = key.removeprefix("val-core/").removesuffix("/acc")
    lines = [line for line in run.metrics if line.row.get(key) is not None]
    stayed = [line for line in lines if line.row.get("phase") not in run.controls]
    curves = [{"name": f"dev: {name}", "key": key, **_measured(stayed, key)}] if stayed else []
    for phase in sorted(run.controls):
        branch = [line for line in lines if line.row.get("phase") == phase]
        before = [line for line in stayed if branch and line.number < branch[0].number][-1:]
        if branch:
            told = f"control: {phase}" if len(run.accuracy_keys) == 1 else f"control: {phase}, {name}"
            curves.append({"name": told, "key": key, "branch": True, **_measured([*before, *branch], key)})
    return curves


def _measured(lines: list[Line], key: str) -> Fact:
    """Values of a metric with their intervals, step by step."""
    return {
        "x": [line.row["step"] for line in lines],
        "y": [rounded(line.row[key]) for line in lines],
        "low": [rounded(line.row.get(f"{key}_low")) for line in lines],
        "high": [rounded(line.row.get(f"{key}_high")) for line in lines],
        "line": [line.number for line in lines],
        "points": True,
    }


def panel(name: str, series: list[Fact]) -> Fact:
    """One small picture: a name and its lines."""
    return {"name": name, "series": series}


def count_key(key: str) -> str:
    """The metric with the number of answers behind a skill's accuracy: `…/acc` -> `…/n`."""
    return f"{key.removesuffix('/acc')}/n"


def counts(row: Mapping[str, Any], key: str) -> tuple[int, int] | None:
    """Right answers and all behind a skill's accuracy in one line of metrics; None where no count is recorded."""
    share, count = number(row.get(key)), number(row.get(count_key(key)))
    if share is None or not count or count < 0 or not 0 <= share <= 1:
        return None
    return round(share * count), round(count)


def bounds(row: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    """95 % interval of a skill's accuracy in one line of metrics; None where no count is recorded."""
    counted = counts(row, key)
    return None if counted is None else wilson(*counted)


def skill_curve(run: RunRecord, key: str) -> Fact:
    """A skill's accuracy over steps, with its interval where the record has the counts."""
    curve = thinned(run.series(key))
    by_line = {line.number: bounds(line.row, key) for line in run.metrics} if "binned" not in curve else {}
    if any(by_line.values()):
        sides = [by_line.get(line) or (None, None) for line in curve["line"]]
        curve |= {"low": [rounded(low) for low, _ in sides], "high": [rounded(high) for _, high in sides]}
    return curve


def thinned(points: Sequence[tuple[int, float, int]]) -> Fact:
    """(step, value, line) triples as a curve of at most POINTS points: means of bins, with the range of each bin."""
    if len(points) <= POINTS:
        return {"x": [p[0] for p in points], "y": [rounded(p[1]) for p in points], "line": [p[2] for p in points]}
    size = -(-len(points) // POINTS)
    bins = [points[i : i + size] for i in range(0, len(points), size)]
    return {
        "x": [part[-1][0] for part in bins],
        "y": [rounded(sum(p[1] for p in part) / len(part)) for part in bins],
        "low": [rounded(min(p[1] for p in part)) for part in bins],
        "high": [rounded(max(p[1] for p in part)) for part in bins],
        "line": [part[-1][2] for part in bins],
        "binned": size,
    }


def by_phase(run: RunRecord, key: str) -> Fact:
    """A metric's curve, thinned phase by phase; `breaks` are the points before which the line is not drawn through.

    One name can stand for two measures: the entropy of SFT is over reference tokens, that of GRPO over sampled ones.
    """
    points = run.series(key)
    stretches = [(name, list(own)) for name, own in groupby(points, key=lambda point: run.phase_at[point[2]])]
    last = stretches[-1][0] if stretches else ""
    if len(stretches) < 2:
        return thinned(points) | {"phase": last}
    parts = [thinned(own) for _, own in stretches]
    curve: Fact = {name: [v for part in parts for v in part[name]] for name in ("x", "y", "line")}
    if any("binned" in part for part in parts):
        curve |= {side: [v for part in parts for v in part[side if side in part else "y"]] for side in ("low", "high")}
        curve["binned"] = max(part.get("binned", 1) for part in parts)
    breaks = list(accumulate(len(part["x"]) for part in parts[:-1]))
    return curve | {"breaks": breaks, "phase": last}


def clock(run: RunRecord) -> Fact:
    """Answers, tokens and seconds spent until each step, so that a picture can have them across instead of steps."""
    n = as_table(run.recipe.get("rollout")).get("n")
    size = n if isinstance(n, int) else 0
    spent, rows = [0.0, 0.0, 0.0], []
    for line in run.metrics:
        groups, length = (number(line.row.get(key)) or 0.0 for key in ("groups/collected", "response_length/mean"))
        answers = size * groups
        spent = [spent[0] + answers, spent[1] + answers * length, spent[2] + whole_seconds(line.row)]
        rows.append([line.row["step"], *spent])
    every = -(-len(rows) // POINTS) or 1
    kept = [row for i, row in enumerate(rows) if i % every == 0 or i == len(rows) - 1]
    names = ("step", "answers", "tokens", "seconds")
    return {"n": size} | {name: [rounded(row[i], 6) for row in kept] for i, name in enumerate(names)}
