"""What an objective says about itself, so that engines and the loop need not know it by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from rlvrlab.batch import Floats, TokenBatch
from rlvrlab.objectives.aggregate import Aggregation
from rlvrlab.types import Couples, Loss


class PolicyObjective(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("objective", …)."""

    couples: ClassVar[Couples] = "row"
    """Rows that must be in the same micro-batch: each alone, a preference pair, or all."""
    aggregation: Aggregation = "token-mean"
    """How token losses become one number. KL, entropy and the weights of groups in surgery follow it; an objective that
    is no sum over tokens (dpo) keeps this default for them."""

    @abstractmethod
    def __call__(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> Loss:
        """Value and coefficients; `logp_BT` and `entropy_BT` are detached."""

    @abstractmethod
    def metrics(self, logp_BT: Floats, entropy_BT: Floats, batch: TokenBatch) -> dict[str, float]:
        """Diagnostics already divided by the global normaliser: sums over micro-batches are right."""
