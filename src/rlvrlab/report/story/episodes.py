"""Did the policy use its tools, and did the calls go well?"""

from __future__ import annotations

from math import inf

from rlvrlab.report.gather.intervals import interval
from rlvrlab.report.run_record import RunRecord
from rlvrlab.report.story.learning import FEW
from rlvrlab.report.story.part import Curve, Part, lines, rows_of
from rlvrlab.shares import bracket

TURNS, CALLS, FAILED, BY_TOOL = "agent/turns", "agent/calls", "agent/failed_calls", "agent/calls/"

SHARE = "share of calls that failed"


def episodes(run: RunRecord) -> Part | None:
    """Turns and calls per episode over steps; None where no episode with tools was recorded."""
    names = {TURNS: "turns", CALLS: "calls", FAILED: SHARE}
    names |= {key: f"calls of {key.removeprefix(BY_TOOL)}" for key in run.keys if key.startswith(BY_TOOL)}
    curves = {name: [(x, y) for x, y, _ in run.series(key)] for key, name in names.items()}
    curves = {name: curve for name, curve in curves.items() if curve}
    if "turns" not in curves:
        return None
    ends = [f"{name} {_mean(c[:FEW], name)} → {_mean(c[-FEW:], name)}" for name, c in curves.items()]
    when = f"in the first and the last {FEW} on-line steps, with t intervals over these"
    told = f"**Tools**, mean per episode {when}: {', '.join(ends)}."
    picture = lines("Turns and calls of an episode", curves, "mean per episode")
    return Part({"tools": (["what", "step", "value"], rows_of(curves))}, {"tools": picture}, [told])


def _mean(points: Curve, name: str) -> str:
    """With its interval, as far as there can be such a mean: no less than 0, a share no more than 1."""
    found = interval([value for _, value in points], within=(0.0, 1.0 if name == SHARE else inf))
    return f"{found['value']:.2f}{bracket(found['low'], found['high'])}"
