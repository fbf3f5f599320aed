"""Small two-table schemas and their contents: things with a name, and events that refer to them.

    customer(id, name, city, age)      purchase(id, customer_id, product, price)
Numbers within a column differ, so an order by one of them is unambiguous; one column of the events has NULLs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rlvrlab.envs.sql.databases import Contents

NAMES = (
    "Ada", "Bela", "Caro", "Dirk", "Ella", "Finn", "Gita", "Hugo", "Ines", "Jan", "Kira", "Luis", "Mona", "Nils",
    "Olga", "Pia", "Quin", "Rosa", "Sven", "Tara", "Uwe", "Vera", "Will", "Xena", "Yann", "Zara",
)  # fmt: skip
NULL_SHARE = 0.15
BORDER_ROWS = 6
"""As many as two numbers and their neighbours: the rows in which the words of a query stand as well."""


class Column(NamedTuple):
    """What a column holds: one of a few words, or a number of a range."""

    name: str
    words: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    nullable: bool = False


class Table(NamedTuple):
    """A table; things have a name, events refer to a thing."""

    name: str
    plural: str
    columns: tuple[Column, ...]

    @property
    def words(self) -> list[Column]:
        """Columns with a few words."""
        return [column for column in self.columns if column.words]

    @property
    def numbers(self) -> list[Column]:
        """Columns with numbers."""
        return [column for column in self.columns if not column.words]


class Schema(NamedTuple):
    """Things and the events that refer to them by `<thing>_id`."""

    thing: Table
    event: Table

    @property
    def reference(self) -> str:
        """The column of the event that names the thing."""
        return f"{self.thing.name}_id"

    @property
    def statements(self) -> list[str]:
        """The CREATE TABLE statements of both tables."""
        thing, event = self
        own = ", ".join(_declared(thing.columns))
        other = ", ".join(_declared(event.columns))
        return [
            f"CREATE TABLE {thing.name} (id INTEGER PRIMARY KEY, name TEXT NOT NULL, {own})",
            f"CREATE TABLE {event.name} (id INTEGER PRIMARY KEY, "
            f"{self.reference} INTEGER NOT NULL REFERENCES {thing.name}(id), {other})",
        ]


def _declared(columns: tuple[Column, ...]) -> list[str]:
    return [
        f"{column.name} {'TEXT' if column.words else 'INTEGER'}{'' if column.nullable else ' NOT NULL'}"
        for column in columns
    ]


def _table(line: str) -> Table:
    """`name plural | column: one two three | column: 18-80 | column: 1-90?`; ? allows NULL."""
    names, *parts = line.split(" | ")
    columns = []
    for part in parts:
        column, _, values = part.partition(": ")
        if values[0].isdigit():
            low, _, high = values.removesuffix("?").partition("-")
            columns.append(Column(column, (), int(low), int(high), values.endswith("?")))
        else:
            columns.append(Column(column, tuple(values.split())))
    name, plural = names.split()
    return Table(name, plural, tuple(columns))


THEMES = tuple(Schema(*(_table(line.strip()) for line in text.splitlines())) for text in (
    """customer customers | city: Rome Oslo Lima Cairo | segment: gold silver basic | age: 18-80 | credit: 100-900
    purchase purchases | product: lamp chair desk sofa | status: paid open late | price: 5-400 | quantity: 1-60?""",
    """student students | major: physics history music biology | hostel: north south east | age: 17-60 | credits: 10-200
    exam exams | subject: algebra optics poetry genetics | term: spring autumn | points: 1-100 | minutes: 30-180?""",
    """driver drivers | country: Peru Chile Kenya Japan | team: red blue green | age: 19-70 | wins: 1-90
    race races | track: coast hill city | weather: dry wet windy | laps: 20-99 | pit_seconds: 10-200?""",
    """author authors | language: Greek Hindi Polish Thai | genre: crime poetry travel | born: 1900-1999 | prizes: 1-60
    book books | format: paper audio digital | publisher: Oak Elm Birch Pine | pages: 60-900 | copies: 100-999?""",
    """farm farms | region: north coast valley hills | kind: dairy grain fruit | hectares: 5-400 | founded: 1850-2010
    harvest harvests | crop: oats rye apples plums | season: early main late | tons: 1-300 | workers: 2-90?""",
    """museum museums | city: Paris Quito Delhi Bern | focus: art science nature | rooms: 3-120 | opened: 1800-2015
    visit visits | ticket: full child group free | weekday: Monday Friday Sunday | minutes: 10-300 | spent: 1-150?""",
    """pilot pilots | base: Miami Dakar Seoul Perth | rank: captain officer trainee | age: 22-65 | hours: 100-999
    flight flights | aircraft: A320 B737 E190 | cabin: full half empty | distance: 200-999 | delay: 1-180?""",
    """shop shops | street: Main Park Hill Lake | type: bakery books toys | staff: 1-60 | area: 20-500
    delivery deliveries | goods: flour paper games sugar | carrier: van bike truck | weight: 1-400 | fee: 1-90?""",
))  # fmt: skip


def drawn_schema(random: np.random.Generator) -> Schema:
    """A theme with some of its columns, in some order."""
    theme = THEMES[int(random.integers(len(THEMES)))]
    tables = []
    for table in theme:
        kept = [
            group[int(i)]
            for group in (table.words, table.numbers)
            for i in random.choice(len(group), int(random.integers(1, len(group) + 1)), replace=False)
        ]
        tables.append(table._replace(columns=tuple(kept[int(i)] for i in random.permutation(len(kept)))))
    return Schema(*tables)


def drawn_contents(schema: Schema, random: np.random.Generator) -> Contents:
    """Fresh rows; draws for twins differ in everything but the schema."""
    things, events = int(random.integers(7, 12)), int(random.integers(14, 24))
    names = [NAMES[int(i)] for i in random.choice(len(NAMES), things, replace=False)]
    owners = [int(i) for i in random.integers(1, things + 1, events)]
    return {
        schema.thing.name: _rows(schema.thing, names, things, random),
        schema.event.name: _rows(schema.event, owners, events, random),
    }


def with_borders(schema: Schema, contents: Contents, constants: Mapping[str, Sequence[Any]], first: int) -> Contents:
    """The same rows with the constants of a query and their neighbours in the columns it compares, from row `first` on.

    Numbers of a column still differ. Columns take turns, so that a row at the border of one is anywhere in another.
    """
    changed = {}
    for table in schema:
        rows = [list(row) for row in contents[table.name]]
        at = first
        for place, column in enumerate(table.columns, 2):
            wanted = list(dict.fromkeys(constants.get(column.name, ())))
            if column.words:
                for i in range(BORDER_ROWS if wanted else 0):
                    rows[(first + i) % len(rows)][place] = wanted[0]
                continue
            for value in wanted:
                row = rows[at % len(rows)]
                for other in (other for other in rows if other[place] == value):
                    other[place] = row[place]  # numbers of a column still differ
                row[place], at = value, at + 1
        changed[table.name] = rows
    return changed


def _rows(table: Table, second: list[Any], many: int, random: np.random.Generator) -> list[list[Any]]:
    columns: list[list[Any]] = []
    for column in table.columns:
        if column.words:
            columns.append([column.words[int(i)] for i in random.integers(0, len(column.words), many)])
            continue
        drawn = [column.low + int(i) for i in random.choice(column.high - column.low + 1, many, replace=False)]
        columns.append([None if column.nullable and random.random() < NULL_SHARE else value for value in drawn])
    return [list(row) for row in zip(range(1, many + 1), second, *columns, strict=True)]
