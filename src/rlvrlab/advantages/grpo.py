"""An answer against the other answers to its problem: GRPO, Dr. GRPO, RLOO and OPO.

    grpo      A_i = (r_i − mean(group)) / (std(group) + ε)            std with n − 1             arXiv 2402.03300
    dr_grpo   A_i = r_i − mean(group)                                                            arXiv 2503.20783
    rloo      A_i = r_i − mean_{j≠i} r_j = (r_i − mean(group)) · n / (n − 1)                     arXiv 2402.14740
    opo       A_i = r_i − Σ_j l_j r_j / Σ_j l_j                       l = trained tokens         arXiv 2505.23585

GRPO's scale = "batch" divides by the spread of all judged rewards, "none" not at all, which is dr_grpo. Dr. GRPO also
takes the answer's length out: pair it with aggregation "seq-mean-token-sum-norm".
Assumption: rewards of a group are exchangeable: same problem, same policy. RLOO: answers are independent, so the
baseline does not depend on the answer it is taken from: unbiased. OPO: the squared gradient norm of an answer grows
like its length, and the update is on-policy; then its baseline has the least variance.
Trap: dividing by the group's std weighs very easy and very hard problems up; a group of 8 with one success gets
advantage 2.5. ε is 1e-6 in verl and 1e-4 in TRL. Without the division the size of an advantage is that of the reward;
retune the learning rate.
Trap: verl gives a lone answer A = r / (1 + ε); here it is 0 unless singleton = "verl".
Trap: RLOO's n is the number of judged answers, not of those drawn. OPO's mean advantage of a group is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.advantages.groups import Singleton, groups_of, outcome
from rlvrlab.batch import Advantages, RewardBatch
from rlvrlab.registry import register
from rlvrlab.types import Positive


@register("advantage", "grpo")
@dataclass(frozen=True)
class Grpo(AdvantageEstimator):
    """Better or worse than the other answers to the same problem, in standard deviations."""

    scale: Literal["group", "batch", "none"] = "group"
    """Whose standard deviation divides."""
    epsilon: Positive = 1e-6
    """Added to the standard deviation."""
    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw reward as in verl."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Group-relative advantage."""
        groups = groups_of(batch)
        deviation_B = groups.deviation_B(groups.mean_B(), self.singleton)
        if self.scale == "group":
            deviation_B = deviation_B / (groups.std_B() + self.epsilon)
        elif self.scale == "batch":
            judged = groups.score_B[groups.judged_B]
            # A single reward has no spread; 1 leaves its advantage as it is.
            spread = float(judged.std(ddof=1)) if len(judged) > 1 else 1.0
            deviation_B = deviation_B / (spread + self.epsilon)
        return outcome(deviation_B, batch, groups)


@register("advantage", "dr_grpo")
@dataclass(frozen=True)
class DrGrpo(AdvantageEstimator):
    """Better or worse than the other answers to the same problem, in units of reward."""

    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw reward as in verl."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Centred reward."""
        groups = groups_of(batch)
        return outcome(groups.deviation_B(groups.mean_B(), self.singleton), batch, groups)


@register("advantage", "rloo")
@dataclass(frozen=True)
class Rloo(AdvantageEstimator):
    """Leave-one-out baseline."""

    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw reward as in verl."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Leave-one-out advantage."""
        groups = groups_of(batch)
        size_B = groups.size_G[groups.index_B]
        unbias_B = np.where(size_B > 1, size_B / np.maximum(size_B - 1, 1), 1.0)
        return outcome(groups.deviation_B(groups.mean_B(), self.singleton) * unbias_B, batch, groups)


@register("advantage", "opo")
@dataclass(frozen=True)
class Opo(AdvantageEstimator):
    """Length-weighted baseline."""

    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw reward as in verl."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Reward minus the length-weighted mean of the group."""
        groups = groups_of(batch)
        length_B = batch.mask_BT.sum(axis=1).astype(np.float64)
        return outcome(groups.deviation_B(groups.mean_B(length_B), self.singleton), batch, groups)
