"""Which skills are trained when. A protocol cuts an on-line phase into stages and says which problems each one draws.

    single       one skill, the whole phase long; the others are only evaluated
    mixed        all skills in every step, in given proportions
    sequential   one skill after the other: where forgetting shows
    curriculum   from easy to hard, and from short answers to long ones

A stage that does not carry over begins like a phase: fresh optimiser, reference policy frozen anew. Every skill is
evaluated when a stage ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import floor

from rlvrlab.errors import UserError, suggestion
from rlvrlab.randomness import shuffled
from rlvrlab.registry import register
from rlvrlab.types import Count, Positive, Problem


@dataclass(frozen=True)
class Stage:
    """A stretch of a phase with one choice of problems."""

    index: int
    name: str
    skills: tuple[str, ...]
    """Trained in it."""
    first: int
    """Phase step at which it begins."""
    last: int
    """Phase step at which it is over."""
    carry: bool = False
    """Optimiser and reference go on from the stage before."""
    max_tokens: int | None = None
    """Longest answer in this stage; None takes rollout.max_tokens."""


class TrainingProtocol(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("protocol", …)."""

    @property
    def restarts_optimizer(self) -> bool:
        """Does any stage but the first begin with a fresh optimiser and reference?"""
        return False

    @property
    def changes_length(self) -> bool:
        """Does the longest answer differ from stage to stage?"""
        return False

    def lengths_in_all(self, steps: int, longest: int) -> int:
        """The longest answer of each step, added up over a phase's steps."""
        return steps * longest

    @abstractmethod
    def stages(self, train: Sequence[Problem], steps: int) -> list[Stage]:
        """The stages of a phase of `steps` steps, without gaps; raises UserError when they cannot be."""

    def problems(
        self, train: Sequence[Problem], seed: int, stage: Stage, stream: str, step: int, size: int
    ) -> list[Problem]:
        """The `step`-th draw of a stage: by default from all problems of its skills alike."""
        pool = [problem for problem in train if problem.skill in stage.skills]
        return drawn(pool, (seed, f"{stream}/{stage.name}"), step * size, (step + 1) * size)


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
        bounds = cut(steps, _checked_shares(self.shares, len(order)), "protocol")
        return [
            Stage(i, skill, (skill,), first, last, carry=self.carry_optimizer and i > 0)
            for i, (skill, (first, last)) in enumerate(zip(order, bounds, strict=True))
        ]


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
        bounds = cut(steps, self.shares or [1.0] * len(self.lengths), "protocol")
        return sum((last - first) * length for (first, last), length in zip(bounds, self.lengths, strict=True))

    def stages(self, train: Sequence[Problem], steps: int) -> list[Stage]:
        """Levels must exist; every stage trains all skills that have the level."""
        known, levels = levels_of(train), self.levels or tuple(levels_of(train))
        missing = [level for level in levels if level not in known]
        if missing or not levels:
            raise UserError(f"protocol.levels: no training problem of level {missing or 'any'}; there are {known}")
        if self.lengths and len(self.lengths) != len(levels):
            raise UserError(f"protocol.lengths: {len(self.lengths)} lengths for {len(levels)} levels; one each or none")
        bounds = cut(steps, _checked_shares(self.shares, len(levels)), "protocol")
        lengths = self.lengths or [None] * len(levels)
        stages = []
        for i, (level, length, (first, last)) in enumerate(zip(levels, lengths, bounds, strict=True)):
            skills = tuple(skills_of([p for p in train if p.meta.get("level") == level]))
            stages.append(Stage(i, f"level{level}", skills, first, last, carry=i > 0, max_tokens=length))
        return stages

    def problems(
        self, train: Sequence[Problem], seed: int, stage: Stage, stream: str, step: int, size: int
    ) -> list[Problem]:
        """From the stage's level, or from all levels up to it."""
        levels = (self.levels or tuple(levels_of(train)))[: stage.index + 1]
        levels = levels if self.cumulative else levels[-1:]
        pool = [problem for problem in train if problem.meta.get("level") in levels]
        return drawn(pool, (seed, f"{stream}/{stage.name}"), step * size, (step + 1) * size)


def stages_of(protocol: TrainingProtocol | None, train: Sequence[Problem], steps: int) -> list[Stage]:
    """The stages of a phase; without a protocol, one that trains everything."""
    if protocol is None:
        return [Stage(0, "all", tuple(skills_of(train)), 0, steps)]
    return protocol.stages(train, steps)


def stage_at(stages: Sequence[Stage], phase_step: int) -> Stage:
    """The stage that a step belongs to."""
    return next((stage for stage in stages if stage.first <= phase_step < stage.last), stages[-1])


def drawn(problems: Sequence[Problem], key: tuple[object, ...], first: int, last: int) -> list[Problem]:
    """Places `first` … `last` of an endless stream that visits every problem once per epoch, reshuffled.

    Over the edge of two epochs a problem may come twice; it is kept once, so that its answers are one group.
    """
    chosen: list[Problem] = []
    for epoch in range(first // len(problems), (last - 1) // len(problems) + 1) if last > first else ():
        offset = epoch * len(problems)
        chosen += shuffled(problems, *key, "epoch", epoch)[max(0, first - offset) : last - offset]
    return list({problem.id: problem for problem in chosen}.values())


def skills_of(problems: Sequence[Problem]) -> list[str]:
    """The skills in order of first appearance."""
    return list(dict.fromkeys(problem.skill for problem in problems))


def levels_of(problems: Sequence[Problem]) -> list[int]:
    """The levels of difficulty that problems have, rising."""
    return sorted({problem.meta["level"] for problem in problems if "level" in problem.meta})


def check_skills(what: str, wanted: Sequence[str], problems: Sequence[Problem]) -> None:
    """Every name must be a skill of the training problems, once."""
    known = skills_of(problems)
    for name in wanted:
        if name not in known:
            raise UserError(f"{what}: no training problem has skill {name!r}{suggestion(name, known)}")
    if len(set(wanted)) < len(wanted):
        raise UserError(f"{what}: {list(wanted)} names a skill twice")


def cut(steps: int, shares: Sequence[float], what: str) -> list[tuple[int, int]]:
    """Consecutive stretches in proportion to the shares, each at least one step long."""
    if steps < len(shares):
        raise UserError(f"{what}: {len(shares)} stages in {steps} steps; raise the phase's steps")
    total, bounds = float(sum(shares)), [0]
    for i in range(len(shares)):
        wanted = round(steps * sum(shares[: i + 1]) / total)
        bounds.append(min(max(wanted, bounds[-1] + 1), steps - (len(shares) - i - 1)))
    return list(pairwise(bounds))


def _checked_shares(shares: Sequence[float], count: int) -> Sequence[float]:
    if shares and len(shares) != count:
        raise UserError(f"protocol.shares: {len(shares)} shares for {count} stages; give one each or none")
    return shares or [1.0] * count
