"""Numbers that TRL 1.16.0 and verl 0.9.1 printed for the same input."""

from __future__ import annotations

import numpy as np
import pytest
from objective_cases import ADVANTAGE_BT, LOGP_BT, MASK_BT, REFERENCE_BT, make, vector

from rlvrlab.objectives.base import aggregate
from rlvrlab.objectives.cispo import Cispo
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.kl import kl_BT
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.reinforce import Reinforce
from rlvrlab.objectives.sft import Sft
from rlvrlab.objectives.value import value_loss

ZERO_BT = np.zeros_like(LOGP_BT)
SEQ, NORM = "seq-mean-token-mean", "seq-mean-token-sum-norm"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("token-mean", 3), ("token-sum", 15), ("seq-mean-token-sum", 7.5), (SEQ, 3.25), (NORM, 2.5)],
)
def test_aggregation(mode, expected):
    loss = aggregate(np.array([[1.0, 2, 3], [4, 5, 6]]), ZERO_BT, make(MASK_BT), mode)
    assert loss.value == pytest.approx(expected, rel=1e-12)


def test_dr_grpo_divides_by_the_horizon_and_not_by_the_width():
    loss_BT = np.array([[1.0, 2, 3], [4, 5, 6]])
    assert aggregate(loss_BT, ZERO_BT, make(MASK_BT, horizon=30), NORM).value == pytest.approx(15 / 2 / 30, rel=1e-12)


@pytest.mark.parametrize("objective", [PpoClip(0.1, 0.4), Gspo(0.1, 0.4)])
@pytest.mark.parametrize(
    ("ratio", "advantage", "expected", "slope"),
    [(2.0, 1.0, -1.4, 0), (1.3, 1.0, -1.3, -1.3), (0.5, -1.0, 0.9, 0), (0.95, -1.0, 0.95, 0.95), (2.0, -1.0, 2.0, 2.0)],
)
def test_each_side_has_its_own_clip(objective, ratio, advantage, expected, slope):
    one_BT = np.ones((1, 1))
    batch = make(one_BT.astype(bool), old_BT=-np.log(ratio) * one_BT, advantage_BT=advantage * one_BT)
    loss = objective(0 * one_BT, one_BT, batch)
    assert loss.value == pytest.approx(expected, rel=1e-12)
    assert loss.c_logp_BT[0, 0] == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        pytest.param(PpoClip(0.2, 0.28, 3.0), 0.257660, id="verl vanilla"),
        pytest.param(PpoClip(0.2, 0.28, 3.0, SEQ), 0.548050, id="verl vanilla seq-mean"),
        pytest.param(PpoClip(0.2, 0.28, 3.0, NORM), 0.214716, id="verl vanilla norm"),
        pytest.param(PpoClip(0.2, 0.28, aggregation=SEQ), 0.715374, id="trl grpo"),
        pytest.param(PpoClip(0.2, 0.28), 0.391519, id="trl bnpo, dapo"),
        pytest.param(PpoClip(0.2, 0.28, aggregation=NORM), 0.326266, id="trl dr_grpo"),
        pytest.param(PpoClip(0.2, 0.28, 1.5, SEQ), 0.173050, id="trl grpo delta"),
        pytest.param(Regularised(PpoClip(0.2, 0.28, aggregation=SEQ), 0.04), 0.715831, id="trl grpo beta"),
        pytest.param(Gspo(0.2, 0.28), 0.520184, id="trl grpo sequence"),
        pytest.param(Gspo(), 0.520184, id="verl gspo"),
        pytest.param(Gspo(0.2, 0.28, aggregation="seq-mean-token-sum"), 0.602781, id="trl luspo"),
        pytest.param(Cispo(1.28, 0.8), 0.324234, id="verl cispo"),
        pytest.param(Cispo(5.0), 0.103489, id="trl cispo"),
    ],
)
def test_policy_losses(objective, expected):
    assert objective(LOGP_BT, ZERO_BT, vector()).value == pytest.approx(expected, abs=1e-6)


def test_clip_fractions_of_verl():
    metrics = PpoClip(0.2, 0.28, 3.0).metrics(LOGP_BT, ZERO_BT, vector())
    assert metrics["actor/pg_clipfrac_lower"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        ("k1", [0.2, -0.1, 0.1, -0.1, -0.2, 0.2]),
        ("k2", [0.02, 0.005, 0.005, 0.005, 0.02, 0.02]),
        ("k3", [0.018731, 0.005171, 0.004837, 0.005171, 0.021403, 0.018731]),
    ],
)
def test_kl(estimator, expected):
    assert kl_BT(LOGP_BT, REFERENCE_BT, estimator).ravel() == pytest.approx(expected, abs=1e-6)


def test_value_loss():
    batch = make(
        MASK_BT,
        value_BT=np.array([[0.2, 0.1, 0.2], [0.1, 0.2, 0.1]]),
        return_BT=np.array([[1.0, 1, 1], [0, 0, 0]]),
    )
    loss = value_loss(np.array([[0.5, 0.1, 0.3], [0.9, 0.2, 0.1]]), batch, clip=0.2)
    assert loss.value == pytest.approx(0.251, abs=1e-9)
    assert loss.metrics["critic/vf_clipfrac"] == pytest.approx(0.2)


def test_entropy_bonus_is_verls_entropy_loss():
    logits = np.array([[[1.0, 0, 0], [0, 0, 0], [2, 1, 0]], [[0, 3, 0], [1, 1, 1], [0, 0, 0]]])
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    loss = Regularised(Reinforce(), entropy_coef=1.0)(ZERO_BT, -(p * np.log(p)).sum(-1), vector(advantage_BT=ZERO_BT))
    assert loss.value == pytest.approx(-0.874308, abs=1e-6)


def test_dpo_losses_by_hand():
    """Scores: chosen .2 − .1 + .1 = .2 over 3 tokens, rejected −.1 − .2 = −.3 over 2; d = .5."""
    batch = vector(pair_B=np.array([7, 7]), chosen_B=np.array([True, False]))
    value = {
        "sigmoid": np.log1p(np.exp(-0.2 * 0.5)),
        "hinge": 1 - 0.2 * 0.5,
        "ipo": (0.2 / 3 + 0.3 / 2 - 1 / 0.4) ** 2,
        "robust": np.log1p(np.exp(-0.2 * 0.5)),
    }
    for name, expected in value.items():
        assert Dpo(name, 0.2)(LOGP_BT, ZERO_BT, batch).value == pytest.approx(expected, rel=1e-12), name
    smooth = (0.9 * np.log1p(np.exp(-0.1)) - 0.1 * np.log1p(np.exp(0.1))) / 0.8
    assert Dpo("robust", 0.2, 0.1)(LOGP_BT, ZERO_BT, batch).value == pytest.approx(smooth, rel=1e-12)
    with_sft = Dpo("sigmoid", 0.2, sft_coef=2.0)(LOGP_BT, ZERO_BT, batch).value
    assert with_sft == pytest.approx(value["sigmoid"] + 2 * 3.5 / 3, rel=1e-12)


def test_sft_and_reinforce_by_hand():
    assert Sft()(LOGP_BT, ZERO_BT, vector()).value == pytest.approx(5.0 / 5)
    assert Reinforce()(LOGP_BT, ZERO_BT, vector()).value == pytest.approx((3.5 - 1.5) / 5)
    doubled = Reinforce()(LOGP_BT, ZERO_BT, vector(weight_BT=2 * np.abs(ADVANTAGE_BT)))
    assert doubled.value == pytest.approx(2 * (3.5 - 1.5) / 5)
