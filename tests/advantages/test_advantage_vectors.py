"""Numbers that verl 0.9.1 printed, TRL's variants of them, and GAE by hand.

Rewards 1 0 0 1 | .5 .5 .5 .5 | 1 in three groups, answers of length 3 2 4 1 2 2 2 2 3.
"""

from __future__ import annotations

import numpy as np
import pytest

from rlvrlab.advantages.base import whitened_BT
from rlvrlab.advantages.gae import Gae
from rlvrlab.advantages.grpo import DrGrpo, Grpo
from rlvrlab.advantages.opo import Opo
from rlvrlab.advantages.reinforce_pp import ReinforcePP, ReinforcePPBaseline
from rlvrlab.advantages.rloo import Rloo
from rlvrlab.batch import RewardBatch
from rlvrlab.errors import UserError

REWARD_B = np.array([1, 0, 0, 1, 0.5, 0.5, 0.5, 0.5, 1])
LENGTH_B = np.array([3, 2, 4, 1, 2, 2, 2, 2, 3])
GROUP_B = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])


def outcome_batch(reward_B=REWARD_B, length_B=LENGTH_B, group_B=GROUP_B, judged_B=None, value_BT=None):
    mask_BT = np.arange(max(length_B))[None, :] < np.asarray(length_B)[:, None]
    reward_BT = np.zeros(mask_BT.shape)
    reward_BT[np.arange(len(length_B)), np.asarray(length_B) - 1] = reward_B
    judged_B = np.ones(len(length_B), bool) if judged_B is None else np.asarray(judged_B)
    return RewardBatch(reward_BT, mask_BT, np.asarray(group_B), judged_B, value_BT)


@pytest.mark.parametrize(
    ("estimator", "group_a", "group_b", "lone"),
    [
        pytest.param(Grpo(singleton="verl"), 0.866024 * np.array([1, -1, -1, 1]), 0, 0.999999, id="grpo verl"),
        pytest.param(Grpo(), 0.866024 * np.array([1, -1, -1, 1]), 0, 0, id="grpo"),
        pytest.param(Grpo(epsilon=1e-4), 0.5 / (3**-0.5 + 1e-4) * np.array([1, -1, -1, 1]), 0, 0, id="grpo trl"),
        pytest.param(Grpo("none", singleton="verl"), np.array([0.5, -0.5, -0.5, 0.5]), 0, 1, id="grpo none"),
        pytest.param(DrGrpo("verl"), np.array([0.5, -0.5, -0.5, 0.5]), 0, 1, id="dr_grpo verl"),
        pytest.param(DrGrpo(), np.array([0.5, -0.5, -0.5, 0.5]), 0, 0, id="dr_grpo"),
        pytest.param(Rloo("verl"), np.array([2, -2, -2, 2]) / 3, 0, 1, id="rloo verl"),
        pytest.param(Rloo(), np.array([2, -2, -2, 2]) / 3, 0, 0, id="rloo"),
        pytest.param(Opo("verl"), np.array([0.6, -0.4, -0.4, 0.6]), 0, 1, id="opo verl"),
        pytest.param(Opo(), np.array([0.6, -0.4, -0.4, 0.6]), 0, 0, id="opo"),
        pytest.param(
            ReinforcePPBaseline("verl"),
            np.array([0.785574, -1.155255, -1.155255, 0.785574]),
            -0.184841,
            1.755988,
            id="reinforce_pp_baseline verl",
        ),
    ],
)
def test_outcome_advantages(estimator, group_a, group_b, lone):
    batch = outcome_batch()
    result = estimator(batch)
    expected_B = np.concatenate([group_a, [group_b] * 4, [lone]])
    np.testing.assert_allclose(result.advantage_BT, expected_B[:, None] * batch.mask_BT, atol=1e-6)
    assert result.return_BT is None
    assert result.counts == {
        "groups": 3,
        "unjudged_rows": 0,
        "singleton_groups": 1,
        "zero_variance_groups": 1,
        "empty_groups": 0,
    }


def test_trl_batch_scale():
    result = Grpo("batch", epsilon=1e-4)(outcome_batch()).advantage_BT[:, 0]
    expected_B = np.array([0.5, -0.5, -0.5, 0.5, 0, 0, 0, 0, 0]) / (REWARD_B.std(ddof=1) + 1e-4)
    np.testing.assert_allclose(result, expected_B, rtol=1e-12)


def test_baseline_without_the_lone_answer_is_as_if_it_were_not_there():
    with_lone = ReinforcePPBaseline()(outcome_batch()).advantage_BT
    without = ReinforcePPBaseline()(outcome_batch(REWARD_B[:8], LENGTH_B[:8], GROUP_B[:8])).advantage_BT
    np.testing.assert_allclose(with_lone[:8], without, rtol=1e-12)
    assert not with_lone[8].any()


def test_reinforce_pp():
    result = ReinforcePP()(outcome_batch()).advantage_BT
    np.testing.assert_allclose(result[0], [1.183452, 1.183452, 1.183452, 0], atol=1e-6)
    np.testing.assert_allclose(result[1], [-1.301798, -1.301798, 0, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("gamma", "lam", "returns"), [(0.99, 0.9, [0.840144, 0.9207, 1.0]), (1.0, 0.95, [0.92675, 0.965, 1.0])]
)
def test_gae_returns(gamma, lam, returns):
    batch = outcome_batch([1.0], [3], [0], value_BT=np.array([[0.1, 0.2, 0.3]]))
    raw = Gae(gamma, lam, whiten=False)(batch)
    np.testing.assert_allclose(raw.return_BT[0], returns, atol=1e-6)
    np.testing.assert_allclose(raw.advantage_BT, raw.return_BT - batch.value_BT)
    white = Gae(gamma, lam)(batch)
    np.testing.assert_allclose(white.advantage_BT, whitened_BT(raw.advantage_BT, batch.mask_BT))
    np.testing.assert_array_equal(white.return_BT, raw.return_BT)


def with_holes(row, width):
    """A row of trained tokens with two masked positions after the first and padding at the end."""
    out = np.full(width, np.nan)
    out[[0, 3, 4]] = row
    return out


@pytest.mark.parametrize("estimator", [Gae(0.9, 0.8), Gae(0.9, 0.8, whiten=False), ReinforcePP(0.9)])
def test_tool_output_takes_no_time(estimator):
    """A row with tool output in the middle gets what the same row without it gets."""
    reward, value = np.array([0.2, -0.1, 1.0]), np.array([0.3, 0.5, 0.1])
    plain = estimator(RewardBatch(reward[None], np.ones((1, 3), bool), np.array([0]), np.array([True]), value[None]))
    mask_BT = ~np.isnan(with_holes(reward, 7))[None]
    holes = estimator(
        RewardBatch(
            np.nan_to_num(with_holes(reward, 7))[None],
            mask_BT,
            np.array([0]),
            np.array([True]),
            np.where(mask_BT, with_holes(value, 7), 1e9),
        )
    )
    np.testing.assert_allclose(holes.advantage_BT[mask_BT], plain.advantage_BT[0], rtol=1e-12)
    assert not holes.advantage_BT[~mask_BT].any()
    if plain.return_BT is not None:
        np.testing.assert_allclose(holes.return_BT[mask_BT], plain.return_BT[0], rtol=1e-12)
        assert not holes.return_BT[~mask_BT].any()


@pytest.mark.parametrize("estimator", [Gae(0.9, 0.8, whiten=False), ReinforcePP(0.9)])
def test_a_reward_on_tool_output_counts_for_the_token_before(estimator):
    mask_BT, one, yes = np.array([[True, False, True]]), np.array([0]), np.array([True])
    value_BT = np.array([[0.3, 0.0, 0.4]])
    on_tool = estimator(RewardBatch(np.array([[0.0, 1.0, 0.5]]), mask_BT, one, yes, value_BT))
    on_token = estimator(RewardBatch(np.array([[1.0, 0.0, 0.5]]), mask_BT, one, yes, value_BT))
    np.testing.assert_allclose(on_tool.advantage_BT, on_token.advantage_BT, rtol=1e-12)
    assert on_tool.advantage_BT[0, 0] != 0


def test_gae_leaves_the_critic_alone_on_unjudged_rows():
    value_BT = np.array([[0.1, 0.2], [0.4, 0.6]])
    batch = outcome_batch([1.0, np.nan], [2, 2], [0, 1], [True, False], value_BT)
    result = Gae()(batch)
    np.testing.assert_array_equal(result.return_BT[1], value_BT[1])
    assert not result.advantage_BT[1].any()
    alone = Gae()(outcome_batch([1.0], [2], [0], value_BT=value_BT[:1]))
    np.testing.assert_allclose(result.advantage_BT[0], alone.advantage_BT[0])


def test_what_is_missing_is_named():
    with pytest.raises(UserError, match="gae needs value_BT"):
        Gae()(outcome_batch())
    with pytest.raises(UserError, match=r"rows \[1\] is not finite"):
        Grpo()(outcome_batch([1.0, np.nan], [1, 1], [0, 0]))


def test_counts_by_reason():
    batch = outcome_batch(
        [1, 0, np.nan, np.nan, 1, np.nan, 2, 2],
        [1] * 8,
        [10, 10, 11, 11, 12, 12, 13, 13],
        [True, True, False, False, True, False, True, True],
    )
    for estimator in (Grpo(), DrGrpo(), Rloo(), Opo(), ReinforcePP(), ReinforcePPBaseline()):
        assert estimator(batch).counts == {
            "groups": 4,
            "unjudged_rows": 3,
            "singleton_groups": 1,
            "zero_variance_groups": 1,
            "empty_groups": 1,
        }


def test_one_reward_alone_is_not_scaled_by_the_batch():
    batch = outcome_batch([0.75], [2], [0])
    alone = Grpo(scale="batch", singleton="verl", epsilon=1e-9)(batch).advantage_BT
    np.testing.assert_allclose(alone, [[0.75, 0.75]])
