"""What data-set environments share: the exact value of an amount, `amount("$1,080") -> 1080`, taking turns, and
drawing what was not drawn before.

Where an answer stands in a completion: judge/extract.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import cycle, islice
from typing import TypeVar

from rlvrlab.judge.modes.expressions import number
from rlvrlab.judge.modes.units import CENTS, is_unit, unit_named
from rlvrlab.types import ErrorKind, Verdict

T = TypeVar("T")
KEPT = 200
"""Characters of an answer kept in a verdict."""
UNIT = re.compile(r"([^a-zA-Z%]*[0-9.])(?: ([a-zA-Z]{2,20})| ?(\\?%))", re.ASCII)
"""A number with one word behind it, which must be a unit, or with a percent sign."""
HOW_MANY = re.compile(r"\bhow many (?:(?:more|fewer|other|total|different|additional|extra|new|of the) )*([a-z]{2,20})")
SPOKEN_OF = {
    "percent": re.compile(r"%|\bper\s?cent|\bhow likely\b|\b(?:pass|success) rate\b", re.IGNORECASE),
    "cent": re.compile(r"¢|\b(?:cents?|penn(?:y|ies)|pence|nickels?|dimes?|quarters?)\b", re.IGNORECASE),
}
"""Questions about percentages, and about coins."""
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no blanks."""
UNSEEN = {
    **dict.fromkeys([0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)]),
    **dict.fromkeys(range(0xE0100, 0xE01F0)),
    **dict.fromkeys([0x2800, 0x3164, 0xFFA0], " "),
}
"""Marks and letters without a shape, which choose between shapes of others or join them, and some that are blanks."""
SIGNS = {"\\$": "dollar", "$": "dollar", "€": "euro", "£": "sterling", "¥": "yen"}


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
        """Whether it was never drawn before; from now on it was."""
        if content in self.seen:
            return False
        self.seen.add(content)
        self._fruitless = 0
        return True


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


def amount(text: str, asked: Collection[str] = ()) -> Fraction | None:
    """The exact value of a number with a currency sign, thousands separators or one plain unit; None otherwise.

    A unit is a word that is known as one, or that is asked for.
    """
    if len(text) > KEPT:
        return None
    sign = "-" if text.startswith(("-", "−")) else ""
    bare = text[len(sign) :]
    for symbol in SIGNS:
        bare = bare.removeprefix(symbol)
    if match := UNIT.fullmatch(bare):
        if match.group(2) and not is_unit(match.group(2)) and match.group(2).lower() not in asked:
            return None
        bare = match.group(1)
    if bare.startswith(("-", "+", "−", " ")) and bare != text:
        return None
    return number(sign + bare)


def asked_for(question: str) -> set[str]:
    """What a question wants to know the number of: `How many widgets does …` is about widgets.

    And `percent` or `cent`, where it speaks of percentages or coins: a bare number may be of these then.
    """
    hundredths = {name for name, spoken_of in SPOKEN_OF.items() if spoken_of.search(question)}
    return hundredths | set(HOW_MANY.findall(question.lower()))


def equal_amounts(answer: str, gold: str, asked: Collection[str] | None = None) -> bool | None:
    """Is the answer the amount that gold says? None where it is none. Units must agree where both name one.

    Where it is known what is asked, percent and cents beside a gold answer that stands alone must be asked for.
    """
    value = amount(answer, asked or ())
    if value is None:
        return None
    one, other = _units(answer), _units(gold)
    if one and other and one != other:
        return False
    hundredths = {"cent" if unit in CENTS else unit for unit in one & (CENTS | {"percent"})}
    unasked = asked is not None and not other and hundredths - set(asked)
    return value == amount(gold) and not unasked


def _units(text: str) -> set[str]:
    """What a currency sign and a word say, by one name for each unit; things that are counted have none."""
    signs = {name for sign, name in SIGNS.items() if sign in text}
    match = UNIT.fullmatch(text.lstrip("-−\\$€£¥"))
    word = "percent" if match and match.group(3) else unit_named(match.group(2)) if match else None
    return signs | {word} if word else signs
