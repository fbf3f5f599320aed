"""GDPO: normalise each reward part within its group before adding them up (arXiv 2601.05242).

    A_ik = (r_ik − mean_k(group)) / (std_k(group) + ε)        A = whiten over trained tokens (Σ_k w_k A_ik)

Summing parts first lets the part with the largest spread decide, and makes different answers look alike: (right, badly
formed) and (wrong, well formed) may have the same sum. Here no part drowns another.
Assumption: the reward has named parts; the total itself is not used.
Trap: a group whose totals are equal may still have signal; the loop's filter looks at the parts (`by_parts`).
Trap: KL in the reward is not a part and would be lost; put it in the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator, whitened_BT
from rlvrlab.advantages.grpo import Grpo, Singleton, groups_of
from rlvrlab.batch import Advantages, RewardBatch
from rlvrlab.errors import UserError, suggestion
from rlvrlab.registry import register
from rlvrlab.types import Positive


@register("advantage", "gdpo")
@dataclass(frozen=True)
class Gdpo(AdvantageEstimator):
    """Each reward part in standard deviations of its group, then their weighted sum."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of a part by its name; 1 for those not named."""
    epsilon: Positive = 1e-6
    """Added to the standard deviations."""
    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw parts as in verl."""

    by_parts: ClassVar[bool] = True

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Advantage of each answer, the same on all its tokens; a part that is equal within a group is silent there."""
        if not batch.parts:
            raise UserError(
                "advantage gdpo: the reward has no named parts; take reward.type weighted or advantage grpo"
            )
        unknown = sorted(set(self.weights) - set(batch.parts))
        if unknown:
            near = suggestion(unknown[0], batch.parts)
            raise UserError(f"advantage gdpo: weights: the reward has no part {unknown[0]!r}{near}")
        estimator = Grpo(epsilon=self.epsilon, singleton=self.singleton)
        total_BT = np.zeros(batch.mask_BT.shape)
        for name, part_B in batch.parts.items():
            alone = batch._replace(reward_BT=part_B[:, None])
            total_BT += self.weights.get(name, 1.0) * estimator(alone).advantage_BT
        counted_BT = batch.mask_BT & batch.judged_B[:, None]
        return Advantages(whitened_BT(total_BT, counted_BT), None, groups_of(batch).counts())
