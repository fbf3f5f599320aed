"""SQLite files made here, kept in a folder of this process and removed with it; nothing is ever written elsewhere.

A database is named by its content, so equal content is made once. The judge reads them; gold and prediction never share
a connection (judge/modes/sql.py).
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from rlvrlab.judge.keys import state_of
from rlvrlab.judge.modes.sql_separation import BadQuestion, separate
from rlvrlab.plain_files import write_whole

Rows = Sequence[Sequence[Any]]
Contents = Mapping[str, Rows]
"""Rows by table."""
GOLD_KEPT = 4096
PAGE_BYTES = 512
"""Small, because the databases are: thousands of them lie in the folder."""


@cache
def folder() -> Path:
    """Where this process keeps its databases."""
    path, owner = Path(tempfile.mkdtemp(prefix="rlvrlab_sql_")), os.getpid()

    @atexit.register
    def remove() -> None:
        if os.getpid() == owner:  # a forked child must not take its parent's databases away
            shutil.rmtree(path, ignore_errors=True)

    return path


def filled(connection: sqlite3.Connection, schema: Sequence[str], contents: Contents) -> sqlite3.Connection:
    """Create the tables and put the rows in."""
    for statement in schema:
        connection.execute(statement)
    for table, rows in contents.items():
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)  # noqa: S608 - our own names
    connection.commit()
    return connection


def stored(schema: Sequence[str], contents: Contents) -> str:
    """The file that holds this content, made when it is not there yet."""
    digest = hashlib.sha256(json.dumps([list(schema), dict(contents)]).encode()).hexdigest()[:24]
    path = folder() / f"{digest}.sqlite"
    if not path.exists():
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            write_whole(path, filled(connection, schema, contents).serialize(), durable=False)
    return str(path)


class Prepared(NamedTuple):
    """A gold query on a database that was given, not made here."""

    twins: tuple[str, ...] = ()
    """Files with other contents, the same in every process."""
    unseparated: tuple[str, ...] = ()
    """Changes of the query that no twin tells from it."""
    refused: str = ""
    """Why the question cannot be judged; empty when it can."""


def prepared(database: Path, gold: str) -> Prepared:
    """The twins on which answers to this query are judged."""
    return _prepared(database, state_of(database), gold)


@lru_cache(maxsize=GOLD_KEPT)
def _prepared(database: Path, _: tuple[int, ...], gold: str) -> Prepared:
    """The same, made again only when the file has changed."""
    try:
        found = separate(database, gold)
    except BadQuestion as error:
        return Prepared(refused=str(error))
    return Prepared(tuple(_kept(twin) for twin in found.twins), found.unseparated)


def _kept(content: bytes) -> str:
    """The file with this content."""
    path = folder() / f"{hashlib.sha256(content).hexdigest()[:24]}.sqlite"
    if not path.exists():
        write_whole(path, content, durable=False)
    return str(path)


def schema_of(database: Path) -> str:
    """The CREATE statements of somebody else's database."""
    return _schema(database, state_of(database))


@lru_cache(maxsize=1000)
def _schema(database: Path, _: tuple[int, ...]) -> str:
    """The same, read again only when the file has changed."""
    found = rows_of(str(database), "SELECT sql FROM sqlite_master WHERE type = 'table' AND sql NOT NULL ORDER BY rowid")
    return ";\n".join(row[0].strip() for row in found) + ";"


def rows_of(database: str, trusted_query: str) -> list[Any]:
    """What a query of ours or of the data set returns; for showing, never for judging."""
    with closing(sqlite3.connect(f"{Path(database).resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(trusted_query).fetchall()
