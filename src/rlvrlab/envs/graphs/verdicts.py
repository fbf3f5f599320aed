"""From an answer's text to a verdict: read, check the rules, measure, compare with the proved optimum.

parts: format (an answer was read), feasible (it keeps the rules), quality (optimum over value, or value over optimum,
in [0, 1]), correct (it is optimal), repeat (the completion goes round in circles). Each of the first four needs the one
before. missing -> FORMAT, malformed -> SYNTAX, infeasible or unknown nodes -> RULE, suboptimal -> WRONG.
"""

from __future__ import annotations

from typing import Any

from rlvrlab.envs.graphs.answers import Style, Unreadable, final_text
from rlvrlab.envs.graphs.tasks.base import Duplicates, Infeasible, Instance, Task
from rlvrlab.rewards.repetition import tandem_period
from rlvrlab.types import ErrorKind, Verdict, unjudged

ALARM = "better_than_optimum"
KEPT_ANSWER = 400


def judge(task: Task, instance: Instance, optimum: Any, text: str, style: Style) -> Verdict:
    """Read the answer strictly, measure it and compare it with the proved optimum."""
    repeat = float(tandem_period(text) > 0)
    try:
        answer = task.read(instance, final_text(text, style), alone=style == "think")
    except Unreadable as error:
        return _refused(error.kind, str(error), None, 0.0, repeat)
    shown = task.show(instance, answer)[:KEPT_ANSWER]
    try:
        value = task.measure(instance, answer)
    except Infeasible as error:
        malformed = isinstance(error, Duplicates)
        kind = ErrorKind.SYNTAX if malformed else ErrorKind.RULE
        return _refused(kind, str(error), shown, float(not malformed), repeat)
    if task.better(value, optimum):
        # The optimum was proved, so the label or the verifier is wrong, not the answer: it is neither right nor wrong.
        return unjudged(f"value {value} beats the proved optimum {optimum}", answer=shown, flags=(ALARM,))
    quality = task.quality(value, optimum)
    correct = value == optimum
    worse = "not the right answer" if task.sense == "exact" else f"value {value}, optimum {optimum}"
    return Verdict(
        correct,
        quality,
        ErrorKind.NONE if correct else ErrorKind.WRONG,
        parts(1.0, 1.0, quality, correct, repeat),
        answer=shown,
        detail="" if correct else worse,
    )


def parts(format: float, feasible: float, quality: float, correct: bool, repeat: float) -> dict[str, float]:
    """The named components of every graph verdict."""
    named = {"format": format, "feasible": feasible, "quality": quality}
    return named | {"correct": float(correct), "repeat": repeat}


def _refused(error: ErrorKind, detail: str, answer: str | None, format: float, repeat: float) -> Verdict:
    return Verdict(False, 0.0, error, parts(format, 0.0, 0.0, False, repeat), answer=answer, detail=detail)
