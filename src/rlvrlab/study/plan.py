"""A dry run: every trial the study would need, what is done, reused or assumed, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlvrlab.errors import RecipeError
from rlvrlab.evals.protocol import USUAL_SIZE
from rlvrlab.record.files import duration
from rlvrlab.report.gather.stages import FINAL
from rlvrlab.shares import hundredths
from rlvrlab.study.board import Board
from rlvrlab.study.chain import Trial
from rlvrlab.study.contest import level
from rlvrlab.study.launchers.base import too_many_threads
from rlvrlab.study.load import StudyFile
from rlvrlab.study.looks import level_of, rounds
from rlvrlab.study.measures import is_cost, suite_of
from rlvrlab.study.power import planned_reach
from rlvrlab.study.prices import Prices
from rlvrlab.study.schema import Stage
from rlvrlab.study.views import ArmView, StageView


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
    """Of the new trials one after the other, evaluations included; None when it was not measured."""
    power: str = ""
    """Which difference the planned seeds and problems could show, in words; empty where nothing is compared."""
    kind: str = "compare"
    """`compare`, `confirm` (a choice is tried again at the chain's end), or `final` (only test problems are asked)."""


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
        total = {key: sum(getattr(one, key) for one in self.stages if one.kind != FINAL) for key in keys}
        seconds = [one.seconds for one in self.stages]
        known = None if None in seconds else sum(one or 0.0 for one in seconds)
        return {**asdict(self), "total": {**total, "seconds": known}}


def plan_study(file: StudyFile, folder: Path, *, cost: bool = True) -> Plan:
    """Stage by stage; an undecided winner is assumed to be the costliest arm. Raises RecipeError with all mistakes."""
    board = Board.read(file, folder)
    chain, choices = board.chain, dict(board.survey().choices)
    plan, seen, problems = Plan(file.study.name, str(folder)), dict[str, Trial](), list[str]()
    prices = Prices(chain) if cost else None
    for stage in chain.order():
        if any(name not in choices for name in file.needs(stage)):
            continue  # what it starts from has mistakes of its own, which are listed
        mistakes = chain.check(stage, choices)
        problems += mistakes
        if mistakes:
            continue
        plan.stages.append(_planned(board, stage, choices, seen, prices))
        if stage.name not in choices:
            tokens = {arm.name: chain.trials(stage, arm.name, choices)[0].budget.tokens for arm in chain.arms(stage)}
            choices[stage.name] = costliest = max(tokens, key=tokens.__getitem__)
            if chain.downstream(stage.name):
                plan.notes.append(f"{stage.name}: not decided yet; {costliest} is assumed to win (costliest)")
    if problems:
        raise RecipeError(file.placed(problems))
    plan.stages += _confirmed(board, choices, seen, prices) + _final(board, choices, prices)
    total, processes = plan.plain()["total"], file.study.resources.at_once
    words = f"{total['new']} trials to run, {total['done']} done, {total['reused']} shared with an earlier stage"
    if cost and total["seconds"] is not None:
        seconds, at_once = duration(total["seconds"]), duration(total["seconds"] / processes)
        words += f"; about {seconds} with their evaluations, {at_once} with {processes} at once"
    last = "test problems are asked once, at the end; nothing is chosen from that"
    asked = [last] if plan.stages and plan.stages[-1].kind == FINAL else []
    noted = prices.notes if prices else []
    plan.notes += file.placed(too_many_threads(file.study.resources))
    plan.notes += [words, *asked, *noted, *(f"{one}; `rlvr study run` refuses" for one in file.chosen_on_test())]
    return plan


def _planned(
    board: Board, stage: Stage, choices: Mapping[str, str], seen: dict[str, Trial], prices: Prices | None
) -> PlannedStage:
    chain = board.chain
    arms = [arm.name for arm in chain.arms(stage)]
    asked = [t for arm in arms for t in chain.trials(stage, arm, choices)]
    asked += [t for arm in arms for one in stage.halving for t in chain.trials(stage, arm, choices, one.set)]
    made = _counted(board, stage, asked, seen, prices)
    power = _power(chain.file, stage, len(arms), _undeclared(board, stage, choices))
    return PlannedStage(stage.name, ", ".join(chain.file.needs(stage)), arms, *made, power)


def _undeclared(board: Board, stage: Stage, choices: Mapping[str, str]) -> int:
    """Rounds of looks that nobody declared, the one that is planned included; 0 where its trials are decided about."""
    view = StageView(stage.name, "compare", stage, [], {})
    view.arms = [
        ArmView(a.name, a.own, {}, board.chain.trials(stage, a.name, choices)) for a in board.chain.arms(stage)
    ]
    known = [one for one in board.survey().stages if one.name == stage.name and one.sequence]
    return rounds(known[0].earlier if known else board.past.earlier(view))


Counts = tuple[int, int, int, int, int, float | None]
"""trials, new, done, reused, tokens and seconds of a PlannedStage."""


def _counted(
    board: Board, stage: Stage, asked: Sequence[Trial], seen: dict[str, Trial], prices: Prices | None
) -> Counts:
    finished = {name for name, state in board.states.items() if state.status == "finished"}
    unique = {trial.id: trial for trial in asked}
    first_asked = {name: trial for name, trial in unique.items() if name not in seen}
    new = [trial for name, trial in first_asked.items() if name not in finished]
    seen |= unique
    seconds = None if prices is None else prices.seconds(new, board.chain.file.chooses_on(stage))
    done, reused = len(first_asked) - len(new), len(unique) - len(first_asked)
    return len(asked), len(new), done, reused, sum(trial.budget.tokens for trial in new), seconds


def _confirmed(
    board: Board, choices: Mapping[str, str], seen: dict[str, Trial], prices: Prices | None
) -> list[PlannedStage]:
    """Choices that are tried once more, beside their runner-up, under all that is chosen after them."""
    chain, planned = board.chain, []
    for stage in chain.order():
        later, others = chain.downstream(stage.name), [arm.name for arm in chain.arms(stage)]
        others = [name for name in others if name != choices[stage.name]]
        if not (stage.select.confirm and later and others):
            continue
        arms = [choices[stage.name], others[0]]  # which one comes second is not known before
        last, seeds = later[-1], stage.seeds or chain.file.study.seeds
        settings = [chain.settings(last, choices[last.name], {**choices, stage.name: arm}) for arm in arms]
        asked = [trial for one in settings for trial in chain.seeded(one, seeds)]
        made = _counted(board, stage, asked, seen, prices)
        planned.append(PlannedStage(f"confirm_{stage.name}", f"{stage.name}, {last.name}", arms, *made, kind="confirm"))
    return planned


def _final(board: Board, choices: Mapping[str, str], prices: Prices | None) -> list[PlannedStage]:
    """Test problems, asked of trials that are there by then."""
    chain, file, planned = board.chain, board.chain.file, []
    for stage in chain.order():
        suites, who = file.examined_last(stage), file.asks_last(stage)
        if who == "none" or not suites:
            continue
        arms = [arm.name for arm in chain.arms(stage)] if who == "arms" else [choices[stage.name]]
        asked = [trial for arm in arms for trial in chain.trials(stage, arm, choices)]
        seconds = None if prices is None else prices.seconds(asked, suites, trained=False)
        name, count = f"{FINAL}_{stage.name}", len(asked)
        planned.append(PlannedStage(name, stage.name, arms, count, 0, 0, count, 0, seconds, kind=FINAL))
    return planned


def _power(file: StudyFile, stage: Stage, arms: int, undeclared: int = 0) -> str:
    """What the stage could show at its first look, before anything is spent."""
    if arms < 2:
        return ""
    rule, study = stage.select, file.study
    names = file.chooses_on(stage)
    sampled = {m: w for m, w in rule.metrics.items() if not is_cost(m)} or dict.fromkeys(
        (f"{n}.accepted" for n in names), 1.0
    )
    sizes = {name: file.suite(name).size or USUAL_SIZE for name in names}
    seeds, alpha = len(stage.seeds or study.seeds), level(rule, arms, len(sampled), undeclared)
    weights: dict[str, float] = {}
    for metric, weight in sampled.items() if rule.rule == "weighted" else list(sampled.items())[:1]:
        weights[suite_of(metric)] = weights.get(suite_of(metric), 0.0) + weight
    total = sum(weights.values())
    problems = [(weight / total, sizes[name]) for name, weight in weights.items()]
    reach = planned_reach(seeds, problems, study.seed_spread, alpha, rule.paired)
    asked = " + ".join(str(count) for _, count in problems)
    words = f"{seeds} seed{'s' if seeds > 1 else ''} × {asked} problems, {arms} arms: "
    what = f"a true difference of {hundredths(reach)} points" if reach < 1 else "no true difference, however large,"
    words += f"{what} is shown 4 times out of 5"
    if undeclared:
        own = level_of(rule.alpha, 1 + rule.extend, undeclared)
        words += f", at α = {own:.3g} (these arms were compared before: a look that was not declared)"
    if seeds == 1:
        return f"{words}; one seed says nothing about other seeds"
    words += f", if seeds scatter by {100 * study.seed_spread:g} points (seed_spread)"
    if 0 < rule.margin < reach:
        words += f"; equivalence within {100 * rule.margin:g} points cannot be shown at this size"
    return words
