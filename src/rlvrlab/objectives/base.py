"""What an objective says about itself, and what objectives are made of: ratio, clip, aggregation and metrics.

Probability ratio:  ρ_t = exp(log p_t − log p_old,t)      surrogate = max(−A ρ, −A clip(ρ, 1 − low, 1 + high))
Without old_BT the update is strictly on-policy: ρ = 1 with derivative 1, as in TRL.

Aggregation, from a loss per token to one number: value = Σ W_BT · loss_BT
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

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, TokenBatch
from rlvrlab.errors import UserError
from rlvrlab.types import Aggregation, Couples, Loss, Objective

LOG_RATIO_LIMIT = 20.0
"""|log ρ| beyond this is cut and carries no gradient, as in verl; TRL has no guard and may overflow."""
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


class PolicyObjective(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("objective", …)."""

    name: ClassVar[str]
    couples: ClassVar[Couples] = "row"
    """Rows that must be in the same micro-batch: each alone, a preference pair, or all."""
    aggregation: Aggregation = "token-mean"
    """How token losses become one number. KL, entropy and the weights of groups in surgery follow it; an objective that
    is no sum over tokens (dpo) keeps this default for them."""

    uses_advantages: ClassVar[bool] = True
    """Trains on advantages of sampled answers; False for imitation and preferences."""

    @abstractmethod
    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """Value and coefficients; `logp_BT` and `entropy_BT` are detached."""

    @abstractmethod
    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """Diagnostics already divided by the global normaliser: sums over micro-batches are right."""


class AroundObjective:
    """Base of objectives around another one: rows and tokens go together as they do inside."""

    objective: Objective

    @property
    def couples(self) -> Couples:
        """Rows that the objective inside must see together."""
        return self.objective.couples

    @property
    def aggregation(self) -> Aggregation:
        """How the objective inside makes one number of token losses."""
        return self.objective.aggregation


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


def token_ratio(logp_BT: Floats, batch: TokenBatch) -> Ratio:
    """p / p_old of every trained token, 1 elsewhere."""
    return exponential(log_ratio_BT(logp_BT, batch))


def clipped_surrogate(ratio: Ratio, advantage_BT: Floats, low: float, high: float) -> Surrogate:
    """The pessimistic one of the free and the clipped loss; where the clip wins, nothing is left to gain."""
    free_BT = -advantage_BT * ratio.value_BT
    held_BT = -advantage_BT * np.clip(ratio.value_BT, 1 - low, 1 + high)
    clipped_BT = held_BT > free_BT
    slope_BT = np.where(clipped_BT, 0.0, -advantage_BT * ratio.slope_BT)
    return Surrogate(np.maximum(free_BT, held_BT), slope_BT, clipped_BT)


def policy_metrics(
    logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch, ratio_BT: Floats | None = None, **held_BT: Bools
) -> dict[str, float]:
    """What every objective reports, named as in verl; sums over micro-batches are the global means.

    actor/entropy   mean entropy of the token distributions
    actor/ppo_kl    mean(log p_old − log p): how far the policy has moved since collection
    actor/ratio     mean probability ratio the objective uses (`ratio_BT`, else the token's); 1 means on-policy
    actor/kl        mean k3 estimate of KL to the reference, where there is one, whatever the loss uses
    `held_BT`       actor/NAME: the share of tokens that a clip of that name holds
    """
    used_BT = token_ratio(logp_BT, batch).value_BT if ratio_BT is None else ratio_BT
    return {
        "actor/entropy": token_mean(entropy_BT, batch),
        "actor/ppo_kl": token_mean(-log_ratio_BT(logp_BT, batch), batch),
        "actor/ratio": token_mean(used_BT, batch),
        **reference_metrics(logp_BT, batch),
        **{f"actor/{name}": token_mean(one_BT.astype(np.float64), batch) for name, one_BT in held_BT.items()},
    }


def reference_metrics(logp_BT: Floats, batch: TokenBatch) -> dict[str, float]:
    """Distance to the reference policy; empty without one."""
    if batch.reference_BT is None:
        return {}
    from rlvrlab.objectives.kl import kl_BT

    kl = kl_BT(masked(logp_BT, batch), masked(batch.reference_BT, batch), "k3")
    return {"actor/kl": token_mean(kl, batch)}
