"""OPO: the variance-optimal baseline under a length proxy (arXiv 2505.23585).

    A_i = r_i − Σ_j l_j r_j / Σ_j l_j              l = trained tokens of the answer

Assumption: the squared gradient norm of an answer grows like its length, and the update is on-policy.
Trap: the mean advantage of a group is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.advantages.grpo import GroupBaseline, groups_of, outcome
from rlvrlab.batch import Advantages, RewardBatch
from rlvrlab.registry import register


@register("advantage", "opo")
@dataclass(frozen=True)
class Opo(GroupBaseline):
    """Length-weighted baseline."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Reward minus the length-weighted mean of the group."""
        groups = groups_of(batch)
        length_B = batch.mask_BT.sum(axis=1).astype(np.float64)
        return outcome(groups.deviation_B(groups.mean_B(length_B), self.singleton), batch, groups)
