"""Can step credit pay here? Steps per answer, dead groups, and how often a single edit mends a failed answer.

A verdict on an altered failure is well spent where it finds a right answer more often than a verdict on a fresh answer
does: that is what replays of failures are held against. Trees and traces ask for no further verdict; they need several
steps per answer, and groups that are not dead. Edits tried: each step deleted, and exchanged with its neighbour. A
failed answer counts as mended when one of them is judged right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from rlvrlab.evals.metrics import grouped
from rlvrlab.evals.probe.report import Measured, Report, Try, measured
from rlvrlab.rollout.segment import segment
from rlvrlab.rollout.segments import cut, swapped
from rlvrlab.shares import about, percent
from rlvrlab.types import Environment

MOST_FAILURES = 40
"""Failed answers that are altered: of different problems as far as there are."""
MOST_EDITS = 24
"""Edits of one answer, spread evenly over its steps."""
MOST_ANSWERS = 400
"""Different answers whose steps are counted."""
FEW_STEPS = 2.0
"""With fewer steps an answer is as good as one step."""


@dataclass(frozen=True)
class StepReport:
    """What the steps of a policy's answers could teach."""

    steps: float
    """Mean per answer."""
    failures: int
    """Failed answers that were altered."""
    mended: Measured
    """Share of them that one edit mends."""
    edits_right: Measured
    """Share of the edits of a failed answer that are right."""
    fresh_right: float
    """Share of fresh answers that are right."""
    calls: int
    """Altered answers that were judged for it."""
    dead: float
    """Share of groups whose answers all earned the same."""

    @property
    def advice(self) -> str:
        """Which step credit can pay, in words."""
        told = f"step credit: {self.steps:.1f} steps per answer, {about(self.dead)} dead groups"
        if self.steps < FEW_STEPS:
            return f"{told}: answers are single steps, so it has nothing to tell apart"
        free = "tree and trace ask for no further verdict" if self.dead < 1 else "and no group has signal"
        if not self.failures:
            return f"{told}: no failure to mend; {free}"
        told += f", one edit mends {about(self.mended.value)} of {self.failures} failures"
        fresh = f"{percent(self.fresh_right)} of fresh answers"
        told += f"; {percent(self.edits_right.value)} of the edits are right, {fresh}"
        if self.edits_right.low > self.fresh_right:
            return f"{told}: replays of failures can pay (credit.type = counterfactual or doubly_robust)"
        if self.edits_right.high < self.fresh_right:
            return f"{told}: replays of failures find less than drawing again; {free}"
        return f"{told}: too close to say whether replays of failures pay; {free}"

    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        plain = {key: value._asdict() if isinstance(value, Measured) else value for key, value in vars(self).items()}
        return {**plain, "advice": self.advice}


def look_at_steps(tries: Sequence[Try], report: Report, env: Environment) -> StepReport | None:
    """Segment some answers and mend some failed ones; None where no answer is in the demanded form."""
    alone = [one for one in tries if one.formed and one.text and "tools" not in one.problem.meta]
    formed = {(one.problem.id, one.text): one for one in alone}
    if not formed:
        return None
    counts = [len(segment(one.text)) for one in list(formed.values())[:MOST_ANSWERS]]
    wrong = grouped([one for one in formed.values() if one.correct is False], lambda one: one.problem.id).values()
    # The first failure of each problem, then the second of each.
    failed = [one for turn in zip_longest(*wrong) for one in turn if one is not None][:MOST_FAILURES]
    edits = [(at, one.problem, text) for at, one in enumerate(failed) for text in _edits(one.text)]
    verdicts = env.verify_many([(problem, text) for _, problem, text in edits])
    right: list[list[bool]] = [[] for _ in failed]
    for (at, _, _), verdict in zip(edits, verdicts, strict=True):
        right[at] += [verdict.correct] if verdict.correct is not None else []
    nothing = Measured(0.0, 0.0, 1.0)
    return StepReport(
        steps=sum(counts) / len(counts),
        failures=len(failed),
        mended=measured([float(any(one)) for one in right]) if failed else nothing,
        edits_right=measured([sum(one) / max(1, len(one)) for one in right]) if failed else nothing,
        fresh_right=report.total.accuracy.value,
        calls=len(edits),
        dead=1 - report.total.mixed.value,
    )


def _edits(text: str) -> list[str]:
    """Different answers that are one edit away."""
    segments = segment(text)
    count = len(segments)
    chosen = sorted({step * count // min(count, MOST_EDITS // 2) for step in range(min(count, MOST_EDITS // 2))})
    cuts = [cut(segments, [other != step for other in range(count)]).text for step in chosen]
    swaps = [edited.text for step in chosen if (edited := swapped(segments, step)) is not None]
    return [edited for edited in dict.fromkeys([*cuts, *swaps]) if edited != text]
