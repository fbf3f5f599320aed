"""The exact value of a written number, as a fraction: no `eval`, no float, bounded in length.

    number("1,234.50") -> Fraction(2469, 2)     number("3/4") -> Fraction(3, 4)     number("½") -> None
    latex_number("0.1\\\\overline{6}") -> latex_number("\\\\frac{1}{6}") -> Fraction(1, 6)
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
FRACTION = re.compile(r"([+-]?)\s*\\[dt]?frac\s*(?:\{([0-9]+)\}|([0-9]))\s*(?:\{([0-9]+)\}|([0-9]))", re.ASCII)
MIXED = re.compile(
    rf"([+-]?)\s*({PLAIN})(?:\s+({PLAIN})\s*/\s*({PLAIN})|\s*\\[dt]?frac\s*(?:\{{({PLAIN})\}}|([0-9]))\s*(?:\{{({PLAIN})\}}|([0-9])))",
    re.ASCII,
)
"""A whole number and a fraction behind it: `1 1/2`, `1\\frac{1}{2}`."""
REPEATING = re.compile(
    r"([0-9]{0,100})\.([0-9]{0,100})\\(?:overline|bar)\s*(?:\{\s*([0-9]{1,100})\s*\}|([0-9]))", re.ASCII
)
SCIENTIFIC = re.compile(
    r"([+-]?[0-9]{1,100}(?:\.[0-9]{1,100})?)\s*(?:\\cdot|\\times|\*)\s*10\s*\^\s*(?:\{\s*([+-]?[0-9]{1,4})\s*\}|([0-9]))",
    re.ASCII,
)
"""A number with a power of ten behind it: `1.5 \\cdot 10^{3}`."""
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


def latex_number(text: str) -> Fraction | None:
    """The same, for numbers that may also be written as a fraction, a repeating decimal or a power of ten of LaTeX."""
    text = text.strip().translate(SIGNS)
    if len(text) > LONGEST:
        return None
    if match := FRACTION.fullmatch(text):
        sign, *digits = match.groups()
        above, below = (int(part) for part in digits if part is not None)
        return (Fraction(above, below) * (-1 if sign == "-" else 1)) if below else None
    if match := MIXED.fullmatch(text):
        sign, *written = match.groups()
        units, part, parts = (int(one) for one in written if one)
        if part < parts:
            return (units + Fraction(part, parts)) * (-1 if sign == "-" else 1)
    if match := SCIENTIFIC.fullmatch(text):
        return number(f"{match[1]}e{match[2] or match[3]}")
    unsigned = text.removeprefix("-")
    if match := REPEATING.fullmatch(unsigned):
        return repeating(match) * (1 if unsigned == text else -1)
    return number(text)


def repeating(match: re.Match[str]) -> Fraction:
    """The value of a repeating decimal, from a match of REPEATING."""
    whole, once, braced, single = match.groups()
    again = braced or single
    digits, period = int(f"0{whole}{once}{again}") - int(f"0{whole}{once}"), 10 ** len(again) - 1
    return Fraction(digits, period * 10 ** len(once))


def without_repeating(text: str) -> str:
    """The text with its repeating decimals as fractions: math-verify reads `0.\\overline{3}` as 0."""

    def fraction(match: re.Match[str]) -> str:
        value = repeating(match)
        return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"

    return REPEATING.sub(fraction, text)
