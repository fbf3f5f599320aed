"""The axioms of each estimator, on random games and against enumeration of all orders."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvrlab.credit import estimators
from rlvrlab.credit.counterfactual import Counterfactual
from rlvrlab.credit.edits import Replays
from rlvrlab.errors import UserError

Game = Callable[[frozenset[int]], float]


def rng(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


def random_game(steps: int, seed: int) -> Game:
    values = rng(seed).random(1 << steps)
    return lambda kept: float(values[sum(1 << i for i in kept)])


def play(plan: Replays, game: Game, steps: int):
    values = [game(frozenset(np.flatnonzero(edit.kept_S))) for edit in plan.edits]
    return plan.solve(np.array(values, dtype=np.float64), game(frozenset(range(steps))))


def credit(game: Game, steps: int, estimator: str, **settings_) -> np.ndarray:
    settings_ = {"counterfactual_k": 0, "intervention_types": ("delete",), **settings_}
    plugin = Counterfactual(estimator=estimator, **settings_)
    return play(plugin.plan(steps, rng(0)), game, steps).credit_S


def shapley_by_orders(game: Game, steps: int) -> np.ndarray:
    total = np.zeros(steps)
    orders = list(itertools.permutations(range(steps)))
    for order in orders:
        for at, i in enumerate(order):
            total[i] += game(frozenset(order[: at + 1])) - game(frozenset(order[:at]))
    return total / len(orders)


@given(st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=30)
def test_shapley_is_the_mean_over_all_orders_and_efficient(steps: int, seed: int) -> None:
    game = random_game(steps, seed)
    found = credit(game, steps, "shapley")
    np.testing.assert_allclose(found, shapley_by_orders(game, steps), atol=1e-12)
    assert found.sum() == pytest.approx(game(frozenset(range(steps))) - game(frozenset()))


@given(st.integers(1, 7), st.integers(0, 10**6))
@settings(max_examples=30)
def test_prefix_differences_telescope_and_the_others_are_their_formulas(steps: int, seed: int) -> None:
    game, whole = random_game(steps, seed), frozenset(range(steps))
    assert credit(game, steps, "prefix").sum() == pytest.approx(game(whole) - game(frozenset()))
    np.testing.assert_allclose(credit(game, steps, "leave_one_out"), [game(whole) - game(whole - {i}) for i in whole])
    np.testing.assert_allclose(credit(game, steps, "tail"), [game(whole) - game(frozenset(range(i))) for i in whole])
    others = [list(itertools.product((0, 1), repeat=steps - 1)) for _ in whole]
    by_hand = []
    for i, rows in enumerate(others):
        rest = [j for j in range(steps) if j != i]
        sets = [frozenset(j for j, on in zip(rest, row, strict=True) if on) for row in rows]
        by_hand.append(np.mean([game(s | {i}) - game(s) for s in sets]))
    np.testing.assert_allclose(credit(game, steps, "banzhaf"), by_hand, atol=1e-12)


@pytest.mark.parametrize("estimator", ["leave_one_out", "prefix", "shapley", "banzhaf"])
def test_a_step_that_never_matters_gets_nothing(estimator: str) -> None:
    game = random_game(5, 3)
    assert credit(lambda kept: game(kept - {2}), 5, estimator)[2] == pytest.approx(0)


def test_duplicated_steps_share_in_shapley_and_hide_each_other_in_leave_one_out() -> None:
    game: Game = lambda kept: float(bool(kept & {0, 1}) and 2 in kept)  # noqa: E731
    shares = credit(game, 3, "shapley")
    assert shares[0] == pytest.approx(shares[1]) and shares[0] > 0
    assert credit(game, 3, "leave_one_out").tolist() == [0, 0, 1]


@pytest.mark.parametrize("estimator", ["leave_one_out", "prefix", "tail", "shapley", "banzhaf"])
def test_credit_is_additive_over_tests(estimator: str) -> None:
    """The credit for a share of tests passed is the mean of the credits for each test."""
    games = [random_game(4, seed) for seed in range(3)]
    together = credit(lambda kept: np.mean([game(kept) for game in games]), 4, estimator)
    apart = np.mean([credit(game, 4, estimator) for game in games], axis=0)
    np.testing.assert_allclose(together, apart, atol=1e-12)


def test_an_order_free_game_is_credited_whatever_the_order() -> None:
    required, harmful = {0, 3}, {4}
    game: Game = lambda kept: float(required <= kept and not kept & harmful)  # noqa: E731
    for estimator in ("leave_one_out", "shapley", "banzhaf"):
        there = credit(game, 5, estimator)
        order = [4, 2, 0, 1, 3]
        mirrored = credit(lambda kept, order=order: game(frozenset(order[i] for i in kept)), 5, estimator)
        np.testing.assert_allclose(mirrored, there[order], atol=1e-12)


def test_sampled_shapley_agrees_with_the_exact_one_within_its_interval() -> None:
    """12 steps: a game of pairs, whose Shapley values are known in closed form."""
    weights, pair = rng(1).random(12), 0.7
    game: Game = lambda kept: sum(weights[i] for i in kept) + pair * ({2, 9} <= kept)  # noqa: E731
    exact = weights + pair / 2 * np.isin(np.arange(12), (2, 9))
    found = play(estimators.shapley(12, 64, rng(5)), game, 12)
    assert found.credit_S.sum() == pytest.approx(game(frozenset(range(12)))), "efficient in every sample"
    assert (np.abs(found.credit_S - exact) <= 4 * found.error_S + 1e-12).all()
    pair_free = play(estimators.shapley(12, 2, rng(5)), lambda kept: sum(weights[i] for i in kept), 12)
    np.testing.assert_allclose(pair_free.credit_S, weights, atol=1e-12)


def test_an_antithetic_pair_solves_a_pair_exactly() -> None:
    game: Game = lambda kept: float({0, 11} <= kept)  # noqa: E731
    found = play(estimators.shapley(12, 2, rng(3)), game, 12).credit_S
    np.testing.assert_allclose(found, 0.5 * np.isin(np.arange(12), (0, 11)), atol=1e-12)


def test_sampled_banzhaf_is_near_the_exact_one() -> None:
    game: Game = lambda kept: float({0, 5} <= kept)  # noqa: E731
    found = play(estimators.banzhaf(12, 80, rng(2)), game, 12)
    exact = 0.5 * np.isin(np.arange(12), (0, 5))
    assert (np.abs(found.credit_S - exact) <= 4 * found.error_S + 1e-12).all()


@given(st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=20)
def test_a_budget_of_all_steps_is_the_full_leave_one_out(steps: int, seed: int) -> None:
    game = random_game(steps, seed)
    full = credit(game, steps, "leave_one_out")
    np.testing.assert_array_equal(credit(game, steps, "leave_one_out", counterfactual_k=steps), full)
    part = credit(game, steps, "leave_one_out", counterfactual_k=max(1, steps - 2))
    known = ~np.isnan(part)
    assert known.sum() == max(1, steps - 2), "what was not looked at is unknown, not zero"
    np.testing.assert_array_equal(part[known], full[known])


def test_every_step_is_examined_as_often() -> None:
    plugin = Counterfactual(intervention_types=("delete",), counterfactual_k=3)
    counts = np.zeros(8)
    for seed in range(800):
        counts[[edit.step for edit in plugin.plan(8, rng(seed)).edits]] += 1
    assert np.abs(counts - 300).max() < 5 * np.sqrt(300)


@pytest.mark.parametrize("estimator", ["leave_one_out", "prefix", "tail", "shapley", "banzhaf", "vine"])
def test_ten_thousand_steps_stay_within_the_limit(estimator: str) -> None:
    plugin = Counterfactual(estimator=estimator, counterfactual_k=0)
    plan = plugin.plan(10_000, rng(0))
    weight = plugin.samples if estimator == "vine" else 1
    assert 0 < len(plan.edits) * weight <= estimators.MAX_REPLAYS + 2 * weight
    found = plan.solve(np.zeros(len(plan.edits)), 1.0).credit_S
    assert len(found) == 10_000 and (~np.isnan(found)).any()


@pytest.mark.parametrize("estimator", ["leave_one_out", "prefix", "tail", "shapley", "banzhaf", "vine"])
def test_one_step_earns_the_whole(estimator: str) -> None:
    plan = Counterfactual(estimator=estimator).plan(1, rng(0))
    assert plan.solve(np.full(len(plan.edits), 0.25), 1.0).credit_S.tolist() == [0.75]


def test_an_unknown_reward_makes_unknown_credit_only_where_it_is_used() -> None:
    plan = Counterfactual(intervention_types=("delete", "truncate"), counterfactual_k=0).plan(3, rng(0))
    values = np.array([np.nan if edit.step == 1 else 0.0 for edit in plan.edits])
    assert np.isnan(plan.solve(values, 1.0).credit_S).tolist() == [False, True, False]
    partly = np.array([np.nan if edit.step == 1 and sum(edit.kept) == 2 else 0.5 for edit in plan.edits])
    assert plan.solve(partly, 1.0).credit_S.tolist() == [0.5, 0.5, 0.5], "one of two interventions is enough"


def test_the_whole_is_never_replayed() -> None:
    for estimator in ("prefix", "shapley", "banzhaf", "vine"):
        assert all(0 in edit.kept for edit in Counterfactual(estimator=estimator).plan(4, rng(0)).edits)


def test_step_groups_compare_answers_that_came_to_the_same_place() -> None:
    prefixes = [["", "a", "ab"], ["", "a", "ac"], ["", "b"]]
    found = estimators.step_groups(prefixes, np.array([1.0, 0.0, 0.5]), np.array([0, 0, 0]))
    np.testing.assert_allclose(found[0], [0.75, 1.0, np.nan])
    np.testing.assert_allclose(found[1], [-0.75, -1.0, np.nan])
    np.testing.assert_allclose(found[2], [0.0, np.nan])
    alone = estimators.step_groups([["", "a"], ["", "a"]], np.array([1.0, 0.0]), np.array([0, 1]))
    assert np.isnan(alone).all(), "other groups have other problems"


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"intervention_types": ()}, "one or more"),
        ({"intervention_types": ("delete", "delete")}, "each once"),
        ({"mapping": "redistribute"}, "share"),
        ({"credit_normalization": "share"}, "redistribute"),
        ({"replay": "resample", "intervention_types": ("reorder",)}, "fixed"),
    ],
)
def test_contradictions_are_refused_with_a_remedy(keys, word: str) -> None:
    with pytest.raises(UserError, match=word) as caught:
        Counterfactual(**keys)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "label"),
    [
        ({}, "shaping"),
        ({"estimator": "tail"}, "unbiased"),
        ({"intervention_types": ("truncate",)}, "unbiased"),
        ({"intervention_types": ("truncate",), "replay": "resample"}, "shaping"),
        ({"estimator": "tail", "counterfactual_k": 4}, "shaping"),
        ({"estimator": "tail", "segmentation": "text"}, "shaping"),
        ({"estimator": "tail", "segmentation": "auto"}, "shaping"),
        ({"estimator": "tail", "credit_normalization": "rank"}, "shaping"),
        ({"estimator": "tail", "mapping": "gate"}, "shaping"),
        ({"estimator": "tail", "length": "step"}, "shaping"),
        ({"estimator": "vine"}, "shaping"),
        ({"estimator": "step_groups"}, "shaping"),
    ],
)
def test_labels(keys, label: str) -> None:
    keys = {"counterfactual_k": 0, "segmentation": "words", **keys}
    assert Counterfactual(**keys).label == label
