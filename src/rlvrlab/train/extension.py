"""A run made longer after its end: its last phase gets more steps, and goes on as if it had had them from the start.

Training goes on from the checkpoint of the end. The marks that the end has left are taken away before: a state that is
already past the phase, and an evaluation that a longer run would not have made there. With a guard, a protocol or
answers drawn ahead (pipeline.lag), which all remember more than that state tells, and in runs of older versions it goes
back to the newest checkpoint before the end.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvrlab.errors import UserError
from rlvrlab.evals.hacks.signals import TRENDS, Trend
from rlvrlab.recipe import Resolved
from rlvrlab.recipe.load import Tables, load_changed
from rlvrlab.recipe.parse import MORE, flatten, parse_overrides
from rlvrlab.record.run import Run, read_info, read_metrics
from rlvrlab.record.summary import accuracy_of
from rlvrlab.rewards.total import is_control
from rlvrlab.train import checkpoint, integrity, run_folder
from rlvrlab.train.card import keep_card
from rlvrlab.train.lab import build_lab
from rlvrlab.train.loop import stops_early
from rlvrlab.train.session import resolved_of
from rlvrlab.train.state import State
from rlvrlab.train.update import learning_rate

FREE = ("eval.", "checkpoint.", "stop.")
"""Tables whose keys may change besides: none of them has a say in what a step does."""


def extend(folder: Path, words: Sequence[str]) -> bool:
    """Change the recipe of a run folder as asked, or refuse with the reason; `resume` then does the work.

    `grpo.steps=300` sets the length of the last phase, `grpo.steps=+100` adds to it. False where the run has all of
    that already (`grpo.steps=+0`): nothing is written then.
    """
    before = resolved_of(folder)
    was = dict(flatten(before.plain()))
    asked = _changes(before, words).items()
    changes = {key: value for key, value in asked if key not in was or was[key] != value}
    if not changes:
        return False
    tables = {key: value for key, value in before.plain().items() if value is not None}
    after = load_changed(Tables(tables, dict(before.origins)), changes, before.folder)
    _refuse_idle(folder, after)
    _check_schedule(before, after)
    run = Run.open(folder)
    try:
        integrity.refuse_edited(folder, "the run is made longer")
        end = _set_end_aside(folder, len(after.recipe.phases))
        keep_card(folder, len(after.recipe.phases))
        told = {key: {"from": was.get(key), "to": value} for key, value in changes.items()}
        text = ", ".join(f"{key} {one['from']} → {one['to']}" for key, one in told.items())
        run_folder.change_recipe(run, after, told, f"made longer: {text}", kind="extended")
        recipe = after.recipe
        # With a guard, stages or answers drawn ahead, a longer run would know more at this step than its end has saved.
        if end is not None and recipe.guard is None and recipe.protocol is None and recipe.pipeline.lag == 0:
            _reopen(run, end, recipe.eval.every, control=is_control(after.build("reward")))
    finally:
        run.close()
    return True


def _changes(resolved: Resolved, words: Sequence[str]) -> dict[str, Any]:
    """What is asked for, with `+100` added up; anything but a longer last phase and what only watches is refused."""
    last = resolved.recipe.phases[-1]
    key, had = f"{last}.steps", resolved.recipe.phase_tables[last]["steps"]
    changes: dict[str, Any] = {}
    for name, value in parse_overrides(words).items():
        if name == key:
            value = had + int(value) if isinstance(value, str) and MORE.fullmatch(value) else value
            if not isinstance(value, int) or value < had:
                raise UserError(f"{name}={value}: the run had {had} steps; a run can only be made longer")
        elif not name.startswith(FREE):
            allowed = f"{key} (longer) and keys of {', '.join(table.rstrip('.') for table in FREE)}"
            raise UserError(f"{name}: --resume can change {allowed}; for anything else start a new run")
        changes[name] = value
    if last in resolved.recipe.phases[:-1]:
        raise UserError(f"{key}: the phase {last} comes more than once, so its end cannot be moved; start a new run")
    return changes


def _refuse_idle(folder: Path, after: Resolved) -> None:
    """Refuse for a finished run what would have ended where it did: the loop would train one step more to find out."""
    name = after.recipe.phases[-1]
    states = map(checkpoint.read_state, checkpoint.complete(folder / "checkpoints"))
    end = next((state for state in states if state.phase >= len(after.recipe.phases)), None)
    rows = read_metrics(folder)
    if read_info(folder).get("status") != "finished" or not rows:
        return
    if name in (skipped := read_info(folder).get("skipped") or {}):
        raise UserError(f"{name}.steps: the phase {name} was skipped ({skipped[name]}), so it cannot be made longer")
    done, steps = rows[-1]["phase_step"], after.phase(name).steps
    if rows[-1]["phase"] == name and done >= steps:
        why = f"the run has had all {done} steps of {name}, and no key changes what is done"
        raise UserError(f"{name}.steps={steps}: {why}; a run can only be made longer, e.g. {name}.steps=+100")
    if end is None or end.unended is None:
        return
    if stops_early(after.recipe.stop, _evaluated(end.unended, rows[-1], after.recipe.eval.every)):
        remedy = "switch off what has ended it: stop.target=null, stop.patience=0 or stop.no_signal_steps=0"
        raise UserError(f"stop: has ended {name} after {done} steps and would again; {remedy}")


def _evaluated(state: State, row: dict[str, Any], every: int) -> State:
    """With the evaluation of its line of metrics, where a longer run would have made one at this step too."""
    measured = accuracy_of(row)
    return state.evaluated(measured["accuracy"]) if measured and every and state.phase_step % every == 0 else state


def _check_schedule(before: Resolved, after: Resolved) -> None:
    """Refuse where the steps that are done would have been others in a longer run."""
    name = before.recipe.phases[-1]
    old, new, settings = before.phase(name), after.phase(name), before.recipe.optimizer
    for step in range(old.steps):
        rates = [learning_rate(old.learning_rate, step, length, settings) for length in (old.steps, new.steps)]
        if rates[0] != rates[1]:
            raise UserError(
                f"{name}.steps: optimizer.decay = {settings.decay!r} follows the length, so a longer run would have "
                "trained otherwise from its first steps on; start a new run, or use decay = constant next time"
            )
    if before.recipe.protocol is None or not old.online:
        return
    lab = build_lab(before)
    cut, recut = ([stage.last for stage in lab.stages(n)][:-1] for n in (old.steps, new.steps))
    if cut != recut:
        raise UserError(
            f"{name}.steps: protocol.type = {before.recipe.protocol['type']!r} cuts the phase into stages by its "
            "length, so the stages that are done would have ended elsewhere; start a new run"
        )


def _set_end_aside(folder: Path, phases: int) -> Path | None:
    """Rename checkpoints of the finished run, so that a resume does not take them; returns where the last one is."""
    end = None
    for path in checkpoint.complete(folder / "checkpoints"):
        if checkpoint.read_state(path).phase >= phases:
            aside = path.with_name(f"{checkpoint.ASIDE}{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            end = end or path.rename(aside)
    return end


def _reopen(run: Run, end: Path, every: int, *, control: bool) -> None:
    """Make a checkpoint and a last line of metrics as a longer run would have them at this step."""
    state, rows = checkpoint.read_state(end).unended, read_metrics(run.folder)
    if state is None or not rows or rows[-1]["step"] != state.step:
        return
    last, before = rows[-1], state
    state = _evaluated(before, last, every)
    if accuracy_of(last) and state is before:
        run.rewind(lambda number, _: number < len(rows), state.step)
        row = {key: value for key, value in last.items() if not key.startswith("val-") and key not in TRENDS}
        run.metrics(row | Trend(rows[:-1], control=control).metrics(row))
        run.sync()
    checkpoint.reopen(end, run.folder / "checkpoints", state, run.seal())
