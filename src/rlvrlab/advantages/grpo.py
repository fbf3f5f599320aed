"""Advantages relative to the group, the answers to one problem: GRPO (arXiv 2402.03300) and Dr. GRPO; group statistics.

    grpo      A_i = (r_i − mean(group)) / (std(group) + ε)     std with n − 1
    dr_grpo   A_i = r_i − mean(group)                          Dr. GRPO (arXiv 2503.20783)

Array suffixes: B rows, T completion positions, G groups.
An unjudged row has no reward: it enters no mean, no spread, no baseline, and its advantage is 0.
A singleton (one judged row) and a group of equal rewards carry no signal; both are counted.
Assumption: rewards of a group are exchangeable: same problem, same policy.
Trap: dividing by the group's std weighs very easy and very hard problems up; a group of 8 with one success gets
advantage 2.5. ε is 1e-6 in verl and 1e-4 in TRL.
Trap: without the division the size of an advantage is that of the reward; retune the learning rate. dr_grpo belongs to
the aggregation "seq-mean-token-sum-norm", which takes the answer's length out as well.
Trap: verl gives a lone answer A = r / (1 + ε); here it is 0 unless singleton = "verl".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlvrlab.advantages.base import AdvantageEstimator
from rlvrlab.batch import Advantages, Bools, Floats, Ints, RewardBatch
from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.types import Positive

Singleton = Literal["zero", "verl"]
"""A lone judged answer: no signal, or its raw reward as in verl."""


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


@dataclass(frozen=True)
class GroupBaseline(AdvantageEstimator):
    """Base of estimators whose only key says what a group of one is worth."""

    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw reward as in verl."""


@register("advantage", "grpo")
@dataclass(frozen=True)
class Grpo(AdvantageEstimator):
    """Better or worse than the other answers to the same problem, in standard deviations."""

    scale: Literal["group", "batch", "none"] = "group"
    """Whose standard deviation divides."""
    epsilon: Positive = 1e-6
    """Added to the standard deviation."""
    singleton: Singleton = "zero"
    """A lone judged answer: no signal, or its raw reward as in verl."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Group-relative advantage."""
        groups = groups_of(batch)
        deviation_B = groups.deviation_B(groups.mean_B(), self.singleton)
        if self.scale == "group":
            deviation_B = deviation_B / (groups.std_B() + self.epsilon)
        elif self.scale == "batch":
            judged = groups.score_B[groups.judged_B]
            # A single reward has no spread; 1 leaves its advantage as it is.
            spread = float(judged.std(ddof=1)) if len(judged) > 1 else 1.0
            deviation_B = deviation_B / (spread + self.epsilon)
        return outcome(deviation_B, batch, groups)


@register("advantage", "dr_grpo")
@dataclass(frozen=True)
class DrGrpo(GroupBaseline):
    """Better or worse than the other answers to the same problem, in units of reward."""

    def __call__(self, batch: RewardBatch) -> Advantages:
        """Centred reward."""
        groups = groups_of(batch)
        return outcome(groups.deviation_B(groups.mean_B(), self.singleton), batch, groups)
