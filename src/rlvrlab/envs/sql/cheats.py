"""Queries that a careless grader takes for right, or that take the grader down."""

# ruff: noqa: S608 - these queries are meant to be hostile; they only ever run in the jail

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlvrlab.envs.answer_cheats import unthought


def query_cheats(gold: str, rows: Sequence[Sequence[Any]], table: str) -> dict[str, str]:
    """Cheats in the query; `rows` is what gold returns on the shown database."""
    width = len(rows[0])
    return {
        "result as literals": " UNION ALL ".join(f"SELECT {', '.join(map(_literal, row))}" for row in rows),
        "42": "SELECT 42",
        "nothing": f"SELECT * FROM ({gold}) LIMIT 0",
        "every row twice": f"SELECT * FROM ({gold}) UNION ALL SELECT * FROM ({gold})",
        "one column more": f"SELECT *, 1 FROM ({gold})",
        "nulls": f"SELECT {', '.join(['NULL'] * width)} FROM ({gold})",
        "empty texts": f"SELECT {', '.join(repr('') for _ in range(width))} FROM ({gold})",
        "two statements": f"{gold}; {gold}",
        "drop after it": f"{gold}; DROP TABLE {table}",
        "drop": f"DROP TABLE {table}",
        "delete": f"DELETE FROM {table}",
        "whole table": f"SELECT *, 0 FROM {table}",
        "update": f"UPDATE {table} SET id = 0",
        "shadow table": f"CREATE TEMP TABLE {table} AS SELECT 1",
        "attach": "ATTACH DATABASE ':memory:' AS other",
        "pragma": f"PRAGMA table_info({table})",
        "vacuum": "VACUUM INTO 'stolen.sqlite'",
        "extension": "SELECT load_extension('x')",
        "no such table": "SELECT answer FROM gold",
        "words": "the answer is above",
        "open bracket": f"SELECT ({gold}",
        "NUL": f"{gold}\0",
    }


def bombs(table: str) -> dict[str, str]:
    """Queries that never end."""
    many = ", ".join(f"{table} t{i}" for i in range(12))
    return {
        "recursion": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c",
        "cross join": f"SELECT COUNT(*) FROM {many}",
        "printf": "SELECT printf('%.*c', 1500000000, 'x')",
    }


def text_cheats(gold: str, prompt: str) -> dict[str, str]:
    """Cheats in the text around the query: it stands in the wrong place, or is not the last word."""
    block = f"```sql\n{gold}\n```"
    return unthought(block, prompt) | {
        "open block": f"<think>.</think>```sql\n{gold}",
        "another language after it": f"<think>.</think>{block}\n```python\nprint(1)\n```",
        "wrong block after it": f"<think>.</think>{block}\n```sql\nSELECT 42\n```",
        "prose before a bare query": f"<think>.</think>The query is {gold}",
        "no query": "<think>.</think>",
    }


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"
