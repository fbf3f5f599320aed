"""Rows as data frames, and the small tables that a notebook shows."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from rlvrlab.errors import UserError


def frame(rows: Sequence[dict[str, Any]]) -> Any:
    """The rows as a pandas DataFrame."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise UserError("as_frame=True needs pandas: pip install pandas; without it you get a list of dicts") from None
    return pandas.DataFrame.from_records(list(rows))


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], notes: Sequence[str] = ()) -> str:
    """A table for a notebook; every text in it is escaped."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    below = "".join(f"<div><small>{escape(note)}</small></div>" for note in notes)
    return f"<div><strong>{escape(title)}</strong><table><tr>{top}</tr>{body}</table>{below}</div>"
