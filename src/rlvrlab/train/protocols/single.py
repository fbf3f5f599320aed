"""Train one skill; the others are only evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvrlab.registry import register
from rlvrlab.train.protocols.base import (
    Stage,
    TrainingProtocol,
    check_skills,
    skills_of,
)
from rlvrlab.types import Problem


@register("protocol", "single")
@dataclass(frozen=True)
class Single(TrainingProtocol):
    """One skill, the whole phase long."""

    skill: str = ""
    """Which; empty takes the first one of the training problems."""

    def stages(self, train: Sequence[Problem], steps: int) -> list[Stage]:
        """One stage with one skill."""
        skill = self.skill or skills_of(train)[0]
        check_skills("protocol.skill", [skill], train)
        return [Stage(0, skill, (skill,), 0, steps)]
