r"""Which units two texts name, and whether they are the same: math-verify drops them unread.

other_units("3 \\text{ hours}", "3 \\text{ minutes}") = True      other_units("5 \\text{ cm}", "5") = False
other_units("5 \\text{ kJ}", "5 \\text{ J}") = True               other_units("5 \\text{ N m}", "5 \\text{ J}") = False
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from rlvrlab.judge.modes.fonts import WRAPPED
from rlvrlab.judge.modes.strays import QUOTED
from rlvrlab.judge.modes.units import ALSO, CENTS, RATES, SIGNS_OF_MONEY, SURE_PAIRS, is_unit, unit_named

LONGEST_PRODUCT = 2
"""Letters in a row that are taken for variables; three may be a word."""
Unit = tuple[str, int]
"""The name of a unit and its power, which is negative below the line: seconds per metre are no metres per second."""
COMMAND = re.compile(r"\\[a-zA-Z]+")
WORD = re.compile(r"[a-zA-Z]+")
HALF_DAY = re.compile(r"\b([ap])\.?\s?m\b\.?", re.IGNORECASE)
COLON = re.compile(r"\{:\}|\\colon(?![a-zA-Z])")
OPEN, CLOSE = "\x01", "\x02"
"""Around words that stood in `\\text{…}`."""
RAISED = rf"[\s{CLOSE}]{{0,9}}\^[\s{{]{{0,9}}(-?)\s{{0,9}}([0-9])"
BEHIND_A_UNIT = re.compile(rf"{RAISED}|\s{{0,9}}(squared|cubed)\b")
JOINED = re.compile(rf"(?:{RAISED})?[\s(*.{{}}{OPEN}{CLOSE}]{{0,20}}")
"""Between two units that are multiplied."""
STROKE = re.compile(rf"/[\s({OPEN}]{{0,9}}$")
"""Before a word that divides: `m/s`."""
FRACTION = re.compile(
    rf"(?:{RAISED})?[\s}}{CLOSE}]{{0,9}}\}}\s{{0,9}}\{{[\s({OPEN}]{{0,9}}(?:[0-9.]{{1,20}}[\s{OPEN}]{{1,9}})?"
)
"""Between two units, the second of which divides: `\\frac{\\text{m}}{\\text{s}}`."""
IN_BRACES = re.compile(r"\^\s{0,9}\{\s{0,9}(-?\s{0,9}[0-9])\s{0,9}\}")
"""A power whose braces would end the words it stands in: `\\text{m/s^{2}}`."""
POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3}
SIGNS = {
    "^\\circ": " degree ", "^{\\circ}": " degree ", "°": " degree ", "\\$": " dollar ", "€": " euro ",
    "£": " sterling ", "¥": " yen ", "¢": " cent ", "℃": " celsius ", "℉": " fahrenheit ", "%": " percent ",
}  # fmt: skip
MARKED = re.compile(
    r"(?<![\w{.])((?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)\s{0,9}"
    r"(?:(''|\"|″)|['′]|\^\s{0,9}(?:\\prime(?![a-zA-Z])|\{\s{0,9}\\prime\s{0,9}(\\prime)?\s{0,9}\}))"
)
"""A number with marks behind it: minutes of arc or feet with one, seconds or inches with two."""
INCHES = re.compile(r"\bin(?=\.?\s{0,9}(?:[}^]|\$?$))")
"""At the end, or to a power, it is no preposition: `\\text{ sq in}`, `in^2`."""
PREFIXED = re.compile(r"(?<![a-zA-Z\\])([mM])(W|V|A|J|N|T|Hz|Pa|eV)h?(?![a-zA-Z])")
"""Units that are a billion times larger with a capital: `mW`, `MW`."""
MONEY = {("dollar", 1), ("euro", 1)}
DOLLAR = re.compile(r"(?<!\\)\$(?=\s{0,9}[-+0-9.€£¥\\])|(?<=[0-9.}])\s{0,9}(?<!\\)\$")
"""Before or behind a number and without a partner, it is no border of a formula: `$5 euros`."""
PER = ("per", 1)
"""Beside units by which, or which by something else, is divided."""
NAMED_BY_A_LETTER = re.compile(r"\b([a-zA-Z]{2,20})\s{1,9}[A-Z]\b")
"""`rod A`, where no unit stands, and `degrees C`, where one does."""
BEHIND_A_VALUE = re.compile(r"(?:[0-9)}/]|degree)\s{0,9}([a-zA-Z]{1,2})(?![a-zA-Z])")
"""One or two letters that are a unit, if any; before a value they are its name: `V = 5 cm`."""
TEMPERATURES = {"celsius", "fahrenheit", "C", "F"}
MONEYS = {"dollar", "euro", "sterling", "yen", "yuan", "rupee", "peso", *CENTS}
STAND_ALONE = {*MONEYS, "percent", "degree"}
"""Units that no other is multiplied by, whatever they are divided by."""
DERIVED: dict[frozenset[Unit], str] = {
    frozenset(parts): name
    for name, *parts in (
        ("newton", ("kg", 1), ("m", 1), ("second", -2), PER), ("joule", ("newton", 1), ("m", 1)),
        ("joule", ("kg", 1), ("m", 2), ("second", -2), PER), ("joule", ("w", 1), ("second", 1)),
        ("w", ("joule", 1), ("second", -1), PER), ("w", ("volt", 1), ("ampere", 1)),
        ("pa", ("newton", 1), ("m", -2), PER), ("coulomb", ("ampere", 1), ("second", 1)),
        ("volt", ("joule", 1), ("C", -1), PER), ("ohm", ("volt", 1), ("ampere", -1), PER), ("hz", ("second", -1), PER),
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


def has_odd_unit(text: str) -> bool:
    """Does a value have several units that are none together: `$5 euros`, `5 \\text{ kg m}`?

    `\\$5 \\text{ per hour}` is one, and so is what has a name of its own: `5 \\text{ N m}`.
    """
    found = units(text, sure=False)
    names = {unit for unit, power in found if power > 0} - {"per"}
    one_of = [frozenset((name, *ALSO.get(name, ()), *_by_sign(name, text))) for name in names]
    if PER not in found and names & MONEYS and _counts_things(text):
        return True
    alone = names & STAND_ALONE or PER not in found
    return len(names) > 1 and bool(alone) and not frozenset.intersection(*one_of)


def is_marked(text: str) -> bool:
    """Does a number have a mark for its unit: `5'`, which may be feet, minutes or a derivative?"""
    quoted = QUOTED.fullmatch(text)
    return MARKED.search((quoted[2] if quoted else text).replace("$", "")) is not None


def _counts_things(text: str) -> bool:
    """`5 \\text{ apples}`: no unit, and no money."""
    words = WORD.findall(COMMAND.sub(" ", unwrapped(text)))
    return any(is_unit(word) and not unit_named(word) for word in words if len(word) > LONGEST_PRODUCT)


def _by_sign(name: str, text: str) -> Iterator[str]:
    """What else a sign of money in the text may mean."""
    for sign, moneys in SIGNS_OF_MONEY.items():
        if moneys[0] == name and sign in text:
            yield from moneys


def unwrapped(text: str) -> str:
    r"""Without dollars around it and with the words of `\text{…}` in plain sight."""
    text = WRAPPED.sub(r" \1 ", text.strip().strip("$")).replace("~", " ").replace("\\!", "")
    return HALF_DAY.sub(r"\1m", COLON.sub(":", text)).strip()


@lru_cache(maxsize=256)
def units(text: str, sure: bool = True) -> frozenset[Unit]:
    """Known units with their powers, and PER where one is divided by another.

    Inside `\\text{…}` a single letter is a unit. Elsewhere it may be a variable, and so may two: they count only where
    it need not be sure.
    """
    if text.replace("\\$", "").count("$") % 2:
        text = DOLLAR.sub(" dollar ", text, count=1)
    text = MARKED.sub(lambda found: f"{found[1]} {'arcsecond' if found[2] or found[3] else 'arcminute'} ", text)
    text = INCHES.sub("inch", HALF_DAY.sub(r"\1m", IN_BRACES.sub(r"^\1", text)))
    for sign, name in SIGNS.items():
        text = text.replace(sign, name)
    text = COMMAND.sub(" ", WRAPPED.sub(_marked, text).replace("~", " "))
    found = _named(text, sure)
    if any(unit in TEMPERATURES for unit, _ in found):
        found = {one for one in found if one[0] != "degree"}
    made_of = frozenset(found)
    return frozenset({(DERIVED[made_of], 1)}) if made_of in DERIVED else made_of


def _marked(found: re.Match[str]) -> str:
    words = NAMED_BY_A_LETTER.sub(lambda named: named[0] if _before_a_unit(named[1]) else " ", found[1])
    return f"{OPEN} {words} {CLOSE}"


def _before_a_unit(word: str) -> bool:
    return word in POWERS or word == "per" or unit_named(word) is not None


def _named(text: str, sure: bool) -> set[Unit]:
    """The units of a text, word by word; in no type of their own only where they are long, or need not be sure."""
    behind = set() if sure else {one.start(1) for one in BEHIND_A_VALUE.finditer(text)}
    found: set[Unit] = set()
    before, last, end, inside, below = "", None, 0, False, False
    for one in WORD.finditer(text):
        word, gap = one[0], text[end : one.start()]
        inside = gap.rfind(OPEN) > gap.rfind(CLOSE) if OPEN in gap or CLOSE in gap else inside
        divides = before == "per" or STROKE.search(gap) or (last and FRACTION.fullmatch(gap))
        below = bool(divides or (below and (last or before in POWERS) and JOINED.fullmatch(gap)))
        counts = inside or len(word) > LONGEST_PRODUCT or word.lower() in SURE_PAIRS or one.start() in behind
        names = RATES.get(word.lower()) or (unit_named(word),) if counts else (None,)
        if names[0]:
            found.add((names[0], _power(before, text, one.end()) * (-1 if below else 1)))
            found |= {(unit, -1) for unit in names[1:] if unit}
        elif divides and (last or before == "per") and found:
            found.add(PER)
        last = names[0] or (last if word == "per" else None)
        before, end = word, one.end()
    return found | {PER} if any(power < 0 for _, power in found) else found


def _power(before: str, text: str, end: int) -> int:
    """Of the unit that ends there, behind this word."""
    raised = BEHIND_A_UNIT.match(text, end)
    if raised:
        return int(raised[1] + raised[2]) if raised[2] else POWERS[raised[3]]
    return POWERS.get(before, 1)


def _spelled_out(found: frozenset[Unit], beside: frozenset[Unit]) -> set[Unit]:
    """The units that may mean several things as what the other text calls them."""
    return {
        (next((name for name in ALSO.get(unit, ()) if (name, power) in beside), unit), power) for unit, power in found
    }
