"""KL to the reference and an entropy bonus, added to any objective.

    value = objective + kl_coef · Σ W KL_t − entropy_coef · Σ W H_t

Array suffixes: B rows, T completion positions.
W is the objective's own aggregation, as in verl; TRL does so for KL and always takes token-mean for the entropy.
Assumption: importance weights (weight_BT) belong to the policy loss alone and are not applied here.
Trap: entropy_coef > 0 raises entropy without end once the reward is saturated; watch actor/entropy, or set a floor:
the bonus then counts only while answers are drawn with less entropy than that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.base import (
    AroundObjective,
    PolicyObjective,
    aggregate,
    masked,
    needed,
    reference_metrics,
    weights_BT,
)
from rlvrlab.objectives.kl import KlEstimator, kl_BT, kl_slope_BT
from rlvrlab.types import Aggregation, Loss, NonNegative


@dataclass(frozen=True)
class Regularised(AroundObjective):
    """An objective with KL and entropy terms; itself an objective."""

    objective: PolicyObjective
    kl_coef: NonNegative = 0.0
    """Weight of the KL to the reference; 0 needs no reference."""
    kl_estimator: KlEstimator = "k3"
    """See kl.py for what each one's gradient means."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus; negative values sharpen the policy."""
    kl_bound: float | None = None
    """verl cuts k3 at 10; None does not."""
    terms: Aggregation | None = None
    """How KL and entropy become one number; None takes the objective's own aggregation."""
    entropy_floor: NonNegative = 0.0
    """The bonus counts on answers that were drawn with less entropy than this; 0: on all."""

    def on_answers(self, drawn_entropy: float) -> Regularised:
        """The terms for answers drawn with this mean entropy."""
        counts = not self.entropy_floor or drawn_entropy < self.entropy_floor
        return self if counts else replace(self, entropy_coef=0.0)

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """The sum of the terms."""
        loss = self.objective(logp_BT, entropy_BT, batch)
        if self.kl_coef:
            kl = self._kl(logp_BT, batch)
            c_logp_BT = loss.c_logp_BT + self.kl_coef * kl.c_logp_BT
            loss = loss._replace(value=loss.value + self.kl_coef * kl.value, c_logp_BT=c_logp_BT)
        if self.entropy_coef:
            slope_BT = -self.entropy_coef * weights_BT(batch, self.terms or self.aggregation)
            before_BT = loss.c_entropy_BT if loss.c_entropy_BT is not None else np.zeros_like(slope_BT)
            bonus = float((slope_BT * masked(entropy_BT, batch)).sum())
            loss = loss._replace(value=loss.value + bonus, c_entropy_BT=before_BT + slope_BT)
        return loss

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """The objective's own, `actor/kl`, and `actor/kl_loss`: the KL term before its coefficient."""
        own = self.objective.metrics(logp_BT, entropy_BT, batch) | reference_metrics(logp_BT, batch)
        return own | ({"actor/kl_loss": self._kl(logp_BT, batch).value} if self.kl_coef else {})

    def _kl(self, logp_BT: Floats, batch: TokenBatch) -> Loss:
        here_BT, there_BT = masked(logp_BT, batch), needed(batch, "reference_BT", "KL in the loss")
        value_BT = kl_BT(here_BT, there_BT, self.kl_estimator, self.kl_bound)
        slope_BT = kl_slope_BT(here_BT, there_BT, self.kl_estimator, self.kl_bound)
        return aggregate(value_BT, slope_BT, batch, self.terms or self.aggregation)
