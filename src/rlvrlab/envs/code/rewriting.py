"""Programs made from a right one: without docstrings, with docstrings, and with needless work.

Everything goes through the syntax tree of the data set's own solution; nothing is run.
"""

from __future__ import annotations

import ast

from rlvrlab.envs.python_trees import NOT_PYTHON, parsed
from rlvrlab.judge.jail import signatures

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
RESULT = "value_to_return"


def stripped(program: str) -> str:
    """Without docstrings and comments, in Python's own layout."""
    tree = parsed(program)
    for node in _functions(tree):
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return _text(tree)


def same_program(one: str, other: str) -> bool:
    """Do two texts hold the same program, whatever their layout, comments and docstrings? Nothing is run.

    Texts that are no Python are the same where their words are.
    """
    if one.split() == other.split():
        return True
    try:
        return ast.dump(_without_idle_statements(one)) == ast.dump(_without_idle_statements(other))
    except NOT_PYTHON:
        return False


def _without_idle_statements(program: str) -> ast.Module:
    """The tree without docstrings, other constants that stand alone, and `pass`."""
    tree = parsed(program)
    for node in ast.walk(tree):
        for name, block in ast.iter_fields(node):
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                constants = [one for one in block if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)]
                acting = [one for one in block if not isinstance(one, ast.Pass) and one not in constants]
                setattr(node, name, acting)
    return tree


def documented(program: str) -> str:
    """With a docstring in every function."""
    tree = parsed(program)
    for node in _functions(tree):
        if ast.get_docstring(node) is None:
            node.body.insert(0, ast.Expr(ast.Constant(f"Return what {node.name} is for.")))
    return _text(tree)


def inflated(program: str) -> str:
    """With an unused variable in every function, and every returned value assigned to a name first."""
    tree = _NameResults().visit(parsed(program))
    for node in _functions(tree):
        node.body.insert(0, ast.Assign([ast.Name("not_needed", ast.Store())], ast.Constant(None)))
    return _text(tree)


def signature(program: str, name: str) -> str | None:
    """`solve(xs, k)`, as the judge writes it; None when the function is not at the top level."""
    found = [node for node in parsed(program).body if isinstance(node, FUNCTIONS) and node.name == name]
    return signatures.signature(name, found[0]) if found else None


class _NameResults(ast.NodeTransformer):
    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        if node.value is None:
            return node
        return [
            ast.Assign([ast.Name(RESULT, ast.Store())], node.value),
            ast.Return(ast.Name(RESULT, ast.Load())),
        ]


def _functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]


def _text(tree: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
