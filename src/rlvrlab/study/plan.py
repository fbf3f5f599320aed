"""A dry run: every trial the study would need, what is done, reused or assumed, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlvrlab.errors import LabError, RecipeError
from rlvrlab.study.board import Board
from rlvrlab.study.chain import Chain, Trial
from rlvrlab.study.identity import digest
from rlvrlab.study.load import StudyFile
from rlvrlab.study.measures import is_cost, suite_of
from rlvrlab.study.power import planned_reach
from rlvrlab.study.schema import USUAL_SIZE, Stage
from rlvrlab.study.select import level
from rlvrlab.train.plan import estimate

MEASURED = 3
"""Kinds of trials whose steps are really timed; the others are assumed to take as long as the first of these."""
SMALL_TRAIN, SMALL_DEV = 64, 16
"""Problems that suffice to time a step."""
UNTIMED = ("data", "seed", "name", "question", "output_dir", "stop")
"""Recipe keys that do not change how long a step takes."""


@dataclass
class PlannedStage:
    """What one stage would run, and what that costs."""

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
    """Tokens that the new trials generate at most, refills and second tries not counted."""
    seconds: float | None
    """Of training the new trials one after the other; None when it was not measured."""
    power: str = ""
    """Which difference the planned seeds and problems could show, in words; empty where nothing is compared."""


@dataclass
class Plan:
    """What `rlvr study plan` shows."""

    name: str
    folder: str
    stages: list[PlannedStage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The plan as --json prints it, with the totals over all stages."""
        keys = ("trials", "new", "done", "reused", "tokens")
        total = {key: sum(getattr(one, key) for one in self.stages) for key in keys}
        seconds = [one.seconds for one in self.stages]
        known = None if None in seconds else sum(one or 0.0 for one in seconds)
        return {**asdict(self), "total": {**total, "seconds": known}}


def plan_study(file: StudyFile, folder: Path, *, cost: bool = True) -> Plan:
    """Stage by stage; an undecided winner is assumed to be the costliest arm. Raises RecipeError with all mistakes."""
    board = Board.read(file, folder)
    chain, choices = board.chain, dict(board.survey().choices)
    plan, seen, problems = Plan(file.study.name, str(folder)), dict[str, Trial](), list[str]()
    prices = _Prices(chain)
    for stage in chain.order():
        if any(name not in choices for name in file.needs(stage)):
            continue  # what it starts from has mistakes of its own, which are listed
        mistakes = chain.check(stage, choices)
        problems += mistakes
        if mistakes:
            continue
        plan.stages.append(_planned(board, stage, choices, seen, prices if cost else None))
        if stage.name not in choices:
            tokens = {arm.name: chain.trials(stage, arm.name, choices)[0].budget.tokens for arm in chain.arms(stage)}
            choices[stage.name] = costliest = max(tokens, key=tokens.__getitem__)
            if chain.downstream(stage.name):
                plan.notes.append(f"{stage.name}: not decided yet; {costliest} is assumed to win (costliest)")
    if problems:
        raise RecipeError([f"{file.path.name}: {problem}" for problem in problems])
    total, processes = plan.plain()["total"], file.study.resources.processes
    words = f"{total['new']} trials to run, {total['done']} done, {total['reused']} shared with an earlier stage"
    if cost and total["seconds"] is not None:
        seconds, at_once = _clock(total["seconds"]), _clock(total["seconds"] / processes)
        words += f"; about {seconds} of training, {at_once} with {processes} at once, evaluations not counted"
    asked = {stage.name: file.asks_last(stage) for stage in chain.order() if file.examined_last(stage)}
    who = [
        f"{'all arms' if which == 'arms' else 'the winner'} of {name}"
        for name, which in asked.items()
        if which != "none"
    ]
    last = [f"at the end {', '.join(who)} answer test problems, once; nothing is chosen from that"] if who else []
    plan.notes += [words, *last, *prices.notes, *(f"{one}; `rlvr study run` refuses" for one in file.chosen_on_test())]
    return plan


def _planned(
    board: Board, stage: Stage, choices: Mapping[str, str], seen: dict[str, Trial], prices: _Prices | None
) -> PlannedStage:
    chain = board.chain
    arms = [arm.name for arm in chain.arms(stage)]
    asked = [t for arm in arms for t in chain.trials(stage, arm, choices)]
    asked += [t for arm in arms for one in stage.halving for t in chain.trials(stage, arm, choices, one.set)]
    finished = {name for name, state in board.states.items() if state.status == "finished"}
    unique = {trial.id: trial for trial in asked}
    first_asked = {name: trial for name, trial in unique.items() if name not in seen}
    new = [trial for name, trial in first_asked.items() if name not in finished]
    seen |= unique
    return PlannedStage(
        name=stage.name,
        starts_from=", ".join(chain.file.needs(stage)),
        arms=arms,
        trials=len(asked),
        new=len(new),
        done=len(first_asked) - len(new),
        reused=len(unique) - len(first_asked),
        tokens=sum(trial.budget.tokens for trial in new),
        seconds=None if prices is None else prices.seconds(new),
        power=_power(chain.file, stage, len(arms)),
    )


def _power(file: StudyFile, stage: Stage, arms: int) -> str:
    """What the stage could show at its first look, before anything is spent."""
    if arms < 2:
        return ""
    rule, study = stage.select, file.study
    names = file.chooses_on(stage)
    sampled = {m: w for m, w in rule.metrics.items() if not is_cost(m)} or dict.fromkeys(
        (f"{n}.accepted" for n in names), 1.0
    )
    sizes = {name: file.suite(name).size or USUAL_SIZE for name in names}
    seeds, alpha = len(stage.seeds or study.seeds), level(rule, arms, len(sampled))
    weights: dict[str, float] = {}
    for metric, weight in sampled.items() if rule.rule == "weighted" else list(sampled.items())[:1]:
        weights[suite_of(metric)] = weights.get(suite_of(metric), 0.0) + weight
    total = sum(weights.values())
    problems = [(weight / total, sizes[name]) for name, weight in weights.items()]
    reach = planned_reach(seeds, problems, study.seed_spread, alpha)
    asked = " + ".join(str(count) for _, count in problems)
    words = f"{seeds} seed{'s' if seeds > 1 else ''} × {asked} problems, {arms} arms: "
    what = f"a true difference of {100 * reach:.1f} points is" if reach < 1 else "no true difference, however large, is"
    words += f"{what} shown 4 times out of 5"
    if seeds == 1:
        return f"{words}; one seed says nothing about other seeds"
    words += f", if seeds scatter by {100 * study.seed_spread:g} points (seed_spread)"
    if 0 < rule.margin < reach:
        words += f"; equivalence within {100 * rule.margin:g} points cannot be shown at this size"
    return words


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
        total: float | None = 0.0
        for trial in trials:
            resolved = self._chain.resolved(trial.settings)
            # Sizes, seeds, step counts and learning rates do not change how long a step takes.
            plain = {key: value for key, value in resolved.plain().items() if key not in UNTIMED}
            for phase in resolved.recipe.phases:
                plain[phase] = {k: v for k, v in plain[phase].items() if k not in ("steps", "learning_rate")}
            kind = digest(plain)
            if kind not in self._known and len([k for k in self._known.values() if k]) < MEASURED:
                self._known[kind] = self._measured(trial)
                if self._rate is None and self._known[kind]:
                    self._rate = self._known[kind]
            rate = self._known.get(kind) or self._rate
            total = None if rate is None or total is None else total + rate * max(1, trial.budget.steps)
        return total

    def _measured(self, trial: Trial) -> float | None:
        """Seconds per step, the evaluations in between included."""
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
        steps = {phase: int(table["steps"]) for phase, table in full.recipe.phase_tables.items()}
        extra = sum((one.total_s - steps[one.phase] * one.step_s) * (scale - 1) for one in times)
        return (sum(one.total_s for one in times) + extra) / max(1, trial.budget.steps) if times else None
