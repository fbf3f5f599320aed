"""Rows of code data sets, read strictly: what cannot be read is named by file, row and column.

CodeRow(id="MBPP/2", text="Write a function …", entry_point="similar_elements", tests=("assert …", …), …)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rlvrlab.envs.answers import as_seen
from rlvrlab.envs.code import quixbugs_folder
from rlvrlab.envs.data_files import read_rows
from rlvrlab.envs.files_read import kept_with_files
from rlvrlab.envs.python_trees import NOT_PYTHON, parsed
from rlvrlab.envs.split import TEST_ONLY
from rlvrlab.errors import UserError
from rlvrlab.judge.keys import state_of
from rlvrlab.types import Role

SPLITS: dict[str, Role] = {
    "train": "train", "dev": "dev", "valid": "dev", "val": "dev", "validation": "dev", "test": "test",
}  # fmt: skip


@dataclass(frozen=True)
class CodeRow:
    """One problem, whatever shape it came in."""

    id: str
    text: str
    """What is asked, in words; for HumanEval the beginning of the program."""
    tests: tuple[Any, ...]
    """Hidden: pieces of assert code, or pairs of input and output."""
    examples: tuple[Any, ...] = ()
    """Tests that may be shown, of the same kind as the hidden ones."""
    entry_point: str = ""
    """The function under test; empty for a program that reads and prints."""
    begun: str = ""
    """The beginning of the program, which an answer may continue."""
    setup: str = ""
    """Trusted code the tests need."""
    solution: str | None = None
    """A whole program that is right."""
    buggy: str | None = None
    """A whole program with a bug."""
    inprocess: bool = False
    """The tests hand over objects that cannot cross to the candidate's process: judged together, integrity weak."""
    left_out: str = ""
    """Why the row cannot be judged strictly; such rows are not given out."""
    role: Role | None = None
    counted: Mapping[str, int] = field(default_factory=dict)
    """How many tests there are of each kind, {"base": 7, "plus": 993}, where a data set has several kinds."""


class BadColumn(ValueError):
    """A column that is not what its shape says."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(f"column {column!r}: {what}")


class Columns:
    """One row; every access checks the type."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = row

    def has(self, column: str) -> bool:
        """Whether the column is there and not null."""
        return self.row.get(column) is not None

    def any(self, *columns: str) -> Any:
        """The first of these columns that is there."""
        for column in columns:
            if self.has(column):
                return self.row[column]
        raise BadColumn(columns[0], "missing")

    def text(self, *columns: str, default: str | None = None) -> str:
        """The first of these columns that is there, which must be a string."""
        if default is not None and not any(self.has(column) for column in columns):
            return default
        value = self.any(*columns)
        if not isinstance(value, str):
            raise BadColumn(columns[0], f"a string was expected, not {type(value).__name__}")
        return value

    def name(self, *columns: str) -> str:
        """A string or a number that names the row."""
        value = self.any(*columns)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise BadColumn(columns[0], "a name or number was expected")
        return str(value)

    def texts(self, column: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A column that must be a list of strings."""
        if default is not None and not self.has(column):
            return default
        value = self.any(column)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise BadColumn(column, "a list of strings was expected")
        return tuple(value)

    def program(self, column: str, value: str) -> ast.Module:
        """The syntax tree of a column's value, which must be Python."""
        try:
            return parsed(value)
        except NOT_PYTHON as error:
            raise BadColumn(column, f"not Python: {error}") from None


Shape = Callable[[Columns], CodeRow]
PREPARED = {"data_source", "prompt", "reward_model", "extra_info"}
"""Columns of the files that `rlvr data prepare` writes."""


def read_shaped(path: Path, shapes: Mapping[str, Shape], shape: str, role_of: Role | None) -> Sequence[CodeRow]:
    """All rows of a file; read again only when the file has changed."""
    states = tuple([(str(file), state_of(file)) for file in (path, *quixbugs_folder.files_in(path))])
    return _read(path, states, tuple(shapes.items()), shape, role_of)


@kept_with_files(8)
def _read(
    path: Path, _: tuple[object, ...], shapes: tuple[tuple[str, Shape], ...], shape: str, role_of: Role | None
) -> Sequence[CodeRow]:
    rows = quixbugs_folder.folder_rows(path) if path.is_dir() else read_rows(path)
    return shaped([row for _, row in rows], dict(shapes), shape, role_of, str(path))


def shaped(
    rows: Sequence[Mapping[str, Any]], shapes: Mapping[str, Shape], shape: str, role_of: Role | None, where: str
) -> list[CodeRow]:
    """Rows in one of the shapes; `auto` takes the first shape that can read the first row."""
    if not rows:
        raise UserError(f"{where}: no rows")
    try:
        read = fitting(Columns(rows[0]), shapes)[0] if shape == "auto" else shapes[shape]
    except ValueError as error:
        if rows[0].keys() >= PREPARED:
            remedy = f"use `--data {where}` or data.train_file, data.dev_file, data.test_file of a recipe"
            raise UserError(f"{where}: these are prepared rows, and path takes rows as published; {remedy}") from None
        raise UserError(f"{where}: row 1 has {error}") from None
    problems: list[CodeRow] = []
    for number, row in enumerate(rows, 1):
        try:
            columns = Columns(row)
            problems.append(replace(read(columns), role=_role(columns, role_of)))
        except BadColumn as error:
            raise UserError(f"{where}: row {number}: {error}") from None
    ids: dict[str, int] = {}
    texts: dict[str, tuple[int, Role | None]] = {}
    for number, problem in enumerate(problems, 1):
        first = ids.setdefault(problem.id, number)
        if first != number:
            raise UserError(f"{where}: row {number}: id {problem.id!r} is also that of row {first}")
        content = as_seen(problem.text + (problem.buggy or ""))
        twin, role = texts.setdefault(content, (number, problem.role))
        if role != problem.role:
            raise UserError(f"{where}: row {number} ({problem.role}) asks the same as row {twin} ({role})")
    return problems


def fitting(columns: Columns, shapes: Mapping[str, Shape]) -> tuple[Shape, CodeRow]:
    """The first of the shapes that can read this row, and what it reads; ValueError says why each cannot."""
    reasons = []
    for name, read in shapes.items():
        try:
            return read, read(columns)
        except BadColumn as error:
            reasons.append(f"{name} ({error})")
    raise ValueError(f"none of the shapes {', '.join(reasons)}")


def _role(columns: Columns, role_of: Role | None) -> Role:
    """A test set stays one, a row's own mark comes next, then what the recipe says of the file."""
    if str(columns.row.get("task_id", "")).startswith(TEST_ONLY):
        return "test"
    if columns.has("split"):
        split = columns.text("split").lower()
        if split not in SPLITS:
            raise BadColumn("split", f"{split!r}: allowed: {', '.join(SPLITS)}")
        return SPLITS[split]
    if role_of is None:
        raise BadColumn("split", 'missing; give the file a role: role_of = "train", "dev" or "test"')
    return role_of
