"""What a study's stage is called wherever a person reads it: on the page, in REPORT.md, in the table of its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FINAL, MEASURED = "final", "measured"
"""The kind of a stage that asks test problems; what a stage is called that compared nothing."""
UNDECIDED = {"undecided": "undecided", "alone": MEASURED}
"""What a stage is called whose rule chose an arm without showing that it is better, or without comparing it."""


def stage_state(kind: object, status: str, decision: Mapping[str, Any] | None, going: bool) -> str:
    """A stage's status in one word; `going` tells whether a process works on the study.

    A stage that is over is not called decided by that alone: its numbers may have decided nothing, though the study
    went on, or it may only have measured.
    """
    if status == "running" and not going:
        return "interrupted"
    if status != "decided":
        return status
    if kind == FINAL:
        return MEASURED
    if decision is None or decision.get("by") == "person":
        return status
    return UNDECIDED.get(str(decision.get("outcome")), status)


def trials_words(finished: int | None, asked: int) -> str:
    """`3`, or `1 of 3` while some are missing; `finished` is None where an earlier version did not record it."""
    return str(asked) if finished in (None, asked) else f"{finished} of {asked}"
