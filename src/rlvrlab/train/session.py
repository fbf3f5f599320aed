"""Start or resume a run: the folder, the lock, the status, and what happens when it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, UserError
from rlvrlab.evals.monitors import RANGES
from rlvrlab.recipe import Resolved, resolve
from rlvrlab.record.experiment import summarise, write_experiment
from rlvrlab.record.facts import code_state, machine, package_versions
from rlvrlab.record.run import Run, read_config, read_info
from rlvrlab.record.sinks.base import Sinks
from rlvrlab.train import checkpoint
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import Observer, train
from rlvrlab.train.phases.base import Phase
from rlvrlab.train.signals import Interrupts
from rlvrlab.train.state import State


@dataclass(frozen=True)
class Ended:
    """How a session ended."""

    folder: Path
    status: str
    """finished, interrupted or preempted."""
    exit_code: int
    summary: dict[str, Any]


def start(resolved: Resolved, observe: Observer, command: Sequence[str] = ()) -> Ended:
    """A new run; everything that can be wrong is found before its folder is made."""
    lab = build_lab(resolved)
    run = Run.create(Path(resolved.recipe.output_dir), resolved.recipe.name, resolved.config())
    run.info(command=list(command), data=lab.data_facts(), started=_now(), watched=[str(r) for r in RANGES])
    run.event("start", f"run {run.folder.name} starts")
    return _go(lab, run, State(), observe)


def resume(folder: Path, observe: Observer) -> Ended:
    """Go on from the newest complete checkpoint; without one, from the beginning."""
    resolved = resolved_of(folder)
    run = Run.open(folder)
    with _always_closed(run):
        lab = build_lab(resolved)
        before = read_info(folder).get("data")
        if before is not None and before != lab.data_facts():
            raise UserError(f"{folder}: the data is not what this run started with ({before} → {lab.data_facts()})")
        path, notes = checkpoint.newest(folder / "checkpoints")
        state = checkpoint.load(path, lab.engine) if path else State()
        phases = resolved.recipe.phases
        moved = run.rewind(lambda row: state.covers(phases.index(row["phase"]), row["phase_step"]), state.step)
        for note in notes:
            run.event("recovered", note)
        run.event("resume", f"resumes after step {state.step}; {moved} later lines will be made again", step=state.step)
    return _go(lab, Run.open(folder), state, observe)


def resolved_of(folder: Path) -> Resolved:
    """The recipe a run was started with, exactly."""
    config = read_config(folder)
    given = {key: value for key, value in config["recipe"].items() if value is not None}
    again = resolve(given, {}, Path(config["folder"]))
    return Resolved(again.recipe, config["origins"], again.folder)


def _go(lab: Lab, run: Run, state: State, observe: Observer) -> Ended:
    with _always_closed(run), Sinks.open(lab.resolved, run) as sinks, Interrupts() as interrupts:
        run.info(status="running", packages=package_versions(), machine=machine(), code=code_state())
        write_experiment(run.folder)

        def watch(phase: Phase, now: State, row: dict[str, Any]) -> None:
            sinks.log(row)
            observe(phase, now, row)

        try:
            train(lab, run, state, interrupts, watch)
        except KeyboardInterrupt:
            _close(run, "killed", "stopped at once by a second Ctrl-C")
            raise
        except LabError as error:
            _close(run, "failed", str(error))
            raise
        status = interrupts.status
        words = {"finished": "all phases done"}.get(status, "asked to stop; the checkpoint is complete, use --resume")
        _close(run, status, words)
        return Ended(run.folder, status, interrupts.exit_code, summarise(run.folder))


def _close(run: Run, status: str, words: str) -> None:
    """Say how it ended; on a full disk even that may fail, and must not hide why."""
    try:
        run.info(status=status, ended=_now(), result=summarise(run.folder))
        run.event("end", f"{status}: {words}")
        run.sync()
        write_experiment(run.folder)
    except LabError as error:
        print(f"could not record the end of the run: {error}", file=sys.stderr)


@contextmanager
def _always_closed(run: Run) -> Iterator[None]:
    try:
        yield
    finally:
        run.close()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
