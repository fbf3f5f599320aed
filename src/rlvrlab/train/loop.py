"""THE loop: every phase, every engine, every recipe goes through here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rlvrlab.errors import TrainingDiverged
from rlvrlab.evals.monitors import Watch
from rlvrlab.record.experiment import write_experiment
from rlvrlab.record.run import Run, read_metrics
from rlvrlab.rollout.collect import as_row
from rlvrlab.stopwatch import watching
from rlvrlab.train import checkpoint
from rlvrlab.train.by_skill import BySkill, evaluate_skills
from rlvrlab.train.card import BASELINE, write_card
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Phase, StepOutcome
from rlvrlab.train.phases.online import OnlinePhase
from rlvrlab.train.signals import Interrupts
from rlvrlab.train.state import State

Observer = Callable[[Phase, State, dict[str, Any]], None]
MAX_SKIPPED = 3
CLOCK_S = 5e-5
"""Parts of a step shorter than this did not happen."""


def train(lab: Lab, run: Run, state: State, interrupts: Interrupts, observe: Observer) -> State:
    """Run the phases from `state` on, until the end or until asked to stop."""
    watch = Watch(read_metrics(run.folder))
    checkpoint.restore_rules(run.folder / "checkpoints", lab, state.step)
    while state.phase < len(lab.recipe.phases) and not interrupts.received:
        phase: Phase = lab.resolved.phase(lab.recipe.phases[state.phase])
        if state.phase_step == 0:
            state = _begin(lab, run, watch, phase, state, observe)
        phase.prepare(lab, run.folder / "artifacts")
        index = state.phase
        while state.phase == index and not interrupts.received:
            started = time.perf_counter()
            lab.rules.step = state.step
            with watching() as spent:
                outcome = phase.step(lab, state.phase_step)
            outcome.metrics.update({f"time/{name}_s": round(s, 4) for name, s in spent.items() if s > CLOCK_S})
            state = state.stepped(silent=outcome.silent, skipped=outcome.skipped)
            stage_ended = _stage_ended(lab, phase, state)
            evaluation = evaluate_skills(lab) if stage_ended or _due(lab, phase, state) else None
            state = state.evaluated(evaluation.value) if evaluation else state
            row = _record(lab, run, watch, phase, state, outcome, evaluation, time.perf_counter() - started)
            if state.phase_step == phase.steps or _enough(lab, state):
                state = _end(lab, run, phase, state)
            if stage_ended or _checkpoint_due(lab, state):
                _checkpoint(lab, run, state)
            observe(phase, state, row)
    if interrupts.received and state.phase_step:
        _checkpoint(lab, run, state)
    return state


def _begin(lab: Lab, run: Run, watch: Watch, phase: Phase, state: State, observe: Observer) -> State:
    """A fresh optimiser, a frozen reference and a measurement before the first step of a phase."""
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    if lab.rules.guard:
        _checkpoint(lab, run, state)  # anchors are rebuilt from checkpoints, also one at the very beginning
    if state.phase == 0 and lab.recipe.eval.test_size:
        write_card(lab, run.folder, 0, BASELINE, state.step)
    evaluation = evaluate_skills(lab)
    state = state.evaluated(evaluation.value)
    run.event("phase", f"phase {phase.name} begins at {evaluation.value:.3f} held-out accuracy", step=state.step)
    observe(phase, state, _record(lab, run, watch, phase, state, StepOutcome({}), evaluation, None))
    return state


def _end(lab: Lab, run: Run, phase: Phase, state: State) -> State:
    assert state.best is not None
    if lab.recipe.eval.test_size:
        write_card(lab, run.folder, state.phase + 1, phase.name, state.step, control=getattr(phase, "control", False))
    text = f"phase {phase.name} ends; best {state.best.accuracy:.3f} at step {state.best.step}"
    run.event("phase", text, step=state.step)
    if getattr(phase, "control", False):
        origin = state.kept[-1]
        checkpoint.load(run.folder / "checkpoints" / f"global_step_{origin}", lab.engine)
        run.event(
            "control", f"{phase.name} was a control arm: the policy is again that of step {origin}", step=state.step
        )
    return state.next_phase()


def _stage_ended(lab: Lab, phase: Phase, state: State) -> bool:
    return isinstance(phase, OnlinePhase) and lab.rules.stage_ended(lab, phase, state.phase_step)


def _due(lab: Lab, phase: Phase, state: State) -> bool:
    every = lab.recipe.eval.every
    return state.phase_step == phase.steps or bool(every and state.phase_step % every == 0)


def _enough(lab: Lab, state: State) -> bool:
    """Early stop: target reached, no progress, or nothing to learn from."""
    stop, best = lab.recipe.stop, state.best.accuracy if state.best else 0.0
    return (
        (stop.target is not None and best >= stop.target)
        or (stop.patience > 0 and state.evals_since_best >= stop.patience)
        or (stop.no_signal_steps > 0 and state.silent_steps >= stop.no_signal_steps)
    )


def _record(
    lab: Lab,
    run: Run,
    watch: Watch,
    phase: Phase,
    state: State,
    outcome: StepOutcome,
    evaluation: BySkill | None,
    seconds: float | None,
) -> dict[str, Any]:
    """Metrics line, rollouts, events; on the disk when this returns."""
    row: dict[str, Any] = {"step": state.step, "phase": phase.name, "phase_step": state.phase_step, **outcome.metrics}
    if evaluation:
        row |= evaluation.metrics(lab.env.name)
    row |= watch.measure(row, outcome.rollouts)
    if seconds is not None:
        row["time/step_s"] = round(seconds, 4)
    run.metrics(row)
    if outcome.rollouts and lab.recipe.record.rollouts == "all":
        run.rollouts(state.step, [as_row(rollout, outcome.steps.get(rollout.id)) for rollout in outcome.rollouts])
    for kind, words in outcome.events:
        run.event(kind, words, step=state.step)
    for note in outcome.notes:
        run.warn("no_signal", note, step=state.step)
    for finding in watch.examine(phase.name, row):
        if finding.alarm:
            run.warn(finding.metric, finding.text, step=state.step)
    if outcome.skipped:
        run.event("skipped_update", "loss or gradient was not finite; parameters unchanged", step=state.step)
    run.sync()
    if evaluation:
        write_experiment(run.folder)
    if state.skipped_steps >= MAX_SKIPPED:
        raise TrainingDiverged(
            f"{MAX_SKIPPED} updates in a row were not finite, the last at step {state.step}; start again with a lower "
            f"{phase.name}.learning_rate; the checkpoints in {run.folder / 'checkpoints'} are from before"
        )
    return row


def _checkpoint_due(lab: Lab, state: State) -> bool:
    """At the interval, at a new best and at the end of a phase; when asked to leave, the loop sees to it."""
    best = state.best is not None and state.best.step == state.step
    return best or state.phase_step % lab.recipe.checkpoint.every == 0


def _checkpoint(lab: Lab, run: Run, state: State) -> None:
    folder = run.folder / "checkpoints"
    if not (folder / f"global_step_{state.step}").exists():
        checkpoint.save(folder, lab.engine, state, lab.rules.state() if lab.rules.active else None)
    protected = {*state.kept, *lab.rules.anchors(), *(() if state.best is None else (state.best.step,))}
    checkpoint.prune(folder, lab.recipe.checkpoint.keep, protected)
