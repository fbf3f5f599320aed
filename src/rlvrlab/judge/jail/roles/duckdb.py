"""Queries on DuckDB databases, opened read-only, without files, extensions or settings of the query's own.

DuckDB has no authoriser; that a query changes nothing rests on the read-only file and on Landlock. It has no progress
handler either: the supervisor's CPU budget ends a query that takes too long.
"""

from __future__ import annotations

import importlib
from typing import Any

from rlvrlab.judge.jail import plain
from rlvrlab.judge.jail.child import Job, Report

SETTINGS = {
    "threads": "1",
    "memory_limit": "512MB",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
QUERIES = ("SELECT", "MULTI")
"""Kinds of statements that ask; MULTI is a PIVOT. `CREATE TEMP TABLE … AS` would answer with a number of rows."""
ENGINE: Any = importlib.import_module("duckdb")
# Opened before any fork: an engine that starts up in the jail asks /proc for its memory and dies of the refusal.
CONNECTION: Any = ENGINE.connect(":memory:", config=SETTINGS)


def run(job: Job, report: Report) -> None:
    """One query per child, so that none can attach or set anything for the next."""
    ((database, query),) = job["queries"]
    try:
        quoted, most_rows = database.replace("'", "''"), job["most_rows"]
        CONNECTION.execute(f"ATTACH '{quoted}' AS task (READ_ONLY)")
        for setting in ("USE task", "SET enable_external_access=false", "SET lock_configuration=true"):
            CONNECTION.execute(setting)
        statements = CONNECTION.extract_statements(query)
        if len(statements) != 1:
            raise ValueError("one statement at a time")
        if statements[0].type.name not in QUERIES:
            raise ValueError(f"not a query: {statements[0].type.name}")
        cursor = CONNECTION.execute(query)
        rows = cursor.fetchmany(most_rows + 1)
        if len(rows) > most_rows:
            raise ValueError(f"more than {most_rows} rows")
        encoded = [[plain.encode(value, _as_text) for value in row] for row in rows]
        report("rows", len(cursor.description or ()), encoded)
    except (ENGINE.Error, ValueError, RuntimeError, plain.NotPlain) as error:
        report("sql_error", type(error).__name__, str(error)[:300])


def _as_text(value: object) -> plain.Encoded:
    """UUIDs and the like compare by how they print."""
    return [type(value).__name__, str(value)]
