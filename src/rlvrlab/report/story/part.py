"""One part of a run's story: its tables, the pictures of these tables, and what they say in sentences.

Pictures are plain SVG without any package: lines over steps, bars with intervals, and a heat map with its numbers.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

Table = tuple[list[str], Sequence[Sequence[Any]]]
"""Headings and lines."""
CELL = ["row", "column", "value", "low", "high", "seeds"]
"""Headings of a matrix that is written cell by cell."""
FIRST = ("step", "phase", "phase_step")
"""Columns that a table of steps begins with, after the run."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes text that begins with one of these for a formula."""
WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 130, 34, 40
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#000000")
CELL_WIDTH, CELL_HEIGHT, LABEL = 84, 34, 120
TICKS = 4
MOST_LINES = 8
Curve = Sequence[tuple[float, float]]


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


def lines(title: str, curves: Mapping[str, Curve], y_title: str, marks: Sequence[tuple[float, str]] = ()) -> str:
    """Curves over steps, the first few of them; `marks` are vertical rules with names."""
    shown = {name: list(curve) for name, curve in list(curves.items())[:MOST_LINES] if curve}
    xs, ys = ([point[i] for curve in shown.values() for point in curve] for i in (0, 1))
    left, right, bottom, top = min(xs), max(xs), min(0.0, *ys), max(ys)
    x_scale, y_scale = (WIDTH - LEFT - RIGHT) / (right - left or 1), (HEIGHT - TOP - BOTTOM) / (top - bottom or 1)

    def place(x: float, y: float) -> tuple[float, float]:
        return round(LEFT + (x - left) * x_scale, 1), round(HEIGHT - BOTTOM - (y - bottom) * y_scale, 1)

    parts = []
    for i in range(TICKS + 1):
        value = bottom + (top - bottom) * i / TICKS
        _, y = place(left, value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#e5e5e5"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{value:.3g}", "end"))
        step = left + (right - left) * i / TICKS
        parts.append(_text(place(step, bottom)[0], HEIGHT - BOTTOM + 16, f"{step:.4g}", "middle"))
    for x, name in marks:
        at, _ = place(min(max(x, left), right), bottom)
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#bbb" stroke-dasharray="3 2"/>'
        )
        parts.append(_text(at + 3, TOP + 10, name))
    for i, (name, curve) in enumerate(shown.items()):
        path = " ".join(f"{x},{y}" for x, y in (place(*point) for point in curve))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[i]}" stroke-width="1.6"/>')
        parts.append(_text(WIDTH - RIGHT + 8, TOP + 14 * (i + 1), name, colour=COLOURS[i]))
    parts += [_text(LEFT, HEIGHT - 8, "step"), _text(LEFT, TOP - 6, y_title)]
    return _document(title, WIDTH, HEIGHT, parts)


def bars(title: str, rows: Sequence[tuple[str, float, float | None, float | None]], x_title: str) -> str:
    """A bar per row with its interval, zero marked."""
    reach = [value for _, *values in rows for value in values if value is not None]
    low, high = min(0.0, *reach), max(0.0, *reach)
    scale = (WIDTH - 2 * LABEL) / (high - low or 1)
    height = TOP + 20 * len(rows) + BOTTOM

    def place(value: float) -> float:
        return round(LABEL + (value - low) * scale, 1)

    parts = [f'<line x1="{place(0)}" x2="{place(0)}" y1="{TOP}" y2="{height - BOTTOM}" stroke="#999"/>']
    for i, (name, value, least, most) in enumerate(rows):
        y, (begin, end) = TOP + 20 * i, sorted((place(0), place(value)))
        parts.append(f'<rect x="{begin}" y="{y + 4}" width="{round(end - begin, 1)}" height="12" fill="#56b4e9"/>')
        if least is not None and most is not None:
            parts.append(f'<line x1="{place(least)}" x2="{place(most)}" y1="{y + 10}" y2="{y + 10}" stroke="#000"/>')
        parts += [_text(LABEL - 6, y + 14, name, "end"), _text(WIDTH - LABEL + 8, y + 14, f"{value:.3g}")]
    parts.append(_text(LABEL, height - 14, x_title))
    return _document(title, WIDTH, height, parts)


def heat(title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[float | None]]) -> str:
    """A matrix: blue above zero, orange below, the number in each cell."""
    top = max((abs(value) for row in cells for value in row if value is not None), default=1.0) or 1.0
    parts = [_text(LABEL + CELL_WIDTH * (j + 0.5), TOP + 12, name, "middle") for j, name in enumerate(columns)]
    for i, (name, row) in enumerate(zip(rows, cells, strict=True)):
        y = TOP + 20 + CELL_HEIGHT * i
        parts.append(_text(LABEL - 6, y + CELL_HEIGHT / 2 + 4, name, "end"))
        for j, value in enumerate(row):
            share = 0.0 if value is None else 0.75 * abs(value) / top
            colour = "#0072b2" if (value or 0.0) >= 0 else "#d55e00"
            x = LABEL + CELL_WIDTH * j
            box = f'x="{x}" y="{y}" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}"'
            parts.append(f'<rect {box} fill="{colour}" fill-opacity="{share:.2f}" stroke="#ddd"/>')
            told = "–" if value is None else f"{value:z.2f}"
            parts.append(_text(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, told, "middle"))
    size = LABEL + CELL_WIDTH * len(columns) + 20, TOP + 40 + CELL_HEIGHT * len(rows)
    return _document(title, max(size[0], 360), size[1], parts)


def _text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#333") -> str:
    short = words if len(words) <= 24 else words[:23] + "…"
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}" fill="{colour}">{escape(short)}</text>'


def _document(title: str, width: float, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
    name = f'<text x="8" y="18" font-size="13" font-weight="bold">{escape(title)}</text>'
    ground = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([f'{head} font-size="11">', ground, name, *parts, "</svg>", ""])
