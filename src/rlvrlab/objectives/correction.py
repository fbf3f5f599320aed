"""Importance weights for a sampler that is not quite the trainer (other kernels, precision or a stale policy).

    w = p_old / p_behaviour per token, or its product over the row (level = "sequence")
    truncate (TIS)  min(w, high)                   keeps every token, bounds the variance
    mask (MIS)      w where low ≤ w ≤ high, else 0  drops what cannot be trusted; "IcePop" in verl

Array suffixes: B rows, T completion positions.
Assumption: old_BT and behaviour_BT score the same tokens at the same temperature, without top-p.
Trap: a product over a long row is 0 or capped for nearly every row; watch rollout_is/ess.
The weights are computed once for a whole collected batch, so their metrics are not sums over micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.objectives.base import exponential, needed
from rlvrlab.types import NonNegative, Positive


@dataclass(frozen=True)
class Correction:
    """How sampler and trainer are reconciled."""

    level: Literal["token", "sequence"] = "token"
    """One weight per token (biased, calm) or per row (unbiased, wild)."""
    mode: Literal["truncate", "mask"] = "truncate"
    """Cap large weights, or drop everything outside [low, high]."""
    high: Positive = 2.0
    """Largest weight kept."""
    low: NonNegative = 0.5
    """Smallest weight kept by `mask`; `truncate` has no lower bound."""

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise UserError(f"correction: low {self.low} is above high {self.high}")

    def __call__(self, batch: TokenBatch) -> tuple[Floats, dict[str, float]]:
        """weight_BT for the batch, 0 outside the mask; its mean and extremes, how much was changed, the sample size."""
        log_BT = needed(batch, "old_BT", "correction") - needed(batch, "behaviour_BT", "correction")
        if self.level == "sequence":
            log_BT = np.broadcast_to(log_BT.sum(axis=1, keepdims=True), log_BT.shape)
        raw_BT = exponential(log_BT).value_BT
        inside_BT = (raw_BT <= self.high) & ((raw_BT >= self.low) | (self.mode == "truncate"))
        kept_BT = np.minimum(raw_BT, self.high) if self.mode == "truncate" else np.where(inside_BT, raw_BT, 0.0)
        weight_BT = np.where(batch.loss_BT, kept_BT, 0.0)
        weight, raw, inside = weight_BT[batch.loss_BT], raw_BT[batch.loss_BT], inside_BT[batch.loss_BT]
        if weight.size == 0:
            return weight_BT, {}
        squares = float((weight**2).sum())
        return weight_BT, {
            "rollout_is/mean": float(weight.mean()),
            "rollout_is/min": float(raw.min()),
            "rollout_is/max": float(raw.max()),
            "rollout_is/changed": float(1 - inside.mean()),
            "rollout_is/ess": float(weight.sum()) ** 2 / (weight.size * squares) if squares else 0.0,
        }
