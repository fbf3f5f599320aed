"""One stage, the whole phase long: several skills in given proportions, or one, with the others only evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor

from rlvrlab.randomness import drawn
from rlvrlab.registry import register
from rlvrlab.train.protocols.base import TrainingProtocol, check_skills
from rlvrlab.train.state import Stage
from rlvrlab.types import Positive, Problem, skills_of


@register("protocol", "single")
@dataclass(frozen=True)
class Single(TrainingProtocol):
    """One skill, the whole phase long."""

    skill: str = ""
    """Which; empty takes the first one of the training problems."""

    def taken_unnamed(self, train: Sequence[Problem]) -> str:
        """The first skill, where there are others and none is named."""
        skills = skills_of(train)
        return "" if self.skill or len(skills) == 1 else skills[0]

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
        chosen: list[Problem] = []
        before, after = self._dealt(stage, step * size), self._dealt(stage, (step + 1) * size)
        for skill in stage.skills:
            pool = [problem for problem in train if problem.skill == skill]
            chosen += drawn(pool, (seed, f"{stream}/{skill}"), before[skill], after[skill])
        return chosen

    def quota(self, stage: Stage, step: int, size: int) -> dict[str, int]:
        """By ratio; over many steps to the problem."""
        before, after = self._dealt(stage, step * size), self._dealt(stage, (step + 1) * size)
        return {skill: after[skill] - before[skill] for skill in stage.skills}

    def _dealt(self, stage: Stage, places: int) -> dict[str, int]:
        """How many of so many places each skill has had."""
        weights = [float(self.ratios.get(skill, 1.0)) for skill in stage.skills]
        return dict(zip(stage.skills, dealt(places, weights), strict=True))


def dealt(places: int, weights: Sequence[float]) -> list[int]:
    """So many places by weight, by Webster's method: each goes to the largest weight / (places had + ½).

    One more place never takes one away, so every stretch of places is shared out without remainder. Nobody is further
    than half their number below their fair share, so the dealing can begin there.
    """
    total, count = sum(weights), len(weights)
    had = [max(0, floor(places * weight / total - (count + 1) / 2)) for weight in weights]
    for _ in range(places - sum(had)):
        had[max(range(count), key=lambda i: weights[i] / (had[i] + 0.5))] += 1
    return had
