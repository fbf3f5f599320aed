"""Dr. GRPO's advantage (arXiv 2503.20783).

    A_i = r_i − mean(group)

Assumption: paired with aggregation "seq-mean-token-sum-norm", which takes the answer's length out as well.
Trap: without the division the size of an advantage is that of the reward; retune the learning rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.advantages.groups import Singleton, groups_of, outcome
from rlvrlab.batch import Advantages, RewardBatch
from rlvrlab.registry import register


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
