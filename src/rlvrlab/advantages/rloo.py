"""RLOO: each answer against the mean of the others (arXiv 2402.14740).

    A_i = r_i − mean_{j≠i} r_j = (r_i − mean(group)) · n / (n − 1)

Assumption: answers are independent, so the baseline does not depend on the answer it is taken from: unbiased.
Trap: n is the number of judged answers, not of those drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.advantages.grpo import GroupBaseline, groups_of, outcome
from rlvrlab.batch import Advantages, RewardBatch
from rlvrlab.registry import register


@register("advantage", "rloo")
@dataclass(frozen=True)
class Rloo(GroupBaseline):
    """Leave-one-out baseline."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Leave-one-out advantage."""
        groups = groups_of(batch)
        size_B = groups.size_G[groups.index_B]
        unbias_B = np.where(size_B > 1, size_B / np.maximum(size_B - 1, 1), 1.0)
        return outcome(groups.deviation_B(groups.mean_B(), self.singleton) * unbias_B, batch, groups)
