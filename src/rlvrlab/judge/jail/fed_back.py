"""Do tests hand what the candidate returned back to it?

    assert candidate(candidate(3) * 2) == 12        what is passed depends on the answer, in kind and in size
    first = f(3); assert f(first.values) == 4       `values` may be anything there
    assert f(lambda x: x) == 4                      the tests' own doing

Read by names alone, and rather seen than missed: where the answer has a say in what is passed, a value that cannot
cross the wall must not make a bad task of a wrong answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from rlvrlab.judge.jail.evaluating import nodes_of

Binding = tuple[set[str], set[str]]
"""Names that get a value, and the names that it is made of."""


def feed_results_back(texts: Sequence[str], entry_point: str) -> bool:
    """Is the candidate called with anything that may be made of its results?"""
    nodes = nodes_of([ast.parse(text) for text in texts])
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    candidates = {"candidate", entry_point.rpartition(".")[2]} | called & parameters  # `check` calls what it is given
    functions = {node.name: _parameters(node) for node in nodes if isinstance(node, ast.FunctionDef)}
    results = _made_of(candidates, [binding for node in nodes for binding in _bindings(node, functions)])
    return any(isinstance(node, ast.Call) and _takes(node, candidates, results) for node in nodes)


def _made_of(names: set[str], bindings: Sequence[Binding]) -> set[str]:
    """These names and all whose values are made of theirs, by way of however many others."""
    found, size = set(names), 0
    while len(found) > size:
        size = len(found)
        for targets, sources in bindings:
            if sources & found:
                found |= targets
    return found


def _bindings(node: ast.AST, functions: Mapping[str, set[str]]) -> Iterator[Binding]:
    """What this node gives a value to; `functions` are the names of the tests' own parameters, by function."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield _names(targets), _names([value])
        case ast.AugAssign(target, _, value) | ast.NamedExpr(target, value):
            yield _names([target]), _names([value])
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield _names([target]), _names([value])
        case ast.For(target, source) | ast.AsyncFor(target, source) | ast.comprehension(target, source):
            yield _names([target]), _names([source])
        case ast.withitem(source, ast.expr() as target):
            yield _names([target]), _names([source])
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield {name}, _names(node.body)
        case ast.Call(ast.Name(name), given, named):
            yield functions.get(name, set()), _names([*given, *named])
        case ast.Call(ast.Attribute(ast.Name(name)), given, named):  # `results.append(candidate(3))`
            yield {name}, _names([*given, *named])


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}


def _names(parts: Sequence[ast.AST]) -> set[str]:
    return {node.id for node in nodes_of(parts) if isinstance(node, ast.Name)}


def _takes(call: ast.Call, candidates: set[str], results: set[str]) -> bool:
    """Is the candidate called there, or passed on to be called, with anything of those names?"""
    given = [*call.args, *(word.value for word in call.keywords)]
    passed = [part for part in given if isinstance(part, ast.Name) and part.id in candidates]
    others = [part for part in given if part not in passed]
    here = isinstance(call.func, ast.Name) and call.func.id in candidates
    return (here or bool(passed)) and bool(_names(others) & results)
