"""GDPO's per-part normalisation: hand-counted cases, what is refused, and that the filter keeps what it can use."""

import numpy as np
import pytest

from rlvrlab.advantages.gdpo import Gdpo
from rlvrlab.batch import RewardBatch
from rlvrlab.errors import UserError
from rlvrlab.train.batches import LIVE, sort_groups
from rlvrlab.types import Completion, Problem, Reward, Rollout, Verdict


def batch_of_parts(group, judged=None, **parts):
    rows = len(group)
    judged_B = np.ones(rows, bool) if judged is None else np.array(judged)
    return RewardBatch(
        np.zeros((rows, 2)),
        np.ones((rows, 2), bool),
        np.array(group),
        judged_B,
        None,
        {k: np.array(v, float) for k, v in parts.items()},
    )


def test_a_part_with_a_large_spread_weighs_no_more_than_another():
    batch = batch_of_parts([0, 0, 0, 0], correct=[1, 0, 1, 0], length=[0, 100, 100, 0])
    advantage_B = Gdpo()(batch).advantage_BT[:, 0]
    assert advantage_B[:2] == pytest.approx([0, 0], abs=1e-4)
    assert advantage_B[2] == pytest.approx(-advantage_B[3]) and advantage_B[2] > 1


def test_constant_parts_and_the_unjudged_say_nothing():
    batch = batch_of_parts([0, 0, 0, 1], [True, False, True, True], a=[1, 9, 0, 3], b=[5, 5, 5, 0])
    advantage_B = Gdpo({"b": 100.0})(batch).advantage_BT[:, 0]
    assert advantage_B[1] == 0 and advantage_B[3] == pytest.approx(0, abs=1e-9)
    assert advantage_B[0] == pytest.approx(-advantage_B[2]) and advantage_B[0] > 0
    assert not Gdpo()(batch._replace(judged_B=np.zeros(4, bool))).advantage_BT.any()


def test_a_reward_without_parts_and_an_unknown_weight_are_refused():
    with pytest.raises(UserError, match="no named parts"):
        Gdpo()(batch_of_parts([0, 0]))
    with pytest.raises(UserError, match=r"'lenght'.*'length'"):
        Gdpo({"lenght": 1.0})(batch_of_parts([0, 0], length=[1, 2]))


def test_equal_totals_of_different_parts_are_signal_only_where_parts_count():
    problem = Problem("p", "s", "k", "q")
    rows = [
        Rollout(str(i), "g", problem, (), Completion("", (), ()), Verdict(False), Reward(1.0, parts))
        for i, parts in enumerate(({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}))
    ]
    assert sort_groups(rows).reasons[LIVE] == 0
    assert sort_groups(rows, by_parts=True).reasons[LIVE] == 1


def test_a_part_without_a_weight_weighs_one():
    batch = batch_of_parts([0, 0, 0, 0], a=[1, 0, 1, 0], b=[0, 3, 1, 0])
    np.testing.assert_array_equal(Gdpo({"a": 2.0})(batch).advantage_BT, Gdpo({"a": 2.0, "b": 1.0})(batch).advantage_BT)
