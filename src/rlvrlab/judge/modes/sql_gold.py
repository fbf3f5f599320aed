"""What a gold query may return: its rows, in any order among ties, and any of the tied rows where its LIMIT cuts a tie.

The rule is that of SQL itself: an answer is right when the gold query could have returned it. Which rows tie is asked
of the engine, by a second query that has no LIMIT and numbers the ties (sql_text.py).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable
from typing import Any, TypeGuard

from rlvrlab.judge.modes.sql_rows import Gold, Result, Row, in_any_order, in_this_order, with_ties
from rlvrlab.judge.modes.sql_text import Ending, Place

SMALL = dict(zip(range(ord("A"), ord("Z") + 1), string.ascii_lowercase, strict=True))
CHANCE = re.compile(r"\b(?:random|randomblob|uuid|gen_random_uuid|tablesample|sample)\b", re.IGNORECASE)
CLOCK = re.compile(
    r"'now|\bnow\s*\(|\bcurrent_(?:date|time|timestamp|localtime)|\btoday\s*\(|\b(?:get_current_)?time(?:stamp)?\s*\(\s*\)"
    r"|\b(?:date|datetime|julianday|unixepoch|transaction_timestamp)\s*\(\s*\)",
    re.IGNORECASE,
)
FOLDED: dict[str, Callable[[str], str]] = {
    "": str, "BINARY": str, "NOCASE": lambda text: text.translate(SMALL), "RTRIM": lambda text: text.rstrip(" "),
}  # fmt: skip
"""What texts are sorted by under SQLite's collations."""
CLOCK_STEP_S = 1.1
"""After this long every clock that a query can read shows another time."""


def changes_after(query: str) -> float | None:
    """Seconds after which the result of a query might be another one on the same data; None where nothing says so."""
    return CLOCK_STEP_S if CLOCK.search(query) else 0.0 if CHANCE.search(query) else None


def gold_queries(query: str, ending: Ending) -> list[str]:
    """The gold query, and where it takes more to know the ties, the one that tells them."""
    return [query] + ([ending.everything] if ending.everything and (ending.ranks or ending.limited) else [])


def gold_of(ending: Ending, result: Result, everything: Result | None) -> Gold:
    """All that the gold query may return; in exactly its own order when it cannot be told which rows tie."""
    if not ending.keys and not ending.limited:
        return in_any_order(result)
    first = ending.offset
    if first is None:
        return in_this_order(result)
    found = None
    if everything is not None:
        wide = everything.columns == result.columns + ending.ranks and not (ending.distinct and _repeats(everything))
        if wide and (ending.limited or len(everything.rows) == len(result.rows)):
            found = with_ties(result, everything.rows, _rank(ending, result.columns), first)
    if found is None and _is_within(ending.columns, result.columns):
        found = with_ties(result, result.rows, _by_columns(ending.columns), 0)
    return found or in_this_order(result)


def _rank(ending: Ending, columns: int) -> Callable[[Row], Any]:
    if ending.ranks:
        return lambda row: row[columns]
    if ending.keys and not _is_within(ending.columns, columns):
        return json.dumps
    return _by_columns(ending.columns or ())


def _repeats(everything: Result) -> bool:
    """Does a row that is there once have several ranks? Then what it is sorted by is not its own."""
    rows = [json.dumps(row[:-1]) for row in everything.rows]
    return len(set(rows)) < len(rows)


def _is_within(places: tuple[Place, ...] | None, columns: int) -> TypeGuard[tuple[Place, ...]]:
    """Are all keys columns of the result, under collations that are known?"""
    return places is not None and all(place.column < columns and place.collation in FOLDED for place in places)


def _by_columns(places: tuple[Place, ...]) -> Callable[[Row], Any]:
    return lambda row: json.dumps([_folded(row[place.column], place.collation) for place in places])


def _folded(cell: Any, collation: str) -> Any:
    return FOLDED[collation](cell) if isinstance(cell, str) else cell
