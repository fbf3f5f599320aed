"""Questions about a table that a tiny policy can ask for: every name is one letter and every number has two digits.

    prompt  max b of t where c > 41
    query   SELECT MAX(b) FROM t WHERE c > 41

A model of 0.7M parameters that spells names letter by letter learns the frame of a query within a hundred updates of
SFT, but not to copy `purchase` and `weekday` into it. Here a query is copied as a sum is: a few letters and digits.
"""

# ruff: noqa: S608 - the queries are made of our own letters

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from rlvrlab.envs.answers import Draws
from rlvrlab.envs.split import role_of
from rlvrlab.envs.sql.databases import filled
from rlvrlab.randomness import generator
from rlvrlab.types import Role

TABLES, COLUMNS = "tuvw", "abcdef"
FUNCTIONS, SIGNS = ("count", "sum", "max"), (">", "<")
FEWEST_ROWS, MOST_ROWS = 6, 12
FRUITLESS = 2000


class Small(NamedTuple):
    """A question, its database and the one value that answers it."""

    question: str
    query: str
    answer: str
    schema: list[str]
    contents: dict[str, list[list[int]]]


def small_tables(role: Role, seed: int) -> Iterator[Small]:
    """Distinct questions of a role in keyed order; ends when nothing new turns up for long."""
    random, draws = generator(seed, "agent", "sql", role), Draws(FRUITLESS)
    for _ in draws:
        table, function, sign = (str(random.choice(list(names))) for names in (TABLES, FUNCTIONS, SIGNS))
        columns = [COLUMNS[int(i)] for i in random.permutation(len(COLUMNS))[:3]]
        shown, asked, limit = *columns[:2], int(random.integers(10, 100))
        condition = f"{asked} {sign} {limit}"
        query = f"SELECT {function.upper()}({shown}) FROM {table} WHERE {condition}"
        schema = [f"CREATE TABLE {table} ({', '.join(f'{name} INTEGER NOT NULL' for name in sorted(columns))})"]
        rows = random.integers(10, 100, (int(random.integers(FEWEST_ROWS, MOST_ROWS + 1)), 3)).tolist()
        if role_of("agent", query) != role:
            continue
        answer, without = _values(schema, {table: rows}, query, query.partition(" WHERE")[0])
        # A condition that no row or every row meets need not be read to be answered.
        if answer in (None, 0, without) or not draws.is_new(query):
            continue
        yield Small(f"{function} {shown} of {table} where {condition}", query, str(answer), schema, {table: rows})


def _values(schema: list[str], contents: dict[str, list[list[int]]], *queries: str) -> list[int | None]:
    """The value that each query returns."""
    with closing(sqlite3.connect(":memory:")) as connection:
        database = filled(connection, schema, contents)
        return [database.execute(query).fetchone()[0] for query in queries]
