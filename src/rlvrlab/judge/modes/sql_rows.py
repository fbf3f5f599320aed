"""Are two results the same? Rows are compared as bags, within stretches that the gold query leaves in any order.

NULL equals NULL. Integers, texts and blobs are compared exactly: '1' does not equal 1, and an integer equals a real
only when their values are the same. Two reals are the same when they differ by at most `tolerance` of their size, or by
less than SMALLEST. A decimal is exact beside integers and decimals, and a real beside reals. TRUE equals 1, a date
equals the timestamp of its midnight, and the number of columns must agree even when there are no rows.
"""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rlvrlab.matching import largest_matching

Row = list[Any]
Hashed = Any
"""What a cell is compared by: a text, bytes, None, or a tuple of texts."""
Key = tuple[Hashed, ...]
REALS = (float, Decimal)
SMALLEST = 1e-12
"""Reals that differ by less than this are the same, whatever their size: what is left where a sum should be zero."""
MOST_LITERALS = 200
MOST_PAIRED = 200
"""Rows of which each is held against each."""
LONGEST_NUMBER = 60
"""More characters than any number that an engine returns."""
DIGITS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:E[+-]?[0-9]{1,3})?", re.ASCII)
"""A decimal number that is not long when it is written out."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a query returned, in plain.py's encoding."""

    columns: int
    rows: list[Row]
    cpu_s: float = field(default=0.0, compare=False)
    """CPU seconds that it took, as the child measured them."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring rows of a result whose order is free: `many` of the rows in `choices`, each at most once."""

    many: int
    choices: list[Row]


@dataclass(frozen=True, slots=True)
class Gold:
    """What the gold query returned, and everything else that it might have returned."""

    result: Result
    stretches: list[Stretch]
    cpu_s: float = field(default=0.0, compare=False)
    """CPU seconds of all queries that it took to know this."""


def same_result(got: Result, gold: Gold, tolerance: float) -> str:
    """Empty when the gold query could have returned these rows, otherwise the difference in words."""
    if got.columns != gold.result.columns:
        return f"{got.columns} columns instead of {gold.result.columns}"
    if len(got.rows) != len(gold.result.rows):
        return f"{len(got.rows)} rows instead of {len(gold.result.rows)}"
    if got.rows == gold.result.rows:
        return ""
    choices = [row for stretch in gold.stretches for row in stretch.choices]
    keys = _comparable(got.rows, choices, got.columns, tolerance)
    mine, theirs, start = iter(keys[: len(got.rows)]), iter(keys[len(got.rows) :]), 0
    for stretch in gold.stretches:
        found = Counter(itertools.islice(mine, stretch.many))
        allowed = Counter(itertools.islice(theirs, len(stretch.choices)))
        if not found <= allowed and not _paired(got.rows[start : start + stretch.many], stretch.choices, tolerance):
            return "another order" if Counter(keys[: len(got.rows)]) <= Counter(keys[len(got.rows) :]) else "other rows"
        start += stretch.many
    return ""


def _paired(rows: list[Row], choices: list[Row], tolerance: float) -> bool:
    """Can each row have one of the choices, cell by cell? Asked where a column holds reals.

    3.0 is 3, and it is 3.0000000000000004, which is not 3; a real may be close to two of gold's that are not close to
    each other: equal cells have no form in common there.
    """
    if max(len(rows), len(choices)) > MOST_PAIRED:
        return False
    both = [[_plain(cell) if type(cell) is list else cell for cell in row] for row in rows + choices]
    if not any(type(cell) is float for row in both for cell in row):
        return False
    mine, theirs = both[: len(rows)], both[len(rows) :]

    def fits(row: Row, choice: Row) -> bool:
        return all(_same(one, other, tolerance) for one, other in zip(row, choice, strict=True))

    fitting = [[at for at, choice in enumerate(theirs) if fits(row, choice)] for row in mine]
    return len(largest_matching(fitting)) == len(rows)


def _same(one: Any, other: Any, tolerance: float) -> bool:
    if type(one) in REALS and type(other) in REALS and float in (type(one), type(other)):
        return _near(float(one), float(other), tolerance)
    return bool(_hashed(one) == _hashed(other))


def _near(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= max(tolerance * max(abs(one), abs(other)), SMALLEST)


def _comparable(rows: list[Row], golds: list[Row], columns: int, tolerance: float) -> list[Key]:
    """The rows, then gold's, in a form in which equal rows are equal tuples."""
    both = rows + golds
    if not both:
        return []
    cells = [[_plain(row[i]) if type(row[i]) is list else row[i] for row in both] for i in range(columns)]
    return list(zip(*(_column(column, len(rows), tolerance) for column in cells), strict=True))


def _column(cells: list[Any], mine: int, tolerance: float) -> list[Hashed]:
    """The first `mine` cells are the answer's, the others gold's."""
    found = [_hashed(cell) for cell in cells]
    if any(type(cell) is float for cell in cells):
        whole = {key for key, cell in zip(found, cells, strict=True) if type(cell) is int or type(cell) is bool}
        reals = [(cell, at) for at, cell in enumerate(cells) if type(cell) in REALS and found[at] not in whole]
        own, golds = [one for one in reals if one[1] < mine], sorted(one for one in reals if one[1] >= mine)
        for at, place in _places(own, golds, tolerance):
            found[at] = b"real %d" % place
    return found


def _places(own: list[tuple[Any, int]], golds: list[tuple[Any, int]], tolerance: float) -> Iterator[tuple[int, int]]:
    """Which reals are the same: gold's within the tolerance of the smallest of them, and the answer's close to one.

    Reals are never measured against their neighbours: a row of them could lead from a value to any other. A column of
    Julian days, of which the tolerance is some minutes, has such rows.
    """
    places: list[int] = []
    place, first = 0, float("-inf")
    for real, at in golds:
        size = float(real)
        if size - first > max(tolerance * abs(size), SMALLEST):
            place, first = place + 1, size
        places.append(place)
        yield at, place
    for real, at in own:
        here, size = bisect_left(golds, (real, -1)), float(real)
        near = range(max(0, here - 1), min(here + 1, len(golds)))
        nearest = min(near, key=lambda one: abs(float(golds[one][0]) - size), default=None)
        if nearest is not None and _near(float(golds[nearest][0]), size, tolerance):
            yield at, places[nearest]


def _hashed(cell: Any) -> Hashed:
    """A value as what equal ones share: texts as they are, numbers written out as bytes.

    The hashes of texts and bytes are drawn at random for each process. Those of numbers are known to everybody, and a
    query can return thousands of different ones that share theirs: a table of them takes for ever.
    """
    kind = type(cell)
    if kind is int or kind is bool:
        return b"%d" % cell
    if kind is float:
        return b"%d" % int(cell) if cell.is_integer() else repr(cell).encode()
    if kind is Decimal:
        written = f"{cell:f}" if cell else "0"
        return (written.rstrip("0").rstrip(".") if "." in written else written).encode()
    return cell


def _plain(cell: list[Any]) -> Any:
    """A value of a further type as a number, or as a tuple that only its equals have."""
    tag, content = cell
    if tag == "int" and len(content) <= LONGEST_NUMBER:
        return int(content, 16)
    if tag == "Decimal" and len(content) <= LONGEST_NUMBER and DIGITS.fullmatch(content):
        return Decimal(content)
    if tag == "date":
        tag, content = "datetime", f"{content}T00:00:00"
    return tag, json.dumps(_rounded([tag, content]))


def _rounded(form: Any) -> Any:
    """The reals within lists and structs, rounded: they have no neighbours to be compared with.

    Read by its tags, as plain.py writes it: a list of texts may well begin with the text `Decimal`.
    """
    if type(form) is not list:
        return float(f"{form:.9g}") if type(form) is float else form
    tag, content = form
    if tag == "Decimal":
        return _rounded(float(content))
    if tag == "dict":
        return [tag, [[_rounded(key), _rounded(value)] for key, value in content]]
    return [tag, [_rounded(item) for item in content] if type(content) is list else content]


def literals_of(shown: Gold) -> list[Result]:
    """What could be written out without asking the database: its result, and where that is one row, any choice."""
    if len(shown.result.rows) != 1:
        return [shown.result]
    others = shown.stretches[0].choices[:MOST_LITERALS]
    return [shown.result, *(Result(shown.result.columns, [row]) for row in others if row != shown.result.rows[0])]


def in_any_order(result: Result) -> Gold:
    """Gold without an order."""
    return Gold(result, [Stretch(len(result.rows), result.rows)])


def in_this_order(result: Result) -> Gold:
    """Gold in exactly this order."""
    return Gold(result, [Stretch(1, [row]) for row in result.rows])


def with_ties(result: Result, ranked: Sequence[Row], rank: Callable[[Row], Any], first: int) -> Gold | None:
    """Gold with rows that tie in any order, and any of them where its LIMIT cuts through a tie.

    `ranked` are the rows without the LIMIT, in order, and `first` is the place of gold's first row among them. None
    when gold's rows are not found there.
    """
    ranks = [rank(row) for row in ranked]
    window = ranks[first : first + len(result.rows)]
    tied: dict[Any, list[Row]] = {}
    for row, its_rank in zip(ranked, ranks, strict=True):
        tied.setdefault(its_rank, []).append(row[: result.columns])
    stretches = [Stretch(len(list(members)), tied[its_rank]) for its_rank, members in itertools.groupby(window)]
    like_gold = Result(result.columns, [row[: result.columns] for row in ranked[first : first + len(window)]])
    return Gold(result, stretches) if same_result(result, Gold(like_gold, stretches), 0.0) == "" else None
