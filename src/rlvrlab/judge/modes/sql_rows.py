"""Are two results the same? Bags of rows, in order only where the gold query orders, floats within a tolerance.

NULL equals NULL, 1 equals 1.0 (SQL does not promise which), '1' does not equal 1, integers have no tolerance, and the
number of columns must agree even when there are no rows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = list[Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What a query returned, in plain.py's encoding."""

    columns: int
    rows: list[Row]


def same_result(got: Result, gold: Result, ties: Sequence[int] | None, tolerance: float) -> str:
    """Empty when equal, otherwise the difference in words. `ties` numbers the gold rows' groups when order matters."""
    if got.columns != gold.columns:
        return f"{got.columns} columns instead of {gold.columns}"
    if len(got.rows) != len(gold.rows):
        return f"{len(got.rows)} rows instead of {len(gold.rows)}"
    if got.rows == gold.rows:
        return ""
    if ties is None:
        return "" if _same_bag(got.rows, gold.rows, tolerance) else "other rows"
    edges = [0, *(i for i in range(1, len(ties)) if ties[i] != ties[i - 1]), len(ties)]
    for start, end in itertools.pairwise(edges):
        if not _same_bag(got.rows[start:end], gold.rows[start:end], tolerance):
            return "other rows" if not _same_bag(got.rows, gold.rows, tolerance) else "another order"
    return ""


def _same_bag(got: list[Row], gold: list[Row], tolerance: float) -> bool:
    pairs = zip(sorted(got, key=_sort_key), sorted(gold, key=_sort_key), strict=True)
    return all(
        len(row) == len(other) and all(_same(*values, tolerance) for values in zip(row, other, strict=True))
        for row, other in pairs
    )


def _sort_key(row: Row) -> tuple[str, str]:
    # Rounded, so that floats which differ in the last bits still meet in the same place; then large integers exactly.
    rounded = [f"{float(value):.9e}" if type(value) in (int, float) else value for value in row]
    return json.dumps(rounded), json.dumps([value for value in row if type(value) is int])


def _same(got: Any, gold: Any, tolerance: float) -> bool:
    kinds = {type(got), type(gold)}
    if float in kinds and kinds <= {int, float}:
        return bool(abs(got - gold) <= tolerance * max(1.0, abs(gold)))
    return type(got) is type(gold) and bool(got == gold)


def tie_groups(keyed: Result | None, gold: Result) -> list[int]:
    """A number per gold row, the same while the sort keys are; every row its own group when keys are unknown."""
    if keyed is None or len(keyed.rows) != len(gold.rows):
        return list(range(len(gold.rows)))
    numbers, current = [], 0
    for i, row in enumerate(keyed.rows):
        if row[: gold.columns] != gold.rows[i]:
            return list(range(len(gold.rows)))
        if i and row[gold.columns :] != keyed.rows[i - 1][gold.columns :]:
            current += 1
        numbers.append(current)
    return numbers
