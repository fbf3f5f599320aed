"""A protocol cuts an on-line phase into stages and says which problems each of them draws.

A stage that does not carry over begins like a phase: fresh optimiser, reference policy frozen anew. Every skill is
evaluated when a stage ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from rlvrlab.errors import UserError, suggestion
from rlvrlab.randomness import drawn
from rlvrlab.train.state import Stage
from rlvrlab.types import Problem, skills_of


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

    def quota(self, stage: Stage, step: int, size: int) -> dict[str, int]:
        """Problems of each skill in the `step`-th draw of a stage; empty where skills are drawn as they come."""
        return {}

    def taken_unnamed(self, train: Sequence[Problem]) -> str:
        """The skill that alone is trained though nobody has named it; empty where that is not so."""
        return ""

    @abstractmethod
    def stages(self, train: Sequence[Problem], steps: int) -> list[Stage]:
        """The stages of a phase of `steps` steps, without gaps; raises UserError when they cannot be."""

    def pool(self, train: Sequence[Problem], stage: Stage) -> list[Problem]:
        """What a stage draws from: by default all problems of its skills alike."""
        return [problem for problem in train if problem.skill in stage.skills]

    def problems(
        self, train: Sequence[Problem], seed: int, stage: Stage, stream: str, step: int, size: int
    ) -> list[Problem]:
        """The `step`-th draw of a stage."""
        pool = self.pool(train, stage)
        return drawn(pool, (seed, f"{stream}/{stage.name}"), step * size, (step + 1) * size)


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


def checked_shares(shares: Sequence[float], count: int) -> Sequence[float]:
    """One share per stage; none given means equal ones."""
    if shares and len(shares) != count:
        raise UserError(f"protocol.shares: {len(shares)} shares for {count} stages; give one each or none")
    return shares or [1.0] * count
