"""GSPO: the ratio of whole answers, per token (arXiv 2507.18071).

    s_i = exp(mean_t (log p_t − log p_old,t))      loss_t = max(−A s, −A clip(s, 1 − clip_low, 1 + clip_high))

credit = "token" is GSPO-token and verl: token t's coefficient is −W_t w_t A_t s_i, so step credit stays on its step.
credit = "sequence" is GSPO and TRL: the true derivative of s_i, which spreads a row's credit evenly over its tokens.
Both are the same whenever advantage and weight are constant along the row.
With aggregation "seq-mean-token-sum" this is TRL's LUSPO.
Assumption: one answer per row; the mean runs over its trained tokens.
Trap: s_i averages over the row and hardly moves, so the clip is a thousand times narrower than PPO's.
Guard: |log s_i| is cut at 20 (verl: at most 10; TRL: none).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.base import (
    PolicyObjective,
    Ratio,
    Surrogate,
    aggregate,
    clipped_surrogate,
    exponential,
    log_ratio_BT,
    needed,
    policy_metrics,
)
from rlvrlab.registry import register
from rlvrlab.types import Aggregation, Fraction01, Loss, NonNegative


@register("objective", "gspo")
@dataclass(frozen=True)
class Gspo(PolicyObjective):
    """PPO-clip with one ratio per answer."""

    clip_low: Fraction01 = 3e-4
    """The paper's setting."""
    clip_high: NonNegative = 4e-4
    """The paper's setting."""
    credit: Literal["token", "sequence"] = "token"
    """Whether a token keeps its own advantage or shares the row's mean."""
    aggregation: Aggregation = "seq-mean-token-mean"
    """How token losses become one number."""

    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """The clipped surrogate of answer ratios."""
        surrogate = self._surrogate(logp_BT, batch)
        loss = aggregate(surrogate.loss_BT, surrogate.slope_BT, batch, self.aggregation, corrected=True)
        if self.credit == "token":
            return loss
        shared_B1 = loss.c_logp_BT.sum(axis=1, keepdims=True) / _length_B1(batch)
        return loss._replace(c_logp_BT=np.where(batch.loss_BT, shared_B1, 0.0))

    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """`actor/ratio` is the answer ratio, `actor/pg_clipfrac` the share of tokens in clipped answers."""
        surrogate = self._surrogate(logp_BT, batch)
        ratio_BT = sequence_ratio(logp_BT, batch).value_BT
        return policy_metrics(logp_BT, entropy_BT, batch, ratio_BT, pg_clipfrac=surrogate.clipped_BT)

    def _surrogate(self, logp_BT: Floats, batch: TokenBatch) -> Surrogate:
        advantage_BT = needed(batch, "advantage_BT", "objective gspo")
        return clipped_surrogate(sequence_ratio(logp_BT, batch), advantage_BT, self.clip_low, self.clip_high)


def sequence_ratio(logp_BT: Floats, batch: TokenBatch) -> Ratio:
    """s_i at every token of row i."""
    mean_B1 = log_ratio_BT(logp_BT, batch).sum(axis=1, keepdims=True) / _length_B1(batch)
    return exponential(np.broadcast_to(mean_B1, logp_BT.shape))


def _length_B1(batch: TokenBatch) -> Floats:
    return np.maximum(batch.loss_BT.sum(axis=1, keepdims=True), 1).astype(np.float64)
