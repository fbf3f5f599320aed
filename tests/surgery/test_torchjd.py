"""Agreement with TorchJD where it is right, and the places where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from gradients import conflicting

from rlvrlab.registry import find
from rlvrlab.surgery.base import Scene
from rlvrlab.surgery.cagrad import cagrad
from rlvrlab.surgery.pcgrad import pcgrad

pytestmark = pytest.mark.oracle
SEEDS = range(25)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def torchjd():
    return pytest.importorskip("torchjd.aggregation", exc_type=ImportError)


def weights(name: str, J: np.ndarray, memory=None, **keys):
    size = len(J)
    scene = Scene(J @ J.T, np.full(size, 1 / size), np.full(size, 0.5), tuple("abcdefgh"[:size]), (0,))
    return find("surgery", name)(**keys)(scene, memory or {}).weight_S


def theirs(torch, weighting, J: np.ndarray) -> np.ndarray:
    return weighting(torch.tensor(J @ J.T)).numpy()


def test_mean_imtl_g_and_aligned_mtl(torch, torchjd) -> None:
    for seed in SEEDS:
        J = conflicting(np.random.default_rng(seed), 4, spread=0.5)
        for name, weighting in (
            ("equal", torchjd.MeanWeighting()),
            ("imtl_g", torchjd.IMTLGWeighting()),
            ("aligned_mtl", torchjd.AlignedMTLWeighting()),
        ):
            np.testing.assert_allclose(weights(name, J), theirs(torch, weighting, J), rtol=1e-7, atol=1e-9)


def test_pcgrad_is_their_sum_in_their_order(torch, torchjd) -> None:
    for seed in SEEDS:
        J = conflicting(np.random.default_rng(seed), 4)
        torch.manual_seed(seed)
        found = theirs(torch, torchjd.PCGradWeighting(), J)
        torch.manual_seed(seed)
        orders = [torch.randperm(4).numpy() for _ in range(4)]
        np.testing.assert_allclose(pcgrad(J @ J.T, orders), found, rtol=1e-9, atol=1e-12)


def test_pcgrad_and_gradvac_of_two_groups_are_their_sums_halved(torch, torchjd) -> None:
    for seed in SEEDS:
        J = conflicting(np.random.default_rng(seed), 2)
        np.testing.assert_allclose(weights("pcgrad", J), theirs(torch, torchjd.PCGradWeighting(), J) / 2, rtol=1e-9)
        np.testing.assert_allclose(weights("gradvac", J), theirs(torch, torchjd.GradVacWeighting(), J) / 2, rtol=1e-6)


def test_mgda_is_never_longer_than_theirs(torch, torchjd) -> None:
    """Theirs takes at most 100 Frank–Wolfe steps and stops early; ours is exact, so the combination is shorter."""
    shorter = 0
    for seed in SEEDS:
        J = conflicting(np.random.default_rng(seed), 4, spread=0.3)
        ours, other = weights("mgda", J), theirs(torch, torchjd.MGDAWeighting(epsilon=1e-9, max_iters=5000), J)
        length = np.linalg.norm(other @ J)
        assert np.linalg.norm(ours @ J) <= length * (1 + 1e-9)
        np.testing.assert_allclose(np.linalg.norm(ours @ J), length, rtol=0.05)
        shorter += np.linalg.norm(ours @ J) < np.linalg.norm(theirs(torch, torchjd.MGDAWeighting(), J) @ J) * 0.999
    assert shorter > 0


def test_a_dead_group_stops_their_mgda_but_not_ours(torch, torchjd) -> None:
    J = np.vstack([conflicting(np.random.default_rng(0), 2), np.zeros((1, 40))])
    assert np.linalg.norm(theirs(torch, torchjd.MGDAWeighting(), J) @ J) < 1e-9
    assert np.linalg.norm(weights("mgda", J) @ J) > 1e-3


def test_cagrad(torch, torchjd) -> None:
    try:
        weighting = torchjd.CAGradWeighting(c=0.5, norm_eps=1e-12)
    except ImportError as error:
        pytest.skip(f"TorchJD's CAGrad needs cvxpy and clarabel: {error}")
    for seed in SEEDS:
        J = conflicting(np.random.default_rng(seed), 4, spread=0.3)
        np.testing.assert_allclose(cagrad(J @ J.T, 0.5), theirs(torch, weighting, J), rtol=2e-3, atol=2e-3)


def test_upgrad_where_norms_are_alike_and_where_they_are_not(torch, torchjd) -> None:
    """Their default ridge leaves conflicts when norms are spread; ours never does."""
    try:
        weighting = torchjd.UPGradWeighting()
    except ImportError as error:
        pytest.skip(f"TorchJD's UPGrad needs quadprog and qpsolvers: {error}")
    harmed = 0
    for seed in SEEDS:
        J = conflicting(np.random.default_rng(seed), 4, spread=0.0)
        np.testing.assert_allclose(weights("upgrad", J), theirs(torch, weighting, J), rtol=5e-2, atol=5e-2)
        K = conflicting(np.random.default_rng(seed), 4, spread=1.2)
        harmed += bool((K @ (theirs(torch, weighting, K) @ K) < 0).any())
        assert (K @ (weights("upgrad", K) @ K) >= -1e-7 * np.abs(K).max() ** 2).all()
    assert harmed > len(SEEDS) / 4


def test_nan_is_accepted_by_them_and_refused_by_us(torch, torchjd) -> None:
    J = np.array([[1.0, np.nan], [0.0, 1.0]])
    assert np.isnan(theirs(torch, torchjd.AlignedMTLWeighting(), np.eye(2)) @ J).any()
    with pytest.raises(ValueError, match="NaN"):
        weights("equal", J)
