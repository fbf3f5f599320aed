"""Start or resume a run, and what happens when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Any

from rlvrlab.errors import RunError, UserError, remedied
from rlvrlab.notes import hearing, noting
from rlvrlab.recipe import Resolved, resolve
from rlvrlab.recipe.explain import unusual
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.record.headline import summarise
from rlvrlab.record.run import Run, read_config, read_info
from rlvrlab.registry import name_own
from rlvrlab.train import checkpoint, run_folder
from rlvrlab.train.checks import hidden_keys, note_surprises, ready, ready_lab, refuse_full_disk, refuse_secrets
from rlvrlab.train.lab import Lab, build_supplies
from rlvrlab.train.loop import Observer, train
from rlvrlab.train.state import State
from rlvrlab.train.stopping import Abandoned, Interrupts, Patience

if TYPE_CHECKING:
    from rlvrlab.record.sinks.base import Sinks


@dataclass(frozen=True)
class Ended:
    """How a session ended."""

    folder: Path
    status: str
    """finished, interrupted or preempted."""
    exit_code: int
    summary: dict[str, Any]
    asked: Signals | None = None
    """The signal that asked for an end, also where the run had finished by then."""


def start(resolved: Resolved, observe: Observer, command: Sequence[str] = ()) -> Ended:
    """A new run; everything that can be wrong is found before its folder is made."""
    refuse_secrets(resolved)
    told: list[str] = []
    with hearing(lambda _, words: told.append(words)):
        lab = ready_lab(resolved)
        refuse_full_disk(lab)
        note_surprises(lab)
    _refuse_sinks(resolved)
    run = run_folder.create(lab, command)
    with closing(run):
        run.event("start", f"run {run.folder.name} starts")
        for words in [*unusual(resolved), *told]:
            run.warn(words.partition(" ")[0], words)
        run.new_warnings()  # these were said before the run began
        return _go(lab, run, State(), observe)


@remedied(run_folder.GO_ON)
def resume(folder: Path, observe: Observer) -> Ended:
    """Go on from the newest complete checkpoint; without one, from the beginning."""
    from rlvrlab.train import integrity

    resolved = resolved_of(folder)
    with closing(Run.open(folder)) as run:
        path, notes = checkpoint.newest(folder / "checkpoints")
        state = checkpoint.read_state(path) if path else State()
        remarks = integrity.check(run, state, resolved.recipe.phases)
        has = build_supplies(resolved)
        run_folder.check_data(folder, has)
        info = read_info(folder)
        left = [name for name in resolved.recipe.phases[state.phase :] if name not in (info.get("skipped") or {})]
        done = not left and state.phase_step == 0 and info.get("status") == "finished"
        if done and not notes and not remarks:
            return Ended(folder, "finished", 0, summarise(folder))  # nothing is left to do, so nothing is written
        if path is None and info.get("status") == "finished":
            raise run_folder.without_checkpoints(folder)
        lab = ready(has)
        refuse_full_disk(lab, len(checkpoint.steps(folder / "checkpoints")))
        if path:
            checkpoint.load(path, lab.engine)
        moved = run.rewind(integrity.covered(run, state, resolved.recipe.phases), state.step)
        for note in notes:
            run.event("recovered", note)
        for kind, words in remarks:
            run.event(kind, words)
        run_folder.set_page_aside(run, state.step)
        run_folder.note_resume(run, state.step, moved)
        return _go(lab, run, state, observe)


def fork(folder: Path, observe: Observer, command: Sequence[str] = (), *, accept_code: bool = False) -> Ended:
    """A new run that starts from the newest checkpoint of another, with the recipe that stands there now.

    For a run whose recipe or logs were edited, or whose own functions were (`accept_code`): nothing in its folder is
    touched, and the new run records its parent and what was found different.
    """
    from rlvrlab.train import integrity

    resolved = resolved_of(folder, accept_code=accept_code)
    lab = ready_lab(resolved)
    refuse_full_disk(lab)
    _refuse_sinks(resolved)
    found = checkpoint.complete(folder / "checkpoints")
    if not found:
        raise UserError(f"{folder}: no complete checkpoint to fork from; start a new run with its recipe")
    state = checkpoint.load(found[0], lab.engine)
    phases = [resolved.phase(name) for name in resolved.recipe.phases]
    if state.phase > len(phases):
        raise UserError(f"{folder}: {found[0].name} is in phase {state.phase + 1}, the recipe has fewer; add phases")
    if state.phase_step and phases[state.phase].steps <= state.phase_step:
        name, done = phases[state.phase].name, state.phase_step
        raise UserError(f"{folder}: {found[0].name} has done {done} steps of its phase; raise {name}.steps above that")
    run = run_folder.create(lab, command)
    with closing(run):
        integrity.inherit(run, folder, found, state)
        return _go(lab, run, state, observe)


def resolved_of(folder: Path, *, accept_code: bool = False) -> Resolved:
    """The recipe a run was started with, exactly; `accept_code` takes the user's own functions as they are now."""
    config = read_config(folder)
    try:
        given = {key: value for key, value in config["recipe"].items() if value is not None}
        origins, home = dict(config["origins"]), Path(config["folder"])
    except (KeyError, TypeError, AttributeError, ValueError):
        raise RunError(f"{folder / 'config.json'}: the recipe in it is damaged; restore the file") from None
    if hidden := hidden_keys({kind: given.get(kind) or {} for kind in PLUGIN_TABLES}):
        remedy = "let the plug-in read it from the environment"
        raise UserError(f"{folder}: {', '.join(hidden)} held a secret, which is not stored; {remedy}")
    if accept_code:
        from rlvrlab.fingerprint import without_fingerprints

        name_own(given, home, Path())
        given = without_fingerprints(given)
    again = resolve(given, {}, home)
    return Resolved(again.recipe, origins, again.folder)


def accept_code(folder: Path) -> dict[str, Any]:
    """Record the user's own functions of now as those of the run; returns key -> fingerprints from and to, if changed.

    config.json gets the new fingerprints and keeps the old ones in its history, and an event says after which step the
    new functions judge and pay. What was trained before stays as it was.
    """
    from rlvrlab.train import integrity

    now = resolved_of(folder, accept_code=True)
    changed = integrity.changed_code(read_config(folder)["recipe"], now.recipe.model_dump())
    if not changed:
        return changed
    with closing(Run.open(folder)) as run:
        integrity.refuse_edited(folder, "its code is accepted")
        found = checkpoint.complete(folder / "checkpoints")
        step = checkpoint.read_state(found[0]).step if found else 0
        told = ", ".join(f"{key} {one['from']} → {one['to']}" for key, one in changed.items())
        words = f"own code accepted as it is now: {told}; it judges and pays what follows step {step}"
        run_folder.change_recipe(run, now, changed, words, kind="code_accepted", step=step)
        data = read_info(folder).get("data", {})
        if data.get("version") == changed.get("env.code", {}).get("from", ""):  # functions that score are a version
            run.info(data={**data, "version": changed["env.code"]["to"]})
    return changed


def _go(lab: Lab, run: Run, state: State, observe: Observer) -> Ended:
    with Interrupts() as interrupts:
        deadline_s = lab.recipe.stop.deadline_s
        try:
            patience = Patience(run.event, interrupts, deadline_s, partial(run_folder.close, run))
            with run_folder.recorded(run), _opened_sinks(lab, run) as sinks, patience, noting(run.event):
                state = train(lab, run, sinks, state, interrupts, observe, patience)
        except Abandoned:
            words = "asked to stop; the step in progress was given up; go on with --resume"
            run_folder.close(run, interrupts.status, words)
            return _stopped(run, interrupts)
        if state.phase == len(lab.recipe.phases):
            run_folder.close(run, "finished", "all phases done")
            return Ended(run.folder, "finished", 0, summarise(run.folder), interrupts.received)
        run_folder.close(run, interrupts.status, f"asked to stop after step {state.step}; go on with --resume")
        return _stopped(run, interrupts)


def _refuse_sinks(resolved: Resolved) -> None:
    """Say before anything is trained that a tracker which the recipe names is not known or not installed."""
    if resolved.recipe.record.sinks:
        from rlvrlab.record.sinks.base import find_sinks

        find_sinks(resolved)


def _opened_sinks(lab: Lab, run: Run) -> AbstractContextManager[Sinks | None]:
    """The trackers that get a copy of the metrics, where the recipe names some."""
    if not lab.recipe.record.sinks:
        return nullcontext()
    from rlvrlab.record.sinks.base import Sinks

    return Sinks.open(lab.resolved, run)


def _stopped(run: Run, interrupts: Interrupts) -> Ended:
    return Ended(run.folder, interrupts.status, interrupts.exit_code, summarise(run.folder), interrupts.received)
