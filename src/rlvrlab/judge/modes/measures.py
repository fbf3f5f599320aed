r"""Which units two texts name, and whether they are the same: math-verify drops them unread.

other_units("3 \\text{ hours}", "3 \\text{ minutes}") = True      other_units("5 \\text{ cm}", "5") = False
other_units("5 \\text{ kJ}", "5 \\text{ J}") = True               other_units("5 \\text{ N m}", "5 \\text{ J}") = False
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rlvrlab.judge.modes.fonts import WRAPPED
from rlvrlab.judge.modes.units import ALSO, RATES, SURE_PAIRS, unit_named

LONGEST_PRODUCT = 2
"""Letters in a row that are taken for variables; three may be a word."""
Unit = tuple[str, int]
"""The name of a unit and its power."""
COMMAND = re.compile(r"\\[a-zA-Z]+")
WORD = re.compile(r"[a-zA-Z]+")
HALF_DAY = re.compile(r"\b([ap])\.?\s?m\b\.?", re.IGNORECASE)
COLON = re.compile(r"\{:\}|\\colon(?![a-zA-Z])")
POWER = re.compile(
    r"(square|sq|cubic|cu)\b\.?\s{0,9}([a-zA-Z]+)"
    r"|(?<![a-zA-Z])([a-zA-Z]{1,20})\s{0,9}(?:\^\s{0,9}\{?\s{0,9}-?\s{0,9}([0-9])|(squared|cubed)\b)"
)
IN_BRACES = re.compile(r"\^\s{0,9}\{\s{0,9}(-?\s{0,9}[0-9])\s{0,9}\}")
"""A power whose braces would end the words it stands in: `\\text{m/s^{2}}`."""
POWERED = re.compile(WRAPPED.pattern + r"\s{0,9}(\^\s{0,9}\{?\s{0,9}-?\s{0,9}[0-9])?")
POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
SIGNS = {
    "^\\circ": " degree ", "^{\\circ}": " degree ", "°": " degree ", "\\$": " dollar ", "€": " euro ",
    "£": " sterling ", "¥": " yen ", "¢": " cent ", "℃": " celsius ", "℉": " fahrenheit ", "%": " percent ",
}  # fmt: skip
MARKED = re.compile(
    r"(?<![\w{.])([0-9]+(?:\.[0-9]+)?)\s{0,9}"
    r"(?:(''|\"|″)|['′]|\^\s{0,9}(?:\\prime(?![a-zA-Z])|\{\s{0,9}\\prime\s{0,9}(\\prime)?\s{0,9}\}))"
)
"""A number with marks behind it: minutes of arc or feet with one, seconds or inches with two."""
INCHES = re.compile(r"\bin(?=\.?\s{0,9}\})")
"""At the end of words it is no preposition: `\\text{ sq in}`."""
PREFIXED = re.compile(r"(?<![a-zA-Z\\])([mM])(W|V|A|J|N|T|Hz|Pa|eV)h?(?![a-zA-Z])")
"""Units that are a billion times larger with a capital: `mW`, `MW`."""
MONEY = {("dollar", 1), ("euro", 1)}
PER = ("per", 1)
DIVIDED = re.compile(r"[a-zA-Z]\.?\s{0,9}(?:/|\bper\b)\s{0,9}[a-zA-Z]|[a-zA-Z]\s{0,9}\^\s{0,9}\{?\s{0,9}-\s{0,9}[0-9]")
"""One unit by another: `m/s`, `miles per hour`, `m s^{-1}`."""
NAMED_BY_A_LETTER = re.compile(r"\b([a-zA-Z]{2,20})\s{1,9}[A-Z]\b")
"""`rod A`, where no unit stands, and `degrees C`, where one does."""
BEHIND_A_VALUE = re.compile(r"(?:[0-9)}/]|degree)\s{0,9}([a-zA-Z]{1,2})(?![a-zA-Z])")
"""One or two letters that are a unit, if any; before a value they are its name: `V = 5 cm`."""
TEMPERATURES = {("celsius", 1), ("fahrenheit", 1), ("C", 1), ("F", 1)}
DERIVED: dict[frozenset[Unit], str] = {
    frozenset(parts): name
    for name, *parts in (
        ("newton", ("kg", 1), ("m", 1), ("second", 2), PER), ("joule", ("newton", 1), ("m", 1)),
        ("joule", ("kg", 1), ("m", 2), ("second", 2), PER), ("joule", ("w", 1), ("second", 1)),
        ("w", ("joule", 1), ("second", 1), PER), ("w", ("volt", 1), ("ampere", 1)),
        ("pa", ("newton", 1), ("m", 2), PER), ("coulomb", ("ampere", 1), ("second", 1)),
        ("volt", ("joule", 1), ("C", 1), PER), ("ohm", ("volt", 1), ("ampere", 1), PER), ("hz", ("second", 1), PER),
        ("ml", ("cm", 3)), ("l", ("dm", 3)),
    )
}  # fmt: skip
"""Units that are made of others."""


def other_units(answer: str, gold: str) -> bool:
    """Do both name units, and not the same ones? A sign of money may stand for all of `dollars per hour`."""
    prefixed = [set(PREFIXED.findall(unwrapped(text))) for text in (answer, gold)]
    if all(prefixed) and prefixed[0] != prefixed[1]:
        return True
    marked = bool(units(answer) or units(gold))
    mine, theirs = (units(text, sure=not marked) for text in (answer, gold))
    one, other = _spelled_out(mine, theirs), _spelled_out(theirs, mine)
    return bool(one and other) and one != other and not (one <= other and one <= MONEY)


def unwrapped(text: str) -> str:
    r"""Without dollars around it and with the words of `\text{…}` in plain sight."""
    text = WRAPPED.sub(r" \1 ", text.strip().strip("$")).replace("~", " ")
    return HALF_DAY.sub(r"\1m", COLON.sub(":", text)).strip()


@lru_cache(maxsize=256)
def units(text: str, sure: bool = True) -> frozenset[Unit]:
    """Known units with their powers, and PER where one is divided by another.

    Inside `\\text{…}` a single letter is a unit. Elsewhere it may be a variable, and so may two: they count only where
    it need not be sure.
    """
    text = MARKED.sub(lambda found: f"{found[1]} {'arcsecond' if found[2] or found[3] else 'arcminute'} ", text)
    text = INCHES.sub("inch", HALF_DAY.sub(r"\1m", IN_BRACES.sub(r"^\1", text)))
    for sign, name in SIGNS.items():
        text = text.replace(sign, name)
    inside = " ".join(f"{words}{power}" for words, power in POWERED.findall(text)).replace("~", " ")
    inside = NAMED_BY_A_LETTER.sub(lambda found: found[0] if _before_a_unit(found[1]) else " ", inside)
    outside = COMMAND.sub(" ", WRAPPED.sub(" ", text))
    long = [word for word in WORD.findall(outside) if len(word) > LONGEST_PRODUCT or word.lower() in SURE_PAIRS]
    found = _named(inside, WORD.findall(inside)) | _named(
        outside, long if sure else long + BEHIND_A_VALUE.findall(outside)
    )
    if found & TEMPERATURES:
        found.discard(("degree", 1))
    if found and DIVIDED.search(unwrapped(text)):
        found.add(PER)
    made_of = frozenset(found)
    return frozenset({(DERIVED[made_of], 1)}) if made_of in DERIVED else made_of


def _before_a_unit(word: str) -> bool:
    return word in POWERS or word == "per" or unit_named(word) is not None


def _named(text: str, words: Iterable[str]) -> set[Unit]:
    """The units among these words of a text."""
    powers = {}
    for before, unit, base, exponent, after in POWER.findall(text):
        powers[unit or base] = int(exponent) if exponent else POWERS[before or after]
    found = set()
    for word in words:
        rate = RATES.get(word.lower())
        found |= {(unit, powers.get(word, 1)) for unit in rate or (unit_named(word),) if unit}
        found |= {PER} if rate else set()
    return found


def _spelled_out(found: frozenset[Unit], beside: frozenset[Unit]) -> set[Unit]:
    """The units that may mean several things as what the other text calls them."""
    return {
        (next((name for name in ALSO.get(unit, ()) if (name, power) in beside), unit), power) for unit, power in found
    }
