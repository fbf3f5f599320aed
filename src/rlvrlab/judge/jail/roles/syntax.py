"""Compile without running, and say what the program looks like.

A function counts under the name by which the module offers it: one at the top level, `solve(xs, k)`, or a method of a
class there, `Solution.solve(self, xs)`. One inside another function is nobody else's. Which branch of an `if` or a
`try` is taken is not known without running, so a function in any of them counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.roles import solution
from rlvrlab.judge.jail.signatures import Function, signature

LINE_END = re.compile("\r\n|\r|\n")
"""Python's own; `str.splitlines` also ends lines where a text may go on, such as U+2028."""


def run(job: Job, report: Report) -> None:
    """Report signatures, undocumented functions, the longest line and all names used."""
    solution.compiled(job["code"], report)
    tree = ast.parse(job["code"].encode("utf-8", "surrogatepass"))
    everywhere = [node for node in ast.walk(tree) if isinstance(node, Function)]
    facts = {
        "functions": [signature(name, node) for name, node in _offered(tree)],
        "undocumented": [node.name for node in everywhere if not (ast.get_docstring(node) or "").strip()],
        "longest_line": max(map(len, LINE_END.split(job["code"]))),
        "names": sorted({name for node in ast.walk(tree) for name in _names(node)}),
    }
    report("facts", facts)


def _offered(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Functions that can be reached from outside by a name, with this name."""
    left: list[tuple[str, ast.AST]] = [("", tree)]
    while left:
        prefix, node = left.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                yield prefix + child.name, child
            elif isinstance(child, ast.ClassDef):
                left.append((f"{prefix}{child.name}.", child))
            elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
                left.append((prefix, child))


def _names(node: ast.AST) -> list[str]:
    """What a node uses by name; `os.path` uses `os` and `path` as well, `case object(eval=e)` uses `eval`."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return [name]
        case ast.MatchClass(kwd_attrs=names):
            return names
        case ast.Import(aliases):
            return [name for alias in aliases for name in (alias.name, *alias.name.split("."))]
        case ast.ImportFrom(module, aliases):
            return [*(module or "").split("."), module or "", *(alias.name for alias in aliases)]
    return []
