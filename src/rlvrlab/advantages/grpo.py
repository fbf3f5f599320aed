"""GRPO's group advantage (arXiv 2402.03300) and Dr. GRPO's (arXiv 2503.20783).

    A_i = (r_i − mean(group)) / (std(group) + ε)             std with n − 1

scale = "batch" divides by the spread of all judged rewards, "none" not at all: that is dr_grpo, which belongs to the
aggregation "seq-mean-token-sum-norm" that takes the answer's length out as well.
Assumption: rewards of a group are exchangeable: same problem, same policy.
Trap: dividing by the group's std weighs very easy and very hard problems up; a group of 8 with one success gets
advantage 2.5. ε is 1e-6 in verl and 1e-4 in TRL.
Trap: without the division the size of an advantage is that of the reward; retune the learning rate.
Trap: verl gives a lone answer A = r / (1 + ε); here it is 0 unless singleton = "verl".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
