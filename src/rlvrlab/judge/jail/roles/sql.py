"""Queries on SQLite databases that can only be read, each on a connection of its own.

The walls hold what SQLite cannot: a scalar function like printf('%.*c', 1500000000, 'x') never reaches the progress
handler, so the supervisor's CPU budget per query ends it.
"""

from __future__ import annotations

import sqlite3
import time
import urllib.parse
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import Job, Report

ALLOWED_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
REFUSED_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}
HEAP_BYTES = 256 << 20
INSTRUCTIONS_BETWEEN_LOOKS = 20_000


def run(job: Job, report: Report) -> None:
    """One report line per query."""
    for database, query in job["queries"]:
        try:
            report("rows", *_rows(database, query, job["most_rows"], job["seconds"]))
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError, MemoryError) as error:
            report("sql_error", type(error).__name__, str(error)[:300])


def _rows(database: str, query: str, most_rows: int, seconds: float) -> tuple[int, list[Any]]:
    connection = _guarded(database, seconds)
    try:
        cursor = connection.execute(query)
        if cursor.description is None:
            raise sqlite3.DatabaseError("not a query: it returns no columns")
        rows = cursor.fetchmany(most_rows + 1)
        if len(rows) > most_rows:
            raise sqlite3.DataError(f"more than {most_rows} rows")
        return len(cursor.description), [[plain.encode(value) for value in row] for row in rows]
    finally:
        connection.close()


def _guarded(database: str, seconds: float) -> sqlite3.Connection:
    """Read-only and unchanging, no second database, no pragma, bounded in every direction SQLite knows."""
    address = f"file:{urllib.parse.quote(database)}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    connection.execute(f"PRAGMA hard_heap_limit={HEAP_BYTES}")
    connection.execute("PRAGMA temp_store=MEMORY")  # there is no folder to sort in
    for limit, value in (
        (sqlite3.SQLITE_LIMIT_LENGTH, 4 << 20),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 100_000),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 500),
        (sqlite3.SQLITE_LIMIT_VDBE_OP, 250_000),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    ):
        connection.setlimit(limit, value)
    end = time.process_time() + seconds
    connection.set_progress_handler(lambda: time.process_time() > end, INSTRUCTIONS_BETWEEN_LOOKS)
    connection.set_authorizer(_authorise)
    return connection


def _authorise(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action not in ALLOWED_ACTIONS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in REFUSED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
