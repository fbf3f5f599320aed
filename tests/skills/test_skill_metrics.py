"""Forgetting, transfer, hypervolume, interference, memory and triggers, against hand counts and other libraries."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.skills.interference import agreement, first_order, measured, spearman
from rlvrlab.skills.metrics import diversity, retention
from rlvrlab.skills.pareto import area, compare_areas, front, hypervolume
from rlvrlab.skills.trigger import CALM_CHECKS, Trigger, sign_test
from rlvrlab.train.guards.memory import quotas, stratified
from rlvrlab.types import Problem

TABLE = np.array([[0.1, 0.2, 0.3], [0.8, 0.1, 0.3], [0.5, 0.9, 0.2], [0.6, 0.4, 0.7]])


def test_retention_by_hand() -> None:
    found = retention(TABLE, [0, 1, 2], alone_S=np.array([0.9, 0.9, 0.9]))
    assert found.average == pytest.approx((0.6 + 0.4 + 0.7) / 3)
    assert found.worst == 0.4
    assert found.forgetting == pytest.approx(((0.8 - 0.6) + (0.9 - 0.4)) / 2)
    assert found.forgetting_base == pytest.approx(((0.1 - 0.6) + (0.2 - 0.4)) / 2)
    assert found.backward_transfer == pytest.approx(((0.6 - 0.8) + (0.4 - 0.9)) / 2)
    assert found.forward_transfer == pytest.approx(((0.1 - 0.2) + (0.2 - 0.3)) / 2)
    assert found.learning == pytest.approx((0.8 + 0.9 + 0.7) / 3)
    assert found.intransigence == pytest.approx(0.9 - (0.8 + 0.9 + 0.7) / 3)
    assert found.oscillation == pytest.approx(np.abs(np.diff(TABLE, axis=0)).mean())


def test_a_skill_never_trained_counts_against_base_only() -> None:
    """As the shortening skill of a code policy that is trained on three others."""
    table = np.array([[0.5, 0.67], [0.7, 0.29]])
    found = retention(table, [0])
    assert np.isnan(found.forgetting) and np.isnan(found.backward_transfer)
    assert found.forgetting_base == pytest.approx(0.38)


def test_one_skill_and_wrong_shapes() -> None:
    assert retention(np.array([[0.1], [0.4]]), [0]).learning == pytest.approx(0.4)
    with pytest.raises(ValueError, match="4 rows"):
        retention(TABLE[:2], [0, 1, 2])


@given(st.lists(st.tuples(st.integers(-2, 6), st.integers(-2, 6)), max_size=7))
def test_hypervolume_counts_cells(points: list[tuple[int, int]]) -> None:
    cells = sum(any(x > i and y > j for x, y in points) for i, j in product(range(6), range(6)))
    assert hypervolume(np.array(points, dtype=float).reshape(-1, 2), (0.0, 0.0)) == cells


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_the_front_is_what_nobody_dominates_and_all_that_matters(points: list[tuple[int, int]]) -> None:
    array = np.array(points, dtype=float)
    kept = front(array)
    for i, (x, y) in enumerate(points):
        beaten = any(a >= x and b >= y and (a, b) != (x, y) for a, b in points)
        assert (i in kept) is not beaten
    assert hypervolume(array[kept], (-1.0, -1.0)) == hypervolume(array, (-1.0, -1.0))


def test_areas_have_intervals_and_pair_by_seed() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 0.2, (6, 1, 1))
    one = np.array([[0.5, 0.9], [0.7, 0.7]]) + shared
    other = one - 0.05
    found = area(one, (0.0, 0.0))
    assert found.low < found.value < found.high
    difference = compare_areas(one, other, (0.0, 0.0))
    assert 0 < difference.low < difference.value < difference.high
    assert (difference.high - difference.low) < (found.high - found.low), "pairing removes what seeds share"


def test_the_interval_of_an_area_is_t_over_seeds() -> None:
    """With one setting whose gain is the same for all seeds the area is linear in what is kept: t is exact."""
    kept = np.random.default_rng(2).normal(0.5, 0.05, 6)
    points = np.stack([np.full(6, 1.0), kept], axis=1)[:, None]
    found, expected = area(points, (0.0, 0.0)), scipy.stats.ttest_1samp(kept, 0).confidence_interval()
    assert found == pytest.approx((kept.mean(), expected.low, expected.high))
    two = scipy.stats.ttest_1samp(kept[:2], 0).confidence_interval()
    assert area(points[:2], (0.0, 0.0)) == pytest.approx((kept[:2].mean(), two.low, two.high))
    assert area(points[:1], (0.0, 0.0))[1:] == (-np.inf, np.inf), "one seed says nothing of others"


def test_spearman_is_scipys_with_ties() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = rng.integers(0, 4, 12).astype(float), rng.standard_normal(12)
        assert spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic)
    assert np.isnan(spearman(np.ones(4), np.arange(4.0)))


def test_interference_per_length_of_step() -> None:
    before, after = np.array([0.5, 0.5]), np.array([[0.7, 0.4], [0.5, 0.9]])
    found = measured(before, after, np.array([2.0, 0.0]))
    np.testing.assert_allclose(found, [[0.1, -0.05], [0.0, 0.0]])
    predicted = first_order(np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([2.0, 1.0]))
    np.testing.assert_allclose(predicted, [[0.5, -1.0], [3.0, 4.0]])
    assert agreement(predicted, found).pairs == 2 and agreement(predicted, predicted).sign == 1


def test_quotas_share_the_room_and_leave_out_whom_it_does_not_hold() -> None:
    assert quotas(["a", "b", "c"], 32, 256) == {"a": 32, "b": 32, "c": 32}
    assert quotas(["a", "b", "c"], 32, 10) == {"a": 4, "b": 3, "c": 3}
    assert quotas(["a", "b", "c"], 32, 2) == {"a": 1, "b": 1, "c": 0}
    assert quotas([], 3, 3) == {}


def test_memory_is_spread_over_levels_keyed_and_nested() -> None:
    problems = [Problem(f"p{i}", "s", "k", "x", meta={"level": i % 3}) for i in range(30)]
    chosen = stratified(problems, 9, 0, "k")
    assert sorted(p.meta["level"] for p in chosen) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert stratified(problems[::-1], 5, 0, "k") == chosen[:5]
    assert stratified(problems, 9, 1, "k") != chosen and len(stratified(problems, 99, 0)) == 30


@given(st.integers(0, 12), st.integers(0, 12))
def test_sign_test_is_the_binomial_test(lost: int, won: int) -> None:
    if lost + won:
        expected = scipy.stats.binomtest(lost, lost + won, 0.5, alternative="greater").pvalue
        assert sign_test(lost, won) == pytest.approx(expected)
    else:
        assert sign_test(0, 0) == 1


def test_trigger_needs_significance_to_go_on_and_calm_to_go_off() -> None:
    state = Trigger().checked(lost=3, won=0)
    assert not state.on, "3 of 3 has p = 0.125"
    state = state.checked(lost=6, won=0)
    assert state.on and state.switched == 1
    for _ in range(CALM_CHECKS - 1):
        state = state.checked(lost=1, won=1)
        assert state.on
    assert state.checked(lost=2, won=1).calm == 0, "a relapse starts the count anew"
    state = state.checked(lost=0, won=0)
    assert not state.on and Trigger(**state.to_json()) == state


def test_diversity_by_hand() -> None:
    right = [[True, False, False, False], [True, True, True, True]]
    texts = [["a", "b", "b", "c"], ["x", "y", "x", "x"]]
    found = diversity(right, texts)
    assert found == {"pass@1": 0.625, "pass@2": 0.75, "pass@4": 1.0, "distinct_accepted": 1.5}
    assert diversity([], []) == {"distinct_accepted": 0.0}
