"""From easy to hard, and from short answers to long ones; the optimiser's state is carried along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlvrlab.errors import UserError
from rlvrlab.registry import register
from rlvrlab.train.protocols.base import TrainingProtocol, checked_shares, cut, levels_of
from rlvrlab.train.state import Stage
from rlvrlab.types import Count, Positive, Problem, skills_of


@register("protocol", "curriculum")
@dataclass(frozen=True)
class Curriculum(TrainingProtocol):
    """One stage per level of difficulty; the optimiser's state is carried along."""

    levels: tuple[int, ...] = ()
    """In the order they are trained; empty takes all levels of the training problems, rising."""
    shares: tuple[Positive, ...] = ()
    """Of the phase's steps, one per level; empty shares them evenly."""
    lengths: tuple[Count, ...] = ()
    """Longest answer at each level, in tokens; empty takes rollout.max_tokens throughout."""
    cumulative: bool = False
    """Keep the earlier levels in the mix."""

    @property
    def changes_length(self) -> bool:
        """Where lengths are given."""
        return bool(self.lengths)

    def lengths_in_all(self, steps: int, longest: int) -> int:
        """Each level has its own length and its share of the steps."""
        if not self.lengths or steps < len(self.lengths):
            return steps * longest
        bounds = cut(steps, checked_shares(self.shares, len(self.lengths)), "protocol")
        return sum((last - first) * length for (first, last), length in zip(bounds, self.lengths, strict=True))

    def stages(self, train: Sequence[Problem], steps: int) -> list[Stage]:
        """Levels must exist; every stage trains all skills that have the level."""
        known, levels = levels_of(train), self.levels or tuple(levels_of(train))
        missing = [level for level in levels if level not in known]
        if not known:
            remedy = "give the rows a level, take an environment that has levels, or leave the protocol out"
            raise UserError(f"protocol: a curriculum goes by level, and these training problems have none; {remedy}")
        if missing:
            raise UserError(f"protocol.levels: no training problem of level {missing}; there are {known}")
        if self.lengths and len(self.lengths) != len(levels):
            raise UserError(f"protocol.lengths: {len(self.lengths)} lengths for {len(levels)} levels; one each or none")
        bounds = cut(steps, checked_shares(self.shares, len(levels)), "protocol")
        lengths = self.lengths or [None] * len(levels)
        stages = []
        for i, (level, length, (first, last)) in enumerate(zip(levels, lengths, bounds, strict=True)):
            skills = tuple(skills_of([p for p in train if p.meta.get("level") == level]))
            stages.append(Stage(i, f"level{level}", skills, first, last, carry=i > 0, max_tokens=length))
        return stages

    def pool(self, train: Sequence[Problem], stage: Stage) -> list[Problem]:
        """The stage's level, or all levels up to it."""
        levels = (self.levels or tuple(levels_of(train)))[: stage.index + 1]
        levels = levels if self.cumulative else levels[-1:]
        return [problem for problem in train if problem.meta.get("level") in levels]
