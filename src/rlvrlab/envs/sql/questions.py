"""Questions on a schema with their gold queries, by level.

1 filter   2 aggregate   3 group and having   4 join   5 nested, order and limit
Each question says which columns in which order, whether something is listed once, and how ties are broken, so that
there is one right result.
"""

# ruff: noqa: S608 - the queries are made of our own names and words

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from rlvrlab.envs.sql.schemas import Column, Schema, Table

T = TypeVar("T")
AGGREGATES = (("the average", "AVG"), ("the sum of", "SUM"), ("the smallest", "MIN"), ("the largest", "MAX"))


class Question(NamedTuple):
    """Words and the query they mean."""

    text: str
    gold: str


class Draw(NamedTuple):
    """A schema and a source of choices."""

    schema: Schema
    random: np.random.Generator

    def pick(self, choices: tuple[T, ...] | list[T]) -> T:
        """A choice drawn with equal weights."""
        return choices[int(self.random.integers(len(choices)))]

    def table(self) -> Table:
        """The table of things or that of events."""
        return self.pick([self.schema.thing, self.schema.event])

    def shown(self, table: Table) -> str:
        """What identifies a row to a reader."""
        return "name" if table is self.schema.thing else "id"

    def condition(self, table: Table, prefix: str = "") -> tuple[str, str]:
        """A condition in words and in SQL."""
        return self.condition_on(self.pick(table.columns), prefix)

    def condition_on(self, column: Column, prefix: str = "") -> tuple[str, str]:
        """A condition on this column."""
        if column.words:
            word = self.pick(column.words)
            if self.random.random() < 0.2:
                return f"{column.name} is not {word}", f"{prefix}{column.name} <> '{word}'"
            return f"{column.name} is {word}", f"{prefix}{column.name} = '{word}'"
        value = column.low + int((column.high - column.low) * (0.3 + 0.4 * self.random.random()))
        if self.random.random() < 0.5:
            return f"{column.name} is greater than {value}", f"{prefix}{column.name} > {value}"
        return f"{column.name} is at most {value}", f"{prefix}{column.name} <= {value}"


def _filter(draw: Draw) -> Question:
    table = draw.table()
    shown, (words, sql) = draw.shown(table), draw.condition(table)
    extra = draw.pick(table.columns).name
    columns, named = draw.pick([(shown, shown), (f"{shown}, {extra}", f"{shown} and {extra} (in this order)")])
    return Question(
        f"List the {named} of all {table.plural} whose {words}.", f"SELECT {columns} FROM {table.name} WHERE {sql}"
    )


def _two_filters(draw: Draw) -> Question:
    table = draw.table()
    columns = [table.columns[int(i)] for i in draw.random.choice(len(table.columns), 2, replace=False)]
    (one, first), (other, second) = (draw.condition_on(column) for column in columns)
    joined = draw.pick(["and", "or"])
    text = f"List the {draw.shown(table)} of all {table.plural} whose {one} {joined} whose {other}."
    return Question(text, f"SELECT {draw.shown(table)} FROM {table.name} WHERE {first} {joined.upper()} {second}")


def _count(draw: Draw) -> Question:
    table = draw.table()
    words, sql = draw.condition(table)
    return Question(
        f"How many {table.plural} are there whose {words}?", f"SELECT COUNT(*) FROM {table.name} WHERE {sql}"
    )


def _aggregate(draw: Draw) -> Question:
    table = draw.table()
    number, (named, function) = draw.pick(table.numbers).name, draw.pick(AGGREGATES)
    words, sql = draw.condition(table)
    text = f"What is {named} {number} of all {table.plural} whose {words}?"
    return Question(text, f"SELECT {function}({number}) FROM {table.name} WHERE {sql}")


def _known(draw: Draw) -> Question:
    table, number = draw.schema.event, draw.pick(draw.schema.event.numbers).name
    word = draw.pick(table.words).name
    text = (
        f"How many {table.plural} have a known {number}, and how many different {word} values do {table.plural} have?"
    )
    return Question(f"{text} One row.", f"SELECT COUNT({number}), COUNT(DISTINCT {word}) FROM {table.name}")


def _group(draw: Draw) -> Question:
    table = draw.table()
    word, number, (named, function) = draw.pick(table.words).name, draw.pick(table.numbers).name, draw.pick(AGGREGATES)
    text = f"For each {word} of the {table.plural}, give the {word} and {named} {number}."
    return Question(text, f"SELECT {word}, {function}({number}) FROM {table.name} GROUP BY {word}")


def _having(draw: Draw) -> Question:
    table = draw.table()
    word, least = draw.pick(table.words).name, int(draw.random.integers(2, 6))
    text = f"Which {word} values occur in at least {least} {table.plural}? Give each with the number of {table.plural}."
    return Question(text, f"SELECT {word}, COUNT(*) FROM {table.name} GROUP BY {word} HAVING COUNT(*) >= {least}")


def _group_filtered(draw: Draw) -> Question:
    table = draw.table()
    word, (words, sql) = draw.pick(table.words).name, draw.condition(table)
    text = f"Among the {table.plural} whose {words}, how many are there of each {word}? Give the {word} and the number."
    return Question(text, f"SELECT {word}, COUNT(*) FROM {table.name} WHERE {sql} GROUP BY {word}")


def _joined(draw: Draw) -> tuple[Table, Table, str]:
    thing, event = draw.schema
    return thing, event, f"{thing.name} JOIN {event.name} ON {event.name}.{draw.schema.reference} = {thing.name}.id"


def _partners(draw: Draw) -> Question:
    thing, event, join = _joined(draw)
    words, sql = draw.condition(event, f"{event.name}.")
    text = f"List, each once, the name of every {thing.name} that has at least one {event.name} whose {words}."
    return Question(text, f"SELECT DISTINCT {thing.name}.name FROM {join} WHERE {sql}")


def _totals(draw: Draw) -> Question:
    thing, event, join = _joined(draw)
    number, (named, function) = draw.pick(event.numbers).name, draw.pick(AGGREGATES)
    words, sql = draw.condition(thing, f"{thing.name}.")
    text = (
        f"For every {thing.name} whose {words} and that has any {event.plural}, "
        f"give the name and {named} {number} of its {event.plural}."
    )
    return Question(
        text,
        f"SELECT {thing.name}.name, {function}({event.name}.{number}) FROM {join} WHERE {sql} GROUP BY {thing.name}.id",
    )


def _across(draw: Draw) -> Question:
    thing, event, join = _joined(draw)
    word = draw.pick(event.words).name
    words, sql = draw.condition(thing, f"{thing.name}.")
    text = f"Count the {event.plural} of {thing.plural} whose {words}, by {word}: give the {word} and the number."
    return Question(text, f"SELECT {event.name}.{word}, COUNT(*) FROM {join} WHERE {sql} GROUP BY {event.name}.{word}")


def _above_average(draw: Draw) -> Question:
    table = draw.table()
    number, shown = draw.pick(table.numbers).name, draw.shown(table)
    text = f"List the {shown} of all {table.plural} whose {number} is above the average {number} of all {table.plural}."
    return Question(text, f"SELECT {shown} FROM {table.name} WHERE {number} > (SELECT AVG({number}) FROM {table.name})")


def _top(draw: Draw) -> Question:
    table = draw.schema.thing
    number, many = draw.pick(table.numbers).name, int(draw.random.integers(2, 5))
    named, order = draw.pick([("largest", "DESC"), ("smallest", "ASC")])
    text = (
        f"Give name and {number} (in this order) of the {many} {table.plural} with the {named} {number}, {named} first."
    )
    return Question(text, f"SELECT name, {number} FROM {table.name} ORDER BY {number} {order} LIMIT {many}")


def _without(draw: Draw) -> Question:
    thing, event, _ = _joined(draw)
    words, sql = draw.condition(event)
    text = f"List, sorted by name, the name of every {thing.name} that has no {event.name} whose {words}."
    return Question(
        text,
        f"SELECT name FROM {thing.name} WHERE id NOT IN "
        f"(SELECT {draw.schema.reference} FROM {event.name} WHERE {sql}) ORDER BY name",
    )


def _busiest(draw: Draw) -> Question:
    thing, event, join = _joined(draw)
    many = int(draw.random.integers(2, 4))
    text = (
        f"Give name and number of {event.plural} of the {many} {thing.plural} with the most {event.plural}, "
        "most first; ties are broken by name in alphabetical order."
    )
    return Question(
        text,
        f"SELECT {thing.name}.name, COUNT(*) FROM {join} GROUP BY {thing.name}.id "
        f"ORDER BY COUNT(*) DESC, {thing.name}.name LIMIT {many}",
    )


def _above_own(draw: Draw) -> Question:
    thing, event, _ = _joined(draw)
    number, reference = draw.pick(event.numbers).name, draw.schema.reference
    text = f"List the id of every {event.name} whose {number} is above the average {number} of the same {thing.name}."
    inner = f"SELECT AVG(o.{number}) FROM {event.name} o WHERE o.{reference} = e.{reference}"
    return Question(text, f"SELECT e.id FROM {event.name} e WHERE e.{number} > ({inner})")


LEVELS: dict[int, tuple[Callable[[Draw], Question], ...]] = {
    1: (_filter, _two_filters),
    2: (_count, _aggregate, _known),
    3: (_group, _having, _group_filtered),
    4: (_partners, _totals, _across),
    5: (_above_average, _top, _without, _busiest, _above_own),
}
