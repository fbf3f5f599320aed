"""What verl writes while it trains, as lines, answers and checkpoints of a run folder of ours."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rlvrlab.errors import InfrastructureError, LabError
from rlvrlab.evals.monitors import Watch
from rlvrlab.plain_files import parsed
from rlvrlab.record.experiment import write_experiment
from rlvrlab.record.run import Run, read_info, read_metrics
from rlvrlab.record.shapes import Record, refuse_other
from rlvrlab.record.sinks.base import Sinks
from rlvrlab.record.summary import accuracy_of
from rlvrlab.scale.verl.checkpoints import complete_steps, index
from rlvrlab.scale.verl.job import Job
from rlvrlab.scale.verl.told import take_events
from rlvrlab.train import checkpoint
from rlvrlab.train.loop import SKIPPED_UPDATE, WARNED, Observer, refuse_divergence
from rlvrlab.train.state import State

RENAMED = {
    "timing_s/step": "time/step_s",
    "timing_s/gen": "time/rollout_s",
    "timing_s/update_actor": "time/update_s",
    "timing_s/save_checkpoint": "time/checkpoint_s",
}
"""verl's names -> ours; the others are the field's, and the same."""


OURS = ("actor/surgery/", "actor/guard/")
"""verl puts `actor/` before whatever the update reports."""


class Reported(Record):
    """A line of verl's log."""

    step: int
    data: dict[str, Any]


def row_of(record: dict[str, Any], phase: str) -> dict[str, Any]:
    """A line of verl's log as a line of metrics.jsonl; what is not a finite number is left out."""
    numbers = {
        (name.removeprefix("actor/") if name.startswith(OURS) else RENAMED.get(name, name)): float(value)
        for name, value in record["data"].items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    norm = record["data"].get("actor/grad_norm")
    if isinstance(norm, float) and not math.isfinite(norm):  # verl leaves such an update out, with a line on stdout
        numbers["actor/skipped"] = 1.0
    step = int(record["step"])
    return {"step": step, "phase": phase, "phase_step": step, **numbers}


def on_record(rows: list[dict[str, Any]]) -> State:
    """Where a run stood after its last line, and its best evaluation."""
    state = State()
    for row in rows:
        state = State(step=row["step"], phase_step=row["step"], best=state.best)
        measured = accuracy_of(row)
        state = state.evaluated(measured["accuracy"]) if measured else state
    return state


class Follower:
    """Reads on where it left off; `look` may be called as often as one likes."""

    def __init__(self, job: Job, run: Run, sinks: Sinks, state: State, observe: Observer, python: str) -> None:
        self._job, self._run, self._sinks, self._observe, self._python = job, run, sinks, observe, python
        self.state = state
        self._watch = Watch(read_metrics(run.folder), read_info(run.folder).get("preset"))
        self._read = 0
        self._refused: set[int] = set()

    def look(self, log: Path) -> None:
        """New lines of verl's log, their answers, and new checkpoints."""
        for record in self._new(log):
            self._note(row_of(record, self._job.phase.name))
        self._merge()

    def catch_up(self, log: Path, step: int) -> None:
        """What verl reported up to a checkpoint before the process that followed it was killed."""
        rows = [row_of(record, self._job.phase.name) for record in self._new(log)]
        known = max((row["step"] for row in read_metrics(self._run.folder)), default=-1)
        for row in rows:
            if known < row["step"] <= step:
                self._note(row)
        if self.state.step < step:
            lost = f"steps {self.state.step + 1} to {step}" if step > self.state.step + 1 else f"step {step}"
            self._run.event("lost", f"verl was killed before it reported the numbers of {lost}", step=step)
        self.state = State(step=step, phase_step=step, best=self.state.best)
        self._read = 0

    def _new(self, log: Path) -> list[dict[str, Any]]:
        if not log.is_file():
            return []
        with log.open("rb") as file:
            file.seek(self._read)
            whole, _, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + 1 if whole else 0
        return [self._row(log, line) for line in whole.split(b"\n") if line.strip()]

    def _row(self, log: Path, line: bytes) -> dict[str, Any]:
        """One line of what our logger in verl's process wrote."""
        try:
            row = parsed(line.decode())
        except ValueError as error:
            raise InfrastructureError(f"{log}: a damaged line ({error}); resume the run") from None
        refuse_other(Reported, row, str(log), "resume the run")
        return dict(row)

    def _note(self, row: dict[str, Any]) -> None:
        step = row["step"]
        if step < self.state.step or (step == self.state.step and step > 0):
            return  # validation of a resumed run: that step is on record
        measured = accuracy_of(row)
        skipped = row.get("actor/skipped", 0.0) > 0
        in_a_row = self.state.skipped_steps + 1 if skipped else 0
        self.state = State(step=step, phase_step=step, best=self.state.best, skipped_steps=in_a_row)
        self.state = self.state.evaluated(measured["accuracy"]) if measured else self.state
        self._run.metrics(row)
        self._sinks.log(row)
        answers = self._job.folder / "rollouts" / f"step_{step}.jsonl"
        if answers.is_file():
            lines = answers.read_text(encoding="utf-8").splitlines()
            self._run.rollouts(step, [json.loads(line) for line in lines])
            answers.unlink()
        for kind, words in take_events(self._job.folder, step):
            self._run.event(kind, words, step=step)
        if skipped:
            self._run.event("skipped_update", SKIPPED_UPDATE, step=step)
        if row.get("surgery/failed", 0.0) > 0:
            self._run.event("surgery_failed", "surgery found no weights; the update is left out", step=step)
        self._watch.examine(self._job.phase.health, row).tell(self._run, step)
        self._run.sync()
        if measured:
            write_experiment(self._run.folder, self._run.so_far)
        self._observe(self._job.phase, self.state, row | {WARNED: self._run.new_warnings()})
        refuse_divergence(self.state, self._job.phase.name, self._run.folder)

    def _merge(self) -> None:
        """Complete checkpoints of verl's, each once; one that cannot be merged is said and left where it is."""
        raw, folder = self._job.folder / "checkpoints", self._run.folder / "checkpoints"
        best = self.state.best
        keep, protected = self._job.resolved.recipe.checkpoint.keep, {best.step} if best else set()
        merged = set(checkpoint.steps(folder))
        whole = {step for step in complete_steps(raw) if step <= self.state.step} - self._refused
        # Only what we keep: verl may hold more (those of before a resume, for ever), and what pruning takes away would
        # be merged again at every look.
        for step in sorted((whole - merged) & checkpoint.lasting(whole | merged, keep, protected)):
            try:
                index(raw, folder, State(step=step, phase_step=step, best=best), self._python)
            except LabError as error:
                self._refused.add(step)
                self._run.event("checkpoint", f"verl's checkpoint of step {step} was not merged: {error}", step=step)
                continue
            self._run.event("checkpoint", f"verl's checkpoint of step {step} merged and loaded back", step=step)
            checkpoint.prune(folder, keep, protected)
