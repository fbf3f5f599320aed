"""The probability ratio ρ = p / p_old, the clipped surrogate of PPO and GSPO, and how far the policy has moved.

    ρ_t = exp(log p_t − log p_old,t)          surrogate = max(−A ρ, −A clip(ρ, 1 − low, 1 + high))

Array suffixes: B rows, T completion positions.
Assumption: without old_BT the update is strictly on-policy: ρ = 1 with derivative 1, as in TRL.
Guard: |log ρ| is cut at 20 and carries no gradient beyond, as in verl; TRL has no guard and may overflow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats, TokenBatch
from rlvrlab.objectives.aggregate import masked, token_mean
from rlvrlab.objectives.kl import kl_BT

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


def policy_metrics(
    logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch, ratio_BT: Floats | None = None
) -> dict[str, float]:
    """What every objective reports, named as in verl; sums over micro-batches are the global means.

    actor/entropy   mean entropy of the token distributions
    actor/ppo_kl    mean(log p_old − log p): how far the policy has moved since collection
    actor/ratio     mean probability ratio the objective uses (`ratio_BT`, else the token's); 1 means on-policy
    actor/kl        mean k3 estimate of KL to the reference, where there is one, whatever the loss uses
    """
    log_BT = log_ratio_BT(logp_BT, batch)
    used_BT = exponential(log_BT).value_BT if ratio_BT is None else ratio_BT
    return {
        "actor/entropy": token_mean(entropy_BT, batch),
        "actor/ppo_kl": token_mean(-log_BT, batch),
        "actor/ratio": token_mean(used_BT, batch),
        **reference_metrics(logp_BT, batch),
    }


def reference_metrics(logp_BT: Floats, batch: TokenBatch) -> dict[str, float]:
    """Distance to the reference policy; empty without one."""
    if batch.reference_BT is None:
        return {}
    kl = kl_BT(masked(logp_BT, batch), masked(batch.reference_BT, batch), "k3")
    return {"actor/kl": token_mean(kl, batch)}
