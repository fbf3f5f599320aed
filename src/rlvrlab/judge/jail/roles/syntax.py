"""Compile without running, and say what the program looks like."""

from __future__ import annotations

import ast
import re

from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution

LINE_END = re.compile("\r\n|\r|\n")
"""Python's own; `str.splitlines` also ends lines where a text may go on, such as U+2028."""


def run(job: Job, report: Report) -> None:
    """Report signatures, undocumented functions, the longest line and all names used."""
    solution.compiled(job["code"], report)
    tree = ast.parse(job["code"].encode("utf-8", "surrogatepass"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    signatures = []
    for node in functions:
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        signatures.append(f"{node.name}({', '.join(argument.arg for argument in arguments)})")
    facts = {
        "functions": signatures,
        "undocumented": [node.name for node in functions if not ast.get_docstring(node)],
        "longest_line": max(map(len, LINE_END.split(job["code"]))),
        "names": sorted({name for node in ast.walk(tree) for name in _names(node)}),
    }
    report("facts", facts)


def _names(node: ast.AST) -> list[str]:
    """What a node uses by name; `os.path` uses `os` and `path` as well."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return [name]
        case ast.Import(aliases):
            return [name for alias in aliases for name in (alias.name, *alias.name.split("."))]
        case ast.ImportFrom(module, aliases):
            return [*(module or "").split("."), module or "", *(alias.name for alias in aliases)]
    return []
