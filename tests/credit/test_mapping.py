"""Scales of credit, and what the tokens get."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.credit.mapping import mapped, normalised
from rlvrlab.credit.steps import GLUE

CREDIT = st.lists(st.one_of(st.just(float("nan")), st.integers(-4, 4).map(lambda x: x / 4)), min_size=1, max_size=9)
METHODS = ("signed", "clip", "zscore", "rank", "sum_preserving", "share", "abs_softmax")


@given(CREDIT, st.sampled_from(METHODS))
def test_unknown_stays_unknown_and_the_rest_is_finite(credit: list[float], method: str) -> None:
    found = normalised(np.array(credit), method, 0.5, 1.0)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(credit))
    assert np.isfinite(found[~np.isnan(found)]).all()


@given(CREDIT)
def test_each_scale_keeps_its_promise(credit: list[float]) -> None:
    c = np.array(credit)
    known, n = ~np.isnan(c), len(c)
    m = int(known.sum())
    if not m:
        return
    np.testing.assert_array_equal(normalised(c, "signed")[known], c[known])
    assert np.abs(normalised(c, "clip", 0.5)[known]).max() <= 0.5
    assert normalised(c, "sum_preserving", total=0.8)[known].sum() == pytest.approx(0.8 * m / n)
    for method in ("share", "abs_softmax"):
        weights = normalised(c, method)[known]
        assert weights.sum() == pytest.approx(m / n) and (weights >= 0).all()
    z = normalised(c, "zscore")[known]
    assert abs(z.mean()) < 1e-9 and (np.ptp(c[known]) > 0 or not z.any())
    if m > 1:
        below = [((c[known] < one).sum() + (c[known] <= one).sum() - 1) / 2 for one in c[known]]  # ties share a rank
        np.testing.assert_allclose(normalised(c, "rank")[known], np.array(below) / (m - 1) - 0.5)
    else:
        assert normalised(c, "rank")[known].tolist() == [0]


def test_all_zero_credit_is_uniform_or_nothing() -> None:
    zero = np.zeros(4)
    assert normalised(zero, "share").tolist() == [0.25] * 4
    assert normalised(zero, "abs_softmax").tolist() == [0.25] * 4
    assert not normalised(zero, "zscore").any() and not normalised(zero, "rank").any()


STEP = np.array([0, 0, 0, GLUE, 1, 2, 2, GLUE])
GROUP = np.full(8, 2.0)
CREDITED = np.array([0.5, -1.0, np.nan])


@pytest.mark.parametrize(
    ("how", "want"),
    [
        ("add", [3.5, 3.5, 3.5, 2, -1, 2, 2, 2]),
        ("gate", [2, 2, 2, 2, 0, 2, 2, 2]),
        ("replace", [1.5, 1.5, 1.5, 2, -3, 2, 2, 2]),
    ],
)
def test_known_steps_change_and_everything_else_keeps_the_groups_advantage(how: str, want) -> None:
    np.testing.assert_allclose(mapped(GROUP, STEP, CREDITED, how, weight=3.0), want)


def test_gate_spares_the_step_that_helped_a_failed_answer() -> None:
    np.testing.assert_allclose(mapped(-GROUP, STEP, CREDITED, "gate"), [0, 0, 0, -2, -2, -2, -2, -2])


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6), st.data())
def test_redistribution_keeps_the_mean_over_steps(values: list[int], data) -> None:
    credit = np.array(values, dtype=np.float64)
    unknown = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    credit[unknown] = np.nan
    weights = normalised(credit, "share")
    step = np.arange(len(values))
    assert mapped(np.full(len(values), 1.5), step, weights, "redistribute").mean() == pytest.approx(1.5)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 100))
def test_by_step_the_sum_of_a_step_does_not_depend_on_its_length(lengths: list[int], seed: int) -> None:
    credit = np.random.default_rng(seed).standard_normal(len(lengths))
    step = np.repeat(np.arange(len(lengths)), lengths)
    found = mapped(np.zeros(len(step)), step, credit, "add", length="step")
    sums = np.bincount(step, weights=found)
    np.testing.assert_allclose(sums, credit * np.mean(lengths))
    by_token = mapped(np.zeros(len(step)), step, credit, "add", length="token")
    np.testing.assert_allclose(np.bincount(step, weights=by_token), credit * lengths)


def test_an_answer_of_glue_alone_is_untouched() -> None:
    step = np.full(3, GLUE)
    np.testing.assert_array_equal(mapped(np.ones(3), step, np.zeros(0), "add", length="step"), np.ones(3))


def test_gate_leaves_a_step_without_credit_its_groups_advantage() -> None:
    step_T, credit_S = np.array([0, 1, 2]), np.array([0.0, 0.5, -0.5])
    for advantage, want in ((1.0, [1.0, 1.0, 0.0]), (-1.0, [-1.0, 0.0, -1.0])):
        np.testing.assert_array_equal(mapped(np.full(3, advantage), step_T, credit_S, "gate"), want)
