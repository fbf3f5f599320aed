"""Reading what a benchmark measured, and writing tables of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
Rows = Iterable[Iterable[object]]


def found(name: str) -> Any:
    """What the measurement printed."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["found"]


def table(head: Iterable[str], rows: Rows) -> list[str]:
    """As Markdown; the first column of the head may be empty."""
    head = list(head)
    cells = [head, ["---"] * len(head), *(list(map(str, row)) for row in rows)]
    return ["| " + " | ".join(row) + " |" if row[0] != "---" else "|" + "---|" * len(head) for row in cells] + [""]


def middle_of(three: list[float]) -> str:
    """`2.16 (1.97–2.18)`, or one number where there was one round."""
    middle, low, high = three
    return f"{middle:.2f}" if low == high else f"{middle:.2f} ({low:.2f}–{high:.2f})"
