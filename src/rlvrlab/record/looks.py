"""How often a run was examined on test problems: one line of looks.jsonl per examination.

A test score is worth less the more often somebody looked at it before deciding something, so the looks are counted. An
examination that is resumed, or a card that is made again after a kill, is the same look.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvrlab.record.files import Lines, utc_now
from rlvrlab.record.shapes import Record, read_records
from rlvrlab.types import Problem

LOOKS = "looks.jsonl"


class Look(Record):
    """One line of looks.jsonl."""

    time: str
    data: str
    problems: int
    where: str


def note_look(run: Path, data: str, problems: Sequence[Problem], where: str) -> None:
    """Count an examination of a run's policy, if test problems are among those it is asked; `where` identifies it.

    A run in a folder that may only be read can be examined, too; then nothing is counted.
    """
    count = sum(problem.role == "test" for problem in problems)
    if count and os.access(run, os.W_OK) and all(row["where"] != where for row in read_looks(run)):
        with Lines(run / LOOKS) as lines:
            lines.append({"time": utc_now(), "data": data, "problems": count, "where": where})


def read_looks(run: Path) -> list[dict[str, Any]]:
    """Every look at test problems with a policy of this run, the oldest first."""
    return read_records(run / LOOKS, Look)
