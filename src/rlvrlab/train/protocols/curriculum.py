"""From easy to hard, and from short answers to long ones; the optimiser's state is carried along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.train.protocols.base import Stage, TrainingProtocol, checked_shares, cut, drawn, skills_of
from rlvrlab.types import Count, Positive, Problem

if TYPE_CHECKING:
    from rlvrlab.train.lab import Lab


@register("protocol", "curriculum")
@dataclass(frozen=True)
class Curriculum(TrainingProtocol):
    """One stage per level of difficulty."""

    levels: tuple[int, ...] = ()
    """In the order they are trained; empty takes all levels of the training problems, rising."""
    shares: tuple[Positive, ...] = ()
    """Of the phase's steps, one per level; empty shares them evenly."""
    lengths: tuple[Count, ...] = ()
    """Longest answer at each level, in tokens; empty takes rollout.max_tokens throughout."""
    cumulative: bool = False
    """Keep the earlier levels in the mix."""

    def stages(self, problems: Sequence[Problem], steps: int) -> list[Stage]:
        """Levels must exist; every stage trains all skills that have the level."""
        known = sorted({problem.meta["level"] for problem in problems if "level" in problem.meta})
        levels = self.levels or tuple(known)
        missing = [level for level in levels if level not in known]
        if missing or not levels:
            raise UserError(f"protocol.levels: no training problem of level {missing or 'any'}; there are {known}")
        if self.lengths and len(self.lengths) != len(levels):
            raise UserError(f"protocol.lengths: {len(self.lengths)} lengths for {len(levels)} levels; one each or none")
        bounds = cut(steps, checked_shares("protocol", self.shares, len(levels)), "protocol")
        found = []
        for i, (level, (first, last)) in enumerate(zip(levels, bounds, strict=True)):
            skills = tuple(skills_of([p for p in problems if p.meta.get("level") == level]))
            length = self.lengths[i] if self.lengths else None
            found.append(Stage(i, f"level{level}", skills, first, last, carry=i > 0, max_tokens=length))
        return found

    def problems(self, lab: Lab, stage: Stage, stream: str, step: int, size: int) -> list[Problem]:
        """Of the stage's level, or of all levels up to it."""
        known = sorted({problem.meta["level"] for problem in lab.train if "level" in problem.meta})
        levels = (self.levels or tuple(known))[: stage.index + 1]
        levels = levels if self.cumulative else levels[-1:]
        chosen = [problem for problem in lab.train if problem.meta.get("level") in levels]
        return drawn(chosen, (lab.recipe.seed, f"{stream}/{stage.name}"), step * size, (step + 1) * size)
