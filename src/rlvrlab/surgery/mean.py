"""Pooling: every token counts the same, so large groups lead. What training without surgery does; the first control."""

from __future__ import annotations

from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.surgery.base import Memory, Scene, Surgery, Weighed


@register("surgery", "mean")
@dataclass(frozen=True)
class Mean(Surgery):
    """Pool the groups: weights are their shares of the batch."""

    def weigh(self, scene: Scene, memory: Memory) -> Weighed:
        """A dead group keeps its share of the mean, as it would in one pooled loss."""
        return Weighed(scene.share_S, memory)
