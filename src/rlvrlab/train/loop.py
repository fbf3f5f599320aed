"""The loop: phases, evaluations, checkpoints and early stops. What one step of a phase does is the phase's own.

Every phase, engine and recipe goes through here; the on-line step is train/step.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlvrlab.errors import NothingToLearn, TrainingDiverged
from rlvrlab.evals.cards import gain_lines, on_dev, on_test, read_cards
from rlvrlab.evals.evaluate import evaluate_skills
from rlvrlab.evals.judged import BySkill
from rlvrlab.evals.monitors import PERSISTS, Watch
from rlvrlab.notes import measuring, watching
from rlvrlab.recipe.schema import Stop
from rlvrlab.record.experiment import write_experiment
from rlvrlab.record.run import Run, read_info, read_metrics
from rlvrlab.rewards.total import is_control
from rlvrlab.rollout.collect import as_row
from rlvrlab.train import checkpoint
from rlvrlab.train.card import BASELINE, write_card
from rlvrlab.train.lab import Lab
from rlvrlab.train.phases.base import Phase, StepOutcome
from rlvrlab.train.state import Memory, State
from rlvrlab.train.stopping import Abandoned, Interrupts, Patience

if TYPE_CHECKING:
    from rlvrlab.record.sinks.base import Sinks

Observer = Callable[[Phase, State, dict[str, Any]], None]
MAX_SKIPPED = 3
NO_SIGNAL = "no_signal"
UNJUDGED, WARNED = "unjudged", "warned"
"""Subject of the warning about held-out answers without a verdict; also the key under which observers get its words."""
SKIPPED_UPDATE = "loss or gradient was not finite; parameters unchanged"
SHORTEST_S = 5e-5
"""Parts of a step that took less time than this are not worth a metric."""


class Watched(NamedTuple):
    """A run in progress, with what looks at its steps."""

    lab: Lab
    run: Run
    sinks: Sinks | None
    """None where the recipe names none."""
    watch: Watch
    observe: Observer
    patience: Patience


def train(
    lab: Lab, run: Run, sinks: Sinks | None, state: State, interrupts: Interrupts, observe: Observer,
    patience: Patience,
) -> State:  # fmt: skip
    """Run the phases from `state` on, until the end or until asked to stop."""
    preset, control = read_info(run.folder).get("preset"), is_control(lab.reward)
    at = Watched(lab, run, sinks, Watch(read_metrics(run.folder), preset, control=control), observe, patience)
    memory = checkpoint.restore_memory(run.folder / "checkpoints", lab, state.step)
    _back_to_origin(at, state)
    while state.phase < len(lab.recipe.phases) and not interrupts.received:
        phase: Phase = lab.resolved.phase(lab.recipe.phases[state.phase])
        try:
            with patience.over(f"what {phase.name} prepares"):
                data = phase.prepare(lab, run.folder / "artifacts")
        except NothingToLearn as error:
            state = _skip(at, phase, state, error)
            continue
        if state.phase_step == 0:
            state, memory = _begin(at, phase, state, memory)
        index, recording_s = state.phase, 0.0
        while state.phase == index and not interrupts.received:
            started = time.perf_counter()
            with watching() as spent, measuring() as measured:
                try:
                    with patience.over(f"step {state.step + 1}"):
                        outcome = phase.step(lab, data, state, memory)
                except Abandoned:
                    if phase.online and state.phase_step and "update" not in spent:  # the policy is as it was
                        _checkpoint(at, state, memory)
                    raise
            spent["record"] = recording_s
            memory = outcome.memory
            unended = state = state.stepped(silent=outcome.silent, skipped=outcome.skipped)
            over = stage_ended(lab, phase, state.phase_step)
            last, every = state.phase_step >= phase.steps, lab.recipe.eval.every
            due = over or last or (every and state.phase_step % every == 0)
            stepped = time.perf_counter()
            evaluation = _evaluated(at, state) if due else None
            spent["evaluate"] = time.perf_counter() - stepped
            outcome.metrics.update(measured)
            outcome.metrics.update({f"time/{name}_s": round(s, 4) for name, s in spent.items() if s > SHORTEST_S})
            state = state.evaluated(evaluation.value) if evaluation else state
            done = time.perf_counter()
            row = _record(at, phase, state, outcome, evaluation, done - started)
            ended = last or stops_early(lab.recipe.stop, state)
            if ended:
                state = _end(at, phase, state)
                state = replace(state, unended=unended if state.phase == len(lab.recipe.phases) else None)
            best = state.best is not None and state.best.step == state.step
            if over or best or state.phase_step % lab.recipe.checkpoint.every == 0:
                memory = _checkpoint(at, state, memory)
            if ended:
                _back_to_origin(at, state)
            recording_s = time.perf_counter() - done  # told with the next step's line
            observe(phase, state, row)
    if interrupts.received and state.phase_step:
        _checkpoint(at, state, memory)
    return state


def _evaluated(at: Watched, state: State) -> BySkill:
    with at.patience.over(f"the evaluation after step {state.step}"):
        return evaluate_skills(at.lab.engine, at.lab.env, at.lab.dev, at.lab.recipe.rollout.max_tokens)


def stage_ended(lab: Lab, phase: Phase, phase_step: int) -> bool:
    """Is a stage over after so many steps?"""
    return phase.online and any(stage.last == phase_step for stage in lab.stages(phase.steps))


def stops_early(stop: Stop, state: State) -> bool:
    """Is a phase over before its time: target reached, no progress, or nothing to learn from?"""
    best = state.best.accuracy if state.best else 0.0
    return (
        (stop.target is not None and best >= stop.target)
        or (stop.patience > 0 and state.evals_since_best >= stop.patience)
        or (stop.no_signal_steps > 0 and state.silent_steps >= stop.no_signal_steps)
    )


def bare_steps(
    lab: Lab, phase: Phase, artifacts: Path, memory: Memory | None = None, first: int = 0
) -> Iterator[StepOutcome]:
    """The steps of one phase without a run folder, evaluations or checkpoints: for experiments and benchmarks."""
    data, memory = phase.prepare(lab, artifacts), memory or Memory()
    for step in range(first, phase.steps):
        outcome = phase.step(lab, data, State(phase_step=step, step=step), memory)
        memory = outcome.memory
        yield outcome


def _begin(at: Watched, phase: Phase, state: State, memory: Memory) -> tuple[State, Memory]:
    """A fresh optimiser, a frozen reference and a measurement before the first step of a phase."""
    lab, run = at.lab, at.run
    lab.engine.fresh_optimizer()
    lab.engine.freeze_reference()
    if lab.guard:
        memory = _checkpoint(at, state, memory)  # anchors are rebuilt from checkpoints, also one at the very beginning
    if lab.test and state.step == 0:
        with at.patience.over("the card before training"):
            write_card(lab, run.folder, 0, BASELINE, state.step)
    evaluation = _evaluated(at, state)
    state = state.evaluated(evaluation.value)
    run.event(
        "phase", f"phase {phase.name} begins at accepted@1 {evaluation.value:.3f} on dev problems", step=state.step
    )
    at.observe(phase, state, _record(at, phase, state, StepOutcome({}, memory), evaluation, None))
    return state, memory


def _skip(at: Watched, phase: Phase, state: State, why: NothingToLearn) -> State:
    """Go on without a phase that has nothing to train on; a run that would have trained nothing at all fails."""
    if state.step == 0 and state.phase + 1 == len(at.lab.recipe.phases):
        raise why
    at.run.warn(f"skipped/{phase.name}", f"phase {phase.name} is skipped: {why}", step=state.step)
    at.run.info(skipped={**(read_info(at.run.folder).get("skipped") or {}), phase.name: str(why)})
    return state.without_phase()


def _end(at: Watched, phase: Phase, state: State) -> State:
    lab, run = at.lab, at.run
    assert state.best is not None
    if lab.test:
        with at.patience.over(f"the card after {phase.name}"):
            write_card(lab, run.folder, state.phase + 1, phase.name, state.step, control=phase.control)
    text = f"phase {phase.name} ends; best {state.best.accuracy:.3f} at step {state.best.step}"
    run.event("phase", text, step=state.step)
    measured = [*on_test(read_cards(run.folder)), *on_dev(run.so_far.phases)]
    harmed = [gain for gain in measured if gain.phase == phase.name and gain.verdict == "lower"]
    control = phase.control or (phase.online and is_control(lab.reward))
    for line in gain_lines(harmed[:1]) if not control else ():
        run.warn(f"harm/{phase.name}", f"phase {line}", step=state.step)
    if phase.control:
        text = f"{phase.name} was a control arm: the next phase starts from the policy of step {state.started_from}"
        run.event("control", text, step=state.step)
    return state.next_phase(control=phase.control)


def _back_to_origin(at: Watched, state: State) -> None:
    """After a control arm, whose own policy is in its checkpoint, training goes on from where the arm began."""
    if state.returns:
        checkpoint.load(at.run.folder / "checkpoints" / f"global_step_{state.origin}", at.lab.engine)


def _record(
    at: Watched, phase: Phase, state: State, outcome: StepOutcome, evaluation: BySkill | None, seconds: float | None
) -> dict[str, Any]:
    """Metrics line, rollouts, events; on the disk when this returns, and copied to the sinks. Returns the line."""
    lab, run = at.lab, at.run
    row: dict[str, Any] = {"step": state.step, "phase": phase.name, "phase_step": state.phase_step, **outcome.metrics}
    if evaluation:
        row |= evaluation.metrics(lab.env.name)
    row |= at.watch.measure(row, outcome.rollouts)
    if seconds is not None:
        row["time/step_s"] = round(seconds, 4)
    run.metrics(row)
    if outcome.rollouts and lab.recipe.record.rollouts == "all":
        run.rollouts(state.step, [as_row(rollout, outcome.steps.get(rollout.id)) for rollout in outcome.rollouts])
    for kind, words in outcome.events:
        run.event(kind, words, step=state.step)
    news = at.watch.examine(phase.health, row)
    # Said is what has persisted for some steps, and taken back what does not hold any more.
    if state.silent_steps >= min(PERSISTS, lab.recipe.stop.no_signal_steps or PERSISTS):
        for note in outcome.notes:
            run.warn(NO_SIGNAL, at.watch.lost(row) or note, step=state.step)
    elif phase.online and state.phase_step and not outcome.silent:
        run.withdraw(NO_SIGNAL, "there is signal again: groups with different rewards", step=state.step)
    news.tell(run, state.step)
    if evaluation and (lost := evaluation.whole.unjudged_words):
        text = f"answers to dev problems are left out of accepted@1, not counted wrong: {lost}"
        run.warn(UNJUDGED, text, step=state.step)
    elif evaluation:
        run.withdraw(UNJUDGED, "all answers to dev problems are judged again", step=state.step)
    if outcome.skipped:
        run.event("skipped_update", SKIPPED_UPDATE, step=state.step)
    run.sync()
    if at.sinks is not None:
        at.sinks.log(row)
    if evaluation:
        write_experiment(run.folder, run.so_far)
    refuse_divergence(state, phase.name, run.folder)
    return row | {WARNED: run.new_warnings()} | ({UNJUDGED: evaluation.whole.unjudged_words} if evaluation else {})


def refuse_divergence(state: State, phase: str, folder: Path) -> None:
    """Stop where updates were left out several times in a row."""
    if state.skipped_steps >= MAX_SKIPPED:
        raise TrainingDiverged(
            f"{MAX_SKIPPED} updates in a row were not finite, the last at step {state.step}; start again with a lower "
            f"{phase}.learning_rate; the checkpoints in {folder / 'checkpoints'} are from before"
        )


def _checkpoint(at: Watched, state: State, memory: Memory) -> Memory:
    """Save, and forget what a resumed run would not know either, so that both go on alike."""
    lab, folder = at.lab, at.run.folder / "checkpoints"
    if not (folder / f"global_step_{state.step}").exists():
        memory = replace(memory, guard=lab.guard.saved(memory.guard)) if lab.guard else memory
        checkpoint.save(folder, lab.engine, state, memory if lab.remembers else None, at.run.seal())
    anchors = lab.guard.anchors(memory.guard) if lab.guard else set()
    bests = [one.best.step for one in (state, state.unended) if one is not None and one.best is not None]
    protected = {*state.kept, *anchors, *bests}
    checkpoint.prune(folder, lab.recipe.checkpoint.keep, protected)
    return memory
