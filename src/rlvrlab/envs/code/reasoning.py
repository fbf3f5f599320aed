"""code_reasoning: what does this program return or print? Rows as for `code`, with a solution and public examples.

    id         MBPP/2:output
    prompt     What does `similar_elements((3, 4), (4, 5))` return? … ```python\\ndef similar_elements(…): …```
    completion "(4,)", alone or in a fenced block, after any <think>…</think>
    reference  {"kind": "value", "result": "(4,)"} or {"kind": "printed", "result": "3\\n7\\n"}

Nothing an answer says is run: it must be one literal, and equal. Traps: docstrings give the result away, so they are
taken out; hidden tests of `code` would be given away, so only public examples are asked; examples in docstrings are
sometimes wrong, so each is first tried on the solution, in the jail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlvrlab.envs.code import rewriting
from rlvrlab.envs.code.from_file import FileEnvironment
from rlvrlab.envs.code.judged import Jobs, accepted, refused
from rlvrlab.envs.code.rows import CodeRow
from rlvrlab.envs.code.samples import GENERATION_ROWS
from rlvrlab.envs.code.shapes import GENERATION
from rlvrlab.envs.code.shared_judge import settled
from rlvrlab.envs.python_trees import NOT_PYTHON, example_of, literal
from rlvrlab.judge.compare import RSTRIP_LINES, same_text
from rlvrlab.judge.extract import value_in
from rlvrlab.judge.thinking import after_thinking
from rlvrlab.registry import register
from rlvrlab.types import ErrorKind, Problem, Role, Verdict

LONGEST_ANSWER = 2000
ANSWER = "Answer with the {what} alone, in one ``` block."


@register("env", "code_reasoning")
@dataclass(frozen=True)
class CodeReasoning(FileEnvironment):
    """Predict what a program returns or prints."""

    version = "3"
    shapes = GENERATION
    samples = GENERATION_ROWS

    def rows(self) -> list[CodeRow]:
        """Rows with a solution that is right on its first public example."""
        rows = [row for row in super().rows() if row.solution is not None and row.examples]
        jobs = [(self.task(self.reference(row), row.examples[:1]), row.solution or "") for row in rows]
        tried = zip(rows, self.judge(jobs, [row.id for row in rows]), strict=True)
        return [row for row, verdict in tried if settled(verdict, f"{self.name}: the example of {row.id}").correct]

    def problems_of(self, row: CodeRow, role: Role) -> list[Problem]:
        """One question about the row's solution; none where it has no solution, or no example to ask about."""
        if row.solution is None or not row.examples:
            return []
        if row.entry_point:
            example = example_of(row.examples[0], row.entry_point)
            if example is None or not _can_be_said(example[1]):
                return []
            question, kind, what, result = f"What does `{example[0]}` return?", "value", "value", repr(example[1])
        else:
            given, result = row.examples[0]
            question, kind, what = f"What does this program print when it reads {given!r}?", "printed", "output"
        program = rewriting.stripped(row.solution or "")
        problem = Problem(
            id=f"{row.id}:output",
            source=self.name,
            skill="code_reasoning",
            prompt=f"{question} {ANSWER.format(what=what)}\n\n```python\n{program}```\n",
            reference={"kind": kind, "result": result},
            meta={"solution": f"```\n{result.rstrip()}\n```\n", "program": program},
            role=role,
        )
        return [problem]

    def prepare(self, problem: Problem, text: str) -> Jobs | Verdict:
        """Read and compare; there is nothing to run."""
        answer = value_in(text).code
        if answer is None:
            return refused(ErrorKind.FORMAT, "no answer after the thinking")
        expected = problem.reference["result"]
        if problem.reference["kind"] == "printed":
            right = same_text(answer.encode("utf-8", "surrogatepass"), expected, RSTRIP_LINES)
            return accepted(answer) if right else refused(ErrorKind.WRONG, "another output", answer, compiled=True)
        try:
            value = _literal(answer.strip())
        except NOT_PYTHON:
            return refused(ErrorKind.SYNTAX, "not one literal", answer)
        wanted = _literal(expected)
        right = bool(value == wanted) and _says_yes_or_no(value, wanted)
        return accepted(answer) if right else refused(ErrorKind.WRONG, "another value", answer, compiled=True)

    def second_turn(self, problem: Problem, text: str, verdict: Verdict) -> str:
        """The question again; that the answer was wrong is all there is to tell."""
        last = (after_thinking(text) or "").strip()[:LONGEST_ANSWER]
        return f"{problem.prompt.rstrip()}\n\nYour last answer:\n{last}\n\nIt is wrong. Try again.\n"

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """Ways to say nothing, or several things."""
        right = str(problem.reference["result"]).rstrip()
        return {
            "nothing": "",
            "prose": f"I think it is {right}, but I am not sure.",
            "empty block": "```\n```",
            "only thought": f"<think>{right}</think>",
            "still thinking": f"{right}<think>",
            "withdrawn": f"```\n{right}\n```\n```\n'something else'\n```",
            "two answers": f"{right}\n'something else'",
            "hedge": f"{right} or {right!r}",
            "the program": str(problem.meta["program"]),
            "the prompt": problem.prompt,
            "an expression": f"(lambda: {right!r})()",
            "a call": "__import__('os').system('true')",
            "a list of guesses": f"[{right!r}, 1, 2, 3]",
            "anything": "...",
            "deep nesting": "(" * 900 + ")" * 900,
            "very long": f"{right}{' ' * 9000}x",
            "null byte": f"{right}\0",
            "lone surrogate": f"{right}\ud800",
        }


def _literal(text: str) -> Any:
    """A value of plain types; never more than a parse."""
    if len(text) > LONGEST_ANSWER or "\0" in text:
        raise ValueError("too long")
    value = literal(text)
    if value is ...:
        raise ValueError("not a value")
    return value


def _can_be_said(value: Any) -> bool:
    """Is there an answer that is this value? Not to an infinity, or to what is longer than answers may be."""
    try:
        return bool(_literal(repr(value)) == value)
    except NOT_PYTHON:
        return False


def _says_yes_or_no(value: Any, wanted: Any) -> bool:
    """Where a Boolean is wanted, 1 and 0.0 are none, though Python calls them equal.

    The other way round True may stand for 1, and 12 for 12.0: what is wanted was written in a test, and not returned.
    """
    if isinstance(wanted, list | tuple):
        return all(map(_says_yes_or_no, value, wanted))
    if isinstance(wanted, dict):
        return _says_yes_or_no(set(value), set(wanted)) and all(
            _says_yes_or_no(value[key], wanted[key]) for key in wanted
        )
    if isinstance(wanted, set):
        found = {one: one for one in value}
        return all(_says_yes_or_no(found[one], one) for one in wanted)
    return isinstance(value, bool) or not isinstance(wanted, bool)
