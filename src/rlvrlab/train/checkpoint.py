"""Checkpoints that are either complete or not there.

global_step_N/ is written beside its place, gets manifest.json (size and hash of every file) last, and is then renamed.
Whatever lacks a matching manifest is set aside as `incomplete_…` and never loaded.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvrlab import plain_files
from rlvrlab.engines.base import Engine
from rlvrlab.errors import CheckpointError, StorageError, TrainingDiverged
from rlvrlab.plain_files import parsed, sync_folder
from rlvrlab.record.files import write_json
from rlvrlab.record.run import SEAL
from rlvrlab.train.lab import Lab
from rlvrlab.train.state import Memory, State

MANIFEST = "manifest.json"
STATE = "trainer.json"
MEMORY = "rules.json"
"""What protocol, surgery and guard remember; absent where the recipe has none of them."""
ASIDE = "before_extension_"
"""Begins the name of a checkpoint of a shorter run's end, kept when the run was made longer."""
VECTORS = "vectors"
"""The guard's vectors, where it keeps any."""


def save(
    folder: Path, engine: Engine, state: State, memory: Memory | None = None, seal: Mapping[str, Any] | None = None
) -> Path:
    """Write checkpoints/global_step_N; returns it. A policy that is not finite is never saved."""
    if not finite(engine):
        raise TrainingDiverged(
            f"parameters are NaN or infinite after step {state.step}; start again with a lower learning rate; "
            f"the checkpoints in {folder} are from before"
        )
    with _drafted(folder, state.step) as draft:
        engine.save(draft / "actor")
        write_json(draft / STATE, state.to_json())
        if memory is not None:
            write_json(draft / MEMORY, memory.to_json())
        if memory is not None and memory.guard.vectors:
            engine.save_vectors(draft / VECTORS, memory.guard.vectors)
        if seal is not None:
            write_json(draft / SEAL, seal)
    return folder / f"global_step_{state.step}"


def adopt(path: Path, folder: Path, seal: Mapping[str, Any] | None) -> Path:
    """Copy a checkpoint of another run into `folder`, under a seal of the run that takes it over."""
    with _drafted(folder, step_of(path)) as draft:
        shutil.copytree(path, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST, SEAL))
        if seal is not None:
            write_json(draft / SEAL, seal)
    return folder / path.name


def reopen(path: Path, folder: Path, state: State, seal: Mapping[str, Any]) -> Path:
    """Copy the checkpoint of a run's end into `folder` as one that stands at `state`, before that end."""
    with _drafted(folder, state.step) as draft:
        shutil.copytree(path, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST, SEAL, STATE))
        write_json(draft / STATE, state.to_json())
        write_json(draft / SEAL, seal)
    return folder / f"global_step_{state.step}"


@contextmanager
def _drafted(folder: Path, step: int) -> Iterator[Path]:
    """A folder to fill, which then gets its manifest and its name; whatever fails on the way leaves nothing behind."""
    final, draft = folder / f"global_step_{step}", folder / f".draft_{step}_{os.getpid()}"
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        yield draft
        # The seal covers times, so it is not listed: manifests of equal runs are equal.
        listed = [p for p in sorted(draft.rglob("*")) if p.is_file() and p != draft / SEAL]
        files = {str(p.relative_to(draft)): _facts(p) for p in listed}
        for below in (p for p in draft.rglob("*") if p.is_dir()):
            sync_folder(below)
        write_json(draft / MANIFEST, {"step": step, "files": files})
        draft.rename(final)
        sync_folder(folder)
    except StorageError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise StorageError(final, error) from error


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
    state = read_state(path)
    engine.load(path / "actor")
    return state


def read_state(path: Path) -> State:
    """Where the run stood at a checkpoint."""
    try:
        return State.from_json(parsed(plain_files.read_text(path / STATE)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{path / STATE}: not the state of a run ({why}); restore it") from None


def restore_memory(folder: Path, lab: Lab, step: int) -> Memory:
    """What protocol, surgery and guard knew at that step; a guard's anchors are rebuilt from their own checkpoints."""
    path = folder / f"global_step_{step}"
    if not lab.remembers or not (path / MEMORY).exists():
        return Memory()
    memory = Memory.from_json(parsed(plain_files.read_text(path / MEMORY)))
    kept = memory.guard
    for anchor in sorted(lab.guard.anchors(kept)) if lab.guard else ():
        place = folder / f"global_step_{anchor}"
        problem = defect(place)
        if problem:
            raise CheckpointError(f"{place}: {problem}; the guard's anchor is in it")
        lab.engine.load(place / "actor")
        kept = lab.guard.rebuild(lab.engine, kept, anchor) if lab.guard else kept
    lab.engine.load(path / "actor")
    if (path / VECTORS).exists():
        kept = kept._replace(vectors=lab.engine.load_vectors(path / VECTORS))
    return replace(memory, guard=kept)


def defect(path: Path) -> str | None:
    """What is wrong with a checkpoint, or None."""
    try:
        manifest = parsed(plain_files.read_text(path / MANIFEST))
        listed = manifest["files"]
        for name, facts in listed.items():
            if _facts(path / name) != facts:
                return f"{name} does not match the manifest"
        if STATE not in listed or not any(name.startswith("actor/") for name in listed):
            return f"the manifest does not list {STATE} and a policy"
        if manifest["step"] != step_of(path.resolve()):
            return f"the manifest is that of step {manifest['step']}"
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
    return [step_of(path) for path in reversed(_latest_first(folder))]


def named_steps(folder: Path) -> list[int]:
    """The same with the ends of the run before it was made longer: every step that somebody can ask for."""
    ends = [step_of(path) for path in folder.glob(f"{ASIDE}global_step_*") if path.name.rpartition("_")[2].isdigit()]
    return sorted({*steps(folder), *ends})


def at_step(folder: Path, step: int) -> Path | None:
    """The checkpoint of a step; where training has gone on and left none, the one that ended the shorter run."""
    names = (f"global_step_{step}", f"{ASIDE}global_step_{step}")
    return next((folder / name for name in names if (folder / name).is_dir()), None)


def lasting(found: Iterable[int], keep: int, protected: set[int]) -> set[int]:
    """Which of these steps pruning leaves: the latest `keep` and the protected ones."""
    latest_first = sorted(found, reverse=True)
    return {*latest_first[:keep], *protected.intersection(latest_first)}


def prune(folder: Path, keep: int, protected: set[int]) -> None:
    """Remove what does not last."""
    lasts = lasting(steps(folder), keep, protected)
    for path in _latest_first(folder):
        if step_of(path) not in lasts:
            shutil.rmtree(path, ignore_errors=True)


def _latest_first(folder: Path) -> list[Path]:
    """Only what we named: a user's `global_step_4.bak` is left alone."""
    ours = [path for path in folder.glob("global_step_*") if path.name.removeprefix("global_step_").isdigit()]
    return sorted(ours, key=step_of, reverse=True)


def step_of(path: Path) -> int:
    """The step that a checkpoint's folder is named after."""
    return int(path.name.rpartition("_")[2])


def _facts(path: Path) -> dict[str, Any]:
    with plain_files.opened(path, holes=True) as file:  # synced and hashed through one descriptor
        os.fsync(file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": digest}
