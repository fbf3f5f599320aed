"""Metrics counted by hand, importance weights, KL in the reward."""

from __future__ import annotations

import numpy as np
import pytest
from objective_cases import LOGP_BT, MASK_BT, REFERENCE_BT, make, vector

from rlvrlab.errors import UserError
from rlvrlab.objectives.cispo import Cispo
from rlvrlab.objectives.correction import Correction
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.kl import kl_BT, kl_slope_BT, penalised_reward_BT
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.reinforce import Reinforce
from rlvrlab.objectives.sft import Sft

RATIO_BT = np.array([[1.5, 1.1, 0.5, 0.9], [1.5, 4.0, 0.5, 9.9]])
SIGN_BT = np.array([[1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]])
TRAINED_BT = np.array([[True, True, True, True], [True, True, True, False]])
ENTROPY_BT = np.arange(8.0).reshape(2, 4)


def ratio_batch(**arrays):
    return make(TRAINED_BT, old_BT=-np.log(RATIO_BT) - 1.0, advantage_BT=SIGN_BT, **arrays)


NOW_BT = np.full((2, 4), -1.0)


def test_ppo_metrics():
    """Held by the clip: 1.5 with A > 0 and 0.5 with A < 0; cut by the dual clip: 4.0 with A < 0."""
    metrics = PpoClip(dual_clip=3.0).metrics(NOW_BT, ENTROPY_BT, ratio_batch())
    ratios = RATIO_BT[TRAINED_BT]
    assert metrics == pytest.approx(
        {
            "actor/pg_clipfrac": 2 / 7,
            "actor/pg_clipfrac_lower": 1 / 7,
            "actor/ratio": ratios.mean(),
            "actor/ppo_kl": -np.log(ratios).mean(),
            "actor/entropy": (0 + 1 + 2 + 3 + 4 + 5 + 6) / 7,
        }
    )
    assert PpoClip().metrics(NOW_BT, ENTROPY_BT, ratio_batch())["actor/pg_clipfrac_lower"] == 0


def test_cispo_counts_every_bounded_weight():
    def share(objective):
        return objective.metrics(NOW_BT, ENTROPY_BT, ratio_batch())["actor/pg_clipfrac"]

    assert share(Cispo(1.2)) == pytest.approx(3 / 7)
    assert share(Cispo(1.2, 0.8)) == pytest.approx(5 / 7)


def test_gspo_reports_answer_ratios():
    answer_B = [RATIO_BT[0].prod() ** (1 / 4), RATIO_BT[1, :3].prod() ** (1 / 3)]
    metrics = Gspo(0.2, 0.2).metrics(NOW_BT, ENTROPY_BT, ratio_batch())
    assert metrics["actor/ratio"] == pytest.approx((4 * answer_B[0] + 3 * answer_B[1]) / 7)
    assert metrics["actor/pg_clipfrac"] == 0
    narrow = Gspo(1e-3, 1e-3).metrics(NOW_BT, ENTROPY_BT, ratio_batch(weight_BT=None))
    assert narrow["actor/pg_clipfrac"] == 0, "row 0 is below 1 with A > 0, row 1 above 1 with A < 0: free to return"


def test_reference_and_sft_metrics():
    expected = kl_BT(LOGP_BT, REFERENCE_BT, "k3")[MASK_BT].mean()
    assert Reinforce().metrics(LOGP_BT, LOGP_BT, vector())["actor/kl"] == pytest.approx(expected)
    assert "actor/kl" not in Reinforce().metrics(LOGP_BT, LOGP_BT, vector(reference_BT=None))
    assert Sft().metrics(LOGP_BT, LOGP_BT, vector())["sft/nll"] == pytest.approx(1.0)
    both = Regularised(Sft(), 0.5, "k1").metrics(LOGP_BT, LOGP_BT, vector())
    assert both["actor/kl"] == pytest.approx(expected)
    assert both["actor/kl_loss"] == pytest.approx((LOGP_BT - REFERENCE_BT)[MASK_BT].mean())
    assert both["sft/nll"] == pytest.approx(1.0)


def test_dpo_metrics():
    zeros = np.zeros((4, 2))
    logp_BT = np.array([[-1.0, -1.0], [-2.0, -2.0], [-3.0, -3.0], [-1.0, 0.0]])
    batch = make(
        np.ones((4, 2), bool),
        pair_B=np.array([5, 5, 9, 9]),
        chosen_B=np.array([True, False, True, False]),
        reference_BT=zeros,
    )
    metrics = Dpo(beta=0.5).metrics(logp_BT, zeros, batch)
    assert metrics["dpo/accuracy"] == 0.5
    assert metrics["dpo/margin"] == pytest.approx(0.5 * ((4 - 2) + (1 - 6)) / 2)
    assert metrics["dpo/chosen_reward"] == pytest.approx(0.5 * -(2 + 6) / 2)
    assert metrics["dpo/rejected_reward"] == pytest.approx(0.5 * -(4 + 1) / 2)


def weights(correction):
    return correction(make(TRAINED_BT, old_BT=np.log(RATIO_BT) - 1.0, behaviour_BT=NOW_BT))


def test_truncated_and_masked_token_weights():
    weight_BT, metrics = weights(Correction())
    np.testing.assert_allclose(weight_BT, [[1.5, 1.1, 0.5, 0.9], [1.5, 2.0, 0.5, 0]])
    assert metrics["rollout_is/changed"] == pytest.approx(1 / 7)
    assert metrics["rollout_is/max"] == pytest.approx(4.0)
    assert metrics["rollout_is/mean"] == pytest.approx(weight_BT.sum() / 7)
    weight_BT, metrics = weights(Correction(mode="mask", low=0.6, high=1.5 + 1e-9))
    np.testing.assert_allclose(weight_BT, [[1.5, 1.1, 0, 0.9], [1.5, 0, 0, 0]])
    assert metrics["rollout_is/changed"] == pytest.approx(3 / 7)
    assert metrics["rollout_is/ess"] == pytest.approx(5.0**2 / 7 / (1.5**2 * 2 + 1.1**2 + 0.9**2))


def test_sequence_weights_are_products():
    weight_BT, _ = weights(Correction(level="sequence", high=2.5))
    np.testing.assert_allclose(weight_BT[0], RATIO_BT[0].prod())
    np.testing.assert_allclose(weight_BT[1], [2.5, 2.5, 2.5, 0])


def test_equal_policies_need_no_correction():
    for level in ("token", "sequence"):
        for mode in ("truncate", "mask"):
            batch = make(TRAINED_BT, old_BT=NOW_BT, behaviour_BT=NOW_BT)
            weight_BT, metrics = Correction(level, mode)(batch)
            np.testing.assert_array_equal(weight_BT, TRAINED_BT.astype(float))
            assert metrics["rollout_is/ess"] == 1.0
    with pytest.raises(UserError, match="low"):
        Correction(low=3.0, high=2.0)


def test_importance_weights_scale_the_policy_loss_only():
    twice = vector(weight_BT=np.full((2, 3), 2.0))
    for objective in (PpoClip(), Gspo(), Cispo(), Reinforce()):
        once = objective(LOGP_BT, LOGP_BT, vector())
        double = objective(LOGP_BT, LOGP_BT, twice)
        assert double.value == pytest.approx(2 * once.value)
        np.testing.assert_allclose(double.c_logp_BT, 2 * once.c_logp_BT)
    kl = Regularised(PpoClip(), 1.0)(LOGP_BT, LOGP_BT, twice).value - PpoClip()(LOGP_BT, LOGP_BT, twice).value
    assert kl == pytest.approx(kl_BT(LOGP_BT, REFERENCE_BT)[MASK_BT].mean())


def test_kl_in_the_reward_ignores_masked_tokens():
    reward_BT = np.array([[0.0, 0.0, 1.0], [0.0, 0.5, 0.0]])
    dirty_BT = np.where(MASK_BT, LOGP_BT, np.nan)
    out_BT = penalised_reward_BT(reward_BT, dirty_BT, REFERENCE_BT, MASK_BT, 0.1)
    expected = reward_BT - 0.1 * np.where(MASK_BT, LOGP_BT - REFERENCE_BT, 0)
    np.testing.assert_allclose(out_BT, expected)


def test_k3_guards():
    """verl's bound takes the gradient away where the reference is 13 times likelier; the default keeps it."""
    far, near, reference = np.array([-3.0]), np.array([-1.0]), np.array([0.0])
    assert kl_BT(far, reference)[0] == pytest.approx(np.exp(3) - 4)
    assert kl_BT(far, reference, bound=10)[0] == 10
    assert kl_slope_BT(far, reference)[0] == pytest.approx(1 - np.exp(3))
    assert kl_slope_BT(far, reference, bound=10)[0] == 0
    assert kl_slope_BT(near, reference, bound=10)[0] == pytest.approx(1 - np.e)
    assert np.isfinite(kl_BT(np.array([-800.0]), reference)).all()
