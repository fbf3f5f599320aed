"""The package's files as syntax trees: read and parsed once, for every test that looks at them."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

import rlvrlab

SOURCE = Path(rlvrlab.__file__).parent
N = TypeVar("N", bound=ast.AST)


def files(root: Path) -> list[tuple[str, ast.Module]]:
    """(path below the root, tree) of every Python file."""
    return [
        (path.relative_to(root).as_posix(), _parsed(path.read_text("utf-8"))) for path in sorted(root.rglob("*.py"))
    ]


def nodes(tree: ast.Module, kind: type[N]) -> Sequence[N]:
    """All nodes of exactly one kind, in the order of ast.walk."""
    return cast(Sequence[N], _by_kind(tree).get(kind, ()))


@cache
def _parsed(text: str) -> ast.Module:
    """Its nodes are millions of objects that stay: looking for garbage among them would take as long as parsing."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()


@cache
def _by_kind(tree: ast.Module) -> Mapping[type[ast.AST], list[ast.AST]]:
    found: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    for node in ast.walk(tree):
        found[type(node)].append(node)
    return found
