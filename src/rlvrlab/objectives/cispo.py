"""CISPO: clip the importance weight, keep every token's gradient (MiniMax-M1, arXiv 2506.13585).

    loss_t = −sg(clip(ρ_t, ratio_low, ratio_high)) A_t log p_t         sg = held constant under the gradient
    coefficient −W w clip(ρ) A: never 0 because of the clip, unlike PPO's

Bounds are on ρ itself. TRL: ratio_high = epsilon_high (5.0), no lower bound. verl: ratio_low = 1 − clip_ratio_low,
ratio_high = 1 + clip_ratio_high.
Assumption: as for ppo_clip, old_BT are the trainer's log-probs at collection.
Trap: the coefficient is not the derivative of the value, because ρ is held constant; do not compare values of runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.objectives.base import PolicyObjective, aggregate, masked, needed, policy_metrics, token_ratio
from rlvrlab.registry import register
from rlvrlab.types import Aggregation, Loss, NonNegative, Positive


@register("objective", "cispo")
@dataclass(frozen=True)
class Cispo(PolicyObjective):
    """REINFORCE with a bounded importance weight."""

    ratio_high: Positive = 5.0
    """Upper bound of the weight."""
    ratio_low: NonNegative | None = None
    """Lower bound of the weight; None leaves small ratios alone."""
    aggregation: Aggregation = "token-mean"
    """How token losses become one number."""

    def __post_init__(self) -> None:
        if self.ratio_low is not None and self.ratio_low > self.ratio_high:
            raise UserError(f"objective cispo: ratio_low {self.ratio_low} is above ratio_high {self.ratio_high}")

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """Weighted policy gradient."""
        weight_BT = self._clipped_BT(token_ratio(logp_BT, batch).value_BT)
        slope_BT = -weight_BT * needed(batch, "advantage_BT", "objective cispo")
        return aggregate(slope_BT * masked(logp_BT, batch), slope_BT, batch, self.aggregation, corrected=True)

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """`actor/pg_clipfrac`: share of tokens whose weight was bounded, whatever the sign of the advantage."""
        ratio_BT = token_ratio(logp_BT, batch).value_BT
        bounded_BT = self._clipped_BT(ratio_BT) != ratio_BT
        return policy_metrics(logp_BT, entropy_BT, batch, pg_clipfrac=bounded_BT)

    def _clipped_BT(self, ratio_BT: Floats) -> Floats:
        return np.clip(ratio_BT, self.ratio_low, self.ratio_high)
