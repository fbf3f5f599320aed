"""Estimates corrected by few replays: exact expectations over the choice of steps, and what a run remembers."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from rlvrlab.credit.base import Known
from rlvrlab.credit.doubly_robust import LONGEST_MEMORY, MOST_STATEMENTS, DoublyRobust, corrected, known_of, learnt
from rlvrlab.errors import UserError
from rlvrlab.record.run import read_metrics
from rlvrlab.rollout.segment import segment, statements_of
from rlvrlab.train import session

sys.path.insert(0, str(Path(__file__).parents[1] / "train"))
import runs

ROBUST = ("credit.type=doubly_robust", "credit.segmentation=characters", "credit.invalid=count", "grpo.steps=4")


class Given:
    """A generator that hands out these numbers."""

    def __init__(self, uniform_S: np.ndarray) -> None:
        self.uniform_S = uniform_S

    def random(self, size: int) -> np.ndarray:
        assert size == len(self.uniform_S)
        return self.uniform_S


@pytest.mark.parametrize("least_share", [0.02, 0.3, 1.0])
def test_the_mean_over_the_choice_of_steps_is_the_deletion_effect_however_bad_the_estimate(least_share: float) -> None:
    rng, steps, whole = np.random.default_rng(1), 5, 0.75
    without_S = rng.random(steps)
    known = Known(rng.standard_normal(steps) * 3, rng.random(steps))
    chance_S = np.clip(known.error_S, least_share, 1.0)
    mean_S, mass = np.zeros(steps), 0.0
    for examined in itertools.product([True, False], repeat=steps):
        examined_S = np.array(examined)
        chance = float(np.prod(np.where(examined_S, chance_S, 1 - chance_S)))
        if not chance:
            continue
        # Below its chance a step is examined, above it is not.
        plan = DoublyRobust(least_share).plan(steps, Given(np.where(examined_S, 0.0, (chance_S + 1) / 2)), known)
        assert [edit.step for edit in plan.edits] == np.flatnonzero(examined_S).tolist()
        credit_S = plan.solve(without_S[[edit.step for edit in plan.edits]], whole).credit_S
        mean_S, mass = mean_S + chance * credit_S, mass + chance
    assert mass == pytest.approx(1.0)
    assert mean_S == pytest.approx(whole - without_S, abs=1e-12)


def test_a_step_is_examined_exactly_below_its_chance() -> None:
    known = Known(np.zeros(3), np.array([0.5, 0.5, 0.01]))
    plan = DoublyRobust(0.1).plan(3, Given(np.array([0.499, 0.5, 0.0999])), known)
    assert [edit.step for edit in plan.edits] == [0, 2]
    assert len(DoublyRobust().plan(4, np.random.default_rng(0)).edits) == 4, "what was never seen is always examined"


def test_unknown_effects_of_examined_steps_stay_unknown() -> None:
    credit_S = corrected(
        np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.array([True, False]), np.array([np.nan, np.nan])
    )
    assert np.isnan(credit_S[0]) and credit_S[1] == 0.5


def test_the_error_falls_with_a_good_estimate_and_stays_with_a_bad_one() -> None:
    steady, fickle = {}, {}
    for number in range(40):
        steady = learnt(steady, [("s", 0.25)])
        fickle = learnt(fickle, [("s", float(number % 2))])
    assert known_of(steady, ["s"]).estimate_S == pytest.approx([0.25])
    assert known_of(steady, ["s"]).error_S[0] < 0.2 < 0.45 < known_of(fickle, ["s"]).error_S[0] < 0.7
    assert known_of({}, ["s"]) == (pytest.approx([0.0]), pytest.approx([1.0]))
    assert steady["s"][0] == 40 and learnt(steady, [("s", 0.25)] * 20)["s"][0] == LONGEST_MEMORY


def test_the_memory_is_bounded_and_forgets_what_was_seen_longest_ago() -> None:
    many = learnt({}, [(f"{i:05d}", 0.0) for i in range(MOST_STATEMENTS)])
    after = learnt(many, [("new", 1.0), ("00000", 0.0)])
    assert len(after) == MOST_STATEMENTS and {"new", "00000"} <= after.keys()
    assert f"{MOST_STATEMENTS - 1:05d}" not in after


def test_statements_are_known_by_their_words_not_their_layout() -> None:
    first, second = segment(" x = x[:3]\n return x\n", "python"), segment(" x=x[:3]  \n return y\n", "python")
    one, other = statements_of(first, "gen True"), statements_of(second, "gen True")
    assert one[0] == other[0] and one[1] != other[1] and one[0] != statements_of(first, "gen False")[0]


def test_a_run_remembers_examines_less_and_resumes_exactly(tmp_path: Path) -> None:
    whole = runs.run(tmp_path / "a", *ROBUST, text=runs.ONLINE).folder
    rows = [row for row in read_metrics(whole) if "credit/replays" in row]
    share = [row["credit/asked"] for row in rows]
    assert share[0] == 1 and share[-1] < 0.9 and rows[-1]["credit/statements"] > 0
    broken = runs.run(tmp_path / "b", *ROBUST, text=runs.ONLINE).folder
    for late in (broken / "checkpoints").glob("global_step_9"):
        (late / "manifest.json").unlink()
    session.resume(broken, runs.quiet)
    runs.assert_same(whole, broken)


def test_never_examining_is_refused() -> None:
    with pytest.raises(UserError, match="never corrected"):
        DoublyRobust(least_share=0.0)
