"""REINFORCE++ (arXiv 2501.03262): what is left to earn, whitened over the tokens of the batch; with and without groups.

    reinforce_pp             R_t = r_t + γ R_{t+1}             A_t = (R_t − mean R) / std R
    reinforce_pp_baseline    D_i = r_i − mean(group)           A = whiten over trained tokens (D)

Array suffixes: B rows, T completion positions.
Assumption: the KL penalty, if any, is in the reward. Without a baseline one answer per problem is enough; with it the
group removes the problem's difficulty, and the batch sets the scale.
A token without loss (tool output) takes no time step; a reward standing on it counts for the trained tokens before.
Trap: verl drops a reward that stands on a token without loss.
Trap: the baseline's mean is over tokens, so a group without any spread still gets a small non-zero advantage when right
and wrong answers differ in length. A lone answer takes no part unless singleton = "verl".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator, whitened_BT
from rlvrlab.advantages.gae import differences_BT
from rlvrlab.advantages.grpo import GroupBaseline, groups_of, judged_rewards_BT
from rlvrlab.batch import Advantages, RewardBatch
from rlvrlab.registry import register
from rlvrlab.types import Fraction01


@register("advantage", "reinforce_pp")
@dataclass(frozen=True)
class ReinforcePP(AdvantageEstimator):
    """Return of each token against the whole batch."""

    gamma: Fraction01 = 1.0
    """Discount per trained token."""

    needs_groups: ClassVar[bool] = False

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Whitened return-to-go."""
        counted_BT = batch.mask_BT & batch.judged_B[:, None]
        reward_BT = judged_rewards_BT(batch)
        return_BT = differences_BT(reward_BT, np.zeros_like(reward_BT), batch.mask_BT, self.gamma, lam=1.0)
        return Advantages(whitened_BT(return_BT, counted_BT), None, groups_of(batch).counts())


@register("advantage", "reinforce_pp_baseline")
@dataclass(frozen=True)
class ReinforcePPBaseline(GroupBaseline):
    """Group-centred reward on the scale of the batch."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Whitened deviation."""
        groups = groups_of(batch)
        deviation_B = groups.deviation_B(groups.mean_B(), self.singleton)
        defined_B = groups.judged_B & ((groups.size_G[groups.index_B] > 1) | (self.singleton == "verl"))
        counted_BT = batch.mask_BT & defined_B[:, None]
        spread_BT = np.broadcast_to(deviation_B[:, None], batch.mask_BT.shape)
        return Advantages(whitened_BT(spread_BT, counted_BT), None, groups.counts())
