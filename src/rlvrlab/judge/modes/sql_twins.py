"""Twins of a database: same schema, other contents, so that a query which matches by accident stops matching.

The values of a column are drawn from those it has and from the constants that a query compares it with, and their
neighbours; keys stay unique and references find their partners, but not every partner is referred to. Twins are small,
whatever the size of the database, and alternate: values spread as they are, few values that repeat, few rows. Done when
data is prepared, on trusted files.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlvrlab.judge.modes.sql_blueprint import Blueprint, Column, Table, blueprint_of, quoted
from rlvrlab.judge.modes.sql_mutants import tokens
from rlvrlab.randomness import generator

Constants = Mapping[str, Sequence[Any]]
"""Values worth having in a column, by the column's name in lower case."""
PAGE_BYTES = 1024
NUMBER = re.compile(r"\d+(\.\d+)?")
NULL_SHARE = 0.15
LEAST_CAP = 12
"""A table may grow to this many rows, or to twice as many as it has."""


class Style(NamedTuple):
    """How contents are drawn."""

    least: int
    most: int
    """Rows of a table; never many more than it has."""
    variety: int
    """Different values of a column at most."""
    partners: float
    """Share of the rows that may be referred to."""
    kept: float = 0.0
    """Share of the values that stay together as they are in a row of the database."""
    grows: bool = False
    """As many rows as asked for, whatever the table has, and new values where nearly every row has its own."""


STYLES = (
    Style(10, 60, 1000, 0.8, 0.8),
    Style(8, 24, 3, 0.6),
    Style(2, 8, 1000, 0.7),
    Style(16, 40, 1000, 0.5),
    Style(40, 80, 4, 0.3),
    Style(20, 120, 1000, 0.8, 0.7),
)


MOST_GROWN = 1900
"""Rows of a table that has to grow: a little less than are ever looked at of a result."""


def make_twin(database: str | Path, target: str | Path, seed: int, query: str = "") -> Path:
    """Write one twin; the same content, seed and query give the same twin. The query's constants are put into it."""
    target = Path(target)
    with closing(drawn_twin(blueprint_of(Path(database)), seed, query)) as twin:
        target.write_bytes(twin.serialize())
    return target


def drawn_twin(blueprint: Blueprint, seed: int, query: str = "", rows: int = 0) -> sqlite3.Connection:
    """A twin in memory; with so many rows in each table where `rows` are asked for."""
    random = generator(seed, "twin", *blueprint.statements)
    many = min(rows, MOST_GROWN)
    style = Style(many, many, 2 * many, 1.0, grows=True) if rows else STYLES[seed % len(STYLES)]
    contents: dict[str, dict[str, list[Any]]] = {}
    constants = _shared(blueprint, constants_in(query))
    twin = sqlite3.connect(":memory:")
    twin.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    for statement in blueprint.statements:
        twin.execute(statement)
    for table in blueprint.tables:
        contents[table.name] = _drawn_table(table, contents, constants, style, random)
        drawn = zip(*contents[table.name].values(), strict=True)
        names, marks = ", ".join(map(quoted, contents[table.name])), ", ".join("?" * len(table.columns))
        twin.executemany(f"INSERT OR IGNORE INTO {quoted(table.name)} ({names}) VALUES ({marks})", drawn)  # noqa: S608
    twin.commit()
    return twin


def _drawn_table(
    table: Table,
    contents: Mapping[str, Mapping[str, list[Any]]],
    constants: Constants,
    style: Style,
    random: np.random.Generator,
) -> dict[str, list[Any]]:
    most = style.most if style.grows else max(LEAST_CAP, 2 * table.rows)
    many = min(int(random.integers(style.least, style.most + 1)), most)
    rows = [int(i) for i in random.permutation(table.rows)[:many]]
    many = len(rows) if style.kept else many
    drawn = {}
    for column in table.columns:
        wanted = _fitting(column, constants)
        partners = contents.get(column.reference[0], {}).get(column.reference[1]) if column.reference else None
        if partners is not None:
            values = _referring(column, wanted, partners, many, style, random)
        elif column.unique and not style.kept:
            values = _distinct(column, wanted, many, style.grows, random)
        else:
            known = list(dict.fromkeys(value for value in column.values if value is not None)) or [None]
            known += _more(known, many) if style.grows and 2 * len(known) > len(column.values) else []
            some = [known[int(i)] for i in random.permutation(len(known))[: _variety(style, random)]]
            values = _drawn(column, wanted, some, many, random)
        if style.kept:
            values = _kept(column, [column.values[i] for i in rows], values, partners, style, random)
        drawn[column.name] = values
        many = min(many, len(values))
    return {name: values[:many] for name, values in drawn.items()}


def _kept(
    column: Column,
    old: list[Any],
    new: list[Any],
    partners: list[Any] | None,
    style: Style,
    random: np.random.Generator,
) -> list[Any]:
    """Most old values, so that what occurs together goes on doing so; a reference only where its partner is there."""
    known = None if partners is None else {*partners, None}
    fits = [known is None or one in known for one in old]
    if column.unique:
        return [one for one, fit in zip(old, fits, strict=True) if fit]
    stays = (random.random(len(old)) < style.kept).tolist()
    return [one if fit and stay else other for one, other, fit, stay in zip(old, new, fits, stays, strict=False)]


def _shared(blueprint: Blueprint, constants: Constants) -> Constants:
    """What is compared with a reference is worth having where it refers to."""
    shared = {name: list(values) for name, values in constants.items()}
    for table in reversed(blueprint.tables):
        for column in table.columns:
            if column.reference and column.name.lower() in shared:
                partner = shared.setdefault(column.reference[1].lower(), [])
                partner += [value for value in shared[column.name.lower()] if value not in partner]
    return shared


def _referring(
    column: Column, wanted: list[Any], partners: list[Any], many: int, style: Style, random: np.random.Generator
) -> list[Any]:
    known = list(dict.fromkeys(value for value in partners if value is not None))
    if not known:
        return [None] * many if None in column.values else []
    asked = [value for value in wanted if value in known]
    chosen = [known[int(i)] for i in random.permutation(len(known))[: max(1, int(style.partners * len(known)))]]
    return chosen[:many] if column.unique else _drawn(column, asked, chosen, many, random)


def _more(known: Sequence[Any], many: int) -> list[Any]:
    """Other values of the same kind: numbers beyond the largest, texts with a number behind them."""
    if all(type(value) in (int, float) for value in known):
        return [max(known) + 1 + i for i in range(many)]
    texts = [value for value in known if isinstance(value, str)]
    return [text for i in range(many if texts else 0) if (text := f"{texts[i % len(texts)]} {i + 2}") not in known]


def _distinct(column: Column, wanted: list[Any], many: int, grows: bool, random: np.random.Generator) -> list[Any]:
    known = list(dict.fromkeys(value for value in column.values if value is not None))
    kept = list(dict.fromkeys(wanted))
    others = [known[int(i)] for i in random.permutation(len(known)) if known[int(i)] not in kept]
    whole = known and all(type(value) is int for value in known)
    more = _more(known, many) if whole or (grows and known) else []
    chosen = (kept + others + more)[:many]
    return [chosen[int(i)] for i in random.permutation(len(chosen))]


def _variety(style: Style, random: np.random.Generator) -> int:
    return style.variety if style.variety > 100 else int(random.integers(1, style.variety + 1))


def _drawn(column: Column, wanted: list[Any], others: list[Any], many: int, random: np.random.Generator) -> list[Any]:
    """Values with repetition, every second of those that are wanted where there are any."""
    missing = random.random(many) < (NULL_SHARE if None in column.values else 0.0)
    chosen = (random.random(many) < 0.5) & bool(wanted)
    places = random.random(many)
    values: list[Any] = []
    for gone, is_wanted, place in zip(missing.tolist(), chosen.tolist(), places.tolist(), strict=True):
        pool = wanted if is_wanted else others
        values.append(None if gone else pool[int(place * len(pool))])
    return values


def _fitting(column: Column, constants: Constants) -> list[Any]:
    """The constants for this column, of the types that it has."""
    types = {type(value) for value in column.values}
    numbers = {int, float} & types
    found: list[Any] = []
    for value in constants.get(column.name.lower(), ()):
        if isinstance(value, str):
            found += [value] if str in types else []
        elif numbers:
            found.append(int(value) if float not in types and value == int(value) else value)
        elif str in types:  # numbers that were stored as texts
            found.append(str(value))
    return found


def constants_in(query: str) -> dict[str, list[Any]]:
    """Values near those that a query compares with, by the last name before them: `age > 30` -> age: 29, 30, 31."""
    found: dict[str, list[Any]] = {}
    name = ""
    for word in tokens(query):
        if word[0] == "'" or (word[0] == '"' and name):
            text = word[1:-1].replace(word[0] * 2, word[0])
            plain = text.replace("%", "").replace("_", "x")
            near: list[Any] = [text] if plain == text else [plain, f"a{plain}", f"{plain}z", f"a{plain}z"]
            if NUMBER.fullmatch(text):
                near += [_number(text)]
            found.setdefault(name, []).extend(near)
        elif NUMBER.fullmatch(word):
            number = _number(word)
            found.setdefault(name, []).extend([number, number, number - 1, number + 1])
        elif word.isidentifier() or word[0] in '`["':
            name = word.strip('`[]"').lower() if word.upper() not in NOT_NAMES else name
    return found


NOT_NAMES = {"AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "WHERE", "HAVING", "LIMIT", "OFFSET"}


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
