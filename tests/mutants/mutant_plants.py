"""Small bugs that can be planted in a file: found in its syntax tree, each a replacement of one stretch of text.

A plant is named by its file, function, kind and line of source, never by a line number, and which plants are chosen
depends on those names alone. So a change elsewhere neither renumbers the list nor draws it anew.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from pathlib import Path

SWAPPED_COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
SWAPPED_OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*"}
SWAPPED_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
REVIEWED = "reviewed"
"""The kind of a bug that was thought of, rather than drawn; its `line` says what would be broken."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Plant:
    """One bug: `old` at `start` of the file's text becomes `new`."""

    file: str
    """Below src/rlvrlab."""
    where: str
    """The function or class around it."""
    kind: str
    line: str
    """The line of source, without its indentation."""
    start: int
    old: str
    new: str
    nth: int = 0
    """Its number among those that would otherwise be named alike."""

    @property
    def name(self) -> str:
        if self.kind == REVIEWED:
            return f"{self.file}: {self.line}"
        words = f"{self.file} {self.where}: {self.line}  [{self.old} → {self.new}]"
        return words + (f" #{self.nth}" if self.nth else "")

    @property
    def room(self) -> str:
        return self.file.partition("/")[0].removesuffix(".py")

    @property
    def rank(self) -> str:
        """The order in which plants are chosen: arbitrary, and the same every time."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    def planted(self, text: str) -> str:
        assert text.startswith(self.old, self.start), self.name
        return text[: self.start] + self.new + text[self.start + len(self.old) :]


def plants_in(file: str, text: str) -> list[Plant]:
    """Every bug of the kinds known here, in the order of the text."""
    found: list[Plant] = []
    seen: dict[str, int] = {}
    place = _Places(text)
    for where, node in _reachable(ast.parse(text), ""):
        for kind, start, end, new in _changes(node, place):
            line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()
            plant = Plant(file, where or "module", kind, line, start, text[start:end], new)
            nth = seen[plant.name] = seen.get(plant.name, -1) + 1
            found.append(Plant(file, plant.where, kind, line, start, plant.old, new, nth))
    return found


def _reachable(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
    """Nodes that do something: no annotations, messages of errors, assertions, decorators or texts for people."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.arg):
            continue
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield where, child.value
                yield from _reachable(child.value, where)
            continue
        if isinstance(child, ast.expr) and child in _spoken(node):
            continue
        if isinstance(child, ast.keyword) and child.arg == "strict":
            continue  # zip(…, strict=True) is an assertion
        inner = where
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            inner = f"{where}.{child.name}".lstrip(".")
        yield inner, child
        yield from _reachable(child, inner)


def _spoken(node: ast.AST) -> list[ast.expr]:
    """What a function is decorated with and returns by annotation: no behaviour to break."""
    if isinstance(node, FUNCTIONS):
        return [*node.decorator_list, *([node.returns] if node.returns else [])]
    return node.decorator_list if isinstance(node, ast.ClassDef) else []


def _changes(node: ast.AST, place: _Places) -> Iterator[tuple[str, int, int, str]]:
    """(kind, start, end, new text) of what can be done to one node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        start, end = place.between(node.left, node.comparators[0])
        yield "comparison", start, end, f" {SWAPPED_COMPARISONS[type(node.ops[0])]} "
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED_OPERATORS and not _is_text(node):
        start, end = place.between(node.left, node.right)
        yield "operator", start, end, f" {SWAPPED_OPERATORS[type(node.op)]} "
    elif isinstance(node, ast.BoolOp):
        start, end = place.between(node.values[0], node.values[1])
        if len(node.values) == 2:
            yield "condition", start, end, " or " if isinstance(node.op, ast.And) else " and "
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "sign", place.start(node), place.start(node.operand), ""
    elif isinstance(node, ast.Constant) and _matters(node.value):
        yield "constant", place.start(node), place.end(node), _other_constant(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SWAPPED_CALLS:
        yield "extreme", place.start(node.func), place.end(node.func), SWAPPED_CALLS[node.func.id]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _prints(node.value):
        yield "dropped call", place.start(node), place.end(node), "pass"


def _matters(value: object) -> bool:
    """Truths, small numbers and shares; another 200 rounds or another tolerance of 1e-12 would be no bug."""
    if isinstance(value, bool):
        return True
    return (isinstance(value, int) and value <= 10) or (isinstance(value, float) and 1e-3 <= value <= 10)


def _other_constant(value: bool | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return str(value + 1) if isinstance(value, int) else str(value * 2 or 0.5)


def _is_text(node: ast.BinOp) -> bool:
    """Formatting and joining of strings."""
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def _prints(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("print", "say", "show")


class _Places:
    """From the tree's lines and bytes to positions in the text."""

    def __init__(self, text: str) -> None:
        self.text, self._lines = text, text.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)

    def between(self, left: ast.expr, right: ast.expr) -> tuple[int, int]:
        """The operator with its blanks; brackets around the sides stay."""
        start, end = self.end(left), self.start(right)
        gap = self.text[start:end]
        stripped = gap.lstrip(")").rstrip("(")
        start += len(gap) - len(gap.lstrip(")"))
        return start, start + len(stripped)


def chosen(source: Path, quota: dict[str, int], left_out: dict[str, str]) -> list[Plant]:
    """So many plants of each room, its files in turn; those of every file by their rank. Rooms come in turn too."""
    result: list[list[Plant]] = []
    for room, count in quota.items():
        files = [source / f"{room}.py"] if (source / f"{room}.py").exists() else sorted((source / room).rglob("*.py"))
        names = [path.relative_to(source).as_posix() for path in files]
        kept = [name for name in names if not name.startswith(tuple(left_out))]
        ranked = [_kinds_in_turn(plants_in(name, (source / name).read_text("utf-8"))) for name in kept]
        ranked.sort(key=lambda plants: plants[0].rank if plants else "")
        result.append(_that_parse(source, in_turn(ranked), count))
    return in_turn(result)


def _kinds_in_turn(plants: list[Plant]) -> list[Plant]:
    """By rank, but one of each kind first: constants are many, and dropped calls few."""
    kinds = sorted({plant.kind for plant in plants})
    by_kind = [sorted((p for p in plants if p.kind == kind), key=lambda p: p.rank) for kind in kinds]
    return in_turn(sorted(by_kind, key=lambda some: some[0].rank))


def in_turn(queues: list[list[Plant]]) -> list[Plant]:
    """The first of each, then the second of each, and so on."""
    return [plant for turn in zip_longest(*queues) for plant in turn if plant is not None]


def _that_parse(source: Path, plants: list[Plant], count: int) -> list[Plant]:
    """The first ones whose file is still Python: brackets over several lines can defeat the cutting of texts."""
    kept: list[Plant] = []
    for plant in plants:
        if len(kept) == count:
            break
        with suppress(SyntaxError):
            ast.parse(plant.planted((source / plant.file).read_text("utf-8")))
            kept.append(plant)
    return kept
