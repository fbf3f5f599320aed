"""THE loop: every phase, every engine, every recipe goes through here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rlvrlab.errors import TrainingDiverged
from rlvrlab.evals.monitors import examine
from rlvrlab.evals.protocol import Accuracy, greedy
from rlvrlab.record.experiment import write_experiment
from rlvrlab.record.run import Run
from rlvrlab.rollout.collect import as_row
from rlvrlab.train import checkpoint
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Phase, StepOutcome
from rlvrlab.train.signals import Interrupts
from rlvrlab.train.state import State

Observer = Callable[[Phase, State, dict[str, Any]], None]
MAX_SKIPPED = 3


def train(lab: Lab, run: Run, state: State, interrupts: Interrupts, observe: Observer) -> State:
    """Run the phases from `state` on, until the end or until asked to stop."""
    while state.phase < len(lab.recipe.phases) and not interrupts.received:
        phase: Phase = lab.resolved.phase(lab.recipe.phases[state.phase])
        if state.phase_step == 0:
            state = _begin(lab, run, phase, state, observe)
        phase.prepare(lab, run.folder / "artifacts")
        index = state.phase
        while state.phase == index and not interrupts.received:
            started = time.perf_counter()
            outcome = phase.step(lab, state.phase_step)
            state = state.stepped(silent=outcome.silent, skipped=outcome.skipped)
            evaluation = _evaluate(lab) if _due(lab, phase, state) else None
            state = state.evaluated(evaluation.value) if evaluation else state
            row = _record(lab, run, phase, state, outcome, evaluation, time.perf_counter() - started)
            if state.phase_step == phase.steps or _enough(lab, state):
                state = _end(run, phase, state)
            if _checkpoint_due(lab, state):
                _checkpoint(lab, run, state)
            observe(phase, state, row)
    if interrupts.received and state.phase_step:
        _checkpoint(lab, run, state)
    return state


def _begin(lab: Lab, run: Run, phase: Phase, state: State, observe: Observer) -> State:
    """A fresh optimiser, a frozen reference and a measurement before the first step of a phase."""
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    evaluation = _evaluate(lab)
    state = state.evaluated(evaluation.value)
    run.event("phase", f"phase {phase.name} begins at {evaluation.value:.3f} held-out accuracy", step=state.step)
    observe(phase, state, _record(lab, run, phase, state, StepOutcome({}), evaluation, None))
    return state


def _end(run: Run, phase: Phase, state: State) -> State:
    assert state.best is not None
    text = f"phase {phase.name} ends; best {state.best.accuracy:.3f} at step {state.best.step}"
    run.event("phase", text, step=state.step)
    return state.next_phase()


def _evaluate(lab: Lab) -> Accuracy:
    return greedy(lab.engine, lab.env, lab.dev, lab.recipe.rollout.max_tokens)


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
    phase: Phase,
    state: State,
    outcome: StepOutcome,
    evaluation: Accuracy | None,
    seconds: float | None,
) -> dict[str, Any]:
    """Metrics line, rollouts, events; on the disk when this returns."""
    row: dict[str, Any] = {"step": state.step, "phase": phase.name, "phase_step": state.phase_step, **outcome.metrics}
    if evaluation:
        row |= evaluation.metrics(lab.env.name)
    if seconds is not None:
        row["time/step_s"] = round(seconds, 4)
    run.metrics(row)
    if outcome.rollouts and lab.recipe.record.rollouts == "all":
        run.rollouts(state.step, [as_row(rollout) for rollout in outcome.rollouts])
    for note in outcome.notes:
        run.warn("no_signal", note, step=state.step)
    for finding in examine(phase.name, row):
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
        checkpoint.save(folder, lab.engine, state)
    protected = {*state.kept, *(() if state.best is None else (state.best.step,))}
    checkpoint.prune(folder, lab.recipe.checkpoint.keep, protected)
