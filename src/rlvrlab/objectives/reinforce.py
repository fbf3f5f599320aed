"""REINFORCE: the plain policy gradient (Williams 1992).

    loss_t = −A_t log p_t             coefficient −W_t w_t A_t

Assumption: the batch was drawn by the policy being updated, once. There is no ratio and no clip, so a second epoch
over the same batch is biased; use ppo_clip for that.
Trap: the value is no measure of progress; only its gradient means something.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.base import PolicyObjective, aggregate, masked, needed, policy_metrics
from rlvrlab.registry import register
from rlvrlab.types import Aggregation, Loss


@register("objective", "reinforce")
@dataclass(frozen=True)
class Reinforce(PolicyObjective):
    """Make tokens with positive advantage likelier."""

    aggregation: Aggregation = "token-mean"
    """How token losses become one number."""

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """Advantage-weighted negative log-likelihood."""
        advantage_BT = needed(batch, "advantage_BT", "objective reinforce")
        loss_BT = -advantage_BT * masked(logp_BT, batch)
        return aggregate(loss_BT, -advantage_BT, batch, self.aggregation, corrected=True)

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """A ratio away from 1 says that the assumption above is broken."""
        return policy_metrics(logp_BT, entropy_BT, batch)
