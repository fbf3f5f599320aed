"""Start or resume a run: the folder, the lock, the status, and what happens when it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, RunError, UserError
from rlvrlab.evals.monitors import RANGES
from rlvrlab.recipe import Resolved, resolve
from rlvrlab.recipe.parse import flatten
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.record.experiment import summarise, write_experiment
from rlvrlab.record.facts import code_state, machine, package_versions
from rlvrlab.record.files import utc_now
from rlvrlab.record.redact import HIDDEN
from rlvrlab.record.run import Run, read_config, read_info
from rlvrlab.record.sinks.base import Sinks, find_sinks
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
    find_sinks(resolved)
    config = {**resolved.config(), "folder": str(resolved.folder.resolve())}  # a resume may start elsewhere
    facts = {
        "command": list(command),
        "data": lab.data_facts(),
        "started": utc_now(),
        "watched": [str(r) for r in RANGES],
    }
    run = Run.create(Path(resolved.recipe.output_dir), resolved.recipe.name, config, facts)
    with closing(run):
        run.event("start", f"run {run.folder.name} starts")
        return _go(lab, run, State(), observe)


def resume(folder: Path, observe: Observer) -> Ended:
    """Go on from the newest complete checkpoint; without one, from the beginning."""
    resolved = resolved_of(folder)
    with closing(Run.open(folder)) as run:
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
        return _go(lab, run, state, observe)


def resolved_of(folder: Path) -> Resolved:
    """The recipe a run was started with, exactly."""
    config = read_config(folder)
    try:
        given = {key: value for key, value in config["recipe"].items() if value is not None}
        origins, home = dict(config["origins"]), Path(config["folder"])
    except (KeyError, TypeError, AttributeError, ValueError):
        raise RunError(f"{folder / 'config.json'}: the recipe in it is damaged; restore the file") from None
    hidden = [k for k, v in flatten({kind: given.get(kind) or {} for kind in PLUGIN_TABLES}) if HIDDEN in str(v)]
    if hidden:
        remedy = "let the plug-in read it from the environment"
        raise UserError(f"{folder}: {', '.join(hidden)} held a secret, which is not stored; {remedy}")
    again = resolve(given, {}, home)
    return Resolved(again.recipe, origins, again.folder)


def _go(lab: Lab, run: Run, state: State, observe: Observer) -> Ended:
    with Interrupts() as interrupts:
        try:
            _note_machine(run)
            write_experiment(run.folder)
            with Sinks.open(lab.resolved, run) as sinks:

                def watch(phase: Phase, now: State, row: dict[str, Any]) -> None:
                    sinks.log(row)
                    observe(phase, now, row)

                state = train(lab, run, state, interrupts, watch)
        except KeyboardInterrupt:
            _close(run, "killed", "stopped at once by a second Ctrl-C")
            raise
        except Exception as error:
            _close(run, "failed", str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}")
            raise
        if state.phase == len(lab.recipe.phases):
            _close(run, "finished", "all phases done")
            return Ended(run.folder, "finished", 0, summarise(run.folder))
        _close(run, interrupts.status, f"asked to stop after step {state.step}; go on with --resume")
        return Ended(run.folder, interrupts.status, interrupts.exit_code, summarise(run.folder))


def _note_machine(run: Run) -> None:
    """What it runs on now; where a resumed run finds other versions or another machine, that is said."""
    before = read_info(run.folder)
    now = {"packages": package_versions(), "machine": machine(), "code": code_state()}
    changes = [
        f"{key} {old} → {now[kind].get(key)}"
        for kind in now
        for key, old in before.get(kind, {}).items()
        if old != now[kind].get(key)
    ]
    if changes:
        text = f"not where it was before: {', '.join(changes)}; the last digits of what follows may differ"
        run.event("environment", text)
    run.info(status="running", **now)


def _close(run: Run, status: str, words: str) -> None:
    """Say how it ended; on a full disk even that may fail, and must not hide why."""
    try:
        run.info(status=status, ended=utc_now(), result=summarise(run.folder))
        run.event("end", f"{status}: {words}")
        run.sync()
        write_experiment(run.folder)
    except (LabError, OSError) as error:
        print(f"could not record the end of the run: {error}", file=sys.stderr)
