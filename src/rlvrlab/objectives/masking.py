"""What an objective may read of a batch: trained tokens only, and never an array that is not there.

Array suffixes: B rows, T completion positions.
Trap: 0 · NaN is NaN, so a mask must select, never multiply. A token of tool output may have log p = −inf.
"""

from __future__ import annotations

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.errors import UserError

REMEDY = {
    "advantage_BT": "give the recipe an advantage estimator",
    "reference_BT": "give the run a reference policy, or set the coefficient that asks for it to 0",
    "old_BT": "ask the engine for its log-probs at collection",
    "behaviour_BT": "keep the sampler's log-probs, or turn the correction off",
    "value_BT": "the recipe needs a critic",
    "return_BT": "returns come from the `gae` advantage",
    "pair_B": "use preference data",
    "chosen_B": "use preference data",
}


def masked(x_BT: Floats, batch: TokenBatch) -> Floats:
    """`x_BT` on trained tokens and exactly 0 elsewhere, whatever stood there."""
    assert x_BT.shape == batch.loss_BT.shape, f"shape {x_BT.shape}, batch has {batch.loss_BT.shape}"
    return np.where(batch.loss_BT, x_BT, 0.0)


def needed(batch: TokenBatch, array: str, who: str) -> Floats:
    """The named token array on trained tokens, or an error that says what to do."""
    value = getattr(batch, array)
    if value is None:
        raise missing(array, who)
    return masked(value, batch)


def missing(array: str, who: str) -> UserError:
    """The error for an array nobody filled in."""
    return UserError(f"{who} needs batch.{array}, which is missing; {REMEDY[array]}")
