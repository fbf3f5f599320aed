"""L2 to the anchor: a spring to the parameters with which the stage began. The simplest baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlvrlab.engines.base import Snapshot, Vector
from rlvrlab.registry import register
from rlvrlab.train.guards.base import Guard, Moment
from rlvrlab.types import Positive

if TYPE_CHECKING:
    from rlvrlab.train.lab import Lab


@register("guard", "l2")
@dataclass(frozen=True)
class L2:
    """½ coef |θ − θ*|² added to the loss, while there is something to protect."""

    coef: Positive = 0.01
    """Strength."""
    protected: tuple[str, ...] = ()
    """Skills to protect when they are not trained; empty protects those of earlier stages."""

    def build(self) -> Guard:
        """The spring."""
        return Spring(self.coef)


class Spring(Guard):
    """Holds a snapshot."""

    def __init__(self, coef: float) -> None:
        super().__init__()
        self._coef = coef
        self._anchor: Snapshot | None = None

    def begin(self, now: Moment) -> None:
        """Anchor where the stage begins."""
        if now.protected:
            self.memory["step"] = now.step
            self._anchor = now.lab.engine.snapshot()

    def terms(self, now: Moment) -> list[tuple[Vector, float]]:
        """θ − θ*."""
        if not now.protected or self._anchor is None:
            return []
        return [(now.lab.engine.pull(self._anchor), self._coef)]

    def anchors(self) -> set[int]:
        """The one anchor."""
        return {self.memory["step"]} if "step" in self.memory else set()

    def rebuild(self, lab: Lab, step: int) -> None:
        """The snapshot alone."""
        self._anchor = lab.engine.snapshot()
