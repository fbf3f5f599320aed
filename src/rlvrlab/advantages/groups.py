"""Statistics of groups of answers to the same problem, over judged rows only.

Array suffixes: B rows, T completion positions, G groups.
An unjudged row has no reward: it enters no mean, no spread, no baseline, and its advantage is 0.
A singleton (one judged row) and a group of equal rewards carry no signal; both are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.batch import Advantages, Bools, Floats, Ints, RewardBatch
from rlvrlab.errors import UserError

Singleton = Literal["zero", "verl"]


@dataclass(frozen=True, slots=True)
class Groups:
    """Rewards of rows, grouped."""

    score_B: Floats
    """Reward of each row, 0 where unjudged."""
    judged_B: Bools
    """Rows that count."""
    index_B: Ints
    """Group number of each row, 0 … G−1."""
    size_G: Ints
    """Judged rows of each group."""
    constant_G: Bools
    """Two or more judged rows, all with the same reward."""

    def mean_B(self, weight_B: Floats | None = None) -> Floats:
        """The (weighted) mean reward of each row's group."""
        mass_B = np.where(self.judged_B, 1.0 if weight_B is None else weight_B, 0.0)
        total_G, mass_G = self._sum_G(mass_B * self.score_B), self._sum_G(mass_B)
        return np.asarray(total_G / np.where(mass_G > 0, mass_G, 1.0))[self.index_B]

    def deviation_B(self, baseline_B: Floats, singleton: Singleton) -> Floats:
        """Reward minus baseline; exactly 0 where there is no signal. verl's singleton has baseline 0."""
        size_B = self.size_G[self.index_B]
        deviation_B = np.where(size_B > 1, self.score_B - baseline_B, self.score_B if singleton == "verl" else 0.0)
        return np.where(self.judged_B & ~self.constant_G[self.index_B], deviation_B, 0.0)

    def std_B(self) -> Floats:
        """Standard deviation (n − 1) of each row's group; 1 for a singleton, where there is none."""
        square_B = np.where(self.judged_B, (self.score_B - self.mean_B()) ** 2, 0.0)
        std_G = np.sqrt(self._sum_G(square_B) / np.maximum(self.size_G - 1, 1))
        return np.where(self.size_G > 1, std_G, 1.0)[self.index_B]

    def signal_B(self, singleton: Singleton) -> Bools:
        """Rows whose advantage is defined."""
        return self.judged_B & ((self.size_G[self.index_B] > 1) | (singleton == "verl"))

    def counts(self) -> dict[str, int]:
        """What carries no signal, by reason."""
        return {
            "groups": len(self.size_G),
            "unjudged_rows": int((~self.judged_B).sum()),
            "singleton_groups": int((self.size_G == 1).sum()),
            "zero_variance_groups": int(self.constant_G.sum()),
            "empty_groups": int((self.size_G == 0).sum()),
        }

    def _sum_G(self, x_B: Floats) -> Floats:
        return np.bincount(self.index_B, weights=x_B, minlength=len(self.size_G)).astype(np.float64)


def groups_of(batch: RewardBatch) -> Groups:
    """Group the rows; a row's reward is the sum over its tokens, also those without loss."""
    judged_B = batch.judged_B.astype(bool)
    score_B = judged_rewards_BT(batch).sum(axis=1)
    group_ids, index_B = np.unique(batch.group_B, return_inverse=True)
    size_G = np.bincount(index_B[judged_B], minlength=len(group_ids))
    low_G, high_G = np.full(len(group_ids), np.inf), np.full(len(group_ids), -np.inf)
    np.minimum.at(low_G, index_B[judged_B], score_B[judged_B])
    np.maximum.at(high_G, index_B[judged_B], score_B[judged_B])
    return Groups(score_B, judged_B, index_B, size_G, (size_G > 1) & (low_G == high_G))


def judged_rewards_BT(batch: RewardBatch) -> Floats:
    """Rewards with unjudged rows at 0; a judged reward must be finite."""
    reward_BT = np.where(batch.judged_B[:, None], batch.reward_BT, 0.0)
    if not np.isfinite(reward_BT).all():
        rows = np.flatnonzero(~np.isfinite(reward_BT).all(axis=1)).tolist()
        raise UserError(f"reward of rows {rows[:5]} is not finite; a reward that cannot be given is None (unjudged)")
    return reward_BT


def outcome(advantage_B: Floats, batch: RewardBatch, groups: Groups) -> Advantages:
    """The same advantage on every trained token of a row."""
    return Advantages(np.where(batch.mask_BT, advantage_B[:, None], 0.0), None, groups.counts())


VARIANCE_FLOOR = 1e-8


def whitened_BT(x_BT: Floats, mask_BT: Bools) -> Floats:
    """Mean 0 and standard deviation 1 (n − 1, plus 1e-8 under the root, as verl) inside the mask, 0 outside.

    Trap: the mean is over tokens, so long rows weigh more; with fewer than two tokens there is no spread and all is 0.
    """
    tokens = int(mask_BT.sum())
    if tokens < 2:
        return np.zeros_like(x_BT)
    centred_BT = np.where(mask_BT, x_BT - x_BT[mask_BT].mean(), 0.0)
    variance = float((centred_BT**2).sum()) / (tokens - 1)
    return np.asarray(centred_BT / np.sqrt(variance + VARIANCE_FLOOR))
