"""A pair of skills that contradict each other: the same digits, in ascending or in descending order.

    id         opposites:up:4 1 7 3 9
    prompt     "up 4 1 7 3 9\\n"       or "down 4 1 7 3 9\\n": only the word tells the skills apart
    completion "1 3 4 7 9\\n"          or "9 7 4 3 1\\n"

Whatever a step teaches about one prompt is wrong for its twin, which differs by one word. A policy can have both
skills, because the word is there to be read; one that is trained on the second alone has no reason to go on reading it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.randomness import generator, key_bits
from rlvrlab.registry import register
from rlvrlab.types import Count, ErrorKind, Problem, Role, Verdict

SKILLS = ("up", "down")


@register("env", "opposites")
@dataclass(frozen=True)
class Opposites(BaseEnvironment):
    """Put different digits in the order that the first word asks for."""

    digits: Count = 5
    """How many, at most ten."""

    version = "1"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Each set of digits is asked of both skills; roles are split by digits, for both skills alike."""
        rng = generator(seed, "opposites", role)
        found: dict[str, Problem] = {}
        while len(found) < size:
            digits = tuple(int(digit) for digit in rng.permutation(10)[: self.digits])
            if _role(digits) == role:
                for skill in SKILLS:
                    problem = self._problem(skill, digits, role)
                    found.setdefault(problem.id, problem)
        return list(found.values())[:size]

    def gold(self, problem: Problem) -> str | None:
        """The digits in order, one line."""
        return f"{problem.reference}\n"

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Exactly the right line."""
        right = text.strip() == problem.reference
        return Verdict(right, float(right), ErrorKind.NONE if right else ErrorKind.WRONG, answer=text.strip()[:40])

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """The other skill's answer, both answers, and none."""
        other = " ".join(reversed(problem.reference.split()))
        return {"the other order": other, "both orders": f"{problem.reference}\n{other}", "nothing": ""}

    def _problem(self, skill: str, digits: tuple[int, ...], role: Role) -> Problem:
        shown = " ".join(map(str, digits))
        right = " ".join(map(str, sorted(digits, reverse=skill == "down")))
        return Problem(f"opposites:{skill}:{shown}", "opposites", skill, f"{skill} {shown}\n", right, {}, role)


def _role(digits: tuple[int, ...]) -> Role:
    bucket = key_bits("opposites", digits) % 10
    return "test" if bucket == 0 else "dev" if bucket <= 2 else "train"
