"""From a loss per token to one number, as weights: value = Σ W_BT · loss_BT; and what may be read of a batch for it.

    token-mean               W = 1 / tokens                    DAPO (arXiv 2503.14476), TRL `dapo` and `bnpo`
    token-sum                W = 1
    seq-mean-token-mean      W = 1 / (rows · row length)       GRPO (arXiv 2402.03300), TRL `grpo`
    seq-mean-token-sum       W = 1 / rows                      LUSPO
    seq-mean-token-sum-norm  W = 1 / (rows · horizon)          Dr. GRPO (arXiv 2503.20783), TRL `dr_grpo`

Array suffixes: B rows, T completion positions.
`tokens`, `rows` and `horizon` come from batch.scale and count the whole update, so the values and gradients of any
partition into micro-batches add up to those of the whole.
Trap: 0 · NaN is NaN, so a mask must select, never multiply. A token of tool output may have log p = −inf.
Trap: `rows` counts rows with at least one trained token, as verl 0.9.1 does; TRL also divides by fully masked rows.
Trap: seq-mean-token-mean gives a token of a short answer more weight, which lets wrong answers grow longer.
"""

from __future__ import annotations

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.types import Aggregation, Loss

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


__all__ = ["Aggregation", "aggregate", "token_mean", "weights_BT"]


def weights_BT(batch: TokenBatch, mode: Aggregation) -> Floats:
    """Each token's share of the loss; 0 outside the mask."""
    mask_BT = batch.loss_BT.astype(np.float64)
    # An update without a single trained token has loss 0, not 0/0.
    tokens, rows = max(batch.scale.tokens, 1), max(batch.scale.rows, 1)
    match mode:
        case "token-mean":
            return mask_BT / tokens
        case "token-sum":
            return mask_BT
        case "seq-mean-token-mean":
            return mask_BT / (rows * np.maximum(mask_BT.sum(axis=1, keepdims=True), 1))
        case "seq-mean-token-sum":
            return mask_BT / rows
        case "seq-mean-token-sum-norm":
            return mask_BT / (rows * batch.scale.horizon)
    raise AssertionError(f"no aggregation {mode!r}")


def aggregate(
    loss_BT: Floats, slope_BT: Floats, batch: TokenBatch, mode: Aggregation, *, corrected: bool = False
) -> Loss:
    """Weigh a loss per token and its derivative by log p; `corrected` also applies the importance weights."""
    weight_BT = weights_BT(batch, mode)
    if corrected and batch.weight_BT is not None:
        weight_BT = weight_BT * masked(batch.weight_BT, batch)
    return Loss(float((weight_BT * masked(loss_BT, batch)).sum()), weight_BT * masked(slope_BT, batch))


def token_mean(x_BT: Floats, batch: TokenBatch) -> float:
    """This slice's part of the mean over all trained tokens of the update."""
    return float(masked(x_BT, batch).sum()) / max(batch.scale.tokens, 1)
