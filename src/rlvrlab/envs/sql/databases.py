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
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from rlvrlab.judge.modes.sql_twins import make_twin

Rows = Sequence[Sequence[Any]]
Contents = Mapping[str, Rows]
"""Rows by table."""
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
            beside = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            beside.write_bytes(filled(connection, schema, contents).serialize())
            beside.replace(path)
    return str(path)


@lru_cache(maxsize=1000)
def twins(database: Path, many: int) -> tuple[str, ...]:
    """Perturbed copies of a database that was given, not made here; every process makes the same ones."""
    name = hashlib.sha256(str(database.resolve()).encode()).hexdigest()[:12]
    return tuple(str(make_twin(database, folder() / f"{name}.{seed}.sqlite", seed)) for seed in range(many))


@lru_cache(maxsize=1000)
def schema_of(database: Path) -> str:
    """The CREATE statements of somebody else's database."""
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND sql NOT NULL ORDER BY rowid")
        return ";\n".join(row[0].strip() for row in found) + ";"


def rows_of(database: str, trusted_query: str) -> list[Any]:
    """What a query of ours or of the data set returns; for showing, never for judging."""
    with closing(sqlite3.connect(f"{Path(database).resolve().as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(trusted_query).fetchall()
