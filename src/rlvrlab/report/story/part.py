"""One part of a run's story: its tables, the pictures of these tables, and what they say in sentences."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Table = tuple[list[str], Sequence[Sequence[Any]]]
"""Headings and lines."""
CELL = ["row", "column", "value", "low", "high", "seeds"]
"""Headings of a matrix that is written cell by cell."""
FIRST = ("step", "phase", "phase_step")
"""Columns that a table of steps begins with, after the run."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes text that begins with one of these for a formula."""


class Part(NamedTuple):
    """Tables and pictures by the names of their files, without ending."""

    tables: Mapping[str, Table]
    pictures: Mapping[str, str]
    """SVG documents; each shows the table of the same name."""
    findings: Sequence[str]
    """Sentences in Markdown."""


def rows_of(curves: Mapping[str, Sequence[tuple[float, float]]]) -> list[list[Any]]:
    """Name, step and value of every point that is drawn."""
    return [[name, x, y] for name, curve in curves.items() for x, y in curve]


def steps_table(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """Every step of some runs, given with the run's name: one column per metric."""
    keys = [*FIRST, *sorted({key for _, row in rows for key in row} - set(FIRST))]
    return ["run", *keys], [[run, *(row.get(key) for key in keys)] for run, row in rows]


def as_csv(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as the text of a CSV file."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_safe(value) for value in row] for row in (head, *rows))
    return text.getvalue()


def _safe(value: Any) -> Any:
    """Text that no spreadsheet takes for a formula; tables and lists as JSON."""
    if value is None or isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    text = value.encode("utf-8", "backslashreplace").decode()
    return f"'{text}" if text.startswith(FORMULA) else text


def points(value: float) -> str:
    """A share or difference of shares in percentage points, signed."""
    return f"{100 * value:+z.1f}"


def share_words(point: Mapping[str, Any] | None) -> str:
    """A share in per cent with its interval, as `63.3 [50.7, 74.4]`, or a dash where it is not known."""
    known = point or {}
    value, low, high = (known.get(key) for key in ("value", "low", "high"))
    late = f" at step {known['from']['step']}" if known.get("late") else ""
    return "–" if value is None else f"{100 * value:.1f}{bracket(low, high, 100, 1)}{late}"


def bracket(low: float | None, high: float | None, scale: float = 1.0, digits: int = 2) -> str:
    """` [low, high]`, or nothing where a bound is not known."""
    if low is None or high is None:
        return ""
    return f" [{scale * low:z.{digits}f}, {scale * high:z.{digits}f}]"
