"""Generalised advantage estimation (arXiv 1506.02438), for PPO with a critic.

    δ_t = r_t + γ V_{t'} − V_t        A_t = δ_t + γ λ A_{t'}        return_t = A_t + V_t

Array suffixes: B rows, T completion positions. t' is the next trained token of the row: tool output in between takes no
time step and has no value; a reward standing on it counts for the trained token before (verl drops it).
Assumption: the row ends the episode, V = 0 after its last trained token, also when it was cut at the length limit.
Trap: verl whitens and leaves numbers on masked tokens; here everything outside the mask is 0.
An unjudged row gets advantage 0 and its own value as target, so the critic does not move on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator, whitened_BT
from rlvrlab.advantages.grpo import groups_of, judged_rewards_BT
from rlvrlab.batch import Advantages, Bools, Floats, RewardBatch
from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.types import Fraction01


@register("advantage", "gae")
@dataclass(frozen=True)
class Gae(AdvantageEstimator):
    """Temporal differences of the critic's values."""

    gamma: Fraction01 = 1.0
    """Discount per trained token."""
    lam: Fraction01 = 0.95
    """0 trusts the critic, 1 trusts the return."""
    whiten: bool = True
    """Advantages with mean 0 and standard deviation 1 over the batch; returns are never whitened."""

    needs_groups: ClassVar[bool] = False
    needs_values: ClassVar[bool] = True

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Advantages and the critic's targets."""
        if batch.value_BT is None:
            raise UserError("advantage gae needs value_BT, which is missing; the recipe needs a critic")
        value_BT = np.where(batch.mask_BT, batch.value_BT, 0.0)
        counted_BT = batch.mask_BT & batch.judged_B[:, None]
        raw_BT = differences_BT(judged_rewards_BT(batch), value_BT, batch.mask_BT, self.gamma, self.lam)
        raw_BT = np.where(counted_BT, raw_BT, 0.0)
        advantage_BT = whitened_BT(raw_BT, counted_BT) if self.whiten else raw_BT
        return Advantages(advantage_BT, raw_BT + value_BT, groups_of(batch).counts())


def differences_BT(reward_BT: Floats, value_BT: Floats, mask_BT: Bools, gamma: float, lam: float) -> Floats:
    """A_t on trained tokens; with values of 0 and λ = 1, what is left to earn from each of them on."""
    # Rewards found on tokens without loss wait for the trained token before them.
    advantage_B, value_B, waiting_B = (np.zeros(len(reward_BT)) for _ in range(3))
    out_BT = np.zeros_like(reward_BT)
    for t in reversed(range(reward_BT.shape[1])):
        trained_B = mask_BT[:, t]
        waiting_B = waiting_B + reward_BT[:, t]
        surprise_B = waiting_B + gamma * value_B - value_BT[:, t]
        advantage_B = np.where(trained_B, surprise_B + gamma * lam * advantage_B, advantage_B)
        value_B = np.where(trained_B, value_BT[:, t], value_B)
        waiting_B = np.where(trained_B, 0.0, waiting_B)
        out_BT[:, t] = advantage_B
    return out_BT
