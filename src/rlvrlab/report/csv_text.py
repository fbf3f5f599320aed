"""A table as the text of a CSV file, which no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes text that begins with one of these for a formula."""


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
