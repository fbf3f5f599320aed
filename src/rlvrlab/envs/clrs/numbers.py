"""Numbers and arrays as CLRS-Text writes them. Decimals are whole thousandths inside, so sums never round.

decimals([550, 708, 0])  -> "[0.55 0.708 0.0]"        matrix([[0, 1], [1, 0]]) -> "[[0 1], [1 0]]"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def decimal(thousandths: int) -> str:
    """550 as 0.55, 0 as 0.0."""
    whole, part = divmod(abs(thousandths), 1000)
    return f"{'-' if thousandths < 0 else ''}{whole}.{f'{part:03}'.rstrip('0') or '0'}"


def array(values: Sequence[int], write: Callable[[int], str] = str) -> str:
    """`[0 1 2]`, each value as `write` writes it."""
    return f"[{' '.join(map(write, values))}]"


def decimals(values: Sequence[int]) -> str:
    """`[0.55 0.708]` from thousandths."""
    return array(values, decimal)


def matrix(rows: Sequence[Sequence[int]], write: Callable[[int], str] = str) -> str:
    """`[[0 1], [1 0]]`, each value as `write` writes it."""
    return f"[{', '.join(array(row, write) for row in rows)}]"
