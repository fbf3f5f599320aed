"""One stage, the whole phase long: several skills in given proportions, or one, with the others only evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor

from rlvrlab.registry import register
from rlvrlab.train.protocols.base import (
    Stage,
    TrainingProtocol,
    check_skills,
    drawn,
    skills_of,
)
from rlvrlab.types import Positive, Problem


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


@register("protocol", "mixed")
@dataclass(frozen=True)
class Mixed(TrainingProtocol):
    """All skills in every step, by ratio."""

    ratios: Mapping[str, Positive] = field(default_factory=dict)
    """Skill -> weight, e.g. {gen = 4, fix = 1}; skills left out are not trained. Empty trains all alike."""

    def stages(self, train: Sequence[Problem], steps: int) -> list[Stage]:
        """One stage with all listed skills."""
        check_skills("protocol.ratios", list(self.ratios), train)
        return [Stage(0, "mixed", tuple(self.ratios) or tuple(skills_of(train)), 0, steps)]

    def problems(
        self, train: Sequence[Problem], seed: int, stage: Stage, stream: str, step: int, size: int
    ) -> list[Problem]:
        """Each skill from a stream of its own; a skill whose share of a step is below one problem comes every few."""
        weight = {skill: float(self.ratios.get(skill, 1.0)) for skill in stage.skills}
        chosen: list[Problem] = []
        for skill in stage.skills:
            rate = size * weight[skill] / sum(weight.values())
            first, last = floor(step * rate + 1e-9), floor((step + 1) * rate + 1e-9)
            pool = [problem for problem in train if problem.skill == skill]
            chosen += drawn(pool, (seed, f"{stream}/{skill}"), first, last)
        return chosen
