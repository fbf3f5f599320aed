"""Finds an expression over given numbers that hits a target, or proves that there is none.

`reachable` lists every value a few numbers can make. `solve` searches backwards from the target: the outermost
operation joins two parts of the numbers; the smaller part (at most half) is listed, and for each of its values the
other part is asked for what is then missing. Parts of up to three numbers answer by table. So six numbers cost some
10⁵ table look-ups where listing everything would take more than 10⁷ combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

from rlvrlab.envs.arithmetic import Rational, Term, apply, combine, number

MAX_NUMBERS = 6
_TABLE_SIZE = 3
_ZERO: Rational = (0, 1)

Part = tuple[int, ...]


def reachable(numbers: Sequence[int], operators: str = "+-*/") -> dict[Rational, Term]:
    """Every value made by using each number exactly once, with one way to write it."""
    return _Search(operators).table(tuple(sorted(numbers)))


def solve(numbers: Sequence[int], target: int, operators: str = "+-*/", use_all: bool = True) -> str | None:
    """An expression equal to the target, or None when none exists; numbers are positive, at most six."""
    assert numbers and len(numbers) <= MAX_NUMBERS and min(numbers) > 0
    search = _Search(operators)
    ordered = tuple(sorted(numbers))
    sizes = [len(ordered)] if use_all else range(1, len(ordered) + 1)
    for size in sizes:
        for part in dict.fromkeys(combinations(ordered, size)):
            term = search.find(part, (target, 1))
            if term is not None:
                return term.text
    return None


class _Search:
    """One search; parts are sorted tuples, so equal parts share their table and their failures."""

    def __init__(self, operators: str) -> None:
        self.operators = operators
        self.tables: dict[Part, dict[Rational, Term]] = {}
        self.answers: dict[tuple[Part, Rational], Term | None] = {}

    def table(self, part: Part) -> dict[Rational, Term]:
        """Every value that this part can make, each with one way to write it."""
        if part in self.tables:
            return self.tables[part]
        if len(part) == 1:
            terms = {(part[0], 1): number(part[0])}
        else:
            terms = {}
            for small, large in _splits(part):
                for one, other in product(self.table(small).values(), self.table(large).values()):
                    for term in self._join(one, other):
                        terms.setdefault(term.value, term)
        self.tables[part] = terms
        return terms

    def find(self, part: Part, target: Rational) -> Term | None:
        """A term over exactly this part that equals the target."""
        if len(part) <= _TABLE_SIZE:
            return self.table(part).get(target)
        if (part, target) not in self.answers:
            self.answers[part, target] = self._search(part, target)
        return self.answers[part, target]

    def _join(self, one: Term, other: Term) -> Iterator[Term]:
        for operator in self.operators:
            for left, right in ((other, one), (one, other)) if operator in "-/" else ((other, one),):
                term = combine(operator, left, right)
                if term is not None:
                    yield term

    def _search(self, part: Part, target: Rational) -> Term | None:
        for small, large in _splits(part):
            for known in self.table(small).values():
                for operator, known_is_left, missing in self._gaps(known.value, target):
                    other = self.find(large, missing)
                    if other is not None:
                        pair = (known, other) if known_is_left else (other, known)
                        return combine(operator, *pair)
        return None

    def _gaps(self, known: Rational, target: Rational) -> Iterator[tuple[str, bool, Rational]]:
        """Operator, whether the known value is its left side, and what the other side must then be.

        A known zero times or over anything needs no line of its own: since the numbers are positive, 0*(3+5) can also
        be written 0*3*5, and that is found from its last number.
        """
        for operator in self.operators:
            if operator == "+":
                yield "+", False, _exact("-", target, known)
            elif operator == "-":
                yield "-", False, _exact("+", target, known)
                yield "-", True, _exact("-", known, target)
            elif known == _ZERO:
                continue
            elif operator == "*":
                yield "*", False, _exact("/", target, known)
            else:
                yield "/", False, _exact("*", target, known)
                if target != _ZERO:
                    yield "/", True, _exact("/", known, target)


def _exact(operator: str, left: Rational, right: Rational) -> Rational:
    value = apply(operator, left, right)
    assert value is not None
    return value


def _splits(part: Part) -> Iterator[tuple[Part, Part]]:
    """Both parts of every split, smaller first, each unordered split once."""
    seen = set()
    for size in range(1, len(part) // 2 + 1):
        for chosen in combinations(range(len(part)), size):
            small = tuple(part[i] for i in chosen)
            large = tuple(part[i] for i in range(len(part)) if i not in chosen)
            if (small, large) not in seen and (large, small) not in seen:
                seen.add((small, large))
                yield small, large
