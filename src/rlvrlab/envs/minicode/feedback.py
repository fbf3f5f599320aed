"""The second turn: the policy's own program and one public example on which it fails.

The judge's word on hidden tests is not used: exception messages and results are written by the program, which has seen
hidden inputs and could carry them out. So the program runs again, on public inputs alone, and only that is told; its
result is quoted only where the program could not have fetched it from elsewhere (judge/jail/purity.py).
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from typing import Any

from rlvrlab.envs.minicode import prompts
from rlvrlab.envs.minicode.grammar import show
from rlvrlab.judge.jail.purity import is_pure
from rlvrlab.types import ErrorKind, Problem, Verdict

LONGEST_PROGRAM = 600
"""Characters of the own program shown again."""
CALL = re.compile(r"call (\d+) of")
RETURNED = re.compile(r"returned ('.*'|\".*\")", re.DOTALL)


def second_prompt(problem: Problem, own: str, verdict: Verdict, public: Verdict | None, style: str) -> str:
    """The prompt of another try; `public` is the judge's word on the public inputs, if it was asked."""
    reference, header = problem.reference, problem.reference.get("header", "")
    if problem.skill == "out":
        wrong = own.strip().partition("\n")[0][: prompts.LONGEST_SHOWN]
        again = prompts.prediction(reference["given"], reference["arguments"], f"#not {wrong}\n")
    elif problem.skill == "min":
        line = "#too long\n" if verdict.error is ErrorKind.RULE else _failure(problem, public, own)
        again = prompts.simplification(header + reference["given"], header, line)
    else:
        program = own[:LONGEST_PROGRAM].rstrip("\n") + "\n"
        again = prompts.repair(problem.meta["spec"], program, _failure(problem, public, own), header)
    return prompts.chat("fix" if problem.skill == "gen" else problem.skill, again) if style == "chat" else again


def _failure(problem: Problem, public: Verdict | None, own: str) -> str:
    """One public example and, after `not`, the wrong result; without `not` where the program passes all of them."""
    cases = problem.meta["public"]
    if public is not None and public.correct:
        return prompts.example_line(*cases[0])
    detail = public.detail if public is not None and is_pure(own) else ""
    called = CALL.search(detail)
    number = min(max(int(called.group(1)), 1), len(cases)) if called else 1
    arguments, want = cases[number - 1]
    returned, result = RETURNED.search(detail), prompts.FAILED
    if returned:
        with suppress(ValueError, SyntaxError, TypeError, RecursionError):  # only the beginning of a long one is shown
            result = _shown(ast.literal_eval(ast.literal_eval(returned.group(1))))
    return prompts.example_line(arguments, want, result)


def _shown(value: Any) -> str:
    """A result without blanks, in the order it came in; of kinds that minicode does not have, their name."""
    if type(value) is list:
        return f"[{','.join(map(_shown, value))}]"
    if type(value) is dict:
        return f"{{{','.join(f'{_shown(key)}:{_shown(item)}' for key, item in value.items())}}}"
    return show(value) if value is None or type(value) in (bool, int, float, str) else type(value).__name__
