"""What every objective reports about the policy, named as in verl; sums over micro-batches are the global means.

Array suffixes: B rows, T completion positions.
    actor/entropy   mean entropy of the token distributions
    actor/ppo_kl    mean(log p_old − log p): how far the policy has moved since collection
    actor/ratio     mean probability ratio the objective uses; 1 means on-policy
    actor/kl        mean k3 estimate of KL to the reference, where there is one, whatever the loss uses
"""

from __future__ import annotations

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.aggregate import token_mean
from rlvrlab.objectives.kl import kl_BT
from rlvrlab.objectives.masking import masked
from rlvrlab.objectives.ratio import exponential, log_ratio_BT


def policy_metrics(
    logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch, ratio_BT: Floats | None = None
) -> dict[str, float]:
    """The four lines above; `ratio_BT` overrides the token ratio."""
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
