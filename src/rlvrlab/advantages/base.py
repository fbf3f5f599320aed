"""What an advantage estimator says about itself, so that the loop need not know it by name; and whitening."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from rlvrlab.batch import Advantages, Bools, Floats, RewardBatch

VARIANCE_FLOOR = 1e-8


class AdvantageEstimator(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("advantage", …)."""

    name: ClassVar[str]
    by_parts: ClassVar[bool] = False
    """Reads the reward's named parts: a group with equal totals but different parts still has signal."""
    needs_groups: ClassVar[bool] = True
    """Compares answers to one problem, so that rollout.n = 1 gives no signal."""
    needs_values: ClassVar[bool] = False
    """Reads the critic's values (`RewardBatch.value_BT`), so the phase must train a critic."""

    @abstractmethod
    def __call__(self, batch: RewardBatch) -> Advantages:
        """Advantage of each token, 0 outside the mask and on unjudged rows."""


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
