"""JSON that somebody else has written: bounded in depth and in the digits of its numbers, and read by type.

Python reads 4,300 digits and a thousand brackets within each other, and then fails where such a value is turned into a
float or a text, or walked through. Here they are a ValueError like any other text that is no JSON of ours.
"""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 100
DIGITS = 308
"""A whole number with more is no float."""
LARGEST = 1e100
"""Numbers beyond are nobody's measurement; a percentage of one within is still finite."""
LARGEST_COUNT = 2**53
_LONG, _LONG_BYTES = re.compile(rf"(?<![0-9])[0-9]{{{DIGITS + 1}}}"), re.compile(rb"(?<![0-9])[0-9]{%d}" % (DIGITS + 1))


def parsed(text: str | bytes, *, answers: bool = False) -> Any:
    """JSON as values; whatever cannot be read, or is beyond the bounds, is a ValueError.

    Problems and answers (`answers`) may hold numbers of a thousand digits, and have no bounds but Python's.
    """
    try:
        value = json.loads(text, parse_int=_bounded) if not answers and has_long_digits(text) else json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not answers:
        refuse_depth(text, value)
    return value


def has_long_digits(text: str | bytes) -> bool:
    """Whether there are more digits in a row than a number may have; they may stand in a text, where they are fine."""
    return bool(_LONG.search(text) if isinstance(text, str) else _LONG_BYTES.search(text))


def refuse_depth(text: str | bytes, value: Any) -> None:
    """ValueError for a value with more than DEEPEST tables and lists within each other; `text` is what it was."""
    if isinstance(text, str):
        lists, tables = text.count("["), text.count("{")
    else:
        lists, tables = text.count(b"["), text.count(b"{")
    if lists + tables <= DEEPEST:
        return
    level = [value]
    for _ in range(DEEPEST):
        inner = [list(one.values()) if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for values in inner for one in values if isinstance(one, dict | list)]
        if not level:
            return
    raise ValueError("nested too deeply")


def number(value: Any, low: float = -LARGEST, high: float = LARGEST) -> float | None:
    """`value` as a float where it is a number within these bounds, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        return None
    return float(value)


def share(value: Any) -> float | None:
    """A number from 0 to 1, else None."""
    return number(value, 0, 1)


def count(value: Any) -> int | None:
    """A whole number from 0 to LARGEST_COUNT, else None."""
    return value if isinstance(value, int) and number(value, 0, LARGEST_COUNT) is not None else None


def _bounded(digits: str) -> int:
    if len(digits) > DIGITS + 1:  # and a sign
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)
