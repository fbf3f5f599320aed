"""The probability ratio ρ = p / p_old and the clipped surrogate of PPO and GSPO.

    ρ_t = exp(log p_t − log p_old,t)          surrogate = max(−A ρ, −A clip(ρ, 1 − low, 1 + high))

Array suffixes: B rows, T completion positions.
Assumption: without old_BT the update is strictly on-policy: ρ = 1 with derivative 1, as in TRL.
Guard: |log ρ| is cut at 20 and carries no gradient beyond, as in verl; TRL has no guard and may overflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, TokenBatch
from rlvrlab.objectives.masking import masked

LOG_RATIO_LIMIT = 20.0


class Ratio(NamedTuple):
    """A probability ratio and its derivative by the log-probability it belongs to."""

    value_BT: Floats
    slope_BT: Floats


class Surrogate(NamedTuple):
    """A loss per token, its derivative by log p, and where the clip holds it."""

    loss_BT: Floats
    slope_BT: Floats
    clipped_BT: Bools


def log_ratio_BT(logp_BT: Floats, batch: TokenBatch) -> Floats:
    """log p − log p_old on trained tokens, 0 elsewhere and without old_BT."""
    if batch.old_BT is None:
        return np.zeros_like(logp_BT)
    return masked(logp_BT, batch) - masked(batch.old_BT, batch)


def exponential(log_BT: Floats) -> Ratio:
    """exp cut at the limit, and its derivative."""
    value_BT = np.exp(np.clip(log_BT, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT))
    return Ratio(value_BT, np.where(np.abs(log_BT) <= LOG_RATIO_LIMIT, value_BT, 0.0))


def clipped_surrogate(ratio: Ratio, advantage_BT: Floats, low: float, high: float) -> Surrogate:
    """The pessimistic one of the free and the clipped loss; where the clip wins, nothing is left to gain."""
    free_BT = -advantage_BT * ratio.value_BT
    held_BT = -advantage_BT * np.clip(ratio.value_BT, 1 - low, 1 + high)
    clipped_BT = held_BT > free_BT
    slope_BT = np.where(clipped_BT, 0.0, -advantage_BT * ratio.slope_BT)
    return Surrogate(np.maximum(free_BT, held_BT), slope_BT, clipped_BT)
