"""Events of the actor's update, left in files for the process that follows verl: one file for each step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rlvrlab.plain_files import parsed
from rlvrlab.train.state import Event


def write_events(folder: Path, done: int, events: Sequence[Event], *, begun: bool) -> None:
    """What an update after `done` steps said; the first update of a step replaces what an attempt before has left."""
    path = _file(folder, done + 1)
    path.parent.mkdir(exist_ok=True)
    with path.open("w" if begun else "a", encoding="utf-8") as file:
        file.writelines(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def take_events(folder: Path, step: int) -> list[Event]:
    """(kind, words) of a step; they are there once."""
    path = _file(folder, step)
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    path.unlink()
    try:
        return [(str(kind), str(words)) for kind, words in map(parsed, lines)]
    except (ValueError, TypeError) as error:  # the process that wrote it was killed
        return [("lost", f"what the update of step {step} said was damaged ({error})")]


def _file(folder: Path, step: int) -> Path:
    return folder / "events" / f"step_{step}.jsonl"
