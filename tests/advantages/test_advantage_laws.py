"""What every advantage estimator must obey, whatever the rewards."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rlvrlab import registry
from rlvrlab.advantages.gae import Gae
from rlvrlab.advantages.grpo import DrGrpo, Grpo
from rlvrlab.advantages.opo import Opo
from rlvrlab.advantages.reinforce_pp import ReinforcePP, ReinforcePPBaseline
from rlvrlab.advantages.rloo import Rloo
from rlvrlab.batch import RewardBatch

GROUPED = {
    "grpo": Grpo(),
    "grpo batch": Grpo("batch"),
    "dr_grpo": DrGrpo(),
    "rloo": Rloo(),
    "opo": Opo(),
    "reinforce_pp_baseline": ReinforcePPBaseline(),
}
EVERY = GROUPED | {
    "grpo verl": Grpo(singleton="verl"),
    "rloo verl": Rloo("verl"),
    "baseline verl": ReinforcePPBaseline("verl"),
    "reinforce_pp": ReinforcePP(0.9),
    "gae": Gae(0.9, 0.8),
    "gae raw": Gae(0.9, 0.8, whiten=False),
}
NAMES = {"grpo", "dr_grpo", "rloo", "reinforce_pp", "reinforce_pp_baseline", "opo", "gae"}
REWARDS = st.sampled_from([0.0, 1.0]) | st.floats(-10, 10).map(lambda x: round(x, 3))


@st.composite
def batches(draw, width=4):
    """Rows with holes in the mask, groups of any size, some unjudged with NaN as their reward."""
    rows = draw(st.integers(1, 9))

    def column(values):
        return np.array(draw(st.lists(values, min_size=rows, max_size=rows)))

    mask_BT = np.array(
        draw(st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=rows, max_size=rows))
    )
    judged_B = column(st.sampled_from([True, True, True, False]))
    reward_BT = np.zeros((rows, width))
    reward_BT[:, -1] = np.where(judged_B, column(REWARDS), np.nan)
    value_BT = np.random.default_rng(rows).normal(size=(rows, width))
    return RewardBatch(reward_BT, mask_BT, column(st.integers(0, 3)), judged_B, value_BT)


def shifted(batch, by_B):
    reward_BT = batch.reward_BT.copy()
    reward_BT[:, -1] += by_B
    return batch._replace(reward_BT=reward_BT)


def taken(batch, rows):
    parts = {name: part_B[rows] for name, part_B in batch.parts.items()}
    return RewardBatch(*(x[rows] for x in batch[:-1]), parts)


def same(actual_BT, expected_BT):
    np.testing.assert_allclose(actual_BT, expected_BT, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=settings.default.max_examples // 2)
@given(batch=batches(), seed=st.integers(0, 99))
def test_finite_masked_unjudged_and_permuted(name, batch, seed):
    estimator = EVERY[name]
    result = estimator(batch)
    assert np.isfinite(result.advantage_BT).all()
    assert not result.advantage_BT[~batch.mask_BT].any()
    assert not result.advantage_BT[~batch.judged_B].any()
    order = np.random.default_rng(seed).permutation(len(batch.group_B))
    same(estimator(taken(batch, order)).advantage_BT, result.advantage_BT[order])


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=settings.default.max_examples // 2)
@given(batch=batches())
def test_unjudged_rows_are_as_if_never_drawn(name, batch):
    estimator, judged = EVERY[name], np.flatnonzero(batch.judged_B)
    result = estimator(batch)
    assert result.counts["unjudged_rows"] == len(batch.judged_B) - len(judged)
    same(estimator(taken(batch, judged)).advantage_BT, result.advantage_BT[judged])


@pytest.mark.parametrize("name", GROUPED)
@settings(max_examples=settings.default.max_examples // 2)
@given(batch=batches(), shift=st.floats(-5, 5).map(lambda x: round(x, 2)))
def test_a_constant_added_to_a_group_changes_nothing(name, batch, shift):
    """`grpo batch` divides by the spread of all rewards, so there the whole batch is shifted."""
    by_B = shift if name == "grpo batch" else np.where(batch.group_B == 1, shift, 0.0)
    same(GROUPED[name](shifted(batch, by_B)).advantage_BT, GROUPED[name](batch).advantage_BT)


@given(batch=batches(), factor=st.sampled_from([0.25, 2.0, 8.0]))
def test_scale(batch, factor):
    bigger = batch._replace(reward_BT=batch.reward_BT * factor)
    for estimator in (DrGrpo(), Rloo(), Opo(), DrGrpo("verl")):
        same(estimator(bigger).advantage_BT, factor * estimator(batch).advantage_BT)
    for estimator in (Grpo(epsilon=1e-12), Grpo("batch", epsilon=1e-12)):
        same(estimator(bigger).advantage_BT, estimator(batch).advantage_BT)


@given(batch=batches())
def test_group_means_and_spread(batch):
    """Mean 0 in every group; GRPO's standard deviation is 1 in groups with signal; RLOO is leave-one-out."""
    full = batch._replace(mask_BT=np.ones_like(batch.mask_BT))
    grpo_B, rloo_B = (estimator(full).advantage_BT[:, 0] for estimator in (Grpo(epsilon=1e-12), Rloo()))
    reward_B = full.reward_BT[:, -1]
    for group in np.unique(full.group_B):
        rows = np.flatnonzero((full.group_B == group) & full.judged_B)
        if len(rows) < 2:
            continue
        assert grpo_B[rows].mean() == pytest.approx(0, abs=1e-9)
        assert rloo_B[rows].mean() == pytest.approx(0, abs=1e-9)
        assert grpo_B[rows].std(ddof=1) == pytest.approx(float(np.ptp(reward_B[rows]) > 0), abs=1e-6)
        for row in rows:
            others = reward_B[rows[rows != row]]
            assert rloo_B[row] == pytest.approx(reward_B[row] - others.mean(), abs=1e-9)


@given(batch=batches())
def test_opo_baseline_is_the_length_weighted_mean(batch):
    advantage_BT, length_B = Opo()(batch).advantage_BT, batch.mask_BT.sum(axis=1)
    for group in np.unique(batch.group_B):
        rows = (batch.group_B == group) & batch.judged_B
        if rows.sum() > 1:
            assert advantage_BT[rows].sum() == pytest.approx(0, abs=1e-8), length_B


@pytest.mark.parametrize("name", ["reinforce_pp", "gae", "reinforce_pp_baseline"])
@given(batch=batches())
def test_whitened_tokens_have_mean_zero(name, batch):
    judged = batch._replace(judged_B=np.ones_like(batch.judged_B), reward_BT=np.nan_to_num(batch.reward_BT))
    whole = judged._replace(group_B=np.zeros_like(batch.group_B))
    tokens = EVERY[name](whole).advantage_BT[batch.mask_BT]
    if len(tokens):
        assert tokens.mean() == pytest.approx(0, abs=1e-9)
        assert tokens.std(ddof=1) <= 1 + 1e-9 if len(tokens) > 1 else tokens == 0


@given(batch=batches())
def test_gae_limits(batch):
    """λ = 1 is the discounted return minus the value, λ = 0 the one-step surprise."""
    whole = batch._replace(mask_BT=np.ones_like(batch.mask_BT))
    reward_BT = np.nan_to_num(whole.reward_BT)
    steps = np.arange(reward_BT.shape[1])
    discount_TT = np.triu(0.9 ** np.maximum(steps[None, :] - steps[:, None], 0))
    judged = whole.judged_B
    monte_carlo = Gae(0.9, 1.0, whiten=False)(whole)
    same(monte_carlo.return_BT[judged], (reward_BT @ discount_TT.T)[judged])
    one_step = Gae(0.9, 0.0, whiten=False)(whole)
    next_BT = np.hstack([whole.value_BT[:, 1:], np.zeros((len(judged), 1))])
    same(one_step.return_BT[judged], (reward_BT + 0.9 * next_BT)[judged])


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_or_wholly_unjudged_batch(name):
    nothing = RewardBatch(
        np.full((3, 2), np.nan), np.ones((3, 2), bool), np.array([0, 0, 1]), np.zeros(3, bool), np.ones((3, 2))
    )
    result = EVERY[name](nothing)
    assert not result.advantage_BT.any()
    assert (result.counts["groups"], result.counts["empty_groups"], result.counts["unjudged_rows"]) == (2, 2, 3)
    none = EVERY[name](taken(nothing, slice(0, 0)))
    assert none.advantage_BT.shape == (0, 2)
    assert set(none.counts.values()) == {0}


def test_every_advantage_is_a_recipe_table():
    assert set(registry.names("advantage")) >= NAMES
    for name in NAMES:
        table = TypeAdapter(registry.find("advantage", name))
        assert table.validate_json("{}").name == name
        with pytest.raises(ValidationError):
            table.validate_json('{"no_such_key": 1}')
    for name, wrong in [("grpo", {"epsilon": 0.0}), ("gae", {"gamma": 1.1}), ("rloo", {"singleton": "keep"})]:
        with pytest.raises(ValidationError):
            TypeAdapter(registry.find("advantage", name)).validate_json(json.dumps(wrong))
