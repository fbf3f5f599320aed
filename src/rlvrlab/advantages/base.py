"""What an advantage estimator says about itself, so that the loop need not know it by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from rlvrlab.batch import Advantages, RewardBatch


class AdvantageEstimator(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("advantage", …)."""

    name: ClassVar[str]
    """Registered name."""
    by_parts: ClassVar[bool] = False
    """Reads the reward's named parts: a group with equal totals but different parts still has signal."""
    needs_groups: ClassVar[bool] = True
    """Compares answers to one problem, so that rollout.n = 1 gives no signal."""
    needs_values: ClassVar[bool] = False
    """Reads the critic's values (`RewardBatch.value_BT`), so the phase must train a critic."""

    @abstractmethod
    def __call__(self, batch: RewardBatch) -> Advantages:
        """Advantage of each token, 0 outside the mask and on unjudged rows."""
