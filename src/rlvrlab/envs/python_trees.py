"""What can be read off the syntax trees of a data set's code: its examples, what the tests need, what cannot cross.

Nothing here runs anything.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from rlvrlab.judge.extract import LONGEST

NOT_PYTHON = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
"""What reading a text as Python may raise."""
TYPES = {"int", "float", "str", "list", "tuple", "dict", "set", "bool"}


def parsed(text: str) -> ast.Module:
    """The tree; old escape sequences in data are no reason to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def parses(text: str) -> bool:
    """Whether the text parses as Python; what is longer than any answer may be is not tried."""
    if len(text) > LONGEST:
        return False
    with suppress(*NOT_PYTHON):
        parsed(text)
        return True
    return False


def literal(text: str) -> Any:
    """The value of a literal; anything else is one of NOT_PYTHON. Nothing is run."""
    [node] = parsed(text.strip()).body
    if not isinstance(node, ast.Expr):
        raise ValueError("not a literal")
    return ast.literal_eval(node.value)


def doctests(program: str, name: str) -> tuple[str, ...]:
    """The examples of a function's docstring as asserts, where their result is a literal."""
    import doctest  # brings the debugger and unittest along, which no training needs

    try:
        functions = [node for node in parsed(program).body if isinstance(node, ast.FunctionDef) and node.name == name]
        found = [e for node in functions for e in doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")]
    except NOT_PYTHON:
        return ()
    asserts = [f"assert {one.source.strip()} == {one.want.strip()}" for one in found if f"{name}(" in one.source]
    return tuple(text for text in asserts if example_of(text, name) is not None)


def example_of(test: str, name: str) -> tuple[str, Any] | None:
    """`assert f(1, 2) == [3]` as ("f(1, 2)", [3]); None for any other form."""
    with suppress(*NOT_PYTHON):
        match parsed(test).body:
            case [ast.Assert(ast.Compare(ast.Call() as call, [ast.Eq()], [right]))] if ast.unparse(call.func) == name:
                return ast.unparse(call), ast.literal_eval(right)
    return None


def tested(code: ast.Module, tests: Sequence[ast.Module]) -> str | None:
    """The function of the solution that the tests call most."""
    defined = {node.name for node in ast.walk(code) if isinstance(node, ast.FunctionDef)}
    used = [node.id for test in tests for node in ast.walk(test) if isinstance(node, ast.Name)]
    called = [name for name in used if name in defined]
    return Counter(called).most_common(1)[0][0] if called else None


def size(text: str) -> int:
    """Characters that count: layout does not, so joining lines by ; makes no program shorter."""
    return sum(map(len, text.replace(";", " ").split()))


def imports(code: ast.Module, tests: Sequence[ast.Module]) -> list[str]:
    """Imports of the solution that the tests rely on."""
    used = {node.id for test in tests for node in ast.walk(test) if isinstance(node, ast.Name)}
    imports = [node for node in code.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return [ast.unparse(node) for node in imports if used & {alias.asname or alias.name for alias in node.names}]


def cannot_cross(tests: Sequence[ast.Module], code: ast.Module, name: str) -> bool:
    """Do the tests hand over classes, types or other names of the solution, or take a generator from it?"""
    if is_generator(code, name):
        return True
    own = {node.name for node in code.body if isinstance(node, ast.FunctionDef | ast.ClassDef)} - {name}
    for node in (node for test in tests for node in ast.walk(test)):
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.Name) and node.id in own):
            return True
        given = node.args if isinstance(node, ast.Call) and ast.unparse(node.func) == name else []
        if any(isinstance(argument, ast.Name) and argument.id in TYPES for argument in given):
            return True
    return False


def is_generator(code: ast.Module, name: str) -> bool:
    """Does the function of that name yield its results?"""
    return any(isinstance(node, ast.FunctionDef) and node.name == name and _yields(node) for node in code.body)


def _yields(node: ast.AST) -> bool:
    """Is this function a generator? What functions inside it do is their own affair."""
    inner = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.FunctionDef | ast.Lambda)]
    return any(isinstance(child, ast.Yield | ast.YieldFrom) or _yields(child) for child in inner)
