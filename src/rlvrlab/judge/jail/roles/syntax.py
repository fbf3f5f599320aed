"""Compile without running, and say what the program looks like."""

from __future__ import annotations

import ast

from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution


def run(job: Job, report: Report) -> None:
    """One line of facts."""
    solution.compiled(job["code"], report)
    tree = ast.parse(job["code"].encode("utf-8", "surrogatepass"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    facts = {
        "functions": [f"{node.name}({', '.join(_arguments(node))})" for node in functions],
        "undocumented": [node.name for node in functions if not ast.get_docstring(node)],
        "longest_line": max(map(len, job["code"].splitlines()), default=0),
        "names": sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | _attributes(tree)),
    }
    report("facts", facts)


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    return [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _attributes(tree: ast.Module) -> set[str]:
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return imported | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
