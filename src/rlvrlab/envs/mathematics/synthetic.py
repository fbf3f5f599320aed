"""Small exact exercises, so that the mathematics environment runs without any data: fractions, equations, choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import gcd

import numpy as np

from rlvrlab.envs.answers import Draws, squeezed
from rlvrlab.envs.mathematics.shapes import LETTERS, Item
from rlvrlab.envs.split import role_of
from rlvrlab.randomness import generator
from rlvrlab.types import Role

FRUITLESS = 5000
CHOICES = 5


def items(role: Role, seed: int) -> Iterator[Item]:
    """Distinct exercises of a role in keyed order, kinds in turn; ends when nothing new turns up for long."""
    random = generator(seed, "mathematics", role)
    draws = Draws(FRUITLESS)
    for _ in draws:
        item = KINDS[len(draws.seen) % len(KINDS)](random)
        if role_of("mathematics", squeezed(item.question)) == role and draws.is_new(item.question):
            yield item


def latex(value: Fraction) -> str:
    """3/4 as \\\\frac{3}{4}, -2 as -2."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def _numbers(random: np.random.Generator, low: int, high: int, many: int) -> list[int]:
    return [int(value) for value in random.integers(low, high + 1, many)]


def _sum(random: np.random.Generator) -> Item:
    a, b, c, d = _numbers(random, 2, 19, 4)
    sign = "+" if random.random() < 0.5 else "-"
    value = Fraction(a, b) + Fraction(c, d) * (1 if sign == "+" else -1)
    return Item(f"Compute $\\frac{{{a}}}{{{b}}} {sign} \\frac{{{c}}}{{{d}}}$ in lowest terms.", latex(value), 0)


def _linear(random: np.random.Generator) -> Item:
    a, b, c = _numbers(random, 2, 40, 3)
    return Item(f"Solve ${a}x + {b} = {c}$ for $x$.", latex(Fraction(c - b, a)), 0)


def _divisor(random: np.random.Generator) -> Item:
    common, one, other = _numbers(random, 2, 30, 3)
    one, other = common * one, common * other
    return Item(f"What is the greatest common divisor of {one} and {other}?", str(gcd(one, other)), 0)


def _power(random: np.random.Generator) -> Item:
    base, exponent, modulus = _numbers(random, 2, 60, 3)
    return Item(
        f"What is the remainder of ${base}^{{{exponent}}}$ divided by {modulus}?", str(pow(base, exponent, modulus)), 0
    )


def _largest(random: np.random.Generator) -> Item:
    values: dict[Fraction, None] = {}
    while len(values) < CHOICES:
        values[Fraction(*_numbers(random, 3, 29, 2))] = None
    listed = list(values)
    choices = "\n".join(f"{letter}) ${latex(value)}$" for letter, value in zip(LETTERS, listed, strict=False))
    return Item(f"Which number is the largest?\n{choices}", LETTERS[listed.index(max(listed))], CHOICES)


KINDS: tuple[Callable[[np.random.Generator], Item], ...] = (_sum, _linear, _divisor, _power, _largest)
