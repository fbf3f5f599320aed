"""Programs made from a right one: without docstrings, with docstrings, and with needless work.

Everything goes through the syntax tree of the data set's own solution; nothing is run.
"""

from __future__ import annotations

import ast

from rlvrlab.envs.code.trees import parsed

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
UNUSED = "not_needed"
RESULT = "value_to_return"


def stripped(program: str) -> str:
    """Without docstrings and comments, in Python's own layout."""
    tree = parsed(program)
    for node in _functions(tree):
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return _text(tree)


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
        node.body.insert(0, ast.Assign([ast.Name(UNUSED, ast.Store())], ast.Constant(None)))
    return _text(tree)


def signature(program: str, name: str) -> str | None:
    """`solve(xs, k)`, as the judge writes it; None when the function is not at the top level."""
    for node in parsed(program).body:
        if isinstance(node, FUNCTIONS) and node.name == name:
            given = node.args
            return f"{name}({', '.join(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))})"
    return None


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
