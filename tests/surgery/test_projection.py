"""The do-no-harm projection against a brute-force solution in parameter space, and where it has none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from gradients import nearest_by_enumeration, rows
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.surgery.projection import REACH, correction_norm, gem_multipliers, project, tolerances

PROBLEMS = 320


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Up to six skills; every third problem has a duplicate row, every fourth a zero row, half of them some slack."""
    rng = np.random.default_rng(seed)
    J = rows(rng, int(rng.integers(1, 7)), spread=0.7)
    if seed % 3 == 0 and len(J) > 1:
        J[-1] = J[0] * rng.choice([1.0, 0.25])
    if seed % 4 == 0:
        J[len(J) // 2] = 0.0
    u = rng.standard_normal(J.shape[1]) - 0.3 * (J / np.maximum(np.linalg.norm(J, axis=1, keepdims=True), 1e-9)).sum(0)
    slack = np.where(rng.random(len(J)) < 0.5, 0.0, rng.uniform(0, 0.05, len(J)))
    return J, u, slack * np.linalg.norm(u) * np.linalg.norm(J, axis=1)


def solved(J, u, epsilon, solver="exact"):
    found = project(J @ J.T, J @ u, epsilon, float(np.linalg.norm(u)), solver)
    return u + found.multiplier_S @ J, found


@pytest.mark.slow
def test_matches_brute_force_on_hundreds_of_problems() -> None:
    worst = bent = 0.0
    for seed in range(PROBLEMS):
        J, u, epsilon = problem(seed)
        d, found = solved(J, u, epsilon)
        reference = nearest_by_enumeration(J, u, epsilon)
        worst = max(worst, np.linalg.norm(d - reference) / np.linalg.norm(u))
        np.testing.assert_allclose(found.change_S, J @ d, atol=1e-9 * np.linalg.norm(u) * max(1, np.abs(J).max()))
        bent += found.active_S.any()
        assert not found.relaxed
    assert worst < 1e-9
    assert bent > PROBLEMS / 2, "most problems must need a correction, or this tests nothing"


@given(st.integers(0, 2**32), st.integers(1, 8), st.floats(-6, 6))
def test_nobody_is_harmed_and_the_step_grows_no_longer(seed: int, count: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    J = rows(rng, count, spread=1.0) * 10.0**exponent
    u = rng.standard_normal(J.shape[1])
    d, found = solved(J, u, np.zeros(count))
    cosines = J @ d / (np.linalg.norm(J, axis=1) * np.linalg.norm(u))
    assert cosines.min() > -1e-8
    assert np.linalg.norm(d) <= np.linalg.norm(u) * (1 + 1e-9), "0 is harmless, so the nearest harmless step is shorter"
    assert (found.multiplier_S >= 0).all()
    slack = found.change_S * found.multiplier_S
    assert np.abs(slack).max() <= 1e-7 * np.linalg.norm(u) ** 2, "only tight constraints bend the step"


def test_a_harmless_step_stays_as_it_is() -> None:
    J, u = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.2])
    d, found = solved(J, u, np.zeros(2))
    np.testing.assert_array_equal(d, u)
    assert not found.active_S.any()


def test_one_pass_of_projections_may_violate_and_dykstra_converges() -> None:
    violated = longer = 0
    for seed in range(50):
        J, u, epsilon = problem(4 * seed + 1)
        exact, _ = solved(J, u, epsilon)
        once, _ = solved(J, u, epsilon, "sequential")
        many, _ = solved(J, u, epsilon, "dykstra")
        size = np.linalg.norm(J, axis=1) * np.linalg.norm(u)
        violated += bool(((J @ once + epsilon) / size < -1e-6).any())
        longer += np.linalg.norm(once - u) > np.linalg.norm(exact - u) * (1 + 1e-6)
        np.testing.assert_allclose(many, exact, atol=2e-3 * np.linalg.norm(u))
    assert violated >= 3 and longer >= 3


def test_opposed_demands_are_cut_to_what_can_be_met() -> None:
    g = np.array([1.0, 0.0])
    d, found = solved(np.stack([g, -g]), np.array([0.1, 1.0]), np.array([-1.0, -0.5]))
    assert found.relaxed
    np.testing.assert_allclose(d, [0.0, 1.0], atol=1e-6)
    assert (found.epsilon_S <= 0).all() and (found.epsilon_S > -1e-6).all()


def test_a_demand_that_can_be_met_is_met() -> None:
    J, u = np.array([[1.0, 0.0], [0.2, 1.0]]), np.array([-0.3, 0.4])
    d, found = solved(J, u, np.array([-0.2, 0.0]))
    assert not found.relaxed
    assert J[0] @ d == pytest.approx(0.2)


def test_nearly_opposed_demands_do_not_throw_the_policy_away() -> None:
    J = np.array([[1.0, 1e-4], [-1.0, 1e-4]])
    u = np.array([0.0, 1.0])
    d, found = solved(J, u, np.array([-0.9, -0.9]))
    assert found.relaxed
    assert correction_norm(J @ J.T, found.multiplier_S) <= REACH * 1.001
    assert np.linalg.norm(d) < 5


def test_a_skill_without_gradient_asks_for_nothing() -> None:
    J, u = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([-1.0, 1.0])
    d, found = solved(J, u, np.array([-5.0, 0.0]))
    np.testing.assert_allclose(d, [0.0, 1.0])
    assert not found.relaxed and found.multiplier_S[0] == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        project(np.array([[bad]]), np.zeros(1), np.zeros(1), 1.0)
    with pytest.raises(ValueError, match="NaN or infinite"):
        project(np.eye(1), np.array([bad]), np.zeros(1), 1.0)


def test_tolerances_by_kind() -> None:
    size, surplus = np.array([2.0, 2.0, 2.0]), np.array([0.3, -0.1, -9.0])
    np.testing.assert_allclose(tolerances("relative", 0.1, size, surplus), [0.2, 0.2, 0.2])
    np.testing.assert_allclose(tolerances("absolute", 0.1, size, surplus), [0.1, 0.1, 0.1])
    # A surplus may be spent, a deficit is to be repaired by half, a large one at most by the cap.
    np.testing.assert_allclose(tolerances("budget", 0.0, size, surplus, repair=0.5, cap=0.5), [0.3, -0.05, -1.0])
    np.testing.assert_allclose(tolerances("budget", 0.2, size, surplus, repair=0.5, cap=0.5), [0.5, 0.1, -1.0])


def half_square(v: np.ndarray, J: np.ndarray, u: np.ndarray) -> float:
    return float(0.5 * ((u + v @ J) ** 2).sum())


def slope_of_half_square(v: np.ndarray, J: np.ndarray, u: np.ndarray) -> np.ndarray:
    return J @ (u + v @ J)


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_gems_multipliers_are_those_of_a_general_solver(margin: float) -> None:
    """The dual of GEM's projection by L-BFGS-B; without a margin also its primal, in parameter space."""
    bent = 0
    for seed in range(12):
        J, u, _ = problem(4 * seed + 1)  # no zero rows; some duplicates
        found = gem_multipliers(J @ J.T, J @ u, margin)
        if (J @ u >= 0).all():
            assert not found.any()
            continue
        bent += 1
        start, bounds = np.full(len(J), margin + 1.0), [(margin, None)] * len(J)
        reference = scipy.optimize.minimize(half_square, start, (J, u), jac=slope_of_half_square, bounds=bounds).x
        # Duplicate rows leave v open but not the step.
        np.testing.assert_allclose(u + found @ J, u + reference @ J, atol=1e-3 * np.linalg.norm(u))
        assert half_square(found, J, u) <= half_square(reference, J, u) + 1e-9 and (found >= margin - 1e-12).all()
        if not margin:
            np.testing.assert_allclose(u + found @ J, nearest_by_enumeration(J, u, np.zeros(len(J))), atol=1e-9)
    assert bent > 6


def test_one_violated_constraint_is_a_gems_formula() -> None:
    rng = np.random.default_rng(3)
    reference, g = rng.standard_normal((2, 9))
    g = g - 2 * (g @ reference) / (reference @ reference) * reference * np.sign(g @ reference)
    [v] = gem_multipliers(np.array([[reference @ reference]]), np.array([g @ reference]), 0.0)
    np.testing.assert_allclose(g + v * reference, g - (g @ reference) / (reference @ reference) * reference, atol=1e-12)
