"""Every surgery by laws it must keep, and each against its definition in parameter space."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from gradients import conflicting, nearest_by_enumeration, rows

from rlvrlab.randomness import generator
from rlvrlab.registry import find, names
from rlvrlab.surgery.base import Scene
from rlvrlab.surgery.pcgrad import pcgrad

METHODS = names("surgery")
HARMLESS = {"upgrad", "mgda", "nash"}
"""Methods whose update never conflicts with a group."""


def scene(J: np.ndarray, **changes) -> Scene:
    size = len(J)
    usual = {"share_S": np.full(size, 1 / size), "success_S": np.linspace(0.2, 0.8, size)}
    return Scene(J @ J.T, **{**usual, **changes}, names=tuple("abcdefgh"[:size]), key=(0, "test"))


def weights(name: str, J: np.ndarray, memory=None, **keys) -> np.ndarray:
    return find("surgery", name)(**keys)(scene(J), memory or {}).weight_S


def test_all_of_them_are_there() -> None:
    wanted = "aligned_mtl cagrad equal gradvac imtl_g mean mgda nash norm_balance pcgrad upgrad worst_skill"
    assert wanted.split() == METHODS


@pytest.mark.parametrize("name", METHODS)
def test_one_group_is_trained_as_without_surgery(name: str) -> None:
    J = rows(np.random.default_rng(0), 1)
    np.testing.assert_allclose(weights(name, J), [1.0])


@pytest.mark.parametrize("name", METHODS)
def test_dead_groups_change_nothing_for_the_others(name: str) -> None:
    J = conflicting(np.random.default_rng(1), 3)
    with_dead = np.insert(J, 1, 0.0, axis=0)
    names = ("a", "x", "b", "c")
    shown = Scene(with_dead @ with_dead.T, np.array([1, 0, 1, 1]) / 3, np.array([0.2, 0, 0.5, 0.8]), names, (0, "test"))
    full = find("surgery", name)()(shown, {})
    assert full.weight_S[1] == 0
    np.testing.assert_allclose(full.weight_S[[0, 2, 3]], weights(name, J), rtol=1e-9)


@pytest.mark.parametrize("name", METHODS)
def test_all_groups_dead_gives_no_update_and_nan_is_refused(name: str) -> None:
    assert not weights(name, np.zeros((3, 5))).any()
    with pytest.raises(ValueError, match="NaN or infinite"):
        weights(name, np.array([[1.0, np.nan], [0.0, 1.0]]))


@pytest.mark.parametrize("name", METHODS)
def test_scales_are_comparable(name: str) -> None:
    """Orthogonal gradients of one length: every method is the mean. And the answer scales with the gradients."""
    J = np.eye(4) * 3.0
    changes = {"success_S": np.full(4, 0.5)}
    method = find("surgery", name)()
    found = method(scene(J, **changes), {}).weight_S
    np.testing.assert_allclose(found, np.full(4, 0.25), rtol=1e-6)
    K = conflicting(np.random.default_rng(5), 4)
    np.testing.assert_allclose(weights(name, 1e-3 * K), weights(name, K), rtol=2e-4)


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_harmless_methods_conflict_with_no_group(name: str) -> None:
    for seed in range(20):
        J = conflicting(np.random.default_rng(seed), 4, spread=1.2)
        d = weights(name, J) @ J
        cosine = J @ d / (np.linalg.norm(J, axis=1) * max(np.linalg.norm(d), 1e-300))
        assert cosine.min() > -1e-6, seed


@pytest.mark.parametrize("name", METHODS)
def test_duplicate_groups_are_no_accident(name: str) -> None:
    J = conflicting(np.random.default_rng(7), 3)
    w = weights(name, np.vstack([J, J[:1]]))
    assert np.isfinite(w).all()
    if name in ("mean", "equal", "norm_balance", "imtl_g", "aligned_mtl", "nash"):
        assert w[0] == pytest.approx(w[3], rel=1e-4)


def test_pcgrad_is_the_algorithm_in_parameter_space() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        J = conflicting(rng, 4)
        orders = [rng.permutation(4) for _ in range(4)]
        total = np.zeros(J.shape[1])
        for i, order in enumerate(orders):
            g = J[i].copy()
            for j in order:
                if j != i and g @ J[j] < 0:
                    g -= g @ J[j] / (J[j] @ J[j]) * J[j]
            total += g
        np.testing.assert_allclose(pcgrad(J @ J.T, orders) @ J, total, rtol=1e-9, atol=1e-9 * np.abs(J).max())


def test_pcgrad_orders_are_keyed_and_averaging_them_narrows_the_spread() -> None:
    J = conflicting(np.random.default_rng(3), 5)
    one, many = find("surgery", "pcgrad")(orders=1), find("surgery", "pcgrad")(orders=64)
    draws = {
        method.orders: [method(scene(J)._replace(key=(i,)), {}).weight_S for i in range(20)] for method in (one, many)
    }
    assert np.std(draws[64], axis=0).sum() < 0.5 * np.std(draws[1], axis=0).sum()
    np.testing.assert_array_equal(one(scene(J), {}).weight_S, one(scene(J), {}).weight_S)


def test_upgrad_is_the_mean_of_projections() -> None:
    for seed in range(15):
        J = conflicting(np.random.default_rng(seed), 3)
        expected = np.mean([nearest_by_enumeration(J, g, np.zeros(3)) for g in J], axis=0)
        np.testing.assert_allclose(weights("upgrad", J) @ J, expected, atol=1e-8 * np.abs(J).max())


def on_simplex(cost, size: int) -> float:
    starts = [np.full(size, 1 / size), *np.eye(size) * 0.9 + 0.1 / size]
    limits = [{"type": "eq", "fun": lambda w: w.sum() - 1}]
    found = [
        scipy.optimize.minimize(cost, w, bounds=[(0, 1)] * size, constraints=limits, tol=1e-14).fun for w in starts
    ]
    return min(found)


def test_mgda_is_the_shortest_convex_combination() -> None:
    for seed in range(10):
        J = conflicting(np.random.default_rng(seed), 4, spread=0.3)
        w = weights("mgda", J)
        assert w.sum() == pytest.approx(1) and (w >= 0).all()
        best = on_simplex(lambda w, J=J: float(((w @ J) ** 2).sum()), 4)
        assert ((w @ J) ** 2).sum() <= best * (1 + 1e-6) + 1e-9


def test_cagrad_solves_its_problem() -> None:
    for seed in range(10):
        J, c = conflicting(np.random.default_rng(seed), 4, spread=0.5), 0.7
        d = (1 + c) * weights("cagrad", J, c=c) @ J
        mean = J.mean(axis=0)
        radius = c * np.linalg.norm(mean)
        assert np.linalg.norm(d - mean) == pytest.approx(radius, rel=1e-6)
        dual = on_simplex(lambda w, J=J, m=mean, r=radius: float(w @ J @ m + r * np.linalg.norm(w @ J)), 4)
        assert (J @ d).min() == pytest.approx(dual, rel=1e-5, abs=1e-6 * np.abs(J @ d).max())


def test_imtl_g_projections_are_equal_and_nash_keeps_its_condition() -> None:
    for seed in range(10):
        J = conflicting(np.random.default_rng(seed), 4, spread=0.5)
        along = J @ (weights("imtl_g", J) @ J) / np.linalg.norm(J, axis=1)
        np.testing.assert_allclose(along, along[0], rtol=1e-6)
        a = weights("nash", J)
        gains = a * (J @ J.T @ a)  # aᵢ (G a)ᵢ is the same for all
        np.testing.assert_allclose(gains, gains[0], rtol=1e-5)
        assert (a > 0).all()


def test_norm_balance_makes_norms_equal_and_mean_is_pooling() -> None:
    J = rows(np.random.default_rng(2), 3)
    lengths = weights("norm_balance", J) * np.linalg.norm(J, axis=1)
    np.testing.assert_allclose(lengths, lengths[0])
    share = np.array([0.5, 0.3, 0.2])
    np.testing.assert_array_equal(find("surgery", "mean")()(scene(J, share_S=share), {}).weight_S, share)


def test_gradvac_remembers_by_name_and_starts_as_pcgrad() -> None:
    J = conflicting(np.random.default_rng(4), 3)
    method = find("surgery", "gradvac")(beta=0.5)
    first = method(scene(J), {})
    assert set(first.memory) == {f"{a}|{b}" for a in "abc" for b in "abc" if a != b}
    second = method(scene(J), first.memory)
    assert not np.allclose(first.weight_S, second.weight_S)
    frozen = find("surgery", "gradvac")(beta=0.0)  # targets stay 0: PCGrad with gradvac's orders
    again = frozen(scene(J), {}).weight_S * 3
    rng = generator(0, "test", "gradvac")
    np.testing.assert_allclose(again, pcgrad(J @ J.T, [rng.permutation(3) for _ in range(3)]), rtol=1e-5, atol=1e-6)


def test_worst_skill_leads_and_memory_is_plain() -> None:
    J = rows(np.random.default_rng(6), 3)
    method = find("surgery", "worst_skill")(temperature=0.2, momentum=0.5)
    found = method(scene(J, success_S=np.array([0.1, 0.9, 0.5])), {})
    assert found.weight_S.argmax() == 0 and found.weight_S.sum() == pytest.approx(1)
    later = method(scene(J, success_S=np.array([1.0, 0.0, 0.5])), found.memory)
    assert later.memory == {"a": pytest.approx(0.55), "b": pytest.approx(0.45), "c": pytest.approx(0.5)}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_resolves_conflicts_acts_only_below_the_threshold(name: str) -> None:
    """The cosines are −0.6, 0 and 0.8: −0.7 finds no conflict, and then the gradients are just added up."""
    J = np.array([[5.0, 0.0], [-0.6, 0.8], [0.0, 2.0]])
    idle, acting = weights(name, J, conflict_threshold=-0.7), weights(name, J, conflict_threshold=0.0)
    if find("surgery", name).resolves_conflicts:
        np.testing.assert_allclose(idle, np.full(3, 1 / 3))
        assert not np.allclose(acting, idle)
    else:
        np.testing.assert_array_equal(idle, acting)


def test_pcgrad_projects_the_pairs_below_the_threshold_and_no_others() -> None:
    """Two gradients at 60°: at 0 they agree and are added up, at 0.9 each loses what it has along the other."""
    J = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])
    np.testing.assert_allclose(weights("pcgrad", J, conflict_threshold=0.0), [0.5, 0.5])
    np.testing.assert_allclose(weights("pcgrad", J, conflict_threshold=0.9), [0.25, 0.25])
    opposed = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [0.0, 1.0]])  # cosines −0.5, 0 and 0.87
    orders = [np.arange(3)] * 3
    left_in = pcgrad(opposed @ opposed.T, orders, -0.6)
    np.testing.assert_allclose(left_in, np.ones(3))
    projected = pcgrad(opposed @ opposed.T, orders, -0.4) @ opposed
    np.testing.assert_allclose(projected, [0.75, np.sqrt(0.75) * 1.5 + 1], rtol=1e-9)
