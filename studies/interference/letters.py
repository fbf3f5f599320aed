"""A testbed for interference: skills that share every weight of the policy, with right answers known exactly.

    id         letters:s1:1 90 17 83 5
    prompt     "1 90 17 83 5\\n"      two numbers that name the skill (or the same for all), then three numbers
    completion "C"                    one letter
    reference  ["C"]

The right letter of skill k is the one whose random linear function of the three numbers is largest; a log-linear policy
with products of pairs of features can learn all skills at once. With `shown = false` no skill is named, so the same
prompt has different right letters in different skills: a conflict no policy can resolve, only bargain about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.randomness import generator, key_bits
from rlvrlab.registry import register
from rlvrlab.types import Count, ErrorKind, Fraction01, Problem, Role, Verdict

LETTERS = "ABCDEF"
NAMES = ((90, 1), (1, 90), (90, 90), (1, 1), (30, 1), (1, 30), (30, 90), (90, 30))
"""The two numbers that name each skill."""


@register("env", "letters")
@dataclass(frozen=True)
class Letters(BaseEnvironment):
    """Name the letter; which one is right depends on the skill."""

    world: int = 0
    """Draws the skills' functions."""
    skills: Count = 3
    """How many, at most eight."""
    shown: bool = True
    """Does the prompt name the skill?"""
    agreement: Fraction01 = 0.0
    """Share of a function that all skills have in common."""
    accepted: Count = 1
    """How many of the best letters are right."""

    version = "1"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Skills in turn; roles are split by the three numbers, for all skills alike."""
        rng = generator(seed, "letters", role, self.world)
        found: dict[str, Problem] = {}
        while len(found) < size:
            numbers = tuple(int(v) for v in rng.integers(1, 100, 3))
            if _role(numbers) == role:
                problem = self._problem(len(found) % self.skills, numbers, role)
                found.setdefault(problem.id, problem)
        return list(found.values())

    def gold(self, problem: Problem) -> str | None:
        """The best letter."""
        return str(problem.reference[0])

    def verify(self, problem: Problem, text: str) -> Verdict:
        """One letter, nothing else."""
        if len(text) != 1 or text not in LETTERS:
            return Verdict(False, 0.0, ErrorKind.FORMAT, answer=text[:20], detail="not one of the letters")
        right = text in problem.reference
        return Verdict(right, float(right), ErrorKind.NONE if right else ErrorKind.WRONG, answer=text)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """All letters at once, none, and one that is wrong."""
        wrong = next(letter for letter in LETTERS if letter not in problem.reference)
        return {"all letters": LETTERS, "nothing": "", "wrong letter": wrong, "padded": f" {problem.reference[0]}"}

    def _problem(self, skill: int, numbers: tuple[int, ...], role: Role) -> Problem:
        name = NAMES[skill] if self.shown else NAMES[0]
        own = generator(self.world, "letters", skill).standard_normal((len(LETTERS), len(numbers)))
        common = generator(self.world, "letters", "common").standard_normal((len(LETTERS), len(numbers)))
        weight = self.agreement * common + (1 - self.agreement) * own
        order = np.argsort(-weight @ (np.array(numbers) / 50 - 1), kind="stable")
        reference = [LETTERS[i] for i in order[: self.accepted]]
        text = " ".join(str(v) for v in (*name, *numbers))
        skill_name = f"s{skill}"
        return Problem(f"letters:{skill_name}:{text}", "letters", skill_name, f"{text}\n", reference, {}, role)


def _role(numbers: tuple[int, ...]) -> Role:
    bucket = key_bits("letters", numbers) % 10
    return "test" if bucket == 0 else "dev" if bucket <= 4 else "train"
