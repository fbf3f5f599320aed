"""Train one skill after the other: where forgetting shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.train.protocols.base import TrainingProtocol, check_skills, checked_shares, cut
from rlvrlab.train.state import Stage
from rlvrlab.types import Positive, Problem, skills_of


@register("protocol", "sequential")
@dataclass(frozen=True)
class Sequential(TrainingProtocol):
    """One stage per skill; the phase's steps are shared between them."""

    order: tuple[str, ...] = ()
    """Skills in the order they are trained; empty takes their order in the training problems."""
    shares: tuple[Positive, ...] = ()
    """Of the phase's steps, one per stage; empty shares them evenly."""
    carry_optimizer: bool = False
    """Keep momentum and reference policy from one skill to the next."""

    @property
    def restarts_optimizer(self) -> bool:
        """Unless it is carried over."""
        return not self.carry_optimizer

    def stages(self, train: Sequence[Problem], steps: int) -> list[Stage]:
        """The skills in their order, each with its share of the steps."""
        order = self.order or tuple(skills_of(train))
        check_skills("protocol.order", order, train)
        bounds = cut(steps, checked_shares(self.shares, len(order)), "protocol")
        return [
            Stage(i, skill, (skill,), first, last, carry=self.carry_optimizer and i > 0)
            for i, (skill, (first, last)) in enumerate(zip(order, bounds, strict=True))
        ]
