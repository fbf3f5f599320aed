"""SQL for a policy of a million weights: a request in a few words about one table, and the bare query as the answer.

    prompt      "#sql biggest b;above 3 a\\n"
    completion  "SELECT MAX(b) FROM t WHERE a>3\\n"

The judge is that of the environment `sql`: the result decides, on a database and on three twins. The words are those of
nano's vocabulary, and the table's name and columns are single letters, so that a query has about thirty tokens. Level 1
has one condition and level 2 has two. Roles are split by query, so no held-out query is trained in other words.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache

from rlvrlab.envs.answers import in_turn
from rlvrlab.envs.split import role_of
from rlvrlab.envs.sql import Sql
from rlvrlab.envs.sql.databases import filled
from rlvrlab.errors import UserError
from rlvrlab.randomness import generator, key_bits
from rlvrlab.types import Problem, Role

COLUMNS = ("a", "b", "c")
SCHEMA = ["CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)"]
OUTPUTS = {
    "COUNT(*)": ("count", "how many"),
    "SUM({})": ("sum {}", "total {}", "add up {}"),
    "MAX({})": ("max {}", "largest {}", "biggest {}"),
    "DISTINCT {}": ("unique {}", "distinct {}"),
    "{}": ("keep {}", "take {}"),
}
"""What is selected -> ways to ask for it."""
CONDITIONS = {
    "{}>{}": ("above {1} {0}", "more than {1} {0}"),
    "{}<{}": ("below {1} {0}", "less than {1} {0}"),
    "{}%2=0": ("even {0}",),
    "{}%2=1": ("odd {0}",),
}
DATABASES, ROWS, LARGEST = 4, 16, 9
FRUITLESS = 5000


@dataclass(frozen=True)
class MiniSql(Sql):
    """Queries on one table of three numbers, asked for in nano's words."""

    levels: tuple[int, ...] = (1, 2)
    """Conditions in the query."""

    def __post_init__(self) -> None:
        if not self.levels or not set(self.levels) <= {1, 2}:
            raise UserError(f"mini_sql: levels = {list(self.levels)}: give 1, 2 or both")

    def problems(self, role: Role, size: int, seed: int) -> list[Problem]:
        """Distinct requests; the databases are the same for all of them."""
        chosen = list(in_turn([_requests(level, role, seed) for level in self.levels], size))
        if len(chosen) < size:
            raise UserError(f"mini_sql: {size} {role} problems asked for, {len(chosen)} found; ask for fewer")
        return chosen

    def gold(self, problem: Problem) -> str | None:
        """The query alone."""
        return f"{problem.reference['gold']}\n"


def _requests(level: int, role: Role, seed: int) -> Iterator[Problem]:
    random, seen, fruitless = generator(seed, "mini_sql", level, role), set[str](), 0
    while fruitless < FRUITLESS:
        fruitless += 1
        output = list(OUTPUTS)[random.integers(len(OUTPUTS))]
        column = COLUMNS[random.integers(len(COLUMNS))]
        asked, wheres = [str(random.choice(OUTPUTS[output])).format(column)], []
        for of in random.choice(COLUMNS, level, replace=False):
            shape, value = list(CONDITIONS)[random.integers(len(CONDITIONS))], int(random.integers(2, LARGEST - 1))
            asked.append(str(random.choice(CONDITIONS[shape])).format(of, value))
            wheres.append(shape.format(of, value))
        words, where = ";".join(asked), " AND ".join(wheres)
        query = f"SELECT {output.format(column)} FROM t WHERE {where}"  # noqa: S608 - our own names
        if words in seen or role_of("mini_sql", query) != role or not _telling(query):
            continue
        seen.add(words)
        fruitless = 0
        reference = {"gold": query, "schema": SCHEMA, "contents": _contents()}
        yield Problem(f"mini_sql:{level}:{key_bits(words):032x}"[:26], "mini_sql", "sql", f"#sql {words}\n", reference,
                      {"level": level, "question": words}, role)  # fmt: skip


@cache
def _contents() -> list[dict[str, list[list[int]]]]:
    """The database and its twins, the same in every process."""
    random = generator("mini_sql", "contents")
    return [{"t": random.integers(0, LARGEST + 1, (ROWS, len(COLUMNS))).tolist()} for _ in range(DATABASES)]


@cache
def _telling(query: str) -> bool:
    """Can the databases tell the query from a literal, and from the same query with a number that is one off?"""
    found = _results(query)
    if any(not rows or rows == [(None,)] for rows in found) or all(rows == found[0] for rows in found):
        return False
    near = [
        query[: at.start()] + str(int(at[0]) + one) + query[at.end() :]
        for at in re.finditer(r"(?<=[<>])\d", query)
        for one in (-1, 1)
    ]
    return all(_results(other) != found for other in near)


@cache
def _results(query: str) -> list[list[tuple[object, ...]]]:
    found = []
    for contents in _contents():
        with closing(sqlite3.connect(":memory:")) as connection:
            found.append(sorted(filled(connection, SCHEMA, contents).execute(query).fetchall()))
    return found
