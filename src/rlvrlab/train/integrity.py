"""Is a run folder still what its checkpoints remember? What is not is named, and a resume refuses it.

An edited recipe, metrics that were cut or changed, lines that no run wrote: going on from there would be another
experiment under the old name. `--fork` makes it a new run, which records its parent. An edited log of events changes
nothing that is trained, so it is only noted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, RunTouched
from rlvrlab.recipe.parse import flatten
from rlvrlab.record.files import numbered_lines
from rlvrlab.record.run import METRICS, SEAL, Run, config_sha256, read_config, read_info
from rlvrlab.record.seal import Sealed, changed_config, changed_log, read_seal
from rlvrlab.train import checkpoint
from rlvrlab.train.state import State

REMEDY = "restore it, or start a new run from the last checkpoint with --fork"
Row = dict[str, Any]


def check(run: Run, state: State, phases: Sequence[str]) -> list[tuple[str, str]]:
    """Refuse a folder that was edited; returns (kind, words) of what deserves an event only."""
    folder = run.folder
    seals = _seals(folder / "checkpoints")
    found = changed_config(folder, seals) or changed_log(folder, "metrics", seals)
    if state.step and "config_sha256" in read_info(folder) and all(sealed.step != state.step for sealed in seals):
        found = found or f"{folder / 'checkpoints' / f'global_step_{state.step}' / SEAL} is missing"
    if found := found or _hole(folder, state, phases, _sealed_lines(seals, state)):
        raise RunTouched(f"{found}; {REMEDY}")
    remarks = []
    if state.step and not seals:
        words = "an older version wrote these checkpoints: they have no seals, so edits made until now go unnoticed"
        remarks.append(("unsealed", words))
    if edited := changed_log(folder, "events", seals):
        remarks.append(("touched", f"{edited}; nothing that is trained depends on it"))
    return remarks


def refuse_edited(folder: Path, before: str) -> None:
    """Refuse a recipe that somebody has edited since the last checkpoint; `before` says what would come next."""
    if edited := changed_config(folder, _seals(folder / "checkpoints")):
        raise RunTouched(f"{edited}; restore it before {before}")


def covered(run: Run, state: State, phases: Sequence[str]) -> Callable[[int, Row], bool]:
    """Had a line of metrics been recorded when the checkpoint was written? Its seal counts them."""
    lines = _sealed_lines(_seals(run.folder / "checkpoints"), state)
    if lines is None:
        return lambda _, row: state.covers(phases.index(row["phase"]), row["phase_step"])
    return lambda number, _: number <= lines


def inherit(run: Run, parent: Path, checkpoints: Sequence[Path], state: State) -> None:
    """Begin a forked run: the parent's metrics and checkpoints so far, and what differs from what they remember."""
    seals = _seals(parent / "checkpoints")
    own_code = changed_code(read_config(parent)["recipe"], read_config(run.folder)["recipe"])
    differs = [text for text in (changed_config(parent, seals), changed_log(parent, "metrics", seals)) if text]
    differs += [f"{key} {one['from']} → {one['to']}" for key, one in own_code.items()]
    for row in _usable(parent, state):
        run.metrics(row)
    if state.phase_step:  # a phase that has not begun makes its own
        shutil.copytree(parent / "artifacts", run.folder / "artifacts", dirs_exist_ok=True)
    words = f"forked from {parent.name} after step {state.step}; {'; '.join(differs) or 'nothing was edited there'}"
    run.event("fork", words, step=state.step)
    seal = run.seal()
    for path in checkpoints:
        checkpoint.adopt(path, run.folder / "checkpoints", seal if path == checkpoints[0] else None)
    facts = {"folder": str(parent.resolve()), "step": state.step, "config_sha256": config_sha256(read_config(parent))}
    run.info(parent={**facts, "differs": differs})


def changed_code(before: Row, now: Row) -> Row:
    """Fingerprints of the user's own functions that two recipes differ in: key -> from, to."""
    was = dict(flatten(before))
    return {
        key: {"from": was.get(key), "to": value}
        for key, value in flatten(now)
        if key.endswith(".code") and was.get(key) != value
    }


def _sealed_lines(seals: Sequence[Sealed], state: State) -> int | None:
    """How many lines of metrics there were at the checkpoint that training goes on from."""
    return next((sealed.of_log("metrics")[0] for sealed in seals if sealed.step == state.step), None)


def _hole(folder: Path, state: State, phases: Sequence[str], sealed_lines: int | None) -> str | None:
    """The first place where the metrics skip a step, go back, end too early, or belong to a phase that is not ours.

    Lines under a seal are as they were written; those of a fork's parent may have had a hole, and other phases.
    """
    path, before = folder / "logs" / "metrics.jsonl", 0 if sealed_lines is None else state.step
    for number, row in numbered_lines(path, METRICS | {"phase_step": int}):
        if sealed_lines is not None and number <= sealed_lines:
            continue
        if row["phase"] not in phases:
            return f"{path}:{number}: phase {row['phase']!r} is not in the recipe, which has {', '.join(phases)}"
        if row["step"] not in (before, before + 1):
            return f"{path}:{number}: step {row['step']} follows step {before}"
        before = row["step"]
    if before < state.step:
        return f"{path}: ends with step {before}, but there is a checkpoint of step {state.step}"
    return None


def _usable(parent: Path, state: State) -> list[Row]:
    """What is left of the parent's metrics up to the checkpoint; it ends where a line cannot be read."""
    rows: list[Row] = []
    with suppress(LabError):
        for _, row in numbered_lines(parent / "logs" / "metrics.jsonl", METRICS | {"phase_step": int}):
            not_begun = state.phase_step == 0 and row["phase_step"] == 0 and row["step"] == state.step
            if row["step"] <= state.step and not not_begun:
                rows.append(row)
    return rows


def _seals(checkpoints: Path) -> list[Sealed]:
    """Seals of the complete checkpoints that have one, the oldest first."""
    found = [(checkpoint.step_of(path), read_seal(path)) for path in reversed(checkpoint.complete(checkpoints))]
    return [Sealed(step, facts) for step, facts in found if facts is not None]
