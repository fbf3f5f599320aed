"""Start or resume a run, and what happens when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rlvrlab.envs.base import BaseEnvironment, FollowsPrograms, ShowsTurns
from rlvrlab.errors import RunError, UserError
from rlvrlab.fingerprint import without_fingerprints
from rlvrlab.notes import noting
from rlvrlab.recipe import Resolved, resolve
from rlvrlab.recipe.explain import unusual
from rlvrlab.recipe.schema import PLUGIN_TABLES
from rlvrlab.record.headline import summarise
from rlvrlab.record.run import Run, read_config, read_info
from rlvrlab.record.sinks.base import Sinks, find_sinks
from rlvrlab.train import checkpoint, integrity, run_folder
from rlvrlab.train.grouping import Difficulty
from rlvrlab.train.guards.base import protected_in
from rlvrlab.train.lab import Lab, build_lab
from rlvrlab.train.loop import Observer, train
from rlvrlab.train.own_code import hidden_keys, refuse_secrets, try_own_code
from rlvrlab.train.patience import Abandoned, Patience
from rlvrlab.train.phases.base import Phase
from rlvrlab.train.protocols.base import check_skills, stages_of
from rlvrlab.train.state import State
from rlvrlab.train.stopping import Interrupts


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
    refuse_secrets(resolved)
    lab = ready_lab(resolved)
    find_sinks(resolved)
    run = run_folder.create(lab, command)
    with closing(run):
        run.event("start", f"run {run.folder.name} starts")
        for words in unusual(resolved):
            run.warn(words.partition(" ")[0], words)
        return _go(lab, run, State(), observe)


def resume(folder: Path, observe: Observer) -> Ended:
    """Go on from the newest complete checkpoint; without one, from the beginning."""
    resolved = resolved_of(folder)
    with closing(Run.open(folder)) as run:
        path, notes = checkpoint.newest(folder / "checkpoints")
        state = checkpoint.read_state(path) if path else State()
        remarks = integrity.check(run, state, resolved.recipe.phases)
        lab = ready_lab(resolved)
        run_folder.check_data(folder, lab)
        info = read_info(folder)
        left = [name for name in resolved.recipe.phases[state.phase :] if name not in (info.get("skipped") or {})]
        done = not left and state.phase_step == 0 and info.get("status") == "finished"
        if done and not notes and not remarks:
            return Ended(folder, "finished", 0, summarise(folder))  # nothing is left to do, so nothing is written
        if path:
            checkpoint.load(path, lab.engine)
        moved = run.rewind(integrity.covered(run, state, resolved.recipe.phases), state.step)
        for note in notes:
            run.event("recovered", note)
        for kind, words in remarks:
            run.event(kind, words)
        run.event("resume", f"resumes after step {state.step}; {moved} later lines will be made again", step=state.step)
        return _go(lab, run, state, observe)


def fork(folder: Path, observe: Observer, command: Sequence[str] = (), *, accept_code: bool = False) -> Ended:
    """A new run that starts from the newest checkpoint of another, with the recipe that stands there now.

    For a run whose recipe or logs were edited, or whose own functions were (`accept_code`): nothing in its folder is
    touched, and the new run records its parent and what was found different.
    """
    resolved = resolved_of(folder, accept_code=accept_code)
    lab = ready_lab(resolved)
    find_sinks(resolved)
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


def ready_lab(resolved: Resolved) -> Lab:
    """Everything a run needs; what cannot work together is refused here, before anything is trained."""
    lab = build_lab(resolved)
    check_phases(lab)
    if words := lab.table.cannot_learn([p.prompt for p in lab.train], [p.prompt for p in lab.dev]):
        raise UserError(words)
    try_own_code(lab)
    return lab


def check_phases(lab: Lab) -> None:
    """Whatever cannot work in an on-line phase is said before anything is trained.

    Stages must fit the phase and the data, and a guard must have something to protect.
    """
    phases = [lab.resolved.phase(name) for name in lab.recipe.phases]
    _check_followed(lab)
    _check_grown(lab)
    if isinstance(lab.env, BaseEnvironment) and lab.env.uses_tools:
        _check_tools(lab, phases)
    if lab.surgery is not None and not lab.surgery.needs_pass_rates:
        lab.grouping.names(lab.train, Difficulty())  # a problem whose group is not known is told before training
    for phase in phases:
        phase.check(lab)
        if not phase.online or not lab.remembers:
            continue
        stages = stages_of(lab.protocol, lab.train, phase.steps)
        if lab.guard is None:
            continue
        check_skills("guard.protected", lab.guard.protected, lab.train)
        if not any(protected_in(stage, stages, lab.guard) for stage in stages):
            raise UserError(
                f"guard: nothing to protect: {phase.name} trains {', '.join(stages[-1].skills)} in one stage; list "
                'other skills in guard.protected, set protocol.type = "sequential", or take guard.type = "skill_safe", '
                "which also protects skills that are trained together from each other"
            )


def _check_followed(lab: Lab) -> None:
    """Credit by execution needs programs that are run."""
    if lab.credit is not None and lab.credit.follows and not isinstance(lab.env, FollowsPrograms):
        why = f"compares what programs do, and {lab.env.name!r} runs none"
        raise UserError(f"credit.type: {why}; take an environment of programs, or another credit")


def _check_grown(lab: Lab) -> None:
    """Answers branch between turns where there are tools, and within the one turn where there are none."""
    tools = isinstance(lab.env, BaseEnvironment) and lab.env.uses_tools
    if lab.shape is not None and tools != (lab.shape.boundary == "turns"):
        why = f"{lab.env.name!r} has {'tools' if tools else 'no tools, so its answers are one turn'}"
        allowed = '"turns"' if tools else '"lines" or "tokens"'
        raise UserError(f'credit.boundary: "{lab.shape.boundary}": {why}; use {allowed}')


def _check_tools(lab: Lab, phases: Sequence[Phase]) -> None:
    """What would train on the results of tools as if the policy had written them is refused."""
    shown = isinstance(lab.env, ShowsTurns)
    blind = [phase.name for phase in phases if not (phase.trains_turns and (phase.online or shown))]
    if blind:
        remedy = "allowed: on-line phases" + (" and sft" if shown else "")
        raise UserError(f"phases: {blind[0]!r} trains on whole answers, and {lab.env.name!r} has tools; {remedy}")
    if lab.credit is not None and lab.credit.needs_sampling:
        remedy = "with tools take an estimator and interventions that only cut"
        raise UserError(f"credit: as set here it writes answers anew in one turn; {remedy}")


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
    again = resolve(without_fingerprints(given) if accept_code else given, {}, home)
    return Resolved(again.recipe, origins, again.folder)


def _go(lab: Lab, run: Run, state: State, observe: Observer) -> Ended:
    with Interrupts() as interrupts:
        deadline_s = lab.recipe.stop.deadline_s
        try:
            patience = Patience(run.event, interrupts, deadline_s, partial(run_folder.close, run))
            with run_folder.recorded(run), Sinks.open(lab.resolved, run) as sinks, patience, noting(run.event):
                state = train(lab, run, sinks, state, interrupts, observe, patience)
        except Abandoned:
            words = "asked to stop; the step in progress was given up; go on with --resume"
            run_folder.close(run, interrupts.status, words)
            return Ended(run.folder, interrupts.status, interrupts.exit_code, summarise(run.folder))
        if state.phase == len(lab.recipe.phases):
            run_folder.close(run, "finished", "all phases done")
            return Ended(run.folder, "finished", 0, summarise(run.folder))
        run_folder.close(run, interrupts.status, f"asked to stop after step {state.step}; go on with --resume")
        return Ended(run.folder, interrupts.status, interrupts.exit_code, summarise(run.folder))
