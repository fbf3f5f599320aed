"""KL(p ‖ reference) estimated from the sampled tokens, with d = log p − log reference.

    k1 = d        k2 = d² / 2        k3 = exp(−d) + d − 1        (Schulman 2020, "Approximating KL divergence")

Array suffixes: B rows, T completion positions.
In the reward use the value (`penalised_reward_BT`), in the loss value and slope (`regularise.py`).
Trap: on tokens drawn from p, k1 as a loss has expected gradient 0, so it does not pull to the reference at all; k3's is
the gradient of the reversed KL(reference ‖ p); only k2's is that of KL(p ‖ reference). "k1+" and "k3+" keep their value
and take k2's slope (verl's straight-through form).
Guard: k3's exponent is cut at 20. verl also cuts the value at 10, and with it the gradient, as soon as the reference
finds a token 13 times likelier than the policy does; that is `bound=10` here and off by default, as in TRL.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlvrlab.batch import Bools, Floats

KlEstimator = Literal["k1", "k2", "k3", "k1+", "k3+"]
EXPONENT_LIMIT = 20.0


def kl_BT(logp_BT: Floats, reference_BT: Floats, estimator: KlEstimator = "k3", bound: float | None = None) -> Floats:
    """The estimate at each token; `bound` cuts k3's value."""
    log_BT = logp_BT - reference_BT
    match estimator:
        case "k1" | "k1+":
            return log_BT
        case "k2":
            return 0.5 * log_BT**2
        case "k3" | "k3+":
            value_BT = _k3_BT(log_BT)
            return value_BT if bound is None else np.minimum(value_BT, bound)
    raise AssertionError(f"no KL estimator {estimator!r}")


def kl_slope_BT(
    logp_BT: Floats, reference_BT: Floats, estimator: KlEstimator = "k3", bound: float | None = None
) -> Floats:
    """d kl / d log p."""
    log_BT = logp_BT - reference_BT
    match estimator:
        case "k1":
            return np.ones_like(log_BT)
        case "k2" | "k1+" | "k3+":
            return log_BT
        case "k3":
            free_BT = np.abs(log_BT) <= EXPONENT_LIMIT
            if bound is not None:
                free_BT &= _k3_BT(log_BT) <= bound
            return np.where(free_BT, 1 - np.exp(np.clip(-log_BT, -EXPONENT_LIMIT, EXPONENT_LIMIT)), 0.0)
    raise AssertionError(f"no KL estimator {estimator!r}")


def _k3_BT(log_BT: Floats) -> Floats:
    cut_BT = np.clip(log_BT, -EXPONENT_LIMIT, EXPONENT_LIMIT)
    return np.exp(-cut_BT) + cut_BT - 1


def penalised_reward_BT(
    reward_BT: Floats, logp_BT: Floats, reference_BT: Floats, mask_BT: Bools, coef: float, estimator: KlEstimator = "k1"
) -> Floats:
    """reward − coef · KL on trained tokens: KL as part of the reward, constant under the gradient."""
    cost_BT = kl_BT(np.where(mask_BT, logp_BT, 0.0), np.where(mask_BT, reference_BT, 0.0), estimator)
    return reward_BT - coef * cost_BT
