"""Importance weights for a sampler that is not quite the trainer (other kernels, precision or a stale policy).

    w = p_old / p_behaviour per token, or its product over the row (level = "sequence")
    truncate (TIS)  min(w, high)                   keeps every token, bounds the variance
    mask (MIS)      w where low ≤ w ≤ high, else 0  drops what cannot be trusted; "IcePop" in verl

Array suffixes: B rows, T completion positions.
Assumption: old_BT and behaviour_BT score the same tokens at the same temperature, without top-p.
Trap: a product over a long row is 0 or capped for nearly every row; watch rollout_is/ess.
The weights are computed once for a whole collected batch; or, where there is one update on it, in that update, of the
log-probs that it computes anyway (`CorrectedInUpdate`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.objectives.base import AroundObjective, exponential, masked, needed, token_mean
from rlvrlab.types import Loss, NonNegative, Objective, Positive

SQUARE = "rollout_is/square"
"""Mean square of the weights: adds up over micro-batches, which the sample size made of it does not."""


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
        weights = self.weights(needed(batch, "old_BT", "correction"), batch)
        whole = replace(batch, scale=batch.scale._replace(tokens=int(batch.loss_BT.sum())))
        return weights.kept_BT, with_sample_size(weights.metrics(whole))

    def weights(self, logp_BT: Floats, batch: TokenBatch) -> Weights:
        """The weights of a policy with these log-probs over the one that drew the batch."""
        log_BT = masked(logp_BT, batch) - needed(batch, "behaviour_BT", "correction")
        if self.level == "sequence":
            log_BT = np.broadcast_to(log_BT.sum(axis=1, keepdims=True), log_BT.shape)
        raw_BT = exponential(log_BT).value_BT
        inside_BT = (raw_BT <= self.high) & ((raw_BT >= self.low) | (self.mode == "truncate"))
        kept_BT = np.minimum(raw_BT, self.high) if self.mode == "truncate" else np.where(inside_BT, raw_BT, 0.0)
        return Weights(np.where(batch.loss_BT, kept_BT, 0.0), raw_BT, inside_BT)


class Weights(NamedTuple):
    """Importance weights, before and after they were bounded."""

    kept_BT: Floats
    raw_BT: Floats
    inside_BT: Bools

    def metrics(self, batch: TokenBatch) -> dict[str, float]:
        """Add up over micro-batches to those of the whole; nothing where nothing is trained."""
        if not batch.loss_BT.any():
            return {}
        raw = self.raw_BT[batch.loss_BT]
        return {
            "rollout_is/mean": token_mean(self.kept_BT, batch),
            "rollout_is/min": float(raw.min()),
            "rollout_is/max": float(raw.max()),
            "rollout_is/changed": token_mean((~self.inside_BT).astype(np.float64), batch),
            SQUARE: token_mean(self.kept_BT**2, batch),
        }


def with_sample_size(metrics: dict[str, float]) -> dict[str, float]:
    """The weights' metrics with `rollout_is/ess`, (Σw)² / (n Σw²), in place of the mean square it is made of."""
    if SQUARE not in metrics:
        return metrics
    square = metrics[SQUARE]
    ess = metrics["rollout_is/mean"] ** 2 / square if square else 0.0
    return {name: value for name, value in metrics.items() if name != SQUARE} | {"rollout_is/ess": ess}


@dataclass(frozen=True)
class CorrectedInUpdate(AroundObjective):
    """An objective that makes its importance weights of the log-probs it is given: they cost no pass of their own.

    Right for the only update on a batch, whose gradient is taken at the very policy that the weights are about.
    A weight is its row's own.
    """

    objective: Objective
    correction: Correction

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """The objective's, weighted."""
        weights = self.correction.weights(logp_BT, batch)
        return self.objective(logp_BT, entropy_BT, replace(batch, weight_BT=weights.kept_BT))

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """The objective's and the weights'; `with_sample_size` finishes them once they are added up."""
        weights = self.correction.weights(logp_BT, batch)
        own = self.objective.metrics(logp_BT, entropy_BT, replace(batch, weight_BT=weights.kept_BT))
        return own | weights.metrics(batch)
