"""Queries on DuckDB databases, opened read-only, without files, extensions or settings of the query's own.

DuckDB has no authoriser; that a query changes nothing rests on the read-only file and on Landlock. It has no progress
handler either: the supervisor's CPU budget ends a query that takes too long.

Values that Python holds as DuckDB does come as they are. Python has no nanoseconds, no infinite dates, no dates after
9999 and no bit strings, and a map looks like a struct there: what differs would agree. Such columns are written out by
DuckDB itself and carry their type.
"""

from __future__ import annotations

import importlib
import re
from time import process_time
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
PLAIN = {
    "boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint",
    "uhugeint", "float", "double", "decimal", "varchar", "blob", "uuid", "enum", "interval", "null", "sqlnull",
}  # fmt: skip
"""Types whose values are the same in Python exactly where they are in DuckDB."""
NESTED = {"list", "array", "struct", "map"}
MOMENTS = {"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"}
"""Types that are compared with each other: midnight is the beginning of its day in any of them."""
NAMED = re.compile(r"\b(?:MAP|STRUCT)\b")
ENGINE: Any = importlib.import_module("duckdb")
# Opened before any fork: an engine that starts up in the jail asks /proc for its memory and dies of the refusal.
CONNECTION: Any = ENGINE.connect(":memory:", config=SETTINGS)


def run(job: Job, report: Report) -> None:
    """One query per child, so that none can attach or set anything for the next."""
    ((database, query),), began = job["queries"], process_time()
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
        columns, rows = _fetched(CONNECTION.sql(query), most_rows + 1)
        if len(rows) > most_rows:
            raise ValueError(f"more than {most_rows} rows")
        report("rows", columns, rows, process_time() - began)
    except (ENGINE.Error, ValueError, RuntimeError, plain.NotPlain) as error:
        report("sql_error", type(error).__name__, str(error)[:300])


def _fetched(relation: Any, most: int) -> tuple[int, list[list[plain.Encoded]]]:
    """The number of columns, and the rows in plain form, at most so many."""
    kinds = list(relation.types)
    chosen = [f"#{at}" if _alike(kind) else f"CAST(#{at} AS VARCHAR)" for at, kind in enumerate(kinds, 1)]
    found = relation.project(", ".join(chosen)).limit(most).fetchall()
    return len(kinds), [[_encoded(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in found]


def _alike(kind: Any) -> bool:
    """Does Python tell values of this type apart as DuckDB does?"""
    if kind.id in NESTED:
        return all(_alike(part) for name, part in kind.children if name != "size")
    return kind.id in PLAIN


def _encoded(value: Any, kind: Any) -> plain.Encoded:
    if value is None or kind.id in PLAIN:
        return plain.encode(value, _as_text)
    if _alike(kind):
        marks = " ".join(NAMED.findall(str(kind)))
        form = plain.encode(value, _as_text)
        return ["list", [marks, form]] if marks else form
    if kind.id == "date" and "infinity" not in value:
        return ["date", value]
    return ["datetime", value.replace(" ", "T", 1)] if kind.id in MOMENTS else [str(kind), value]


def _as_text(value: object) -> plain.Encoded:
    """UUIDs and the like compare by how they print."""
    return [type(value).__name__, str(value)]
