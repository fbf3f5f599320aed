"""How a run stands: did it learn, status, time left; and what went wrong: health lights and warnings."""

from __future__ import annotations

from statistics import median

from rlvrlab.errors import LabError
from rlvrlab.evals.monitors import Standing, health_of, ranges_of
from rlvrlab.record.experiment import going_on
from rlvrlab.record.headline import Headline, tested
from rlvrlab.record.profile import whole_seconds
from rlvrlab.record.summary import WITHDRAWN
from rlvrlab.report.gather.answer import answer
from rlvrlab.report.reading import STRANGE, Fact, Line, Section, as_table, number, place, rounded, section, words
from rlvrlab.report.run_record import EVENTS, METRICS, RunRecord

ALARMING = ("warning", "error", "failed")
"""Kinds of events that tell of something that went wrong."""
UNFINISHED = ("killed", "interrupted", "preempted", "failed")
"""States from which a run can go on."""
RECENT = 50
"""Steps that the time left is estimated from, and that a light's history shows."""


def overview(run: RunRecord) -> Section:
    """The top of a run's page: the answer, progress, results and facts."""
    ends = [line.row.get("text") for line in run.events if line.row.get("kind") == "end"]
    why = words(ends[-1], 500) if ends and run.status != "running" else ""
    if run.status == "killed":
        why = "Its process ended without saying why."
    elif run.status == "stale":
        why = "It says that it runs, and has been silent for long."
    done = run.metrics[-1].row["step"] if run.metrics else 0
    seconds, left = [value for _, value, _ in run.series("time/step_s")], None
    if run.status == "running" and run.total_steps and seconds:
        left = rounded(max(0, run.total_steps - done) * median(seconds[-RECENT:]), 3)
    phase = str(run.metrics[-1].row.get("phase", "")) if run.metrics else ""
    spent = rounded(sum(whole_seconds(line.row) for line in run.metrics), 4)
    progress = {"step": done, "total": run.total_steps, "phase": phase, "phases": run.phases, "left_s": left,
                "spent_s": spent, "from": _last(run, "step")}  # fmt: skip
    known, spans, lights = result(run), _spans(run), _lights(run)
    data = {
        "status": run.status,
        "why": why,
        "go_on": going_on(run.root, run.config, run.info) if run.status in UNFINISHED else "",
        "question": words(run.recipe.get("question") or "", 1000),
        "answer": answer(run, spans, troubles(lights), known, alarms(run)),
        "progress": progress,
        "result": [
            {
                **one._asdict(),
                "asked": one.asked,
                "lacks": one.lacks,
                "value": rounded(one.accuracy),
                "from": place(one.source, step=one.step),
            }
            for one in known
        ],
        "headline": spans,
        "facts": _facts(run),
        "lights": lights,
        "warnings": alarms(run),
    }
    return section("overview", "overview", "Did it learn?", data, METRICS)


def alarms(run: RunRecord) -> list[Fact]:
    """Events that tell of something that went wrong, without the warnings that were withdrawn later."""
    taken_back = {str(line.row.get("subject")): line.number for line in run.events if line.row.get("kind") == WITHDRAWN}
    alarming = [line for line in run.events if line.row.get("kind") in ALARMING]
    return [event(line) for line in alarming if taken_back.get(str(line.row.get("subject")), 0) < line.number]


def health(top: Section) -> Section:
    """What went wrong, as a section of its own: takes the lights and the warnings out of the overview."""
    data = {key: top["data"].pop(key) for key in ("lights", "warnings")}
    return section("health", "health", "What went wrong", data, METRICS)


def troubles(lights: list[Fact]) -> list[Fact]:
    """The lights that are on, alarms first."""
    on = [light for light in lights if light["state"] in ("alarm", "notice")]
    return sorted(on, key=lambda light: light["state"] != "alarm")


def result(run: RunRecord) -> list[Headline]:
    """What the run is known by, test before dev, as far as its files can be read."""
    found = []
    try:
        found = [test] if (test := tested(run.root)) else []
    except (LabError, *STRANGE) as error:
        run.folder.miss("test result", f"could not be read ({words(str(error), 100)})")
    for one in _spans(run)[-1:]:
        point = one["last"]
        if point["low"] is not None and point["high"] is not None:
            numbers = (point["value"], point["low"], point["high"])
            found.append(Headline("dev", *numbers, None, point["from"]["step"], METRICS))
    return found


def event(line: Line) -> Fact:
    """One line of the event log, cut to what a page shows."""
    row = line.row
    return {
        "time": words(row.get("time") or "", 40),
        "kind": words(row.get("kind") or "", 40),
        "text": words(row.get("text") or "", 1000),
        "subject": words(row.get("subject") or "", 80),
        "from": place(EVENTS, line.number, row.get("step")),
    }


def _last(run: RunRecord, key: str) -> Fact:
    """The place of a metric's newest value."""
    for line in reversed(run.metrics):
        if line.row.get(key) is not None:
            return place(METRICS, line.number, line.row["step"], key)
    return place(METRICS, key=key)


def _spans(run: RunRecord) -> list[Fact]:
    """Per data set and phase: first, best and last held-out accuracy with their intervals."""
    spans = []
    for key in run.accuracy_keys:
        by_phase: dict[str, list[Fact]] = {}
        for line in run.metrics:
            row = line.row
            if row.get(key) is None:
                continue
            points = by_phase.setdefault(str(row.get("phase")), [])
            if number(row[key]) is not None:
                bounds = {side: rounded(row.get(f"{key}_{side}")) for side in ("low", "high")}
                source = place(METRICS, line.number, row["step"], key)
                late = {"late": True} if not points and row.get("phase_step") else {}
                points.append({"value": rounded(row[key]), **bounds, "from": source} | late)
        for phase, points in ((phase, points) for phase, points in by_phase.items() if points):
            best = max(points, key=lambda point: (point["value"] or 0.0, -point["from"]["step"]))
            data = key.removeprefix("val-core/").removesuffix("/acc")
            spans.append({"data": data, "phase": phase, "before": points[0], "best": best, "last": points[-1]})
    return spans


def _facts(run: RunRecord) -> list[Fact]:
    """What was trained, where and when; each fact with the file it comes from."""
    info, recipe = run.info, run.recipe
    machine, code = as_table(info.get("machine")), as_table(info.get("code"))
    gpus = machine.get("gpus")
    hardware = ", ".join(gpus) if isinstance(gpus, list) and gpus else machine.get("processor")
    commit = code.get("commit")
    rows = [
        ("environment", as_table(recipe.get("env")).get("type"), "config.json", "recipe.env"),
        ("engine", as_table(recipe.get("engine")).get("type"), "config.json", "recipe.engine"),
        ("reward", as_table(recipe.get("reward")).get("type"), "config.json", "recipe.reward"),
        ("seed", recipe.get("seed"), "config.json", "recipe.seed"),
        ("started", info.get("started"), "run_info.json", "started"),
        ("ended", info.get("ended"), "run_info.json", "ended"),
        ("machine", f"{hardware}, {machine.get('cores', '?')} cores" if hardware else None, "run_info.json", "machine"),
        ("commit", f"{commit[:12]}{' (changed)' if code.get('dirty') else ''}" if isinstance(commit, str) else None,
         "run_info.json", "code"),
    ]  # fmt: skip
    return [{"name": n, "value": words(v, 120), "from": place(f, key=k)} for n, v, f, k in rows if v is not None]


def _lights(run: RunRecord) -> list[Fact]:
    """One light per watched metric, then one for each finding of the hack monitors.

    The monitors decide how each stands (`Standing.light`).
    """
    lights: list[Fact] = []
    preset = run.info.get("preset")
    standing = Standing(preset)
    healthy = {phase: health_of(phase) for phase in set(run.phase_at.values())}
    for line in run.metrics:
        standing.add(healthy[run.phase_at[line.number]], line.row)
    for watched in ranges_of(preset):
        key = watched.metric
        rows = [line for line in run.metrics if key in healthy[run.phase_at[line.number]]]
        seen = [(line, line.row[key]) for line in rows if isinstance(line.row.get(key), int | float)]
        light: Fact = {"metric": key, "range": str(watched).removeprefix(key).strip(), "meaning": watched.meaning,
                       "remedy": watched.remedy, "state": "absent", "value": None, "history": [], "outside": None,
                       "was": None, "from": place(METRICS)}  # fmt: skip
        if seen:
            line, value = seen[-1]
            outside = [(line.row["step"], one) for line, one in seen if not watched.holds(one)]
            light |= {
                "state": standing.light(watched, value),
                "value": rounded(value),
                "history": [rounded(one, 3) for _, one in seen[-RECENT:]],
                "outside": [len(outside), len(seen)],
                "was": {"step": outside[-1][0], "value": rounded(outside[-1][1])} if outside else None,
                "from": place(METRICS, line.number, line.row["step"], key),
            }
        lights.append(light)
    known = {light["metric"] for light in lights}
    for finding in (one for one in standing.now.values() if one.metric not in known):
        text, _, remedy = finding.text.partition(": ")[2].rpartition("; ")  # metric and value stand before it
        lights.append({"metric": finding.metric, "state": "alarm", "value": rounded(finding.value), "range": "",
                       "meaning": text, "remedy": remedy, "history": [], "outside": None, "was": None,
                       "from": _last(run, finding.metric)})  # fmt: skip
    return lights
