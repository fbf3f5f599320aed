r"""The value of a constant that LaTeX writes, from its tokens (spelling.py): are two that differ in one piece the same?

    \binom{9}{4}, \binom{9}{5}    126 both: equal            (-1)^{4}, (-1)^{2}         equal
    e^{4\pi i}, e^{2\pi i}        1 both: equal              \frac{7}{2}, \frac{9}{2}   different

Whole numbers and ratios are exact. Anything else is a complex float: what that takes for equal is left to others, but
where numbers are so small that no two constants are as near to each other.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Value = Fraction | complex
MOST_DIGITS, LARGEST_POWER, LARGEST_FACTORIAL = 50, 300, 100
NEARLY, SURELY = 1e-9, 1e-13
SHORT, LOST, FAR = 3, 1e-5, 1e5
"""Numbers of so few digits, in sums that lose none of them and in functions that are not far out, have no other value
that is as near: the cosines of 1/999 and 1/998 differ by a billionth."""
CLOSING = {"(": ")", "{": "}", "|": "|"}
STARTS = frozenset(("(", "{", "e", "i", "\\pi", "\\frac", "\\sqrt", "\\binom", "\\gcd", "\\lcm"))
FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "\\sin": cmath.sin, "\\cos": cmath.cos, "\\tan": cmath.tan, "\\ln": cmath.log, "\\log": cmath.log10,
    "\\exp": cmath.exp,
}  # fmt: skip
NAMES = {"\\pi": complex(math.pi), "e": complex(math.e), "i": 1j}
UNREADABLE = (ValueError, ArithmeticError, RecursionError, IndexError)


def same_value(one: Sequence[str], other: Sequence[str]) -> bool | None:
    """True: equal for certain; None: nearly equal, who knows; False: different, or no constants that are read here."""
    try:
        readers = [_Reader(tokens) for tokens in (one, other)]
        first, second = (reader.value() for reader in readers)
        if isinstance(first, Fraction) and isinstance(second, Fraction):
            return first == second
        if not cmath.isclose(complex(first), complex(second), rel_tol=NEARLY, abs_tol=NEARLY):
            return False
        small = all(len(token) <= SHORT for token in (*one, *other) if token[:1].isdigit())
        imaginary = "i" not in one or "\\pi" in one  # elsewhere it may be a variable
        sure = small and imaginary and all(reader.is_sure for reader in readers)
        return True if sure and abs(complex(first) - complex(second)) <= SURELY * max(1, abs(complex(first))) else None
    except UNREADABLE:
        return False


class _Reader:
    """Reads tokens from left to right; a ValueError at the first that it does not know."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._left = [*tokens, ""]
        self._at = 0
        self.is_sure = True
        """Has no sum lost the digits of a summand, and was no function asked far out?"""

    def value(self) -> Value:
        found = self._sum()
        if self._next:
            raise ValueError(self._next)
        return found

    @property
    def _next(self) -> str:
        return self._left[self._at]

    def _take(self, wanted: str = "") -> str:
        token = self._next
        if not token or (wanted and token != wanted):
            raise ValueError(token)
        self._at += 1
        return token

    def _sum(self) -> Value:
        found = self._product()
        while self._next in ("+", "-"):
            sign = Fraction(1 if self._take() == "+" else -1)
            more = _times(sign, self._product())
            sizes = sorted((abs(complex(found)), abs(complex(more))))
            self.is_sure &= sizes[0] >= LOST * sizes[1] or sizes[0] == 0
            found = found + more
        return found

    def _product(self) -> Value:
        if self._next in ("+", "-"):
            return self._product() if self._take() == "+" else _times(Fraction(-1), self._product())
        found = self._power()
        while True:
            before = self._left[self._at - 1]
            if self._next in ("\\cdot", "\\times"):
                self._take()
                found = _times(found, self._power())
            elif self._next in ("/", "\\div"):
                self._take()
                found = _times(found, _raised(self._power(), Fraction(-1)))
            elif self._next in STARTS or self._next in FUNCTIONS:
                if self._next == "\\frac" and before.isdigit():  # a mixed number, or a factor
                    raise ValueError(before)
                found = _times(found, self._power())
            else:
                return found

    def _power(self) -> Value:
        found = self._atom()
        while self._next == "!":
            self._take()
            found = Fraction(math.factorial(_small(found, LARGEST_FACTORIAL)))
        if self._next == "^":
            self._take()
            if self._left[self._at : self._at + 3] == ["{", "\\circ", "}"]:
                self._at += 3
                return _times(found, complex(math.pi / 180))
            power = self._group()
            self.is_sure &= LOST <= abs(complex(power)) <= FAR or power == 0
            found = _raised(found, power)
        return found

    def _group(self, opening: str = "{") -> Value:
        self._take(opening)
        found = self._sum()
        self._take(CLOSING.get(opening, "]"))
        return found

    def _atom(self) -> Value:
        piece = self._next
        if piece in CLOSING:
            found = self._group(piece)
            return found if piece != "|" else _size(found)
        self._take()
        if piece in NAMES:
            return NAMES[piece]
        if piece == "\\frac":
            return _times(self._group(), _raised(self._group(), Fraction(-1)))
        if piece == "\\sqrt":
            degree = self._group("[")
            return _raised(self._group(), _raised(degree, Fraction(-1)))
        if piece == "\\binom":
            above, below = (_small(self._group(), LARGEST_POWER) for _ in range(2))
            return Fraction(math.comb(above, below))
        if piece in ("\\gcd", "\\lcm"):
            return self._of_several(math.gcd if piece == "\\gcd" else math.lcm)
        if piece in FUNCTIONS:
            return self._of_function(piece)
        if len(piece) > MOST_DIGITS or not piece[:1].isdigit():
            raise ValueError(piece)
        return Fraction(piece)

    def _of_several(self, function: Callable[..., int]) -> Value:
        self._take("(")
        given = [_small(self._sum(), 10**MOST_DIGITS)]
        while self._next == ",":
            self._take()
            given.append(_small(self._sum(), 10**MOST_DIGITS))
        self._take(")")
        return Fraction(function(*given))

    def _of_function(self, piece: str) -> Value:
        base: Value = complex(math.e)
        if piece == "\\log" and self._next == "_":
            self._take()
            base, piece = self._group(), "\\ln"
        if self._next in ("^", "_"):
            raise ValueError(self._next)
        given = complex(self._power())
        self.is_sure &= LOST <= abs(given) <= FAR or given == 0
        return _times(FUNCTIONS[piece](given), 1 / cmath.log(complex(base)))


def _size(value: Value) -> Value:
    return abs(value) if isinstance(value, Fraction) else complex(abs(value))


def _times(one: Value, other: Value) -> Value:
    return one * other


def _small(value: Value, most: int) -> int:
    """A whole number from 0 to `most`."""
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= most:
        raise ValueError("no small whole number")
    return int(value)


def _raised(base: Value, power: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(power, Fraction):
        if power.denominator == 1 and abs(power) <= LARGEST_POWER and max(map(abs, base.as_integer_ratio())) < 10**9:
            return base ** int(power)
        if power == -1:
            return 1 / base
        if base in (0, 1) and power > 0:
            return base
        if base < 0:  # of an odd degree the root is real, to some, and complex to others
            raise ValueError("a root of a negative number")
    return complex(base) ** complex(power)
