"""The exact value of a written number, as a fraction: no `eval`, no float, bounded in length.

    number("1,234.50") -> Fraction(2469, 2)     number("3/4") -> Fraction(3, 4)     number("½") -> None
Refused: names, powers, `//`, digits of other scripts.
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 2000
LARGEST_EXPONENT = 300

PLAIN = r"[0-9]{1,400}"
GROUPED = r"[0-9]{1,3}(?:,[0-9]{3}){1,100}"
NUMBER = re.compile(rf"([+-]?)({GROUPED}|{PLAIN}|)(?:\.({PLAIN})?)?(?:[eE]([+-]?[0-9]{{1,4}}))?", re.ASCII)
RATIO = re.compile(rf"([+-]?(?:{GROUPED}|{PLAIN}))\s*/\s*([+-]?{PLAIN})", re.ASCII)
SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-"})


def number(text: str) -> Fraction | None:
    """The exact value of an integer, decimal or ratio, thousands separators allowed; None for anything else."""
    text = text.strip().translate(SIGNS)
    if len(text) > LONGEST:
        return None
    if match := RATIO.fullmatch(text):
        above, below = (int(part.replace(",", "")) for part in match.groups())
        return Fraction(above, below) if below else None
    match = NUMBER.fullmatch(text)
    if not match:
        return None
    sign, whole, part, exponent = match.groups()
    if not whole and not part:
        return None
    power = int(exponent or 0)
    if abs(power) > LARGEST_EXPONENT:
        return None
    digits = whole.replace(",", "") + (part or "")
    value = Fraction(int(digits), 10 ** len(part or "")) * Fraction(10) ** power
    return -value if sign == "-" else value
