"""Exact arithmetic on short expressions written by a policy: read without `eval`, computed without rounding.

    parse("3*(7-2)")  ->  Expression(postfix=[3, 7, 2, "-", "*"], numbers=[3, 7, 2])
    evaluate([3, 7, 2, "-", "*"])  ->  (15, 1)

The grammar is the whole of it: decimal integers without leading zeros, the four binary operators, parentheses and
spaces. × ÷ − (U+00D7, U+00F7, U+2212) are read as * / -. Everything else is refused: signs, powers, decimal points,
implicit multiplication, other digits. Python's own parser is no alternative, because it also reads 1_0, 0x10 and 1j,
runs for long on long texts and overflows on deep ones. Here the text is capped and nothing recurses.
"""

from __future__ import annotations

import re
from math import gcd
from typing import NamedTuple

MAX_LENGTH = 200
STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}
ATOM = 3
_ALIASES = str.maketrans("×÷−", "*/-")
_OPERAND = r"[ (]*(?:0|[1-9][0-9]*)[ )]*"
# All of the grammar but the pairing of parentheses; no text can be matched in two ways, so it never backtracks far.
_SHAPE = re.compile(rf"{_OPERAND}(?:[-+*/]{_OPERAND})*")
_TOKEN = re.compile(r"[0-9]+|[-+*/()]")

Rational = tuple[int, int]
"""Reduced numerator and positive denominator; hashes and compares several times faster than Fraction."""


class BadExpression(ValueError):
    """The text is not an expression of this grammar; the message says why."""


class Expression(NamedTuple):
    """A parsed expression."""

    postfix: list[int | str]
    """Operands and operators in reverse Polish order."""
    numbers: list[int]
    """The integers it uses, in order of appearance."""

    @property
    def operators(self) -> set[str]:
        """Which of + - * / occur."""
        return {token for token in self.postfix if isinstance(token, str)}


class Term(NamedTuple):
    """An expression tree with its value; written out only when asked for, since most are never shown."""

    value: Rational
    operator: str = ""
    """Empty for a plain number."""
    operands: tuple[Term, ...] = ()
    """Left and right, or none."""

    @property
    def text(self) -> str:
        """The expression with only the parentheses it needs."""
        if not self.operator:
            return str(self.value[0])
        strength = STRENGTH[self.operator]
        left, right = self.operands
        before = f"({left.text})" if left.strength < strength else left.text
        # a-(b+c) and a/(b*c) need theirs; a+(b-c) and a*(b/c) are exact without.
        bare = right.strength > strength or (right.strength == strength and self.operator in "+*")
        return f"{before}{self.operator}{right.text}" if bare else f"{before}{self.operator}({right.text})"

    @property
    def strength(self) -> int:
        """How tightly the outermost operator binds."""
        return STRENGTH.get(self.operator, ATOM)


def number(value: int) -> Term:
    """The term of a plain integer."""
    return Term((value, 1))


def apply(operator: str, left: Rational, right: Rational) -> Rational | None:
    """The exact result, or None for a division by zero."""
    (a, b), (c, d) = left, right
    if operator == "*":
        top, bottom = a * c, b * d
    elif operator == "/":
        if c == 0:
            return None
        top, bottom = a * d, b * c
    else:
        top, bottom = (a * d + c * b if operator == "+" else a * d - c * b), b * d
    if bottom == 1:
        return top, 1
    shared = gcd(top, bottom) if bottom > 0 else -gcd(top, bottom)
    return top // shared, bottom // shared


def combine(operator: str, left: Term, right: Term) -> Term | None:
    """The term `left operator right`; None for a division by zero."""
    value = apply(operator, left.value, right.value)
    return None if value is None else Term(value, operator, (left, right))


def evaluate(postfix: list[int | str]) -> Rational | None:
    """The exact value, or None when it divides by zero."""
    stack: list[Rational] = []
    for token in postfix:
        if isinstance(token, int):
            stack.append((token, 1))
            continue
        right = stack.pop()
        value = apply(token, stack.pop(), right)
        if value is None:
            return None
        stack.append(value)
    return stack[0]


def parse(text: str) -> Expression:
    """Read an expression, or raise BadExpression. The order is Dijkstra's shunting yard."""
    if len(text) > MAX_LENGTH:
        raise BadExpression(f"longer than {MAX_LENGTH} characters")
    if not text.isascii():
        text = text.translate(_ALIASES)
    _check_shape(text)
    postfix: list[int | str] = []
    numbers: list[int] = []
    waiting: list[str] = []
    for sign in _TOKEN.findall(text):
        if sign == "(":
            waiting.append(sign)
        elif sign == ")":
            while waiting[-1] != "(":
                postfix.append(waiting.pop())
            waiting.pop()
        elif sign in STRENGTH:
            while waiting and STRENGTH.get(waiting[-1], 0) >= STRENGTH[sign]:
                postfix.append(waiting.pop())
            waiting.append(sign)
        else:
            numbers.append(int(sign))
            postfix.append(numbers[-1])
    postfix.extend(reversed(waiting))
    return Expression(postfix, numbers)


def _check_shape(text: str) -> None:
    fits = _SHAPE.match(text)
    if fits is None:
        raise BadExpression("does not begin with a number or a parenthesis before one")
    if fits.end() < len(text):
        raise BadExpression(f"unexpected {text[fits.end() : fits.end() + 20]!a} after {text[: fits.end()]!a}")
    if "(" not in text and ")" not in text:
        return
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            break
    if depth:
        raise BadExpression("parentheses do not pair up")
