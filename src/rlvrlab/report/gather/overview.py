"""How a run stands: status, time left, cost so far, and health lights with what to do."""

from __future__ import annotations

from statistics import median
from typing import Any

from rlvrlab.evals.hacks.signals import findings
from rlvrlab.evals.monitors import RANGES, Range, health_of
from rlvrlab.report.gather.reading import Fact, Line, Section, as_table, number, place, rounded, section, words
from rlvrlab.report.gather.record import METRICS, RunRecord

RECENT = 50
"""Steps that the time left is estimated from, and that a light's history shows."""


def overview(run: RunRecord) -> Section:
    """The top of a run's page."""
    data = {
        "status": run.status,
        "why": _why(run),
        "question": words(run.recipe.get("question") or "", 1000),
        "progress": _progress(run),
        "headline": _headline(run),
        "facts": _facts(run),
        "lights": _lights(run),
        "warnings": [_event(line.row, line.number) for line in run.events if line.row.get("kind") == "warning"],
    }
    return section("overview", "overview", "Overview", data, METRICS)


def _why(run: RunRecord) -> str:
    if run.status == "killed":
        return f"Its process is gone without a word; `rlvr train --resume {run.root}` goes on with it."
    if run.status == "stale":
        return "It says that it runs, and has been silent for long."
    ends = [line.row.get("text") for line in run.events if line.row.get("kind") == "end"]
    return words(ends[-1], 500) if ends and run.status != "running" else ""


def _event(row: dict[str, Any], line: int) -> Fact:
    return {
        "time": words(row.get("time") or "", 40),
        "kind": words(row.get("kind") or "", 40),
        "text": words(row.get("text") or "", 1000),
        "from": place("logs/events.jsonl", line, row.get("step")),
    }


def _progress(run: RunRecord) -> Fact:
    done = run.metrics[-1].row["step"] if run.metrics else 0
    seconds = [value for _, value, _ in run.series("time/step_s")]
    total = run.total_steps
    left = None
    if run.status == "running" and total and seconds:
        left = rounded(max(0, total - done) * median(seconds[-RECENT:]), 3)
    phase = str(run.metrics[-1].row.get("phase", "")) if run.metrics else ""
    return {"step": done, "total": total, "phase": phase, "phases": run.phases, "left_s": left,
            "spent_s": rounded(sum(seconds), 4), "from": _last(run, "step")}  # fmt: skip


def _last(run: RunRecord, key: str) -> Fact:
    for line in reversed(run.metrics):
        if line.row.get(key) is not None:
            return place(METRICS, line.number, line.row["step"], key)
    return place(METRICS, key=key)


def accuracy_keys(run: RunRecord) -> list[str]:
    """Held-out accuracy of the whole, one per data set."""
    return [
        key for key in run.keys if key.startswith("val-core/") and key.endswith("/acc") and f"{key}_low" in run.keys
    ]


def _headline(run: RunRecord) -> list[Fact]:
    """Per data set and phase: first, best and last held-out accuracy with their intervals."""
    found = []
    for key in accuracy_keys(run):
        phases = list(
            dict.fromkeys(str(line.row.get("phase")) for line in run.metrics if line.row.get(key) is not None)
        )
        for phase in phases:
            points = [
                _point(line, key)
                for line in run.metrics
                if number(line.row.get(key)) is not None and str(line.row.get("phase")) == phase
            ]
            best = max(points, key=lambda point: (point["value"] or 0.0, -point["from"]["step"]))
            data = key.removeprefix("val-core/").removesuffix("/acc")
            found.append({"data": data, "phase": phase, "before": points[0], "best": best, "last": points[-1]})
    return found


def _point(line: Line, key: str) -> Fact:
    bounds = {side: rounded(line.row.get(f"{key}_{side}")) for side in ("low", "high")}
    return {"value": rounded(line.row[key]), **bounds, "from": place(METRICS, line.number, line.row["step"], key)}


def _facts(run: RunRecord) -> list[Fact]:
    """Who, where, when: each with its file."""
    info, recipe = run.info, run.recipe
    machine, code = as_table(info.get("machine")), as_table(info.get("code"))
    gpus = machine.get("gpus")
    hardware = ", ".join(gpus) if isinstance(gpus, list) and gpus else machine.get("processor")
    commit = code.get("commit")
    rows = [
        ("environment", _type(recipe, "env"), "config.json", "recipe.env"),
        ("engine", _type(recipe, "engine"), "config.json", "recipe.engine"),
        ("reward", _type(recipe, "reward"), "config.json", "recipe.reward"),
        ("seed", recipe.get("seed"), "config.json", "recipe.seed"),
        ("started", info.get("started"), "run_info.json", "started"),
        ("ended", info.get("ended"), "run_info.json", "ended"),
        ("machine", f"{hardware}, {machine.get('cores', '?')} cores" if hardware else None, "run_info.json", "machine"),
        ("commit", f"{commit[:12]}{' (changed)' if code.get('dirty') else ''}" if isinstance(commit, str) else None,
         "run_info.json", "code"),
    ]  # fmt: skip
    return [{"name": n, "value": words(v, 120), "from": place(f, key=k)} for n, v, f, k in rows if v is not None]


def _type(recipe: dict[str, Any], table: str) -> Any:
    found = recipe.get(table)
    return found.get("type") if isinstance(found, dict) else None


def _lights(run: RunRecord) -> list[Fact]:
    """One per watched metric, judged at the last step that has it; then what the hack monitors say."""
    lights = [_light(run, watched) for watched in RANGES]
    last = {key: line.row[key] for line in run.metrics for key in line.row if key.startswith("hack/")}
    for finding in findings({key: value for key, value in last.items() if isinstance(value, int | float)}):
        text, _, remedy = finding.text.rpartition("; ")
        lights.append({"metric": finding.metric, "state": "alarm", "value": rounded(finding.value), "range": "",
                       "meaning": text, "remedy": remedy, "history": [], "outside": None,
                       "from": _last(run, finding.metric)})  # fmt: skip
    return lights


def _light(run: RunRecord, watched: Range) -> Fact:
    rows = [line for line in run.metrics if watched.metric in health_of(line.row.get("phase"))]
    seen = [(line, line.row[watched.metric]) for line in rows if isinstance(line.row.get(watched.metric), int | float)]
    light = {"metric": watched.metric, "range": str(watched).removeprefix(watched.metric).strip(),
             "meaning": watched.meaning, "remedy": watched.remedy}  # fmt: skip
    if not seen:
        return light | {"state": "absent", "value": None, "history": [], "outside": None, "from": place(METRICS)}
    line, value = seen[-1]
    outside = sum(_outside(watched, one) for _, one in seen)
    state = "good" if not _outside(watched, value) else "alarm" if watched.alarm else "notice"
    if state == "good" and watched.alarm and outside:
        state = "notice"
    return light | {
        "state": state,
        "value": rounded(value),
        "history": [rounded(one, 3) for _, one in seen[-RECENT:]],
        "outside": [outside, len(seen)],
        "from": place(METRICS, line.number, line.row["step"], watched.metric),
    }


def _outside(watched: Range, value: float) -> bool:
    return (watched.low is not None and value < watched.low) or (watched.high is not None and value > watched.high)
