"""Function bodies that nobody can tell apart: they bind local names and return nothing.

    x=[v for v in x if v>4]\\n x=x[:3]\\n       and       pass\\n        both return None and leave nothing behind

Cut before its `return`, a program is such a body, and every other one of the problem is its equal: they are judged
once. Calls count as harmless only for built-ins that change nothing; `x.sort()`, `x[0] = 1`, a loop or a print may be
seen from outside, so a body with one of those is like no other. What may differ is how it fails: one raises, the other
returns None; both are refused, for a test that wants None would also take an empty body.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from rlvrlab.envs.python_trees import NOT_PYTHON, parsed

NUMBERS = ("abs", "bool", "divmod", "float", "int", "pow", "round", "sum")
ROWS = ("all", "any", "dict", "enumerate", "len", "list", "max", "min", "range", "reversed", "set", "sorted", "str")
HARMLESS = {*NUMBERS, *ROWS, "tuple", "zip"}
SEEN = (ast.Attribute, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)


@lru_cache(maxsize=512)
def unseen(code: str, header: str) -> bool:
    """Is this the body of a function that only computes for itself?"""
    if not header:
        return False
    try:
        tree = parsed(header + code)
    except NOT_PYTHON:
        return False
    body = tree.body[0].body if len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef) else []
    return bool(body) and all(_binds_quietly(statement) for statement in body)


def _binds_quietly(statement: ast.stmt) -> bool:
    """Binds plain names to values that are computed without effect, or does nothing at all."""
    if not isinstance(statement, ast.Assign):
        return isinstance(statement, ast.Pass)
    for node in ast.walk(statement.value):
        quiet = isinstance(node.func, ast.Name) and node.func.id in HARMLESS if isinstance(node, ast.Call) else True
        if not quiet or isinstance(node, SEEN):
            return False
    return all(isinstance(target, ast.Name) for target in statement.targets)
