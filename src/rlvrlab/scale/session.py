"""Start or resume a run wherever its recipe says that it is trained: in this process, or by verl."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rlvrlab.errors import LabError, UserError
from rlvrlab.recipe import Resolved
from rlvrlab.train import session
from rlvrlab.train.loop import Observer
from rlvrlab.train.session import Ended, resolved_of


def on_verl(resolved: Resolved) -> bool:
    """True when verl owns the training loop."""
    return bool(resolved.recipe.engine["type"] == "verl")


def start(
    resolved: Resolved, observe: Observer, command: Sequence[str], address: str | None = None,
    judges: Sequence[str] = (),
) -> Ended:  # fmt: skip
    """Train a new run to its end; `address` (of a Ray cluster) and `judges` are for verl."""
    if on_verl(resolved):
        from rlvrlab.scale.verl import launch

        return _told(launch.start(resolved, observe, command, address, judges))
    return _told(session.start(resolved, observe, command))


def fork(folder: Path, observe: Observer, command: Sequence[str], *, accept_code: bool = False) -> Ended:
    """A new run from the last checkpoint of one whose recipe, logs or own functions were edited."""
    if on_verl(resolved_of(folder, accept_code=accept_code)):
        raise UserError(f"{folder}: verl keeps its own checkpoints, from which no new run can start; train anew")
    return _told(session.fork(folder, observe, command, accept_code=accept_code))


def accept_code(folder: Path) -> None:
    """Take the user's own functions as they are now for the rest of a run; the change is recorded."""
    from rlvrlab.record.run import read_config
    from rlvrlab.train.integrity import changed_code

    now = resolved_of(folder, accept_code=True)
    if on_verl(now):
        if not changed_code(read_config(folder)["recipe"], now.recipe.model_dump()):
            return
        raise UserError(f"{folder}: verl's workers have the functions of its start; start a new run")
    session.accept_code(folder)


def extend(folder: Path, words: Sequence[str]) -> bool:
    """Change the recipe of a run that goes on, as `grpo.steps=+100` asks; verl's runs cannot be made longer.

    False where that changes nothing.
    """
    from rlvrlab.train import extension

    if on_verl(resolved_of(folder)):
        raise UserError(f"{folder}: was trained by verl, whose runs cannot be made longer; start a new run")
    return extension.extend(folder, words)


def resume(folder: Path, observe: Observer) -> Ended:
    """Go on with a run folder from its last checkpoint."""
    if on_verl(resolved_of(folder)):
        from rlvrlab.scale.verl import launch

        return _told(launch.resume(folder, observe))
    return _told(session.resume(folder, observe))


def _told(ended: Ended) -> Ended:
    """The run's story is in its folder before anybody reads it; a story that cannot be written costs no run."""
    from rlvrlab.report.story.write import write_story

    try:
        write_story(ended.folder)
    except (LabError, OSError) as error:
        print(f"{ended.folder}: its analysis could not be written ({error})", file=sys.stderr)
    return ended
