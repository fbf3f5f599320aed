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
from rlvrlab.registry import register
from rlvrlab.types import Problem, Role


@register("env", "code")
@dataclass(frozen=True)
class Code(FileEnvironment):
    """Write a function or a program; hidden tests decide."""

    version = "2"
    shapes = GENERATION
    samples = GENERATION_ROWS

    def problems_of(self, row: CodeRow, role: Role) -> list[Problem]:
        """One problem: the row's text or begun program, its hidden tests and its solution."""
        shown = "\n".join(one for one in row.examples if isinstance(one, str))
        if row.begun and self.style == "bare":
            prompt = row.begun
        elif row.begun:
            prompt = f"Complete this Python function. {ANSWER_FUNCTION}\n\n```python\n{row.begun.rstrip()}\n```\n"
        elif not row.entry_point:
            prompt = f"{row.text.strip()}\n\n{ANSWER_PROGRAM}\n"
        elif self.style == "bare":
            prompt = f'"""\n{row.text.strip()}\n{shown}\n"""\n'
        else:
            prompt = f"{row.text.strip()} It must pass this test:\n\n{shown}\n\n{ANSWER_FUNCTION}\n"
        return [self.problem_of(row, role, prompt)]

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Every known way to be accepted without a right program."""
        return function_cheats(problem) if problem.reference["entry_point"] else program_cheats(problem)
