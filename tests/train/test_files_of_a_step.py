"""How many files a reader opens: those one on-line step runs through, from its first answer to its line of metrics, and
those beside it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import runs

import rlvrlab

SOURCE = str(Path(rlvrlab.__file__).parent)
MOST = 30
"""A reader has to open these to follow one step; whoever raises this makes the step harder to read."""
DOORS = 22
"""Files of train/ itself: what several of them are about has a folder of its own."""


def test_an_on_line_step_runs_through_few_files(tmp_path: Path) -> None:
    entered: set[str] = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            entered.add(frame.f_code.co_filename.removeprefix(f"{SOURCE}/"))

    def look(phase: Any, state: Any, _: dict[str, Any]) -> None:
        """Watch from the end of the second step of GRPO to the end of the third, without evaluation or checkpoint."""
        sys.setprofile(enter if phase.name == "grpo" and state.phase_step == 2 else None)

    try:
        settings = ("eval.every=0", "checkpoint.every=100", "sft.steps=20", "grpo.steps=4", "grpo.batch_size=8")
        runs.run(tmp_path, *settings, text=runs.ONLINE, observe=look)
    finally:
        sys.setprofile(None)
    assert {"train/loop.py", "train/step.py", "train/update.py", "record/run.py", "rewards/total.py"} <= entered
    assert len(entered) <= MOST, "\n".join(sorted(entered))


def test_the_room_of_the_loop_has_few_doors() -> None:
    files = sorted(path.name for path in Path(SOURCE, "train").glob("*.py"))
    assert len(files) <= DOORS, files
