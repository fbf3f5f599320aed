"""The interval under every decision: exact variances, honest error rates also over several looks, and what size decides."""

from __future__ import annotations

import numpy as np
import pytest

from rlvrlab.study.contrast import Contrast, Spread, contrast, enough, interval, planned_reach
from rlvrlab.study.schema import Select
from rlvrlab.study.select import level
from rlvrlab.study.student import student_quantile, student_tail


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706205), (2, 4.302653), (2.5, 3.574655), (4, 2.776445), (30, 2.042272)]
)
def test_student_is_the_published_table(freedom: float, quantile: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, rel=1e-6)
    assert student_tail(quantile, freedom) == pytest.approx(0.025, rel=1e-6)
    assert student_quantile(0.975, float("inf")) == pytest.approx(1.959964, rel=1e-6)


def test_variances_of_seeds_and_problems_are_added() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.random((3, 50)), rng.random((4, 50)) + 0.2
    found = contrast([before], [after], 0.05, [1.0])
    delta = after.mean(axis=0) - before.mean(axis=0)
    seeds = before.mean(axis=1).var(ddof=1) / 3 + after.mean(axis=1).var(ddof=1) / 4
    problems = (((delta - delta.mean()) ** 2).sum() + 2) / 51 / 50
    error, freedom = found.spread.error()
    assert error**2 == pytest.approx(seeds + problems) and 3 < freedom
    assert found.high - found.mean == pytest.approx(student_quantile(0.975, freedom) * error)
    assert (found.seeds, found.problems) == (3, 50)


def test_suites_are_strata_and_a_seed_is_good_in_all_of_them() -> None:
    """Pooled problems would add the suites' difference of means; seeds that move both suites count for both."""
    shift = np.array([[0.0], [1.0]])
    before = [np.zeros((2, 30)), np.full((2, 30), 5.0)]
    after = [shift + np.zeros((2, 30)), shift + np.full((2, 30), 9.0)]
    spread = contrast(before, after, 0.05, [1.0, 1.0]).spread
    assert [variance for variance, _ in spread.seeds] == pytest.approx([0.0, 2.0])  # of 0 and 2, not of 0 and 1 twice
    assert [variance for variance, _ in spread.problems] == pytest.approx([2 / 31, 2 / 31])


def test_an_arm_s_own_interval_knows_its_seeds() -> None:
    """60.0 with seeds 17 points apart: problems alone would promise seven points up and down."""
    score = np.array([[1.0] * 43 + [0.0] * 57, [1.0] * 77 + [0.0] * 23])
    low, high = interval(score, 1.0)
    assert low < 0.0 and high > 1.0  # two seeds: the document cuts it at 0 and 1
    low, high = interval(score[:1], 1.0)
    assert 0.3 < low < 0.43 < high < 0.55


def test_one_seed_speaks_of_problems_only() -> None:
    found = contrast([np.zeros((1, 40))], [np.ones((1, 40))], 0.05, [1.0])
    assert found.spread.seeds == () and found.low > 0.8


def test_enough_is_the_smallest_number_of_seeds_that_shows_it() -> None:
    spread = Spread(((0.0025, 3), (0.0025, 3)), ((0.3, 1000),))
    found = Contrast(0.08, -0.1, 0.26, 0.2, spread, 1000, 3)
    size = enough(found, 0.0, 0.05)
    assert size is not None and size.problems == 1000
    assert spread.sized(size.seeds, 1).reach(0.05) <= 0.08 < spread.sized(size.seeds - 1, 1).reach(0.05)
    few = found._replace(spread=Spread(spread.seeds, ((0.3, 50),)), problems=50)
    more = enough(few, 0.0, 0.05)
    assert more is not None and more.problems > 50
    assert enough(found._replace(mean=0.0), 0.0, 0.05) is None
    within = enough(found._replace(mean=0.0), 0.05, 0.05)
    assert within is not None and within.seeds > 3


def test_a_plan_knows_what_it_cannot_show() -> None:
    assert planned_reach(2, [(1.0, 200)], 0.05, 0.05) > 0.2
    assert planned_reach(10, [(1.0, 1000)], 0.05, 0.05) < 0.1
    assert planned_reach(1, [(1.0, 200)], 0.05, 0.05) == planned_reach(1, [(1.0, 200)], 0.5, 0.05)


def arms(rng: np.random.Generator, shares: list[float], seeds: int, problems: int, scatter: float) -> list[np.ndarray]:
    """Right or wrong, for arms whose seeds scatter, on problems that are hard or easy for all of them."""
    ease = rng.normal(0, 0.15, problems)
    return [
        (rng.random((seeds, problems)) < share + rng.normal(0, scatter, (seeds, 1)) + ease).astype(float)
        for share in shares
    ]


@pytest.mark.parametrize(
    ("count", "seeds", "scatter", "looks"),
    [(2, 1, 0.0, 1), (2, 2, 0.08, 1), (2, 3, 0.05, 3), (3, 3, 0.08, 1), (4, 2, 0.05, 2)],
)
def test_equal_arms_are_told_apart_at_most_as_often_as_alpha_says(
    count: int, seeds: int, scatter: float, looks: int
) -> None:
    """The leader against the last at every look, stopping at the first finding; a look adds as many seeds again."""
    rng, wrong, rounds = np.random.default_rng(count + looks), 0, 400
    alpha = level(Select(extend=looks - 1), count, 1)
    for _ in range(rounds):
        every = arms(rng, [0.5] * count, looks * seeds, 60, scatter)
        for look in range(1, looks + 1):
            ranked = sorted((one[: look * seeds] for one in every), key=lambda one: one.mean())
            if contrast([ranked[0]], [ranked[-1]], alpha, [1.0]).low > 0:
                wrong += 1
                break
    assert wrong <= 0.05 * rounds + 2 * (0.05 * 0.95 * rounds) ** 0.5


def test_looking_again_without_paying_for_it_would_be_wrong_too_often() -> None:
    """The same design at the level of a single look: what the shared level protects from."""
    rng, wrong, rounds = np.random.default_rng(1), [0, 0], 400
    levels = level(Select(extend=0), 2, 1), level(Select(extend=5), 2, 1)
    for _ in range(rounds):
        two = arms(rng, [0.5, 0.5], 24, 400, 0.05)
        for which, alpha in enumerate(levels):
            found = [contrast([two[0][:n]], [two[1][:n]], alpha, [1.0]) for n in (4, 8, 12, 16, 20, 24)]
            wrong[which] += any(not one.low < 0 < one.high for one in found)
    assert wrong[0] > 0.06 * rounds and wrong[1] <= 0.05 * rounds


def test_an_arm_behind_by_the_margin_is_rarely_called_equivalent() -> None:
    rng, wrong, rounds, margin = np.random.default_rng(5), 0, 300, 0.1
    for _ in range(rounds):
        worse, better = arms(rng, [0.45, 0.55], 4, 300, 0.02)
        found = contrast([worse], [better], 0.05, [1.0])
        wrong += -margin < found.low and found.high < margin
    assert wrong <= 0.025 * rounds + 2 * (0.025 * 0.975 * rounds) ** 0.5


def test_a_true_gain_of_ten_points_is_not_thrown_away_for_a_lower_cost() -> None:
    """Two seeds that scatter by 5 points: "not significant, so the cheaper" lost the gain in every second study."""
    rng, lost, rounds, margin = np.random.default_rng(3), 0, 300, 0.02
    for _ in range(rounds):
        cheap, good = arms(rng, [0.5, 0.6], 2, 80, 0.05)
        found = contrast([cheap], [good], 0.05, [1.0])
        equivalent = -margin < found.low and found.high < margin
        lost += equivalent or found.mean < 0
    assert lost < 0.12 * rounds  # by chance the worse arm has the higher mean
