"""A dry run: every trial the study would need, what is done, reused or assumed, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, RecipeError
from rlvrlab.recipe import Resolved
from rlvrlab.study.board import Board
from rlvrlab.study.chain import Chain, Trial
from rlvrlab.study.folder import read_decisions, read_states
from rlvrlab.study.identity import digest
from rlvrlab.study.load import StudyFile
from rlvrlab.study.schema import Stage

MEASURED = 3
"""Kinds of trials whose steps are really timed; others are taken in proportion to their tokens."""
SMALL_TRAIN, SMALL_DEV = 64, 16
"""Enough problems to time a step on."""


@dataclass
class PlannedStage:
    """One stage in numbers."""

    name: str
    starts_from: str
    arms: list[str]
    trials: int
    """Arms × seeds, halving rounds included."""
    new: int
    """Still to be run."""
    done: int
    """Finished in an earlier session."""
    reused: int
    """Asked for by an earlier stage as well."""
    tokens: int
    """At most, of the new ones."""
    seconds: float | None
    """Of training the new ones, one after the other."""


@dataclass
class Plan:
    """The whole study."""

    name: str
    folder: str
    stages: list[PlannedStage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """For --json."""
        keys = ("trials", "new", "done", "reused", "tokens")
        total = {key: sum(getattr(one, key) for one in self.stages) for key in keys}
        seconds = [one.seconds for one in self.stages]
        known = None if None in seconds else sum(one or 0.0 for one in seconds)
        return {**asdict(self), "total": {**total, "seconds": known}}


def plan_study(file: StudyFile, folder: Path, *, cost: bool = True) -> Plan:
    """Stage by stage; an undecided winner is assumed to be the costliest arm. Raises RecipeError with all mistakes."""
    chain = Chain(file)
    states, decisions = read_states(folder), read_decisions(folder)
    board = Board(chain, folder, states, decisions)
    choices = dict(board.survey().choices)
    found, seen, problems = Plan(file.study.name, str(folder)), dict[str, Trial](), list[str]()
    prices = _Prices(chain)
    for stage in chain.order():
        if any(name not in choices for name in file.needs(stage)):
            continue  # what it starts from has mistakes of its own, which are listed
        mistakes = chain.check(stage, choices)
        problems += mistakes
        if mistakes:
            continue
        found.stages.append(_planned(board, stage, choices, seen, prices if cost else None))
        if stage.name not in choices:
            choices[stage.name] = _costliest(chain, stage, choices)
            if chain.downstream(stage.name):
                found.notes.append(
                    f"{stage.name}: not decided yet; {choices[stage.name]} is assumed to win (costliest)"
                )
    if problems:
        raise RecipeError([f"{file.path.name}: {problem}" for problem in problems])
    found.notes += _totals(found, file.study.resources.processes, cost)
    found.notes += prices.notes
    return found


def _planned(
    board: Board, stage: Stage, choices: Mapping[str, str], seen: dict[str, Trial], prices: _Prices | None
) -> PlannedStage:
    chain = board.chain
    arms = [arm.name for arm in chain.arms(stage)]
    asked = [t for arm in arms for t in chain.trials(stage, arm, choices)]
    asked += [t for arm in arms for one in stage.halving for t in chain.trials(stage, arm, choices, one.set)]
    unique = {trial.id: trial for trial in asked}
    reused = sum(name in seen for name in unique)
    done = sum(name not in seen and not _to_do(board, name) for name in unique)
    new = [t for name, t in unique.items() if name not in seen and _to_do(board, name)]
    seen |= unique
    seconds = None if prices is None else prices.seconds(new)
    return PlannedStage(stage.name, ", ".join(board.chain.file.needs(stage)), arms, len(asked), len(new), done, reused,
                        sum(t.budget.tokens for t in new), seconds)  # fmt: skip


def _to_do(board: Board, name: str) -> bool:
    state = board.states.get(name)
    return state is None or state.status != "finished"


def _costliest(chain: Chain, stage: Stage, choices: Mapping[str, str]) -> str:
    return max((arm.name for arm in chain.arms(stage)), key=lambda n: chain.trials(stage, n, choices)[0].budget.tokens)


def _totals(found: Plan, processes: int, cost: bool) -> list[str]:
    total = found.plain()["total"]
    words = f"{total['new']} trials to run, {total['done']} done, {total['reused']} shared with an earlier stage"
    if not cost or total["seconds"] is None:
        return [words]
    seconds, at_once = _clock(total["seconds"]), _clock(total["seconds"] / processes)
    return [f"{words}; about {seconds} of training, {at_once} with {processes} at once, evaluations not counted"]


def _clock(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class _Prices:
    """Seconds of a trial, from a few measured steps of each kind of trial."""

    def __init__(self, chain: Chain) -> None:
        self._chain, self._known = chain, dict[str, float | None]()
        self._rate: float | None = None
        self.notes: list[str] = []

    def seconds(self, trials: Sequence[Trial]) -> float | None:
        """Of all of them, one after the other; None when nothing could be timed."""
        found = [self._of(trial) for trial in trials]
        return None if any(one is None for one in found) else float(sum(one or 0.0 for one in found))

    def _of(self, trial: Trial) -> float | None:
        resolved = self._chain.resolved(trial.settings)
        kind = digest(_kind(resolved))
        if kind not in self._known and len([k for k in self._known.values() if k]) < MEASURED:
            self._known[kind] = self._measured(trial)
            if self._rate is None and self._known[kind]:
                self._rate = self._known[kind]
        rate = self._known.get(kind) or self._rate
        return None if rate is None else rate * max(1, trial.budget.steps)

    def _measured(self, trial: Trial) -> float | None:
        """Seconds per step, the evaluations in between included."""
        from rlvrlab.train.plan import estimate

        full = self._chain.resolved(trial.settings)
        least = max(int(table.get("batch_size", 0)) for table in full.recipe.phase_tables.values())
        small = {
            "data.train_size": min(full.recipe.data.train_size, max(SMALL_TRAIN, least)),
            "data.dev_size": min(full.recipe.data.dev_size, SMALL_DEV),
        }
        try:
            times = estimate(self._chain.resolved({**trial.settings, **small}))
        except LabError as error:
            note = f"time not measured: {error}"
            self.notes += [] if note in self.notes else [note]
            return None
        scale = full.recipe.data.dev_size / small["data.dev_size"]
        extra = sum((one.total_s - _steps(full, one.phase) * one.step_s) * (scale - 1) for one in times)
        return (sum(one.total_s for one in times) + extra) / max(1, trial.budget.steps) if times else None


def _steps(resolved: Resolved, phase: str) -> int:
    return int(resolved.recipe.phase_tables[phase]["steps"])


def _kind(resolved: Resolved) -> Any:
    """What decides how long a step takes: all but sizes, seeds, step counts and learning rates."""
    plain = {
        k: v for k, v in resolved.plain().items() if k not in ("data", "seed", "name", "question", "output_dir", "stop")
    }
    for phase in resolved.recipe.phases:
        plain[phase] = {k: v for k, v in plain[phase].items() if k not in ("steps", "learning_rate")}
    return plain
