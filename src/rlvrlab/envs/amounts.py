"""The exact value of an amount, `amount("$1,080") -> 1080`, and whether two answers name the same one."""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction

from rlvrlab.envs.answers import KEPT
from rlvrlab.judge.modes.expressions import number
from rlvrlab.judge.modes.units import CENTS, SIGNS_OF_MONEY, is_money, is_unit, unit_named

UNIT = re.compile(r"([^a-zA-Z%]*[0-9.])(?: ([a-zA-Z]{2,20})| ?(\\?%))", re.ASCII)
"""A number with one word behind it, which must be a unit, or with a percent sign."""
HOW_MANY = re.compile(r"\bhow many (?:(?:more|fewer|other|total|different|additional|extra|new|of the) )*([a-z]{2,20})")
SPOKEN_OF = {
    "percent": re.compile(r"%|\bper\s?cent|\bhow likely\b|\b(?:pass|success) rate\b", re.IGNORECASE),
    "cent": re.compile(r"¢|\b(?:cents?|penn(?:y|ies)|pence|nickels?|dimes?|quarters?)\b", re.IGNORECASE),
}
"""Questions about percentages, and about coins."""


def amount(text: str, asked: Collection[str] = ()) -> Fraction | None:
    """The exact value of a number with a currency sign, thousands separators or one plain unit; None otherwise.

    A unit is a word that is known as one, or that is asked for; beside a currency sign it must mean the same.
    """
    if len(text) > KEPT:
        return None
    sign = "-" if text.startswith(("-", "−")) else ""
    bare = text[len(sign) :]
    symbol = next((one for one in SIGNS_OF_MONEY if bare.startswith(one)), "")
    bare = bare.removeprefix(symbol)
    if match := UNIT.fullmatch(bare):
        word = match.group(2) or "percent"
        known = is_money(symbol, word) if symbol else is_unit(word) or word.lower() in asked
        if not known:
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
    signs = {names[0] for sign, names in SIGNS_OF_MONEY.items() if sign in text}
    match = UNIT.fullmatch(text.lstrip("-−\\$€£¥"))
    word = "percent" if match and match.group(3) else unit_named(match.group(2)) if match else None
    return signs | {word} if word else signs
