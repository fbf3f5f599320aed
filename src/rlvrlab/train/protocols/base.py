"""A protocol cuts an on-line phase into stages and says which problems each of them draws.

A stage that does not carry over begins like a phase: fresh optimiser, reference policy frozen anew. Every skill is
evaluated when a stage ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rlvrlab.errors import UserError, suggestion
from rlvrlab.randomness import shuffled
from rlvrlab.types import Problem

if TYPE_CHECKING:
    from rlvrlab.train.lab import Lab


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

    @abstractmethod
    def stages(self, problems: Sequence[Problem], steps: int) -> list[Stage]:
        """The stages of a phase of `steps` steps, without gaps; raises UserError when they cannot be."""

    def problems(self, lab: Lab, stage: Stage, stream: str, step: int, size: int) -> list[Problem]:
        """The `step`-th draw of a stage: by default from all problems of its skills alike."""
        chosen = tuple(p for p in lab.train if p.skill in stage.skills)
        return drawn(chosen, (lab.recipe.seed, f"{stream}/{stage.name}"), step * size, (step + 1) * size)


def drawn(problems: Sequence[Problem], key: tuple[object, ...], first: int, last: int) -> list[Problem]:
    """Places `first` … `last` of an endless stream that visits every problem once per epoch, reshuffled."""
    found: list[Problem] = []
    for epoch in range(first // len(problems), (last - 1) // len(problems) + 1) if last > first else ():
        offset = epoch * len(problems)
        found += shuffled(problems, *key, "epoch", epoch)[max(0, first - offset) : last - offset]
    return list({problem.id: problem for problem in found}.values())


def skills_of(problems: Sequence[Problem]) -> list[str]:
    """In order of first appearance."""
    return list(dict.fromkeys(problem.skill for problem in problems))


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


def checked_shares(what: str, shares: Sequence[float], count: int) -> Sequence[float]:
    """One share per stage; none given means equal ones."""
    if shares and len(shares) != count:
        raise UserError(f"{what}.shares: {len(shares)} shares for {count} stages; give one each or none")
    return shares or [1.0] * count
