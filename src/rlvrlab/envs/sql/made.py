"""Made SQL problems: schema, three databases, a question and its gold query, none of them given away by accident.

The twins have rows at the borders of what the gold query compares with, so that > does not pass for >=.
Kept only when the gold query returns something on every database, returns something else on the twins (so a literal
cannot match) and is not what a query returns that anybody would try without reading the question.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

from rlvrlab.envs.answers import Draws
from rlvrlab.envs.split import role_of
from rlvrlab.envs.sql.databases import Contents, filled
from rlvrlab.envs.sql.questions import LEVELS, Draw, Question
from rlvrlab.envs.sql.schemas import Schema, drawn_contents, drawn_schema, with_borders
from rlvrlab.judge.modes.sql_twins import constants_in
from rlvrlab.randomness import generator
from rlvrlab.types import Role

TWINS = 2
FRUITLESS = 3000


class Made(NamedTuple):
    """A problem before it is put into words."""

    level: int
    schema: list[str]
    contents: list[Contents]
    """The database and its twins."""
    question: Question


def made_problems(level: int, role: Role, seed: int) -> Iterator[Made]:
    """Distinct problems of a role in keyed order; ends when nothing new turns up for long."""
    random = generator(seed, "sql", level, role)
    draws = Draws(FRUITLESS)
    for _ in draws:
        schema = drawn_schema(random)
        draw = Draw(schema, random)
        question = draw.pick(LEVELS[level])(draw)
        words = (*schema.statements, question.text)
        # The role belongs to the query: other contents or columns beside it do not make it another question.
        if words in draws.seen or role_of("sql", question.gold) != role:
            continue
        shown, *twins = (drawn_contents(schema, random) for _ in range(1 + TWINS))
        constants = constants_in(question.gold)
        contents = [shown, *(with_borders(schema, twin, constants, 4 * i) for i, twin in enumerate(twins))]
        if _is_sound(schema, contents, question) and draws.is_new(words):
            yield Made(level, schema.statements, contents, question)


def _is_sound(schema: Schema, contents: list[Contents], question: Question) -> bool:
    with ExitStack() as stack:
        databases = [
            filled(stack.enter_context(closing(sqlite3.connect(":memory:"))), schema.statements, content)
            for content in contents
        ]
        results = [_bag(database, question.gold) for database in databases]
        empty = (all(value in (None, 0) for row in result for value in row) for result in results)
        if any(empty) or results[0] == results[1]:
            return False
        # A query that anybody would try must differ from gold on at least one database; the first usually decides.
        return not any(
            all(_bag(database, query) == result for database, result in zip(databases, results, strict=True))
            for query in trivial_queries(schema)
        )


def _bag(database: sqlite3.Connection, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(database.execute(query).fetchall())


def trivial_queries(schema: Schema) -> list[str]:
    """What can be tried without reading the question."""
    queries = []
    for table in schema:
        columns = ["*", "id", "COUNT(*)", *(column.name for column in table.columns)]
        queries += [f"SELECT {column} FROM {table.name}" for column in columns]  # noqa: S608 - our own names
        queries += [f"SELECT DISTINCT {column.name} FROM {table.name}" for column in table.words]  # noqa: S608
    return [*queries, f"SELECT name FROM {schema.thing.name}"]  # noqa: S608
