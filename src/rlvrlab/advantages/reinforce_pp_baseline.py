"""REINFORCE++-baseline: centre in the group, whiten over the batch (arXiv 2501.03262).

    D_i = r_i − mean(group)           A = whiten over trained tokens (D)

Assumption: several answers per problem. The group removes the problem's difficulty, the batch sets the scale.
Trap: the mean is over tokens, so a group without any spread still gets a small non-zero advantage when right and wrong
answers differ in length. A lone answer takes no part unless singleton = "verl".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.advantages.groups import Singleton, groups_of
from rlvrlab.advantages.whiten import whitened_BT
from rlvrlab.batch import Advantages, RewardBatch
from rlvrlab.registry import register


@register("advantage", "reinforce_pp_baseline")
@dataclass(frozen=True)
class ReinforcePPBaseline(AdvantageEstimator):
    """Group-centred reward on the scale of the batch."""

    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw reward as in verl."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Whitened deviation."""
        groups = groups_of(batch)
        deviation_B = groups.deviation_B(groups.mean_B(), self.singleton)
        counted_BT = batch.mask_BT & groups.signal_B(self.singleton)[:, None]
        spread_BT = np.broadcast_to(deviation_B[:, None], batch.mask_BT.shape)
        return Advantages(whitened_BT(spread_BT, counted_BT), None, groups.counts())
