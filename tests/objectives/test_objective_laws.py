"""What every objective must obey: right derivatives, additive micro-batches, masks that select, named errors."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from objective_cases import HELD, LOGP_BT, OBJECTIVES, make, random_batch, vector
from pydantic import TypeAdapter, ValidationError

from rlvrlab import registry
from rlvrlab.errors import UserError
from rlvrlab.objectives.cispo import Cispo
from rlvrlab.objectives.correction import Correction
from rlvrlab.objectives.dpo import Dpo
from rlvrlab.objectives.gspo import Gspo
from rlvrlab.objectives.ppo_clip import PpoClip
from rlvrlab.objectives.regularise import Regularised
from rlvrlab.objectives.reinforce import Reinforce
from rlvrlab.objectives.value import value_loss

EVERY = OBJECTIVES | HELD
STEP = 1e-6


def differences(function, x_BT):
    """Central finite differences of a scalar function of a matrix."""
    slope_BT = np.zeros_like(x_BT)
    for index in np.ndindex(x_BT.shape):
        up_BT, down_BT = x_BT.copy(), x_BT.copy()
        up_BT[index] += STEP
        down_BT[index] -= STEP
        slope_BT[index] = (function(up_BT) - function(down_BT)) / (2 * STEP)
    return slope_BT


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("seed", range(3))
def test_coefficients_are_the_derivative(name, seed):
    objective = OBJECTIVES[name]
    logp_BT, entropy_BT, batch = random_batch(seed)
    loss = objective(logp_BT, entropy_BT, batch)
    assert np.abs(loss.c_logp_BT).max() > 0
    close(loss.c_logp_BT, differences(lambda x: objective(x, entropy_BT, batch).value, logp_BT))
    by_entropy_BT = differences(lambda x: objective(logp_BT, x, batch).value, entropy_BT)
    close(loss.c_entropy_BT if loss.c_entropy_BT is not None else 0.0, by_entropy_BT)


@pytest.mark.parametrize("seed", range(3))
def test_random_batches_reach_both_branches_of_every_clip(seed):
    logp_BT, entropy_BT, batch = random_batch(seed, rows=20)
    dual = PpoClip(0.2, 0.28, dual_clip=1.5).metrics(logp_BT, entropy_BT, batch)
    gspo = Gspo(0.05, 0.08).metrics(logp_BT, entropy_BT, batch)
    for share in (dual["actor/pg_clipfrac"], dual["actor/pg_clipfrac_lower"], gspo["actor/pg_clipfrac"]):
        assert 0.02 < share < 0.98


@pytest.mark.parametrize("mode", ["token-mean", "seq-mean-token-mean"])
def test_cispo_with_the_weight_held(mode):
    """Moving old_BT along with log p keeps the ratio, and so differentiates what CISPO differentiates."""
    logp_BT, entropy_BT, batch = random_batch(1)
    objective, gap_BT = Cispo(1.3, 0.7, mode), batch.old_BT - logp_BT
    loss = objective(logp_BT, entropy_BT, batch)
    held = differences(lambda x: objective(x, entropy_BT, replace(batch, old_BT=x + gap_BT)).value, logp_BT)
    close(loss.c_logp_BT, held)


def test_gspo_credits_agree_when_the_advantage_is_constant_along_the_row():
    logp_BT, entropy_BT, batch = random_batch(2, token_credit=False)
    token = Gspo(0.05, 0.08, "token")(logp_BT, entropy_BT, batch)
    sequence = Gspo(0.05, 0.08, "sequence")(logp_BT, entropy_BT, batch)
    close(token.c_logp_BT, sequence.c_logp_BT)
    close(token.c_logp_BT, differences(lambda x: Gspo(0.05, 0.08)(x, entropy_BT, batch).value, logp_BT))


def test_gspo_token_credit_stays_on_its_token():
    advantage_BT = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    batch = vector(advantage_BT=advantage_BT, old_BT=LOGP_BT)
    token = Gspo(credit="token")(LOGP_BT, LOGP_BT, batch).c_logp_BT
    sequence = Gspo(credit="sequence")(LOGP_BT, LOGP_BT, batch).c_logp_BT
    close(token, [[0, -2 / 6, 0], [0, 0, 0]])
    close(sequence, [[-2 / 18, -2 / 18, -2 / 18], [0, 0, 0]])


def test_straight_through_kl_has_the_slope_of_k2():
    logp_BT, entropy_BT, batch = random_batch(4)
    plain = PpoClip()(logp_BT, entropy_BT, batch).c_logp_BT
    for estimator in ("k1+", "k3+"):
        ours = Regularised(PpoClip(), 0.3, estimator)(logp_BT, entropy_BT, batch)
        assert ours.value == Regularised(PpoClip(), 0.3, estimator[:2])(logp_BT, entropy_BT, batch).value
        close(ours.c_logp_BT - plain, 0.3 * (logp_BT - batch.reference_BT) * batch.loss_BT / batch.scale.tokens)


@pytest.mark.parametrize("clip", [0.3, None])
@pytest.mark.parametrize("mode", ["token-mean", "seq-mean-token-mean"])
def test_value_loss_is_differentiated(clip, mode):
    predicted_BT, _, batch = random_batch(5)
    loss = value_loss(predicted_BT, batch, clip, mode)
    close(loss.c_value_BT, differences(lambda x: value_loss(x, batch, clip, mode).value, predicted_BT))


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=settings.default.max_examples // 5)
@given(seed=st.integers(0, 999), data=st.data())
def test_any_partition_adds_up_to_the_whole(name, seed, data):
    objective = EVERY[name]
    logp_BT, entropy_BT, batch = random_batch(seed, rows=8)
    unit_B = batch.pair_B if objective.couples == "pair" else np.arange(len(batch))
    units = len(np.unique(unit_B))
    part_U = np.array(data.draw(st.lists(st.integers(0, 3), min_size=units, max_size=units)))
    whole, whole_metrics = objective(logp_BT, entropy_BT, batch), objective.metrics(logp_BT, entropy_BT, batch)
    value, metrics, coefficients = 0.0, dict.fromkeys(whole_metrics, 0.0), np.zeros_like(logp_BT)
    for part in np.unique(part_U):
        rows = np.flatnonzero(part_U[unit_B] == part)
        piece = objective(logp_BT[rows], entropy_BT[rows], batch.rows(rows))
        value += piece.value
        coefficients[rows] += piece.c_logp_BT
        for key, number in objective.metrics(logp_BT[rows], entropy_BT[rows], batch.rows(rows)).items():
            metrics[key] += number
    assert value == pytest.approx(whole.value, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(coefficients, whole.c_logp_BT, rtol=1e-12, atol=1e-15)
    assert metrics == pytest.approx(whole_metrics, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("garbage", [np.nan, -np.inf, np.inf, 1e300])
@pytest.mark.parametrize("name", EVERY)
def test_masked_tokens_do_not_exist(name, garbage):
    objective = EVERY[name]
    logp_BT, entropy_BT, batch = random_batch(7)
    spoil = {
        item.name: np.where(batch.loss_BT, getattr(batch, item.name), garbage)
        for item in fields(batch)
        if item.name in ("old_BT", "reference_BT", "advantage_BT", "weight_BT")
    }
    bad_logp_BT, bad_entropy_BT = (np.where(batch.loss_BT, x, garbage) for x in (logp_BT, entropy_BT))
    clean, dirty = (
        objective(logp_BT, entropy_BT, batch),
        objective(bad_logp_BT, bad_entropy_BT, replace(batch, **spoil)),
    )
    assert dirty.value == clean.value
    np.testing.assert_array_equal(dirty.c_logp_BT, clean.c_logp_BT)
    assert not dirty.c_logp_BT[~batch.loss_BT].any()
    metrics = objective.metrics(bad_logp_BT, bad_entropy_BT, replace(batch, **spoil))
    assert metrics == objective.metrics(logp_BT, entropy_BT, batch)


@pytest.mark.parametrize("name", [name for name in EVERY if "dpo" not in name and "pairs" not in name])
def test_a_batch_without_trained_tokens_is_worth_nothing(name):
    logp_BT, entropy_BT, batch = random_batch(3)
    empty = replace(batch, loss_BT=np.zeros_like(batch.loss_BT)).rescaled()
    loss = EVERY[name](logp_BT, entropy_BT, empty)
    assert loss.value == 0
    assert not loss.c_logp_BT.any()
    assert set(EVERY[name].metrics(logp_BT, entropy_BT, empty).values()) == {0.0}


@pytest.mark.parametrize("log_ratio", [-800.0, -25.0, 25.0, 800.0])
@pytest.mark.parametrize("objective", [PpoClip(dual_clip=3.0), PpoClip(), Gspo(), Cispo()])
def test_extreme_ratios_stay_finite(objective, log_ratio):
    loss = objective(LOGP_BT, LOGP_BT, vector(old_BT=LOGP_BT - log_ratio))
    assert np.isfinite(loss.value)
    assert np.isfinite(loss.c_logp_BT).all()


@pytest.mark.parametrize("objective", [PpoClip(), Gspo(), Cispo()])
def test_without_old_log_probs_the_update_is_on_policy(objective):
    alone = objective(LOGP_BT, LOGP_BT, vector(old_BT=None))
    told = objective(LOGP_BT, LOGP_BT, vector(old_BT=LOGP_BT))
    plain = Reinforce(objective.aggregation)(LOGP_BT, LOGP_BT, vector())
    np.testing.assert_array_equal(alone.c_logp_BT, told.c_logp_BT)
    np.testing.assert_allclose(alone.c_logp_BT, plain.c_logp_BT, rtol=1e-14)


@pytest.mark.parametrize("objective", [Reinforce(), PpoClip(), Gspo(), Cispo()])
def test_a_missing_advantage_is_named(objective):
    with pytest.raises(UserError, match=rf"{objective.name} needs batch.advantage_BT.*advantage estimator"):
        objective(LOGP_BT, LOGP_BT, vector(advantage_BT=None))


def test_other_missing_arrays_are_named():
    pair = {"pair_B": np.array([0, 0]), "chosen_B": np.array([True, False])}
    for array, objective, batch in [
        ("reference_BT", Regularised(PpoClip(), 0.1), vector(reference_BT=None)),
        ("reference_BT", Dpo(), vector(reference_BT=None, **pair)),
        ("pair_B", Dpo(), vector()),
        ("chosen_B", Dpo(), vector(pair_B=pair["pair_B"])),
    ]:
        with pytest.raises(UserError, match=array):
            objective(LOGP_BT, LOGP_BT, batch)
    Regularised(PpoClip(), kl_coef=0.0)(LOGP_BT, LOGP_BT, vector(reference_BT=None))
    for array in ("old_BT", "behaviour_BT"):
        given_arrays = {"old_BT": LOGP_BT, "behaviour_BT": LOGP_BT} | {array: None}
        with pytest.raises(UserError, match=array):
            Correction()(make(np.ones((2, 3), bool), **given_arrays))
    for array in ("value_BT", "return_BT"):
        with pytest.raises(UserError, match=array):
            value_loss(
                LOGP_BT, make(np.ones((2, 3), bool), **({"value_BT": LOGP_BT, "return_BT": LOGP_BT} | {array: None}))
            )


@pytest.mark.parametrize("chosen", [[True, True], [False, False]])
def test_a_torn_pair_is_an_error(chosen):
    batch = vector(pair_B=np.array([0, 0]), chosen_B=np.array(chosen))
    with pytest.raises(UserError, match="one chosen and one rejected"):
        Dpo()(LOGP_BT, LOGP_BT, batch)
    whole = vector(pair_B=np.array([0, 0]), chosen_B=np.array([True, False]))
    with pytest.raises(UserError, match="one chosen and one rejected"):
        Dpo()(LOGP_BT[:1], LOGP_BT[:1], whole.rows([0]))


def test_every_objective_is_a_recipe_table():
    assert set(registry.names("objective")) >= {"sft", "dpo", "reinforce", "ppo_clip", "gspo", "cispo"}
    for name in ("sft", "dpo", "reinforce", "ppo_clip", "gspo", "cispo"):
        table = TypeAdapter(registry.find("objective", name))
        assert table.validate_json("{}").name == name
        with pytest.raises(ValidationError):
            table.validate_json('{"no_such_key": 1}')
    for name, wrong in [
        ("ppo_clip", {"dual_clip": 0.5}),
        ("dpo", {"label_smoothing": 0.5}),
        ("sft", {"aggregation": "x"}),
    ]:
        with pytest.raises(ValidationError):
            TypeAdapter(registry.find("objective", name)).validate_json(json.dumps(wrong))
    with pytest.raises(UserError, match="ratio_low"):
        Cispo(1.0, 2.0)
