"""code: write a function or a program; hidden tests decide. HumanEval, MBPP, CodeContests, APPS and files like them.

    id         HumanEval/0
    prompt     Complete this Python function. Answer with … ```python\\nfrom typing import List\\n\\n\\ndef has_close…
    completion "```python\\ndef has_close_elements(numbers, threshold):\\n    …\\n```", or what continues the prompt
    reference  {"entry_point": "has_close_elements", "tests": ["def check(candidate): …"], "setup": …, "begun": …, …}
    meta       {"solution": …, "examples": ["assert has_close_elements([1.0, 2.0, 3.0], 0.5) == False", …]}

Traps. An answer that equals everything, exits early or writes into the grader passes graders in wide use: here tests
run in a process of their own and results cross as plain data. MBPP's function name stands in its tests alone, so its
first test is shown; the others are hidden. Ids of HumanEval are test data whatever the recipe says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlvrlab.envs.code.cheats import function_cheats, program_cheats
from rlvrlab.envs.code.from_file import ANSWER_FUNCTION, ANSWER_PROGRAM, FileEnvironment
from rlvrlab.envs.code.rows import CodeRow
from rlvrlab.envs.code.samples import GENERATION_ROWS
from rlvrlab.envs.code.shapes import GENERATION
from rlvrlab.judge.extract import python_block
from rlvrlab.registry import register
from rlvrlab.types import Problem, Role


@register("env", "code")
@dataclass(frozen=True)
class Code(FileEnvironment):
    """Write a function or a program; hidden tests decide."""

    version = "1"
    shapes = GENERATION
    samples = GENERATION_ROWS

    def problems_of(self, row: CodeRow, role: Role) -> list[Problem]:
        """One problem: the row's text or begun program, its hidden tests and its solution."""
        problem = Problem(
            id=row.id,
            source=self.name,
            skill="code",
            prompt=self._prompt(row),
            reference=self.reference(row),
            meta={
                "solution": None if row.solution is None else python_block(row.solution),
                "examples": [list(one) if isinstance(one, tuple) else one for one in row.examples],
            },
            role=role,
        )
        return [problem]

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Every known way to be accepted without a right program."""
        make = function_cheats if problem.reference["entry_point"] else program_cheats
        return make(problem)

    def _prompt(self, row: CodeRow) -> str:
        shown = "\n".join(one for one in row.examples if isinstance(one, str))
        if row.begun:
            asked = f"Complete this Python function. {ANSWER_FUNCTION}\n\n```python\n{row.begun.rstrip()}\n```\n"
            return row.begun if self.style == "bare" else asked
        if not row.entry_point:
            return f"{row.text.strip()}\n\n{ANSWER_PROGRAM}\n"
        if self.style == "bare":
            return f'"""\n{row.text.strip()}\n{shown}\n"""\n'
        return f"{row.text.strip()} It must pass this test:\n\n{shown}\n\n{ANSWER_FUNCTION}\n"
