"""Statistics against scipy, closed forms and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.errors import UserError
from rlvrlab.evals.noise import Noise
from rlvrlab.evals.statistics import (
    compare,
    compare_seeds,
    compare_suites,
    estimate,
    holm,
    p_cell,
    p_told,
    seeds_needed,
    sign_flip,
    wilson,
)
from rlvrlab.shares import pass_at_k, pass_hat_k
from rlvrlab.student import beta_quantile, t_quantile, t_shift, t_tails


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (0, 30), (30, 30), (7, 20), (81, 164), (500, 1000)])
def test_wilson_is_scipys(successes: int, trials: int) -> None:
    expected = scipy.stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("trials", "share"), [(50, 0.01), (50, 0.98), (100, 0.015), (500, 0.01), (500, 0.997)])
def test_rare_answers_are_covered_too(trials: int, share: float) -> None:
    """By exact enumeration; Wilson's interval alone covers 91.1 % of (50, 0.01) and 92.2 % of (50, 0.98)."""
    count = np.arange(trials + 1)
    bounds = np.array([wilson(int(k), trials) for k in count])
    covered = scipy.stats.binom.pmf(count, trials, share)[(bounds[:, 0] <= share) & (share <= bounds[:, 1])].sum()
    assert covered >= 0.94


def test_means_of_rare_answers_are_covered_too() -> None:
    """Means of eight answers, right once in a hundred: without one more of the rare problems 91 % are covered."""
    rng = np.random.default_rng(3)
    drawn = rng.binomial(8, rng.beta(0.02, 1.98, (800, 200))) / 8
    found = [estimate(scores) for scores in drawn]
    assert np.mean([one.low <= 0.01 <= one.high for one in found]) >= 0.94
    mirrored = [estimate(1 - scores) for scores in drawn[:20]]
    assert [1 - one.low for one in mirrored] == pytest.approx([one.high for one in found[:20]])


def test_beta_quantiles_are_scipys() -> None:
    for a, b in ((1.5, 49.5), (4.5, 0.5), (2.5, 198.5)):
        for share in (0.001, 0.025, 0.5, 0.975):
            assert beta_quantile(share, a, b) == pytest.approx(scipy.stats.beta.ppf(share, a, b), abs=1e-9)


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


def test_sign_flip_is_scipys_permutation_test() -> None:
    delta = np.random.default_rng(1).normal(0.2, 1.0, 12)
    exact = scipy.stats.permutation_test((delta,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert sign_flip(delta, "test", resamples=40_000) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("df", [1, 1.3, 2, 3.7, 9, 59, 499.5, 1e5])
def test_student_is_scipys(df: float) -> None:
    for level in (0.1, 0.6, 0.8, 0.95, 0.99, 0.9999):
        assert t_quantile(level, df) == pytest.approx(scipy.stats.t.ppf(0.5 + level / 2, df), rel=1e-9)
    for t in (0.0, 0.01, 0.3, 1.0, 5.0, 40.0):
        assert t_tails(-t, df) == pytest.approx(2 * scipy.stats.t.sf(t, df), rel=1e-9)


@pytest.mark.parametrize("df", [1, 1.3, 2, 3, 4.5, 12, 200, 1e4])
@pytest.mark.parametrize("level", [0.95, 0.999])
def test_the_smallest_true_difference_is_scipys_noncentral_t(level: float, df: float) -> None:
    """With one degree of freedom 14 % less was told, which is found 73 times in 100."""
    critical = t_quantile(level, df)
    assert scipy.stats.nct.sf(critical, df, t_shift(critical, df, 0.8)) == pytest.approx(0.8, abs=0.0015)
    runs, problems = Noise(0.0, 4.0, df, 0.0, 99), Noise(0.0, 0.0, 0, 4.0, df)
    assert runs.reach(level) == problems.reach(level) == pytest.approx(2 * t_shift(critical, df, 0.8))


def test_nothing_random_shows_all_and_one_problem_nothing() -> None:
    assert Noise(0.0, 0.0, 4, 0.0, 99).reach() == 0 and Noise(0.0, 0.0, 0, math.inf, 1).reach() == math.inf
    assert t_shift(1.96, 1e15, 0.8) == pytest.approx(1.96 + 0.8416, abs=1e-3)


@pytest.mark.parametrize(("seeds_df", "problems_df"), [(1, 199), (2, 199), (2, 3), (4, 49)])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_two_sources_show_the_smallest_difference_four_times_out_of_five(
    seeds_df: int, problems_df: int, share: float
) -> None:
    """Samples of a mean and of both its variances: their own intervals show it in 80 of 100, with one df up to 83."""
    rng, size, noise = np.random.default_rng(1), 40_000, Noise(0.0, share, seeds_df, 1 - share, problems_df)
    mean = noise.reach() + rng.standard_normal(size)
    by_seed, by_problem = (
        rng.chisquare(df, size) / df * part for df, part in ((seeds_df, share), (problems_df, 1 - share))
    )
    parts = t_quantile(0.95, seeds_df) ** 2 * by_seed + t_quantile(0.95, problems_df) ** 2 * by_problem
    assert 0.794 < np.mean(mean > np.sqrt(parts)) < (0.83 if seeds_df == 1 else 0.815)


def test_one_run_of_right_or_wrong_is_wilsons() -> None:
    found = estimate([1.0] * 81 + [0.0] * 83)
    assert (found.low, found.high) == wilson(81, 164) and (found.over, found.spread) == ("problems", None)


@pytest.mark.parametrize("score", [0.0, 1.0])
@pytest.mark.parametrize("seeds", [1, 4])
def test_all_alike_is_no_certainty(score: float, seeds: int) -> None:
    found = estimate(np.full((seeds, 40), score))
    assert (found.low, found.high) == pytest.approx(wilson(int(40 * score), 40))
    same = compare_seeds(np.full((seeds, 40), score), np.full((seeds, 40), score))
    assert -0.12 < same.low < -0.03 and 0.03 < same.high < 0.12 and same.p == 1.0


@pytest.mark.parametrize("seeds", [1, 3])
def test_equal_partial_credit_is_no_certainty(seeds: int) -> None:
    """300 answers that all earned 0.1: of 300 others, as many as Wilson's bound of 0 of 300 may be worth 0 or 1."""
    found, overlooked = estimate(np.full((seeds, 300), 0.1)), wilson(0, 300).high
    assert (found.low, found.high) == pytest.approx((0.1 - 0.1 * overlooked, 0.1 + 0.9 * overlooked))


def test_scores_of_two_kinds_are_shares_between_them() -> None:
    low, high = wilson(7, 40)
    found = estimate([0.0] * 33 + [0.5] * 7)
    assert found.low == low / 2 and found.high == pytest.approx(
        7 / 80 + np.hypot(high / 2 - 7 / 80, 0.5 * wilson(0, 40).high)
    )
    assert estimate([0.0] * 33 + [1.0] * 7)[1:3] == (low, high)


def test_rare_right_answers_beside_partial_credit_are_covered() -> None:
    """Everyone earns 0.1 for the form, one in fifty is right: 61 of 100 intervals held that before."""
    rng = np.random.default_rng(5)
    held = [estimate(np.where(rng.random(50) < 0.02, 1.0, 0.1)) for _ in range(400)]
    assert np.mean([one.low <= 0.118 <= one.high for one in held]) > 0.93


@pytest.mark.parametrize("seeds", [1, 3])
def test_numbers_that_are_all_alike_are_no_certainty_either(seeds: int) -> None:
    """Seven tokens everywhere: a problem of fourteen or of none among fifty new ones would surprise nobody."""
    tokens = np.full((seeds, 50), 7.0)
    one, more, same = estimate(tokens), compare_seeds(tokens, tokens + 1), compare_seeds(tokens, tokens)
    assert 6 < one.low < 6.9 and 7.1 < one.high < 8
    assert 0.4 < more.low < 0.9 and 1.1 < more.high < 1.6 and more.verdict == "higher" and more.p > 0
    assert same.low < -0.1 and same.high > 0.1


def test_a_share_cannot_move_by_more_than_all_of_it() -> None:
    """Two wild seeds a side would need a difference of several hundred points: none is told, but how many seeds are."""
    rng = np.random.default_rng(1)
    before, after = ((rng.random((2, 50)) < np.array([[low], [high]])) * 1.0 for low, high in ((0.2, 0.6), (0.9, 0.5)))
    found = compare_seeds(before, after)
    assert found.detectable is None and found.p is None
    assert found.noise is not None and found.noise.reach() > 1
    needed = found.seeds_needed
    assert needed is not None and needed > 2
    assert found.noise.resized(2, needed).reach() <= found.mean < found.noise.resized(2, needed - 1).reach()
    assert f"with 2 seeds, however large (no MDE); {needed} a side" in found.caution


def test_means_of_one_run_are_scipys_t_interval() -> None:
    scores = np.random.default_rng(2).normal(7, 3, 30)
    expected = scipy.stats.ttest_1samp(scores, 0).confidence_interval()
    found = estimate(scores)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_seeds_that_differ_far_more_than_problems_are_scipys_welch() -> None:
    rng = np.random.default_rng(3)
    before, after = rng.normal(0, 5, (4, 1)) + np.zeros((4, 30)), rng.normal(3, 2, (6, 1)) + np.zeros((6, 30))
    expected = scipy.stats.ttest_ind(after[:, 0], before[:, 0], equal_var=False)
    found = compare_seeds(before, after)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p == pytest.approx(expected.pvalue, rel=1e-4)
    paired = compare_seeds(before, after[:4], paired=True)
    twins = scipy.stats.ttest_rel(after[:4, 0], before[:, 0])
    assert (paired.low, paired.high) == pytest.approx(tuple(twins.confidence_interval()))
    assert paired.p == pytest.approx(twins.pvalue, rel=1e-4) and paired.paired


def test_one_run_each_is_scipys_paired_t_over_problems() -> None:
    rng = np.random.default_rng(4)
    before, after = rng.normal(100, 20, 50), rng.normal(110, 20, 50)
    expected, found = scipy.stats.ttest_rel(after, before), compare(before, after)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p == pytest.approx(expected.pvalue) and found.over == "problems"


@pytest.mark.parametrize(("problems", "narrower"), [(50, 0.03), (100, 0.015), (200, 0.0075)])
def test_partial_scores_have_a_little_less_than_students_t(problems: int, narrower: float) -> None:
    """As docs/statistics.md says: by about 1.5 / problems."""
    before = np.linspace(0.1, 0.9, problems)
    after = before + 0.05 * np.sin(np.arange(problems))
    found, usual = compare(before, after), scipy.stats.ttest_rel(after, before).confidence_interval(0.95)
    ratio = (found.high - found.low) / (usual.high - usual.low)
    assert ratio == pytest.approx(1 - narrower, abs=0.002)


def test_right_or_wrong_is_bonett_and_prices_interval() -> None:
    """16 won and 1 lost of 60: one more of each, of 62."""
    before, after = [0.0] * 16 + [1.0] + [0.0] * 43, [1.0] * 16 + [0.0] * 44
    found = compare(before, after)
    won, lost = 17 / 62, 2 / 62
    half = scipy.stats.t.ppf(0.975, 59) * math.sqrt((won + lost - (won - lost) ** 2) / 62)
    assert (found.low, found.high) == pytest.approx((won - lost - half, won - lost + half))
    assert found.mean == pytest.approx(15 / 60)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(2, 40), st.integers(0, 10**6))
def test_interval_p_and_verdict_always_agree(old: int, new: int, problems: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = rng.random((old, problems)) < rng.random()
    found = compare_seeds(before.astype(float), (rng.random((new, problems)) < rng.random()).astype(float))
    for one in (found, found.adjusted(6)):
        shown = not one.low <= 0 <= one.high
        assert (one.verdict != "not shown") == shown and -1 <= one.low <= one.high <= 1
        assert one.p is None if 2 in (old, new) else (one.p < 0.05) == shown
    assert found.adjusted(6).low <= found.low and found.adjusted(6).tests == 6


def test_one_run_against_several_is_the_one_policy_it_is() -> None:
    after = np.random.default_rng(6).normal(3, 2, (6, 1)) + np.zeros((6, 30))
    expected = scipy.stats.ttest_1samp(after[:, 0], 0).confidence_interval()
    found = compare_seeds(np.zeros((1, 30)), after)
    assert (found.low, found.high) == pytest.approx(tuple(expected)) and found.over == "seeds and problems"


def test_two_sets_of_problems_answered_by_the_same_runs() -> None:
    """A seed that is good on one set is good on the other: their totals are one number per run."""
    luck = np.random.default_rng(7).normal(0, 5, (5, 1))
    sets = [luck + np.zeros((5, 10)), luck + np.zeros((5, 20))]
    expected = scipy.stats.ttest_1samp(2 * luck[:, 0], 0).confidence_interval()
    assert compare_suites([np.zeros((1, 10)), np.zeros((1, 20))], sets)[1:3] == pytest.approx(tuple(expected))


def test_not_worse_and_equivalent_are_one_sided_tests() -> None:
    delta = np.random.default_rng(8).normal(0.5, 10, 80)
    found = compare(np.zeros(80), delta, share=False)
    for margin in (0.5, 1.0, 2.0, 3.0, 4.0):
        below = scipy.stats.ttest_1samp(delta, -margin, alternative="greater").pvalue < 0.05
        above = scipy.stats.ttest_1samp(delta, margin, alternative="less").pvalue < 0.05
        assert found.not_worse(margin) == below and found.equivalent(margin) == (below and above)


def test_planned_seeds_find_the_effect_four_times_in_five() -> None:
    rng, spread, effect = np.random.default_rng(9), 0.04, 0.08
    seeds = seeds_needed(effect, spread, problems=500)
    assert seeds is not None and seeds_needed(0.0, spread, problems=500) is None
    before, after = rng.normal(0, spread, (4000, seeds)), rng.normal(effect, spread, (4000, seeds))
    power = np.mean(scipy.stats.ttest_ind(after, before, axis=1, equal_var=False).pvalue < 0.05)
    assert 0.78 <= power <= 0.92, (seeds, power)
    with pytest.raises(UserError, match="two of each"):
        seeds_needed(effect, spread, problems=1)


def test_compare_says_what_it_could_have_found() -> None:
    rng, n = np.random.default_rng(5), 100
    least = compare(np.zeros(n), rng.normal(0, 1, n), share=False).detectable
    found = [compare(np.zeros(n), rng.normal(least, 1, n), share=False).p < 0.05 for _ in range(400)]
    assert 0.72 <= np.mean(found) <= 0.9


def test_compare_refuses_other_problems_and_odd_pairs() -> None:
    with pytest.raises(UserError, match="same ones"):
        compare([1.0, 0.0], [1.0])
    with pytest.raises(UserError, match="as many on both sides"):
        compare_seeds(np.zeros((2, 5)), np.zeros((3, 5)), paired=True)


def test_holm_by_hand_and_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])


def test_a_p_value_is_told_as_far_as_it_holds() -> None:
    assert [p_cell(p) for p in (None, 8.1e-34, 9.9e-5, 1e-4, 0.00123, 0.052, 1.0)] == [
        "–", "< 0.0001", "< 0.0001", "0.0001", "0.0012", "0.052", "1",
    ]  # fmt: skip
    assert (p_told(8.1e-34), p_told(0.052), p_told(None)) == ("p < 0.0001", "p = 0.052", "p = –")
    sure = compare([0.0] * 200, [1.0] * 150 + [0.0] * 50)
    assert (sure.p_words, sure.p_told) == ("< 0.0001", "p < 0.0001")
