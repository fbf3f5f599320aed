"""L2 to the anchor: a spring to the parameters with which the stage began. The simplest baseline."""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.engines.base import Trainable
from rlvrlab.registry import register
from rlvrlab.train.guards.base import Gradient, Guard, Terms
from rlvrlab.train.state import Kept, Moment
from rlvrlab.types import Positive


@register("guard", "l2")
@dataclass(frozen=True)
class L2(Guard):
    """½ coef |θ − θ*|² added to the loss, while there is something to protect."""

    coef: Positive = 0.01
    """Strength."""

    def begin(self, now: Moment, kept: Kept) -> Kept:
        """Anchor where the stage begins."""
        return Kept({"step": now.step}, {"anchor": now.engine.snapshot()}) if now.protected else kept

    def terms(self, now: Moment, kept: Kept, gradient: Gradient) -> Terms:
        """The pull θ − θ*."""
        if not now.protected or "anchor" not in kept.live:
            return Terms([], [], {})
        return Terms([now.engine.pull(kept.live["anchor"])], [self.coef], {})

    def anchors(self, kept: Kept) -> set[int]:
        """Where the stage began."""
        return {kept.memory["step"]} if "step" in kept.memory else set()

    def rebuild(self, engine: Trainable, kept: Kept, step: int) -> Kept:
        """The snapshot alone."""
        return kept._replace(live={"anchor": engine.snapshot()})
