"""Supervised fine-tuning: negative log-likelihood of the completion.

    loss_t = −log p_t                 coefficient −W_t

Assumption: the prompt is not trained on; batch.loss_BT says what is.
Trap: a mean per micro-batch weighs tokens of short batches more; here the mean is over the whole update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.base import PolicyObjective, aggregate, token_mean
from rlvrlab.registry import register
from rlvrlab.types import Aggregation, Loss


@register("objective", "sft")
@dataclass(frozen=True)
class Sft(PolicyObjective):
    """Imitate the given completions."""

    aggregation: Aggregation = "token-mean"
    """How token losses become one number."""

    uses_advantages: ClassVar[bool] = False

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """Weighted negative log-likelihood."""
        return aggregate(-logp_BT, -np.ones_like(logp_BT), batch, self.aggregation)

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """`sft/nll`: nats per trained token."""
        return {"sft/nll": token_mean(-logp_BT, batch), "actor/entropy": token_mean(entropy_BT, batch)}
