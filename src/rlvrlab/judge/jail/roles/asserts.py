"""Reading assert code as data: `assert f(1, [2]) == 3` is a call and what it must equal.

Where every assert is of that kind there is nothing to run: the calls go to the candidate, the expected values to the
judge. Anything else (loops, tolerances, other functions) is refused and runs in a tester of its own.
"""

from __future__ import annotations

import ast
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import Job, Report


class NotData(Exception):
    """This piece of test code has to be run."""


def run(job: Job, report: Report) -> None:
    """One line with the calls of every piece, or a refusal."""
    names = {"candidate", job["entry_point"]}
    try:
        pieces = [_calls(ast.parse(piece).body, names) for piece in job["tests"]]
        report(
            "calls",
            [[plain.encode(part) for part in call] for piece in pieces for call in piece],
            list(map(len, pieces)),
        )
    except (NotData, SyntaxError, ValueError, TypeError, RecursionError, MemoryError, plain.NotPlain):
        report("not_data")


def _calls(body: list[ast.stmt], names: set[str]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    checks: dict[str, ast.FunctionDef] = {}
    for statement in body:
        match statement:
            case ast.Assert():
                found += _call(statement.test, names)
            case ast.FunctionDef(
                name="check", args=ast.arguments(args=[ast.arg()], defaults=[], kwonlyargs=[], vararg=None)
            ):
                checks["check"] = statement
            case ast.Expr(ast.Call(ast.Name("check"), [ast.Name(candidate)], [])) if candidate in names and checks:
                found += _calls(checks["check"].body, {checks["check"].args.args[0].arg})
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Assign([ast.Name("METADATA")], value):
                ast.literal_eval(value)
            case _:
                raise NotData
    return found


def _call(test: ast.expr, names: set[str]) -> list[tuple[Any, ...]]:
    match test:
        case ast.Constant(True):
            return []
        case ast.Compare(ast.Call(ast.Name(name), arguments, named), [operator], [expected]) if name in names:
            values = tuple(ast.literal_eval(argument) for argument in arguments)
            keywords = {word.arg: ast.literal_eval(word.value) for word in named if word.arg}
            if len(keywords) != len(named):
                raise NotData
            wanted = ast.literal_eval(expected)
            if isinstance(operator, ast.Eq) or (
                isinstance(operator, ast.Is) and (wanted is None or isinstance(wanted, bool))
            ):
                return [(values, keywords, wanted, isinstance(operator, ast.Is))]
    raise NotData
