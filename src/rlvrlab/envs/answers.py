"""What data-set environments share: the exact value of an amount, `amount("$1,080") -> 1080`, and taking turns.

Where an answer stands in a completion: judge/extract.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

from rlvrlab.judge.modes.expressions import number
from rlvrlab.judge.modes.quantities import CHANGING
from rlvrlab.types import ErrorKind, Verdict

T = TypeVar("T")
KEPT = 200
"""Characters of an answer kept in a verdict."""
UNIT = re.compile(r"([^a-zA-Z%]*[0-9.])(?: ([a-zA-Z]{2,20})| ?(\\?%))", re.ASCII)
NO_UNITS = re.compile(
    "or|and|not|to|plus|times|over|point|quarters?|score|tens|mil|mn|bn|gross|double|triple|pi|root|squared|mod|wrong"
    "|incorrect",
    re.IGNORECASE,
)
"""Words after a number that change its value, or hedge, besides those that CHANGING knows."""


def in_turn(streams: Sequence[Iterator[T]], size: int) -> list[T]:
    """`size` items, one of each stream in turn; fewer when a stream runs dry."""
    found: list[T] = []
    while len(found) < size:
        item = next(streams[len(found) % len(streams)], None)
        if item is None:
            break
        found.append(item)
    return found


def unthought(answer: str, prompt: str) -> dict[str, str]:
    """Cheats by name: a right answer that was only thought, the prompt in place of an answer, nothing at all."""
    return {
        "only thought": f"<think>{answer}</think>",
        "thinking without an end": f"<think>{answer}",
        "answer in a reopened think": f"<think>.</think><think>{answer}",
        "prompt echoed": prompt,
        "no text": "",
    }


def squeezed(text: str) -> str:
    """A text as duplicates are looked for: one case, single spaces."""
    return " ".join(text.casefold().split())


def same(
    right: bool, answer: str | None, error: ErrorKind = ErrorKind.WRONG, detail: str = "another answer"
) -> Verdict:
    """The verdict of a comparison."""
    parts = {"format": float(right or error is ErrorKind.WRONG), "correct": float(right)}
    kept = answer and answer[:KEPT]
    if right:
        return Verdict(True, 1.0, parts=parts, answer=kept)
    return Verdict(False, 0.0, error, parts, answer=kept, detail=detail)


def amount(text: str) -> Fraction | None:
    """The exact value of a number with a currency sign, thousands separators or one plain unit; None otherwise."""
    if len(text) > KEPT:
        return None
    sign = "-" if text.startswith(("-", "−")) else ""
    bare = text[len(sign) :]
    for symbol in ("\\$", "$", "€", "£", "¥"):
        bare = bare.removeprefix(symbol)
    if match := UNIT.fullmatch(bare):
        unit = match.group(2) or ""
        if NO_UNITS.fullmatch(unit) or CHANGING.search(unit):
            return None
        bare = match.group(1)
    if bare.startswith(("-", "+", "−", " ")) and bare != text:
        return None
    return number(sign + bare)
