"""PPO's clipped surrogate (arXiv 1707.06347); with a group advantage it is GRPO's, Dr. GRPO's and DAPO's loss.

    loss_t = max(−A ρ, −A clip(ρ, 1 − clip_low, 1 + clip_high))        ρ = p / p_old
    dual clip, A < 0:  loss_t = min(loss_t, −A · dual_clip)             arXiv 1912.09729
    coefficient −W w A ρ where the free branch is active, else 0

clip_high > clip_low is DAPO's clip-higher (0.28). TRL's `delta` is the dual clip by another name.
Assumption: old_BT are the trainer's own log-probs at collection; the sampler's belong into weight_BT.
Trap: verl turns the dual clip on by default (3.0), TRL off; on the same input their losses differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Gt

from rlvrlab.batch import Bools, Floats, TokenBatch
from rlvrlab.objectives.base import (
    PolicyObjective,
    Surrogate,
    aggregate,
    clipped_surrogate,
    needed,
    policy_metrics,
    token_ratio,
)
from rlvrlab.registry import register
from rlvrlab.types import Aggregation, Fraction01, Loss, NonNegative


@register("objective", "ppo_clip")
@dataclass(frozen=True)
class PpoClip(PolicyObjective):
    """Improve on the collected batch without leaving its neighbourhood."""

    clip_low: Fraction01 = 0.2
    """A ratio below 1 − clip_low is not pushed down further."""
    clip_high: NonNegative = 0.2
    """A ratio above 1 + clip_high is not pushed up further."""
    dual_clip: Annotated[float, Gt(1)] | None = None
    """With negative advantage, a ratio above this is not pushed down either; it bounds the loss."""
    aggregation: Aggregation = "token-mean"
    """How token losses become one number."""

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """The clipped surrogate."""
        surrogate, _ = self._surrogate(logp_BT, batch)
        return aggregate(surrogate.loss_BT, surrogate.slope_BT, batch, self.aggregation, corrected=True)

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """`actor/pg_clipfrac` and `actor/pg_clipfrac_lower`: share of tokens held by the clip and the dual clip."""
        surrogate, cut_BT = self._surrogate(logp_BT, batch)
        held_BT = surrogate.clipped_BT
        return policy_metrics(logp_BT, entropy_BT, batch, pg_clipfrac=held_BT, pg_clipfrac_lower=cut_BT)

    def _surrogate(self, logp_BT: Floats, batch: TokenBatch) -> tuple[Surrogate, Bools]:
        advantage_BT = needed(batch, "advantage_BT", "objective ppo_clip")
        plain = clipped_surrogate(token_ratio(logp_BT, batch), advantage_BT, self.clip_low, self.clip_high)
        if self.dual_clip is None:
            return plain, np.zeros_like(batch.loss_BT)
        ceiling_BT = -advantage_BT * self.dual_clip
        cut_BT = (advantage_BT < 0) & (plain.loss_BT > ceiling_BT)
        loss_BT = np.where(cut_BT, ceiling_BT, plain.loss_BT)
        return Surrogate(loss_BT, np.where(cut_BT, 0.0, plain.slope_BT), plain.clipped_BT), cut_BT
