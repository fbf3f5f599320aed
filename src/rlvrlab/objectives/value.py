"""The critic's loss, clipped around the values at collection (PPO).

    loss_t = ½ max((V − R)², (clip(V, V_old − clip, V_old + clip) − R)²)       coefficient d value / d V

Array suffixes: B rows, T completion positions.
Assumption: batch.value_BT are the critic's values at collection, batch.return_BT their targets.
Trap: the factor ½ is in the value (verl, OpenAI); a coefficient tuned without it must be doubled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.base import masked, needed, token_mean, weights_BT
from rlvrlab.types import Aggregation


class ValueLoss(NamedTuple):
    """A critic's loss and its derivative."""

    value: float
    """Loss, divided by the global normaliser."""
    c_value_BT: Floats
    """d value / d predicted value."""
    metrics: dict[str, float]
    """`critic/vf_clipfrac`: share of tokens held by the clip; `critic/vf_error`: mean squared error."""


def value_loss(
    predicted_BT: Floats, batch: TokenBatch, clip: float | None = 0.5, aggregation: Aggregation = "token-mean"
) -> ValueLoss:
    """Clipped squared error; `clip=None` does not clip."""
    value_BT = masked(predicted_BT, batch)
    return_BT = needed(batch, "return_BT", "the value loss")
    free_BT, held_BT = (value_BT - return_BT) ** 2, np.zeros_like(value_BT)
    if clip is not None:
        old_BT = needed(batch, "value_BT", "the value loss")
        held_BT = (np.clip(value_BT, old_BT - clip, old_BT + clip) - return_BT) ** 2
    clipped_BT = held_BT > free_BT
    weight_BT = weights_BT(batch, aggregation)
    slope_BT = np.where(clipped_BT, 0.0, value_BT - return_BT)
    metrics = {
        "critic/vf_clipfrac": token_mean(clipped_BT.astype(np.float64), batch),
        "critic/vf_error": token_mean(free_BT, batch),
    }
    return ValueLoss(float(0.5 * (weight_BT * np.maximum(free_BT, held_BT)).sum()), weight_BT * slope_BT, metrics)
