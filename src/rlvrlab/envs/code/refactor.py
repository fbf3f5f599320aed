"""code_refactor: rewrite a right program without changing what it does. Rows as for `code`, with a solution.

    id         HumanEval/0:document          HumanEval/0:shorten
    prompt     Give every function … ```python\\ndef has_close_elements(numbers, threshold): …```
    completion the whole program in a ```python block
    reference  {"entry_point": …, "tests": […], …, "given": …, "goal": "document", "signature": "f(a, b)"}

document: every function has a docstring, no line is over 120 characters, the signature stays. shorten: at most half of
the needless characters are left (layout does not count). Both must compile, bring in neither eval nor exec and still
pass every hidden test. Trap: checks of form alone pay for an empty function with a docstring, tests alone for doing
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rlvrlab.envs.code import rewriting
from rlvrlab.envs.code.cheats import function_cheats
from rlvrlab.envs.code.from_file import FileEnvironment
from rlvrlab.envs.code.judged import Jobs, refused
from rlvrlab.envs.code.rows import CodeRow
from rlvrlab.envs.code.samples import GENERATION_ROWS
from rlvrlab.envs.code.shapes import GENERATION
from rlvrlab.envs.python_trees import parses, size
from rlvrlab.errors import UserError
from rlvrlab.judge.extract import program_in, python_block
from rlvrlab.judge.tasks import SyntaxTask
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

LONGEST_LINE = 120
ASKED = {
    "document": f"Give every function of this program a docstring and keep lines within {LONGEST_LINE} characters.",
    "shorten": "Make this program shorter: leave out what is not needed.",
}
WELL_FORMED = {
    "equal to everything": (
        "    class A:\n        def __eq__(s, o):\n            'Yes.'\n            return True\n    return A()\n"
    ),
    "exit 0": "    raise SystemExit(0)\n",
    "hard exit 0": "    import os\n    os._exit(0)\n",
    "endless loop": "    while 1: pass\n",
    "constant": "    return True\n",
}
"""Bodies that keep every rule of form."""
Goal = Literal["document", "shorten"]


@register("env", "code_refactor")
@dataclass(frozen=True)
class CodeRefactor(FileEnvironment):
    """Another form, the same behaviour."""

    goals: tuple[Goal, ...] = ("document", "shorten")
    """What is asked for, each of every row."""

    version = "2"
    shapes = GENERATION
    samples = GENERATION_ROWS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.goals or not set(self.goals) <= set(ASKED):
            raise UserError(f"code_refactor: goals = {list(self.goals)}: give some of {', '.join(ASKED)}")

    def problems_of(self, row: CodeRow, role: Role) -> list[Problem]:
        """One for each goal; none for rows without a function or a solution."""
        if row.solution is None or not row.entry_point or not parses(row.solution):
            return []
        made = [self._problem(row, goal, rewriting.stripped(row.solution), role) for goal in self.goals]
        return [problem for problem in made if problem is not None]

    def _problem(self, row: CodeRow, goal: Goal, plain: str, role: Role) -> Problem | None:
        """A worse form of the row's solution."""
        signature = rewriting.signature(plain, row.entry_point)
        given = plain if goal == "document" else rewriting.inflated(plain)
        wanted = rewriting.documented(plain) if goal == "document" else plain
        if signature is None or max(map(len, wanted.splitlines())) > LONGEST_LINE:
            return None
        keep = f"It must return the same as before, and {signature} must stay. Answer with the whole program"
        return Problem(
            id=f"{row.id}:{goal}",
            source=self.name,
            skill="code_refactor",
            prompt=f"{ASKED[goal]} {keep} in one ```python block.\n\n```python\n{given}```\n",
            reference={
                **self.reference(row), "begun": "", "given": given, "goal": goal, "signature": signature,
                "most": (size(plain) + size(given)) // 2,
            },
            meta={"solution": python_block(wanted), "examples": list(row.examples)},
            role=role,
        )  # fmt: skip

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """Form first, then behaviour; both by the judge, except for the length."""
        reference = problem.reference
        code = program_in(text).code
        if code is None:
            return super().prepare(problem, text)
        if code.split() == reference["given"].split():
            return refused(ErrorKind.RULE, "the program is unchanged", code, compiled=True)
        documenting = reference["goal"] == "document"
        if not documenting and size(code) > reference["most"]:
            return refused(ErrorKind.RULE, "needless work is left", code, compiled=True)
        form = SyntaxTask(
            functions=(reference["signature"],),
            docstrings=documenting,
            longest_line=LONGEST_LINE if documenting else None,
            forbidden=tuple(name for name in ("eval", "exec") if f"{name}(" not in reference["given"]),
        )
        return ((form, code), (self.task(reference, reference["tests"], self.seconds(problem, self.timeout_s)), code))

    def conclude(self, verdicts: Sequence[Verdict], program: str) -> Verdict:
        """A broken rule of form is no wrong answer, and earns no share of the tests."""
        verdict = super().conclude(verdicts, program)
        if verdicts[0].correct or verdicts[0].error is not ErrorKind.WRONG:
            return verdict
        return replace(verdict, error=ErrorKind.RULE, score=0.0, parts={**verdict.parts, "tests": 0.0})

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """As for writing a function, and only the form without the behaviour."""
        given, signature = str(problem.reference["given"]), problem.reference["signature"]
        head = f'def {signature}:\n    """Return what it is for."""\n'
        return {
            **function_cheats(problem),
            **{f"well formed: {name}": python_block(head + text) for name, text in WELL_FORMED.items()},
            "unchanged": python_block(given),
            "only a docstring": python_block(head),
            "docstring as comment": python_block(given.replace("):\n", "):\n    # Return what it is for.\n")),
            "on fewer lines": python_block(given.replace("\n    ", "\n ")),
        }
