"""Statistics against scipy, closed forms and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlvrlab.errors import UserError
from rlvrlab.evals.statistics import bootstrap, compare, holm, mcnemar, pass_at_k, pass_hat_k, sign_flip, wilson


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (0, 30), (30, 30), (7, 20), (81, 164), (500, 1000)])
def test_wilson_is_scipys(successes: int, trials: int) -> None:
    expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_of_nothing_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 12), st.data())
def test_pass_at_k_counts_subsets(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(itertools.combinations(range(n), k))
    any_right = sum(any(i < c for i in s) for s in subsets) / len(subsets)
    all_right = sum(all(i < c for i in s) for s in subsets) / len(subsets)
    assert pass_at_k(n, c, k) == pytest.approx(any_right, abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(all_right, abs=1e-12)


def test_pass_at_k_is_unbiased() -> None:
    rng, p, k = np.random.default_rng(0), 0.3, 4
    estimates = [pass_at_k(16, int(c), k) for c in rng.binomial(16, p, 20_000)]
    assert np.mean(estimates) == pytest.approx(1 - (1 - p) ** k, abs=4 * np.std(estimates) / math.sqrt(20_000))


@pytest.mark.parametrize(("n", "c", "k"), [(4, 2, 5), (4, 2, 0), (4, 5, 1), (4, -1, 1)])
def test_impossible_numbers_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(UserError):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (0, 5), (3, 10), (7, 7), (40, 12)])
def test_mcnemar_is_scipys_binomial_test(lost: int, won: int) -> None:
    expected = stats.binomtest(lost, lost + won, 0.5).pvalue if lost + won else 1.0
    assert mcnemar(lost, won) == pytest.approx(expected, abs=1e-12)


def test_sign_flip_is_scipys_permutation_test() -> None:
    delta = np.random.default_rng(1).normal(0.2, 1.0, 12)
    exact = stats.permutation_test((delta,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert sign_flip(delta, "test", resamples=40_000) == pytest.approx(exact, abs=0.01)


def test_bootstrap_is_scipys_percentile_interval() -> None:
    scores = np.random.default_rng(2).random(80)
    expected = stats.bootstrap((scores,), np.mean, method="percentile", n_resamples=20_000, rng=3).confidence_interval
    assert bootstrap(scores, "test") == pytest.approx((expected.low, expected.high), abs=0.004)


def test_bootstrap_covers_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(4)
    samples = [rng.random(60) for _ in range(300)]
    covered = [low <= 0.5 <= high for low, high in (bootstrap(s, i, resamples=600) for i, s in enumerate(samples))]
    assert 0.90 <= np.mean(covered) <= 0.985


def test_compare_pairs_problems_and_says_what_it_could_have_found() -> None:
    before = np.array([0.0] * 60 + [1.0] * 40)
    after = np.array([0.0] * 40 + [1.0] * 60)
    found = compare(before, after, "test")
    assert found.mean == pytest.approx(0.2)
    assert found.low > 0.1 and found.high < 0.3 and found.p == pytest.approx(mcnemar(0, 20))
    assert found.detectable == pytest.approx((1.96 + 0.8416) * (after - before).std(ddof=1) / 10, rel=1e-3)


def test_detectable_effect_is_found_four_times_in_five() -> None:
    rng, n = np.random.default_rng(5), 100
    noise = [rng.normal(0, 1, n) for _ in range(400)]
    effect = (1.96 + 0.8416) / math.sqrt(n)
    found = [sign_flip(d + effect, i, resamples=500) < 0.05 for i, d in enumerate(noise)]
    assert 0.72 <= np.mean(found) <= 0.88


def test_compare_refuses_other_problems() -> None:
    with pytest.raises(UserError, match="same ones"):
        compare([1.0, 0.0], [1.0], "test")


def test_holm_by_hand_and_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
