"""What data-set environments share: texts as they are seen, taking turns, and drawing what was not drawn before.

Where an answer stands in a completion: judge/extract.py. What an amount is worth: amounts.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import TypeVar

from rlvrlab.notes import made
from rlvrlab.types import ErrorKind, Verdict

T = TypeVar("T")
KEPT = 200
"""Characters of an answer kept in a verdict."""
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no blanks."""
UNSEEN = {
    **dict.fromkeys([0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)]),
    **dict.fromkeys(range(0xE0100, 0xE01F0)),
    **dict.fromkeys([0x2800, 0x3164, 0xFFA0], " "),
}
"""Marks and letters without a shape, which choose between shapes of others or join them, and some that are blanks."""


def in_turn(streams: Sequence[Iterator[T]], size: int) -> list[T]:
    """`size` items, one of each stream in turn; fewer when a stream runs dry."""
    turns = cycle(streams)
    return list(islice(iter(lambda: next(next(turns), None), None), size))


class Draws:
    """Random draws of which only new ones count: `for _ in draws` ends when nothing new has turned up for long."""

    def __init__(self, patience: int) -> None:
        """`patience`: how many draws in a row may bring nothing new."""
        self._patience, self._fruitless = patience, 0
        self.seen: set[object] = set()

    def __iter__(self) -> Iterator[None]:
        while self._fruitless < self._patience:
            self._fruitless += 1
            yield

    def is_new(self, content: object) -> bool:
        """Whether it was never drawn before; from now on it was, and it is counted as made."""
        if content in self.seen:
            return False
        self.seen.add(content)
        self._fruitless = 0
        made()
        return True


def squeezed(text: str) -> str:
    """A text whatever its case and blanks; it decides roles and ids, so it never changes."""
    return " ".join(text.casefold().split())


def normalised(text: str) -> str:
    """The same, and one form of each character; manifests keep hashes of it, so it never changes, either."""
    return squeezed(unicodedata.normalize("NFKC", text))


def as_seen(text: str) -> str:
    """What exact duplicates share: the normalised text without characters that nobody sees."""
    if not text.isascii():
        text = "".join([char for char in text.translate(UNSEEN) if unicodedata.category(char) != "Cf"])
    return normalised(CONTROL.sub("", text))


def same(
    right: bool, answer: str | None, error: ErrorKind = ErrorKind.WRONG, detail: str = "another answer"
) -> Verdict:
    """The verdict of a comparison."""
    parts = {"format": float(right or error is ErrorKind.WRONG), "correct": float(right)}
    kept = answer and answer[:KEPT]
    if right:
        return Verdict(True, 1.0, parts=parts, answer=kept)
    return Verdict(False, 0.0, error, parts, answer=kept, detail=detail)
