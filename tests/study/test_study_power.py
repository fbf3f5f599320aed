"""What is under every decision: honest error rates, also over several looks, and which size would decide."""

from __future__ import annotations

import numpy as np
import pytest

from rlvrlab.evals.noise import Interval, Noise
from rlvrlab.evals.statistics import Difference, compare_suites
from rlvrlab.study.contest import level
from rlvrlab.study.power import enough, planned_reach
from rlvrlab.study.schema import Select


def test_enough_is_the_smallest_number_of_seeds_that_shows_it() -> None:
    noise = Noise(0.08, 2 * 0.0025 / 3, 4, 0.3 / 1000, 999)
    found = Difference(mean=0.08, low=-0.1, high=0.26, problems=1000, seeds=(3, 3), noise=noise)
    size = enough(found, 0.0, 0.05)
    assert size is not None and size.problems == 1000
    seen = [noise.resized(3, seeds).reach() for seeds in (size.seeds - 1, size.seeds)]
    assert seen[1] <= 0.08 < seen[0]
    few = found._replace(noise=noise._replace(problems=0.3 / 50, problems_df=49), problems=50)
    more = enough(few, 0.0, 0.05)
    assert more is not None and more.problems > 50
    assert enough(found._replace(mean=0.0), 0.0, 0.05) is None
    within = enough(found._replace(mean=0.0), 0.05, 0.05)
    assert within is not None and within.seeds > 3
    noise = noise._replace(centre=0.02)
    left = enough(found._replace(mean=0.02, noise=noise), 0.05, 0.05)
    assert left is not None, "0.03 of the margin is left to show that they are alike"
    times = left.problems // 1000
    seen = [noise.resized(3, seeds, times).reach() for seeds in (left.seeds - 1, left.seeds)]
    assert seen[1] <= 0.03 < seen[0]


def test_a_plan_knows_what_it_cannot_show() -> None:
    assert planned_reach(2, [(1.0, 200)], 0.05, 0.05) > 0.2
    assert planned_reach(10, [(1.0, 1000)], 0.05, 0.05) < 0.1
    assert planned_reach(1, [(1.0, 200)], 0.05, 0.05) == planned_reach(1, [(1.0, 200)], 0.5, 0.05)


def lead(before: np.ndarray, after: np.ndarray, alpha: float) -> Interval:
    return compare_suites([before], [after], share=True).interval(1 - alpha)


def arms(rng: np.random.Generator, shares: list[float], seeds: int, problems: int, scatter: float) -> list[np.ndarray]:
    """Right or wrong, for arms whose seeds scatter, on problems that are hard or easy for all of them."""
    ease = rng.normal(0, 0.15, problems)
    return [
        (rng.random((seeds, problems)) < share + rng.normal(0, scatter, (seeds, 1)) + ease).astype(float)
        for share in shares
    ]


LARGER = ((2, 3, 0.05, 3), (3, 3, 0.08, 1), (4, 2, 0.05, 2))


@pytest.mark.parametrize(
    ("count", "seeds", "scatter", "looks"),
    [(2, 1, 0.0, 1), (2, 2, 0.08, 1), *(pytest.param(*one, marks=pytest.mark.slow) for one in LARGER)],
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
            if lead(ranked[0], ranked[-1], alpha).low > 0:
                wrong += 1
                break
    assert wrong <= 0.05 * rounds + 2 * (0.05 * 0.95 * rounds) ** 0.5


@pytest.mark.slow
def test_looking_again_without_paying_for_it_would_be_wrong_too_often() -> None:
    """The same design at the level of a single look: what the shared level protects from."""
    rng, wrong, rounds = np.random.default_rng(1), [0, 0], 400
    levels = level(Select(extend=0), 2, 1), level(Select(extend=5), 2, 1)
    for _ in range(rounds):
        two = arms(rng, [0.5, 0.5], 24, 100, 0.08)
        for which, alpha in enumerate(levels):
            found = [lead(two[0][:n], two[1][:n], alpha) for n in (4, 8, 12, 16, 20, 24)]
            wrong[which] += any(not one.low < 0 < one.high for one in found)
    assert wrong[0] > 0.06 * rounds and wrong[1] <= 0.05 * rounds


@pytest.mark.slow
def test_an_arm_behind_by_the_margin_is_rarely_called_equivalent() -> None:
    rng, wrong, rounds, margin = np.random.default_rng(5), 0, 300, 0.1
    for _ in range(rounds):
        worse, better = arms(rng, [0.45, 0.55], 4, 300, 0.02)
        found = lead(worse, better, 0.05)
        wrong += -margin < found.low and found.high < margin
    assert wrong <= 0.025 * rounds + 2 * (0.025 * 0.975 * rounds) ** 0.5


def test_a_true_gain_of_ten_points_is_not_thrown_away_for_a_lower_cost() -> None:
    """Two seeds that scatter by 5 points: "not significant, so the cheaper" lost the gain in every second study."""
    rng, lost, rounds, margin = np.random.default_rng(3), 0, 300, 0.02
    for _ in range(rounds):
        cheap, good = arms(rng, [0.5, 0.6], 2, 80, 0.05)
        found = lead(cheap, good, 0.05)
        equivalent = -margin < found.low and found.high < margin
        lost += equivalent or good.mean() < cheap.mean()
    assert lost < 0.12 * rounds  # by chance the worse arm has the higher mean
