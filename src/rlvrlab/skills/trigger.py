"""When to protect a skill: only while it has really dropped.

The same problems are answered again from time to time. `lost` were right at the anchor and are wrong now, `won` the
other way round. Protection comes on when the loss is larger than chance would have it (one-sided exact sign test), and
goes off after the skill has stood level for several checks: the gap between the two keeps it from flickering.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import comb
from typing import Any

SIGNIFICANCE = 0.05
CALM_CHECKS = 2
"""Checks in a row without a net loss before protection goes off."""


@dataclass(frozen=True)
class Trigger:
    """The state of one skill's switch."""

    on: bool = False
    calm: int = 0
    """Checks in a row without a net loss."""
    switched: int = 0
    """How often it went on."""

    def checked(self, lost: int, won: int) -> Trigger:
        """The switch after one more check."""
        if not self.on:
            fires = lost > won and sign_test(lost, won) < SIGNIFICANCE
            return Trigger(on=fires, switched=self.switched + fires)
        calm = self.calm + 1 if lost <= won else 0
        return Trigger(False, 0, self.switched) if calm >= CALM_CHECKS else replace(self, calm=calm)

    def to_json(self) -> dict[str, Any]:
        """Fields for a checkpoint; `Trigger(**fields)` brings it back."""
        return asdict(self)


def sign_test(lost: int, won: int) -> float:
    """One-sided exact p: so many losses or more among the changed, under a fair coin."""
    n = lost + won
    return sum(comb(n, i) for i in range(lost, n + 1)) / 2**n
