"""Which tests speak of the function that a bug is planted in: they are few, and most often the ones that notice."""

from __future__ import annotations

import ast
import re
from functools import cache

from mutant_plants import FUNCTIONS


def names_for(text: str, start: int) -> set[str]:
    """What tests may call the place by: the function and class around it, those of the file that lead there, and the
    names that plug-ins of the file are registered under."""
    line = text.count("\n", 0, start) + 1
    around = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    registered = set(re.findall(r'^@register\("\w+", "(\w+)"', text, re.MULTILINE))
    innermost = max(around, key=lambda node: node.lineno, default=None)
    if innermost is None:
        return registered
    return registered | {name for name in _leading_to(text, frozenset({innermost.name})) if not name.startswith("_")}


def speaking_tests(path: str, text: str, names: set[str]) -> list[str]:
    """Tests of a file that mention one of the names, themselves or by way of the file's own functions."""
    if not names or not _mentions(text, names):
        return []
    led = _leading_to(text, frozenset(names))
    return [f"{path}::{test}" for test, name in _tests_in(text) if name in led]


@cache
def _leading_to(text: str, names: frozenset[str]) -> set[str]:
    """The names, and every function and class of the text that mentions one of them or one of those."""
    lines, found = text.split("\n"), set(names)
    bodies = {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
    }
    while more := {name for name, body in bodies.items() if name not in found and _mentions(body, found)}:
        found |= more
    return found


def _mentions(body: str, names: set[str]) -> bool:
    return re.search(rf"\b(?:{'|'.join(map(re.escape, names))})\b", body) is not None


@cache
def _tests_in(text: str) -> list[tuple[str, str]]:
    """Tests as pytest calls them, and the names of their functions."""
    found: list[tuple[str, str]] = []
    for node in ast.parse(text).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        before = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found += [
            (before + one.name, one.name)
            for one in inside
            if isinstance(one, FUNCTIONS) and one.name.startswith("test_")
        ]
    return found
