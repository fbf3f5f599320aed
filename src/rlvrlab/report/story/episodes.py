"""Did the policy use its tools, and did the calls go well?"""

from __future__ import annotations

from rlvrlab.report.gather.record import RunRecord
from rlvrlab.report.story import pictures
from rlvrlab.report.story.learning import FEW, mean
from rlvrlab.report.story.part import Part, rows_of

TURNS, CALLS, FAILED, BY_TOOL = "agent/turns", "agent/calls", "agent/failed_calls", "agent/calls/"


def episodes(run: RunRecord) -> Part | None:
    """Turns and calls per episode over steps; None where no episode with tools was recorded."""
    names = {TURNS: "turns", CALLS: "calls", FAILED: "share of calls that failed"}
    names |= {key: f"calls of {key.removeprefix(BY_TOOL)}" for key in run.keys if key.startswith(BY_TOOL)}
    curves = {name: [(x, y) for x, y, _ in run.series(key)] for key, name in names.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    if "turns" not in curves:
        return None
    ends = [f"{name} {mean(c[:FEW]):.2f} → {mean(c[-FEW:]):.2f}" for name, c in curves.items()]
    told = f"**Tools**, mean per episode in the first and the last {FEW} on-line steps: {', '.join(ends)}."
    picture = pictures.lines("Turns and calls of an episode", curves, "mean per episode")
    return Part({"tools": (["what", "step", "value"], rows_of(curves))}, {"tools": picture}, [told])
