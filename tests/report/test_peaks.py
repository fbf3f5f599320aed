"""What was lost since a peak: the peak is the best of many evaluations, and that choice is counted in."""

from __future__ import annotations

import numpy as np
import pytest

from rlvrlab.evals.statistics import wilson
from rlvrlab.report.gather.intervals import change, interval, mean_of
from rlvrlab.report.gather.peaks import Measured, losses, moves
from rlvrlab.report.story.conflict import chance_of, more_than_noise

PROBLEMS = 100


def course(rights: list[int]) -> list[Measured]:
    return [Measured(step, right / PROBLEMS, (right, PROBLEMS)) for step, right in enumerate(rights)]


def flagged_alone(rights: list[int]) -> bool:
    """The rule that forgets the choice: the highest against the last, as if they had been two numbers."""
    best, last = ((right / PROBLEMS, wilson(right, PROBLEMS)) for right in (max(rights), rights[-1]))
    return change(last, best)["low"] > 0


@pytest.mark.parametrize("shape", ["level", "risen"])
def test_without_a_loss_one_is_found_in_at_most_five_runs_of_a_hundred(shape: str) -> None:
    rng = np.random.default_rng(0)
    chance = np.full(12, 0.5) if shape == "level" else np.minimum(0.5, np.linspace(0.05, 1.0, 12))
    drawn = rng.binomial(PROBLEMS, chance, (500, 2, 12)).tolist()
    found = [losses({"a": course(a), "b": course(b)}) for a, b in drawn]
    assert np.mean([any(one.beyond_chance for one in both.values()) for both in found]) <= 0.055
    alone = np.mean([flagged_alone(a) or flagged_alone(b) for a, b in drawn])
    assert alone > (0.25 if shape == "level" else 0.1), "the experiments do not show what goes wrong without it"
    assert all(one.low <= one.value <= one.high for both in found for one in both.values())


def test_a_loss_is_found_and_its_interval_holds_the_truth() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.binomial(PROBLEMS, [0.2, 0.6, 0.7, 0.5, 0.35], (300, 5)).tolist()
    found = [losses({"a": course(rights)})["a"] for rights in drawn]
    assert np.mean([one.beyond_chance for one in found]) > 0.95
    assert np.mean([one.low <= 0.35 <= one.high for one in found]) > 0.94


def test_a_skill_that_ends_at_its_peak_has_lost_nothing_and_its_interval_holds_that() -> None:
    found = losses({"a": course([5, 20, 90])})["a"]
    assert (found.value, found.low, found.high) == (0, 0, 0), "every earlier evaluation was lower beyond chance"
    assert losses({"a": course([50, 51])})["a"].high > 0


def test_an_end_and_a_change_hold_their_numbers_and_share_a_level() -> None:
    alone, both = moves({"a": course([5, 90])})["a"], moves({"a": course([5, 90]), "b": course([40, 38])})
    assert both["a"].end_low < alone.end_low == wilson(90, 100)[0] < 0.9 < alone.end_high < both["a"].end_high
    assert both["a"].low < alone.low < 0.85 < alone.high < both["a"].high and both["b"].low < -0.02 < both["b"].high
    assert moves({"a": course([5])})["a"].low is None, "measured once"


def test_the_mean_of_shares_is_narrower_than_they_are() -> None:
    share = (0.5, wilson(50, 100))
    found = mean_of([share] * 4)
    assert found["value"] == 0.5 and found["high"] - 0.5 == pytest.approx((share[1][1] - 0.5) / 2, abs=1e-4)
    assert mean_of([share, (0.1, None)]) == {"value": 0.3, "low": None, "high": None}


def test_chance_alone_is_told_in_numbers() -> None:
    rng = np.random.default_rng(2)
    drawn = rng.binomial(PROBLEMS, 0.3, (4000, 8)) / PROBLEMS
    told = losses({"a": course([30] * 8)})["a"].by_chance
    assert told == pytest.approx(float((drawn.max(axis=1) - drawn[:, -1]).mean()), abs=0.002)
    assert losses({"a": course([0, 0])})["a"].by_chance == losses({"a": course([100, 100])})["a"].by_chance == 0


def test_without_counts_or_with_one_evaluation_nothing_is_shown() -> None:
    bare = [Measured(0, 0.9, None), Measured(1, 0.1, None)]
    one = losses({"bare": bare, "once": course([50])})
    assert not one["bare"].beyond_chance and one["bare"].low is None and one["bare"].value == pytest.approx(0.8)
    assert one["once"].low is None and one["once"].value == 0


def test_seeds_that_are_all_equal_are_not_certain() -> None:
    assert interval([0.4, 0.4, 0.4]) == {"value": 0.4, "low": None, "high": None, "n": 3}
    assert interval([0.1 + 0.2, 0.3])["low"] is None, "a rounding error is no spread"
    assert interval([0.4, 0.5])["low"] == pytest.approx(0.45 - 12.706 * 0.05, abs=1e-3)


def test_one_small_p_among_a_few_checks_is_no_finding() -> None:
    assert chance_of(1, 4) == pytest.approx(1 - 0.95**4) and not more_than_noise(1, 2) and more_than_noise(2, 4)
    for checks in range(1, 40):
        fewest = next(small for small in range(checks + 2) if more_than_noise(small, checks))
        assert sum(np.random.default_rng(checks).binomial(checks, 0.05, 2000) >= fewest) <= 0.055 * 2000 + 10
