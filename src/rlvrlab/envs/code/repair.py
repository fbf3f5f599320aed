"""code_repair: repair a program with a bug; hidden tests decide. HumanEvalFix, QuixBugs and files like them.

    id         Python/0
    prompt     This Python function has a bug. Repair it. … ```python\\ndef has_close_elements(…): …```
    completion the whole function in a ```python block
    reference  {"entry_point": …, "tests": […], …, "given": the buggy program}
    meta       {"solution": …, "examples": [asserts from the docstring]}

Traps. HumanEvalFix is often prompted with its tests, which hands out what decides: here only the program and its
docstring are shown. The unchanged program is refused without running, so it farms no share of passed tests; layout,
comments and docstrings are no change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlvrlab.envs.code.cheats import function_cheats
from rlvrlab.envs.code.from_file import ANSWER_FUNCTION, FileEnvironment
from rlvrlab.envs.code.judged import Jobs, refused
from rlvrlab.envs.code.rewriting import same_program
from rlvrlab.envs.code.rows import CodeRow
from rlvrlab.envs.code.samples import REPAIR_ROWS
from rlvrlab.envs.code.shapes import REPAIR
from rlvrlab.judge.extract import program_in, python_block
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict


@register("env", "code_repair")
@dataclass(frozen=True)
class CodeRepair(FileEnvironment):
    """Repair a program with a bug; hidden tests decide."""

    version = "2"
    shapes = REPAIR
    samples = REPAIR_ROWS

    def problems_of(self, row: CodeRow, role: Role) -> list[Problem]:
        """The buggy program, with what it should do where the row says so."""
        if row.buggy is None:
            return []
        described = "" if row.begun or not row.text else f"\n\n{row.text}"
        given = row.buggy.strip("\n")
        asked = f"This Python function has a bug. Repair it. {ANSWER_FUNCTION}{described}\n\n```python\n{given}\n```\n"
        prompt = f"{given}\n\n# The same without the bug:\n" if self.style == "bare" else asked
        return [self.problem_of(row, role, prompt, given=row.buggy)]

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """The unchanged program needs no judge."""
        reference = problem.reference
        found = program_in(text, reference["entry_point"], reference["begun"])
        if found.code is not None and same_program(found.code, reference["given"]):
            return refused(ErrorKind.RULE, "the program is unchanged", found.code, compiled=True)
        return super().prepare(problem, text)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """As for writing a function, and doing nothing."""
        given = str(problem.reference["given"])
        return {
            **function_cheats(problem),
            "unchanged": python_block(given),
            "unchanged with a comment": python_block(f"{given}\n# repaired"),
            "unchanged after the right one": f"{problem.meta['solution']}\n{python_block(given + ' ')}",
        }
