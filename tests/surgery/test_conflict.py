"""Conflict detection: cosines, imbalance, rank, and the two controls that tell conflict from noise."""

from __future__ import annotations

import numpy as np
import pytest

from rlvrlab.surgery.conflict import MOST_PAIRED, conflict, effective_rank, noise, pair_metrics


def halves(groups: np.ndarray, spread: float, rng) -> np.ndarray:
    """Two noisy halves of each group's gradient, neighbours."""
    return np.repeat(groups, 2, axis=0) + spread * rng.standard_normal((2 * len(groups), groups.shape[1]))


def test_known_angles() -> None:
    J = np.array([[2.0, 0.0], [0.0, 1.0], [-3.0, 0.0]])
    found = conflict(J @ J.T)
    assert found is not None
    np.testing.assert_allclose(found.cosine_SS, [[1, 0, -1], [0, 1, 0], [-1, 0, 1]])
    assert found.rate == pytest.approx(1 / 3) and found.lowest == -1 and found.norm_ratio == 3
    assert found.imbalance == pytest.approx(np.mean([4 / 5, 12 / 13, 6 / 10]))
    strict = conflict(J @ J.T, threshold=0.5)
    assert strict is not None and strict.rate == 1
    assert found.metrics()["surgery/cosine/min"] == -1 and len(found.metrics()) == 6


def test_dead_groups_take_no_part() -> None:
    J = np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.1]])
    found = conflict(J @ J.T)
    assert found is not None and found.rate == 1


def test_without_a_pair_nothing_is_said_of_pairs() -> None:
    """A rate of 0 and a cosine of 1 would be counted among the steps that had a pair."""
    assert conflict(np.zeros((3, 3))) is None and conflict(np.array([[4.0]])) is None
    assert conflict(np.diag([4.0, 0.0])) is None


def test_effective_rank() -> None:
    assert effective_rank(np.eye(5)) == pytest.approx(5)
    assert effective_rank(np.ones((5, 5))) == pytest.approx(1)


def test_noise_has_no_self_cosine_and_no_z_and_real_conflict_has_both() -> None:
    rng = np.random.default_rng(0)
    axis = rng.standard_normal(300)
    real = np.stack([axis, -axis, axis, -axis]) * 3
    clear = noise((H := halves(real, 1.0, rng)) @ H.T, "real")
    assert clear.self_cosine_S.min() > 0.8 and clear.p_lower < 0.1 and clear.z < -1
    nothing = [noise((H := halves(np.zeros((4, 300)), 1.0, rng)) @ H.T, i) for i in range(20)]
    assert abs(np.mean([n.self_cosine_S.mean() for n in nothing])) < 0.05
    assert abs(np.mean([n.z for n in nothing])) < 0.7
    assert np.mean([n.p_lower < 0.05 for n in nothing]) < 0.3


def test_one_group_has_no_control() -> None:
    found = noise(np.array([[1.0, 0.5], [0.5, 1.0]]))
    assert found.self_cosine_S == pytest.approx([0.5]) and found.z == 0
    assert found.p_lower == 1 and found.floor == 0


def test_the_control_deals_halves_anew_and_adds_those_that_came_together() -> None:
    """Halves +1 +1 −1 −1: a third of all pairings keep them together (cosine −1), the others add up to nothing."""
    half = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    found = noise(half @ half.T, "dealt")
    assert found.self_cosine_S == pytest.approx([1, 1]) and found.floor == pytest.approx(1)
    assert 0.23 < found.p_lower < 0.44
    assert found.z == pytest.approx((-1 + 1 / 3) / np.sqrt(2 / 9), abs=0.25)
    crossed = noise((half[[0, 2, 1, 3]] @ half[[0, 2, 1, 3]].T), "dealt")
    assert crossed.self_cosine_S == pytest.approx([-1, -1]) and crossed.p_lower == 1 and crossed.z > 0


def test_every_pair_has_a_cosine_of_its_own_unless_they_are_too_many() -> None:
    J = np.array([[2.0, 0.0], [0.0, 1.0], [-3.0, 0.0], [0.0, 0.0]])
    found = pair_metrics(J @ J.T, ["a", "b/c", "d", "dead"])
    assert found == {"surgery/cosine/a/b_c": 0.0, "surgery/cosine/a/d": -1.0, "surgery/cosine/b_c/d": 0.0}
    many = MOST_PAIRED + 1
    assert pair_metrics(np.eye(many), [str(i) for i in range(many)]) == {}


def test_the_noise_floor_is_above_what_chance_makes_and_below_a_real_conflict() -> None:
    rng = np.random.default_rng(3)
    wide, narrow = (noise((H := halves(np.zeros((4, size)), 1.0, rng)) @ H.T, "floor").floor for size in (30, 3000))
    assert 0.2 < wide < 0.7 and narrow < 0.1, "in more dimensions random directions are nearer to orthogonal"
