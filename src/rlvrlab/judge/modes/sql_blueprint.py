"""What is known of a database before other contents are drawn for it: its tables, keys, references and values."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.judge.keys import state_of

MOST_VALUES = 1000
"""Rows that are read of a table: enough to draw from."""


class Column(NamedTuple):
    """A column and the values it has."""

    name: str
    values: tuple[Any, ...]
    unique: bool
    """No two rows share a value."""
    reference: tuple[str, str] | None = None
    """Table and column whose values it repeats, by declaration or by all its values and its name."""


class Table(NamedTuple):
    """A table whose columns can be filled."""

    name: str
    columns: tuple[Column, ...]
    rows: int


class Blueprint(NamedTuple):
    """A database without its contents."""

    statements: tuple[str, ...]
    """The CREATE statements of tables, then of indexes and views."""
    tables: tuple[Table, ...]
    """Those that are referred to come before those that refer to them, as far as possible."""


def quoted(name: str) -> str:
    """A name as it may stand in a query, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def blueprint_of(database: Path) -> Blueprint:
    """Read a database that is trusted; a table with contents of its own kind (full-text search) is left out."""
    return _blueprint(database, state_of(database))


@lru_cache(maxsize=200)
def _blueprint(database: Path, _: tuple[int, ...]) -> Blueprint:
    """The same, read again only when the file has changed."""
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        order = "ORDER BY type != 'table', rowid"
        found = connection.execute(
            f"SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL AND type != 'trigger' {order}"  # noqa: S608
        ).fetchall()
        usable = [row for row in found if not row[1].startswith("sqlite_") and "VIRTUAL TABLE" not in row[2].upper()]
        tables = [_table(connection, name) for kind, name, _ in usable if kind == "table"]
        declared = {table.name: _declared(connection, table.name, tables) for table in tables}
    return Blueprint(tuple(row[2] for row in usable), tuple(_sorted(_linked(tables, declared))))


def _table(connection: sqlite3.Connection, name: str) -> Table:
    info = [row for row in connection.execute(f"PRAGMA table_xinfo({quoted(name)})") if not row[6]]
    keys = [row[1] for row in info if row[5]]
    alone = {keys[0]} if len(keys) == 1 else set()
    for index in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
        members = [row[2] for row in connection.execute(f"PRAGMA index_info({quoted(index[1])})")]
        if index[2] and len(members) == 1:
            alone.add(members[0])
    names = [row[1] for row in info]
    listed = ", ".join(map(quoted, names))
    rows = connection.execute(f"SELECT {listed} FROM {quoted(name)} LIMIT {MOST_VALUES}").fetchall()  # noqa: S608
    columns = [tuple(row[i] for row in rows) for i in range(len(names))]
    return Table(name, tuple(Column(n, v, n in alone) for n, v in zip(names, columns, strict=True)), len(rows))


def _declared(connection: sqlite3.Connection, name: str, tables: Sequence[Table]) -> dict[str, tuple[str, str]]:
    """The references of a table by column; one to a table's key by default may leave the column out."""
    named = {table.name.lower(): table for table in tables}
    found = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})"):
        table = named.get(row[2].lower())
        if table is None:
            continue
        wanted = (row[4] or "").lower()
        columns = [c.name for c in table.columns if c.name.lower() == wanted or (not wanted and c.unique)]
        if columns:
            found[row[3].lower()] = (table.name, columns[0])
    return found


def _linked(tables: Sequence[Table], declared: dict[str, dict[str, tuple[str, str]]]) -> list[Table]:
    keys = [(table.name, column.name, set(column.values)) for table in tables for column in table.columns
            if column.values and (column.unique or len(set(column.values)) == len(column.values))]  # fmt: skip
    linked = []
    for table in tables:
        columns = []
        for column in table.columns:
            reference = declared[table.name].get(column.name.lower())
            if reference is None:
                reference = _guessed(table, column, keys)
            columns.append(column._replace(reference=reference if reference != (table.name, column.name) else None))
        linked.append(table._replace(columns=tuple(columns)))
    return linked


def _guessed(table: Table, column: Column, keys: list[tuple[str, str, set[Any]]]) -> tuple[str, str] | None:
    """A key of another table that has all values of this column and a name like it: concert.Stadium_ID, stadium.Id."""
    values = {value for value in column.values if value is not None}
    name = column.name.lower()
    for other, key, known in keys:
        alike = name == key.lower() or other.lower().rstrip("s") in name
        # Of two tables with one key, only one can refer to the other.
        mutual = column.unique and table.name < other and values == known
        if other != table.name and alike and values and values <= known and not mutual:
            return other, key
    return None


def _sorted(tables: list[Table]) -> list[Table]:
    placed: list[Table] = []
    waiting = list(tables)
    while waiting:
        names = {table.name for table in placed}
        ready = [
            t for t in waiting if all(c.reference is None or c.reference[0] in (*names, t.name) for c in t.columns)
        ]
        placed += ready or waiting[:1]
        waiting = [table for table in waiting if table not in placed]
    return placed
