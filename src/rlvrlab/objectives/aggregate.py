"""From a loss per token to one number, as weights: value = Σ W_BT · loss_BT.

    token-mean               W = 1 / tokens                    DAPO (arXiv 2503.14476), TRL `dapo` and `bnpo`
    token-sum                W = 1
    seq-mean-token-mean      W = 1 / (rows · row length)       GRPO (arXiv 2402.03300), TRL `grpo`
    seq-mean-token-sum       W = 1 / rows                      LUSPO
    seq-mean-token-sum-norm  W = 1 / (rows · horizon)          Dr. GRPO (arXiv 2503.20783), TRL `dr_grpo`

Array suffixes: B rows, T completion positions.
`tokens`, `rows` and `horizon` come from batch.scale and count the whole update, so the values and gradients of any
partition into micro-batches add up to those of the whole.
Trap: `rows` counts rows with at least one trained token, as verl 0.9.1 does; TRL also divides by fully masked rows.
Trap: seq-mean-token-mean gives a token of a short answer more weight, which lets wrong answers grow longer.
"""

from __future__ import annotations

import numpy as np

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.masking import masked
from rlvrlab.types import Aggregation, Loss

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
