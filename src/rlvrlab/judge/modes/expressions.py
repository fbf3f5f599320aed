"""Exact arithmetic on text, in fractions: no `eval`, no float, bounded in length, depth and size.

    number("1,234.50")          -> Fraction(2469, 2)        number("3/4") -> Fraction(3, 4)     number("½") -> None
    evaluate("(8 - 4) × 7 - 8") -> value 20, numbers (8, 4, 7, 8)
Refused: names, powers, `//`, implicit multiplication, numbers glued by other scripts' digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

LONGEST = 2000
DEEPEST = 50
MOST_BITS = 4096
LARGEST_EXPONENT = 300

PLAIN = r"[0-9]{1,400}"
GROUPED = r"[0-9]{1,3}(?:,[0-9]{3}){1,100}"
NUMBER = re.compile(rf"([+-]?)({GROUPED}|{PLAIN}|)(?:\.({PLAIN})?)?(?:[eE]([+-]?[0-9]{{1,4}}))?", re.ASCII)
RATIO = re.compile(rf"([+-]?(?:{GROUPED}|{PLAIN}))\s*/\s*([+-]?{PLAIN})", re.ASCII)
TOKEN = re.compile(r"\s*(?:([0-9]+(?:\.[0-9]+)?)|(.))", re.ASCII)
SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-"})


class ExpressionError(ValueError):
    """Not an expression of the small language; the message says where."""


def number(text: str) -> Fraction | None:
    """The exact value of an integer, decimal or ratio, thousands separators allowed; None for anything else."""
    text = text.strip().translate(SIGNS)
    if len(text) > LONGEST:
        return None
    if match := RATIO.fullmatch(text):
        above, below = (int(part.replace(",", "")) for part in match.groups())
        return Fraction(above, below) if below else None
    return _decimal(text)


def _decimal(text: str) -> Fraction | None:
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


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An expression's value and what it is made of."""

    value: Fraction
    numbers: tuple[Fraction, ...]
    """Its literals from left to right."""
    operators: tuple[str, ...]
    """+ - * / as written, signs left out."""


def evaluate(text: str) -> Evaluated:
    """The value of + - * / with brackets and signs."""
    text = text.translate(SIGNS)
    if len(text) > LONGEST:
        raise ExpressionError(f"{len(text)} characters, at most {LONGEST}")
    parser = _Parser([match.group(1) or match.group(2) for match in TOKEN.finditer(text.strip())])
    value = parser.sum(0)
    if parser.position < len(parser.tokens):
        raise ExpressionError(f"unexpected {parser.tokens[parser.position]!r}")
    return Evaluated(value, tuple(parser.numbers), tuple(parser.operators))


class _Parser:
    """Recursive descent over + - | * / | sign, number, brackets."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.position = tokens, 0
        self.numbers: list[Fraction] = []
        self.operators: list[str] = []

    def next_is(self, choices: str) -> str:
        """Consume and answer the next token when it is one of these."""
        if self.position < len(self.tokens) and self.tokens[self.position] in tuple(choices):
            self.position += 1
            return self.tokens[self.position - 1]
        return ""

    def sum(self, depth: int) -> Fraction:
        value = self.product(depth)
        while sign := self.next_is("+-"):
            self.operators.append(sign)
            other = self.product(depth)
            value = _bounded(value + other if sign == "+" else value - other)
        return value

    def product(self, depth: int) -> Fraction:
        value = self.atom(depth)
        while sign := self.next_is("*/"):
            self.operators.append(sign)
            other = self.atom(depth)
            if sign == "/" and not other:
                raise ExpressionError("division by zero")
            value = _bounded(value * other if sign == "*" else value / other)
        return value

    def atom(self, depth: int) -> Fraction:
        if depth > DEEPEST:
            raise ExpressionError(f"nested deeper than {DEEPEST}")
        if sign := self.next_is("+-"):
            inner = self.atom(depth + 1)
            return -inner if sign == "-" else inner
        if self.next_is("("):
            inner = self.sum(depth + 1)
            if not self.next_is(")"):
                raise ExpressionError("a bracket is not closed")
            return inner
        return self.literal()

    def literal(self) -> Fraction:
        token = self.tokens[self.position] if self.position < len(self.tokens) else "the end"
        if not token[0].isdigit() or not token.isascii():
            raise ExpressionError(f"a number was expected, not {token!r}")
        self.position += 1
        if len(token) > 400:
            raise ExpressionError(f"a number of {len(token)} digits")
        self.numbers.append(Fraction(token))
        return self.numbers[-1]


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > MOST_BITS:
        raise ExpressionError("a value grew too large")
    return value
