"""Checkpoints that are either complete or not there.

global_step_N/ is written beside its place, gets manifest.json (size and hash of every file) last, and is then renamed.
Whatever lacks a matching manifest is set aside as `incomplete_…` and never loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvrlab.engines.base import Engine
from rlvrlab.errors import CheckpointError, TrainingDiverged
from rlvrlab.record.files import StorageError, sync_folder, write_json
from rlvrlab.train.lab import Lab
from rlvrlab.train.state import Memory, State

MANIFEST = "manifest.json"
MEMORY = "rules.json"
"""What protocol, surgery and guard remember; absent where the recipe has none of them."""


def save(folder: Path, engine: Engine, state: State, memory: Memory | None = None) -> Path:
    """Write checkpoints/global_step_N; returns it. A policy that is not finite is never saved."""
    if not finite(engine):
        raise TrainingDiverged(
            f"parameters are NaN or infinite after step {state.step}; start again with a lower learning rate; "
            f"the checkpoints in {folder} are from before"
        )
    final = folder / f"global_step_{state.step}"
    draft = folder / f".draft_{state.step}_{os.getpid()}"
    try:
        shutil.rmtree(draft, ignore_errors=True)
        engine.save(draft / "actor")
        write_json(draft / "trainer.json", state.to_json())
        if memory is not None:
            write_json(draft / MEMORY, memory.to_json())
        files = {str(p.relative_to(draft)): _facts(p) for p in sorted(draft.rglob("*")) if p.is_file()}
        for below in (p for p in draft.rglob("*") if p.is_dir()):
            sync_folder(below)
        write_json(draft / MANIFEST, {"step": state.step, "files": files})
        draft.rename(final)
        sync_folder(folder)
    except StorageError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise StorageError(final, error) from error
    return final


def finite(engine: Engine) -> bool:
    """Are all parameters finite? θ − θ is 0 unless one is NaN or infinite; needs only verbs that every engine has."""
    nothing = engine.pull(engine.snapshot())
    square = float(engine.gramian([nothing])["global"][0, 0])
    engine.release([nothing])
    return square == 0.0


def load(path: Path, engine: Engine) -> State:
    """Check the manifest, then restore the engine."""
    problem = defect(path)
    if problem:
        raise CheckpointError(f"{path}: {problem}")
    engine.load(path / "actor")
    return State.from_json(json.loads((path / "trainer.json").read_text()))


def restore_memory(folder: Path, lab: Lab, step: int) -> Memory:
    """What protocol, surgery and guard knew at that step; a guard's anchors are rebuilt from their own checkpoints."""
    path = folder / f"global_step_{step}"
    if not lab.remembers or not (path / MEMORY).exists():
        return Memory()
    memory = Memory.from_json(json.loads((path / MEMORY).read_text()))
    kept = memory.guard
    for anchor in sorted(lab.guard.anchors(kept)) if lab.guard else ():
        place = folder / f"global_step_{anchor}"
        problem = defect(place)
        if problem:
            raise CheckpointError(f"{place}: {problem}; the guard's anchor is in it")
        lab.engine.load(place / "actor")
        kept = lab.guard.rebuild(lab.engine, kept, anchor) if lab.guard else kept
    lab.engine.load(path / "actor")
    return replace(memory, guard=kept)


def defect(path: Path) -> str | None:
    """What is wrong with a checkpoint, or None."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        for name, facts in manifest["files"].items():
            if _facts(path / name) != facts:
                return f"{name} does not match the manifest"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except OSError as error:
        return f"{Path(str(error.filename)).name} cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "the manifest cannot be read"
    return None


def newest(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest complete checkpoint, after setting incomplete ones aside; and what was set aside, in words."""
    notes = []
    for draft in folder.glob(".draft_*"):
        shutil.rmtree(draft, ignore_errors=True)
        notes.append(f"a checkpoint of step {draft.name.split('_')[1]} was cut off while being written and is ignored")
    for path in _latest_first(folder):
        problem = defect(path)
        if problem is None:
            return path, notes
        aside = path.with_name(f"incomplete_{path.name}")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        notes.append(f"{path.name} is incomplete ({problem}); set aside as {aside.name}")
    return None, notes


def complete(folder: Path) -> list[Path]:
    """Complete checkpoints, newest first; nothing is set aside."""
    return [path for path in _latest_first(folder) if defect(path) is None]


def steps(folder: Path) -> list[int]:
    """Steps of all checkpoints, complete or not, ascending."""
    return [_step(path) for path in reversed(_latest_first(folder))]


def prune(folder: Path, keep: int, protected: set[int]) -> None:
    """Remove all but the latest `keep` and the protected steps."""
    for path in _latest_first(folder)[keep:]:
        if _step(path) not in protected:
            shutil.rmtree(path, ignore_errors=True)


def _latest_first(folder: Path) -> list[Path]:
    """Only what we named: a user's `global_step_4.bak` is left alone."""
    ours = [path for path in folder.glob("global_step_*") if path.name.removeprefix("global_step_").isdigit()]
    return sorted(ours, key=_step, reverse=True)


def _step(path: Path) -> int:
    return int(path.name.rpartition("_")[2])


def _facts(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": digest}
