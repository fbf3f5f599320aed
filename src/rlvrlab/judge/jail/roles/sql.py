"""Queries on SQLite databases that can only be read, on connections that no query can change.

The supervisor is the only clock. SQLite's progress handler would be another, which a scalar function like
printf('%.*c', 1500000000, 'x') never reaches, and which does not know that a hypervisor took the processors away.
"""

from __future__ import annotations

import sqlite3
import urllib.parse
from contextlib import closing
from time import process_time
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import Job, Report
from rlvrlab.judge.jail.limits import LONGEST_SQL
from rlvrlab.judge.jail.roles import solution

ALLOWED_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
REFUSED_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}
HEAP_BYTES = 256 << 20
JSON_TABLES = "SELECT 1 FROM json_each('[]'), json_tree('[]')"
"""Run before the authoriser is set: the first use of these tables declares them, which no query is allowed to do."""
NOTHING_MORE = "; \t\n\f\r"
"""Behind a query: of several semicolons Python would take the second for another statement."""
PRIMARY_CODE = 0xFF
"""The part of SQLite's error number that names the kind."""


def run(job: Job, report: Report) -> None:
    """Run the queries one after the other and report the rows or the error of each."""
    shelf = Shelf()
    for database, query in job["queries"]:
        began = process_time()
        found: tuple[Any, ...]
        try:
            found = "rows", *_rows(shelf, database, query, job["most_rows"])
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError, MemoryError) as error:
            shelf.close()
            found = "sql_error", type(error).__name__, str(error)[:300]
        solution.spend(began + job["cpu_s"])
        report(*found, process_time() - began)


class Shelf:
    """The connection of the last query, good for the next one on the same database: nothing a query may do changes it.

    One that a query failed on is not used again.
    """

    def __init__(self) -> None:
        self._kind = ("", False)
        self._connection: sqlite3.Connection | None = None

    def connection(self, database: str, query: str, in_memory: bool) -> sqlite3.Connection:
        """A guarded connection for this query."""
        kind = database, "json_" in query.lower()
        if self._connection is None or self._kind != kind or in_memory:
            self.close()
            self._kind, self._connection = kind, _guarded(*kind, in_memory)
        return self._connection

    def close(self) -> None:
        """Close the connection; the next query opens a new one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _rows(shelf: Shelf, database: str, query: str, most_rows: int) -> tuple[int, list[Any]]:
    try:
        return _fetched(shelf.connection(database, query, in_memory=False), query, most_rows)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & PRIMARY_CODE not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR):
            raise
    # It wanted a file for what it sorts or collects, and there is no folder for one: slower, but all in memory.
    return _fetched(shelf.connection(database, query, in_memory=True), query, most_rows)


def _fetched(connection: sqlite3.Connection, query: str, most_rows: int) -> tuple[int, list[Any]]:
    with closing(connection.execute(query.rstrip(NOTHING_MORE))) as cursor:
        if cursor.description is None:
            raise sqlite3.DatabaseError("not a query: it returns no columns")
        rows = cursor.fetchmany(most_rows + 1)
        if len(rows) > most_rows:
            raise sqlite3.DataError(f"more than {most_rows} rows")
        return len(cursor.description), [[plain.encode(value) for value in row] for row in rows]


def _guarded(database: str, with_json: bool, in_memory: bool) -> sqlite3.Connection:
    """Read-only and unchanging, no second database, no pragma, bounded in every direction SQLite knows."""
    address = f"file:{urllib.parse.quote(database)}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    connection.execute(f"PRAGMA hard_heap_limit={HEAP_BYTES}")
    if with_json:
        connection.execute(JSON_TABLES).close()
    if in_memory:
        connection.execute("PRAGMA temp_store=MEMORY")
    else:
        connection.execute(f"PRAGMA cache_size=-{HEAP_BYTES >> 10}")  # as much as may be sorted without a file
    for limit, value in (
        (sqlite3.SQLITE_LIMIT_LENGTH, 4 << 20),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, LONGEST_SQL),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
        (sqlite3.SQLITE_LIMIT_VDBE_OP, 250_000),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    ):
        connection.setlimit(limit, value)
    connection.set_authorizer(_authorise)
    return connection


def _authorise(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action not in ALLOWED_ACTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in REFUSED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
