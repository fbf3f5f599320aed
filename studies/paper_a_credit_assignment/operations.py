"""The sparse testbed: programs of at most 16 operations out of 24, right with three required and no harmful one.

    id         operations:w0:t2:57
    prompt     "1 1 9 1 : 57\\n"     the 9 names the task, one of four; the last number only tells problems apart
    completion "k4Z~ …"              each character is an operation, and each operation is written by four characters
    reference  [[3, 17, 8], [0, 5, 9, 21]]     required and harmful operations

The reward is 1 or 0 and under 1 % of the answers of a uniform policy are right, so a group of eight mostly has nothing
to tell. Order and repetition do not matter, so what each operation is worth is known.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass

from rlvrlab.envs.base import BaseEnvironment
from rlvrlab.randomness import generator
from rlvrlab.registry import register
from rlvrlab.types import CountOrZero, ErrorKind, Problem, Role, Verdict

TASKS, OPERATIONS, REQUIRED, HARMFUL = 4, 24, 3, 4
CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"
OPERATION_OF = {character: at % OPERATIONS for at, character in enumerate(CHARACTERS)}
FIRST_NUMBER: Mapping[Role, int] = {"train": 0, "dev": 10_000, "test": 20_000}


@register("env", "operations")
@dataclass(frozen=True)
class Operations(BaseEnvironment):
    """Write what is required and nothing harmful; which is which has to be found out."""

    world: CountOrZero = 0
    """Draws the required and the harmful operations of every task."""

    version = "1"

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """The four tasks in turn; the numbers of a role are its own, and say nothing about the answer."""
        return [self._problem(at % TASKS, FIRST_NUMBER[role] + at, role) for at in range(size)]

    def gold(self, problem: Problem) -> str | None:
        """The required operations, each once."""
        return "".join(CHARACTERS[operation] for operation in problem.reference[0])

    def verify(self, problem: Problem, text: str) -> Verdict:
        """Characters that stand for no operation do nothing."""
        required, harmful = problem.reference
        present = {OPERATION_OF[character] for character in text if character in OPERATION_OF}
        right = present.issuperset(required) and present.isdisjoint(harmful)
        return Verdict(right, float(right), ErrorKind.NONE if right else ErrorKind.WRONG, answer=text[:20])

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """All operations, none, and the right ones with one that is harmful."""
        required, harmful = problem.reference
        spoiled = "".join(CHARACTERS[operation] for operation in (*required, harmful[0]))
        return {"all operations": CHARACTERS, "nothing": "", "spoiled": spoiled}

    def _problem(self, task: int, number: int, role: Role) -> Problem:
        order = generator(self.world, "operations", task).permutation(OPERATIONS).tolist()
        reference = [sorted(order[:REQUIRED]), sorted(order[REQUIRED : REQUIRED + HARMFUL])]
        names = " ".join("9" if at == task else "1" for at in range(TASKS))
        name = f"operations:w{self.world}:t{task}:{number}"
        return Problem(name, "operations", f"t{task}", f"{names} : {number}\n", reference, {}, role)
