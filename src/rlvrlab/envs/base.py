"""What every environment shares, so that a new one stays one short file.

An environment brings `problems`, `verify`, `gold` and `cheats`; judging many and the self-check follow from these.
A bad answer is data: `verify` returns a verdict for any text whatever. If it raises all the same, that is the
verifier's failure and not the answer's, so the answer stays unjudged instead of scoring 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from rlvrlab.errors import JudgeLost
from rlvrlab.types import Check, Problem, Role, Verdict, unjudged

CHECKED_PROBLEMS = 6


class BaseEnvironment(ABC):
    """Derive a frozen dataclass from this and give it a name with @register("env", …)."""

    name: str
    """Set by @register."""
    version: str
    """Set it in the class, and change it whenever scoring changes."""

    @abstractmethod
    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """`size` distinct problems of that role, deterministic; roles never share a problem."""

    @abstractmethod
    def verify(self, problem: Problem, text: str) -> Verdict:
        """Judge one completion's text."""

    def gold(self, problem: Problem) -> str | None:
        """A completion that scores 1, or None when there is none to show."""
        return None

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Completions, by name, that must never be judged correct."""
        return {}

    def verify_many(self, items: Sequence[tuple[Problem, str]]) -> list[Verdict]:
        """Judge many, in order; a verifier that raises leaves its answer unjudged."""
        return [self._verify_safely(problem, text) for problem, text in items]

    def self_check(self) -> list[Check]:
        """Gold must be correct and every cheat must not, on a few problems of the environment's own making."""
        checks = []
        for problem in self.problems("train", CHECKED_PROBLEMS, seed=0):
            gold = self.gold(problem)
            if gold is not None:
                checks.append(Check("gold", gold, True, self._verify_safely(problem, gold)))
            for cheat, text in self.cheats(problem).items():
                checks.append(Check(f"cheat: {cheat}", text, False, self._verify_safely(problem, text)))
        return checks

    def _verify_safely(self, problem: Problem, text: str) -> Verdict:
        try:
            return self.verify(problem, text)
        except JudgeLost:  # no answer can be judged any more: stop instead of masking them all
            raise
        except Exception as error:
            return unjudged(f"{type(self).__name__}.verify raised {type(error).__name__}: {error}")
