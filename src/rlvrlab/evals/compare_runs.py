"""Runs and evaluations compared by name: by evaluations that ask the same of all, else by the cards of training.

A card has the outcome of every test problem at the end of a phase, so two of them that were asked the same are a paired
comparison of accepted@1. All else that an evaluation tells, by skill and level too, cards do not record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlvrlab.errors import NotAlike
from rlvrlab.evals.cards import Card, answers_behind, earlier_cards, read_cards
from rlvrlab.evals.compare import (
    NOBODY_JUDGED,
    Comparison,
    Row,
    bounds_note,
    checkpoints_of,
    compare_folders,
    name_of,
    other_stages,
    refuse_unlike,
    spread,
)
from rlvrlab.evals.matching import matching
from rlvrlab.evals.replicates import pairs, refuse_same_folders, refuse_same_runs
from rlvrlab.evals.statistics import compare_seeds
from rlvrlab.record.evaluation import Stored
from rlvrlab.record.final import checkpoint_words, own_environment, split_run, step_named
from rlvrlab.record.settings import between_examined

QUESTION = "accepted@1"
FROM_CARDS = (
    "Compared by what training measured at the end of its phases: no evaluation asked all runs the same problems. "
    "`rlvr eval --run RUN`, for each run, gives every measure, by skill and level too."
)


@dataclass(frozen=True)
class StandingCard(Stored):
    """A card in the place of an evaluation: what was asked, of whom, and whether each answer was right."""

    card: Card
    answers: frozenset[tuple[str, str, str]]
    """Problem, turn and text of what it was made from; empty where that was not kept."""

    @property
    def asked(self) -> int:
        """How many problems were asked, with those that could not be judged."""
        return int(self.examined["problems"])

    def share(self, unjudged: bool) -> float:
        """The share of right answers, were all that could not be judged right, or wrong."""
        outcomes = self.card.outcomes.values()
        return (sum(outcomes) + unjudged * (self.asked - len(outcomes))) / self.asked


def compare_named(
    before: Sequence[Path], after: Sequence[Path], anyway: bool = False, paired: bool | None = None
) -> Comparison:
    """Two sides of runs (DIR, DIR@STEP) or evaluation folders; several on a side are seeds."""
    try:
        return compare_folders(*matching(before, after, anyway), anyway, paired)
    except NotAlike as lacking:
        if any(not (split_run(str(one))[0] / "config.json").is_file() for one in (*before, *after)):
            raise  # an evaluation folder has no cards
        if not anyway:
            _refuse_other_tasks([*before, *after])
        try:
            first, second = ([_standing(one) for one in side] for side in (before, after))
            return compare_cards(first, second, anyway, paired)
        except NotAlike as why:
            told = str(why).removeprefix("compare: ")
            raise NotAlike(f"{lacking}. Cards of training cannot take its place: {told}") from None


def _standing(named: Path) -> StandingCard:
    """The newest card of the checkpoint that a name means."""
    run, which = split_run(str(named))
    cards = [*earlier_cards(run), *read_cards(run)]
    if not cards:
        raise NotAlike(f"{run} has none (eval.test_size makes them)")
    step = step_named(run, which)
    if step is None:
        step = max(card.step for card in cards if not card.control)
    found = [card for card in cards if card.step == step]
    if not found:
        there = ", ".join(dict.fromkeys(checkpoint_words(card.step) for card in cards))
        raise NotAlike(f"{run} has none of {checkpoint_words(step)}, only of {there}")
    card = found[-1]
    if card.asked is None:
        raise NotAlike(f"those of {run} are of an earlier version and do not record what was asked")
    who = {"run": run.name, "step": step, "training_seed": card.seed}
    info = {"examined": card.asked | {"who": who}, "status": "finished"}
    return StandingCard(Path(f"{run}@{step}"), info, (), (), {}, card, answers_behind(run, card))


def compare_cards(
    before: Sequence[StandingCard], after: Sequence[StandingCard], anyway: bool = False, paired: bool | None = None
) -> Comparison:
    """Two sides by the outcomes of the same problems; refused where they were not asked alike, unless `anyway`."""
    refuse_same_folders(before, after)
    refuse_same_runs(before, after)
    notes = [FROM_CARDS, *refuse_unlike([*before, *after], anyway), *other_stages(before, after)]
    notes += _same_answers(before, after)
    _refuse_other_problems([*before, *after])
    after, paired = pairs(before, after, paired)
    every = [*before, *after]
    common = [key for key in before[0].card.outcomes if all(key in one.card.outcomes for one in every)]
    if not common:
        raise NotAlike(NOBODY_JUDGED)
    first_SP, second_SP = (
        np.array([[one.card.outcomes[key] for key in common] for one in side]) for side in (before, after)
    )
    difference = compare_seeds(first_SP, second_SP, paired=paired)
    bounds = _bounds(before, after)
    return Comparison(
        data=before[0].examined["data"],
        roles=tuple(sorted({role for one in every for role in one.examined["roles"]})),
        runs=(tuple(map(name_of, before)), tuple(map(name_of, after))),
        checkpoints=(checkpoints_of(before), checkpoints_of(after)),
        problems=len(common),
        left_out=before[0].asked - len(common),
        bounds=bounds,
        seeds=(len(before), len(after)),
        spread=(spread(first_SP), spread(second_SP)),
        paired=paired,
        over=difference.over,
        measures=(Row(QUESTION, float(first_SP.mean()), float(second_SP.mean()), difference),),
        by_skill=(),
        by_level=(),
        notes=(*notes, *bounds_note(QUESTION, bounds)),
        settings=between_examined(before, after),
    )


def _same_answers(before: Sequence[StandingCard], after: Sequence[StandingCard]) -> list[str]:
    """Which two of different sides answered alike, word for word, as of evaluations: their difference is 0."""
    return [
        f"{one.folder} and {two.folder} hold the same answers: the same policy was asked twice, or trained twice"
        for one in before
        for two in after
        if one.answers and one.answers == two.answers
    ]


def _refuse_other_tasks(named: Sequence[Path]) -> None:
    """Runs of different environments share no question, so evaluating them would not help."""
    runs = [split_run(str(one))[0] for one in named]
    own = [own_environment(run) for run in runs]
    for run, data in zip(runs, own, strict=True):
        if None not in (own[0], data) and data != own[0]:
            differ = f"{runs[0]} and {run} differ in their data set: {own[0]} and {data}"
            remedy = "compare each with its own beginning: `rlvr compare RUN@base RUN`"
            raise NotAlike(f"compare: {differ}; two tasks are not one question, {remedy}")


def _refuse_other_problems(cards: Sequence[StandingCard]) -> None:
    """Cards name problems by their ids, which mean the same only where the problems are the same."""
    first = cards[0]
    for other in cards[1:]:
        if other.examined["data_hash"] != first.examined["data_hash"]:
            counts = f"{first.asked} and {other.asked}"
            raise NotAlike(f"compare: {first.folder} and {other.folder} were asked different problems ({counts})")


def _bounds(before: Sequence[StandingCard], after: Sequence[StandingCard]) -> tuple[float, float] | None:
    """The difference, were everything unjudged wrong after and right before, and the other way round."""
    if all(len(one.card.outcomes) == one.asked for one in (*before, *after)):
        return None
    low, high = (
        sum(one.share(right) for one in after) / len(after) - sum(one.share(not right) for one in before) / len(before)
        for right in (False, True)
    )
    return low, high
