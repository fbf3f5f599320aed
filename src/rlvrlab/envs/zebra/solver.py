"""An exact solver for zebra puzzles: every value has a set of houses it may stand in; clues shrink the sets.

A value is numbered attribute * houses + index; its houses are the bits of an integer, bit 0 the leftmost house.
`solutions` is exhaustive, so a puzzle for which it finds no second solution has only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Domains = list[int]
Grid = tuple[int, ...]
"""The house of every value."""
PLACED = ("at", "not_at")
"""Kinds of clues about a house instead of another value."""


class Clue(NamedTuple):
    """What is said of a value and another (or, for at and not_at, a house)."""

    kind: str
    left: int
    right: int

    def holds(self, grid: Grid) -> bool:
        """Is it true of a grid?"""
        here = grid[self.left]
        if self.kind in PLACED:
            return (here == self.right) is (self.kind == "at")
        gap = grid[self.right] - here
        return RELATIONS[self.kind](gap)


RELATIONS = {
    "same": lambda gap: gap == 0,
    "apart": lambda gap: gap != 0,
    "left": lambda gap: gap == 1,
    "before": lambda gap: gap > 0,
    "beside": lambda gap: abs(gap) == 1,
    "one_between": lambda gap: abs(gap) == 2,
}


def solutions(houses: int, attributes: int, clues: Sequence[Clue]) -> Iterator[Grid]:
    """Every solution, in a fixed order."""
    everywhere = (1 << houses) - 1
    domains = [everywhere] * (houses * attributes)
    for clue in clues:
        if clue.kind == "at":
            domains[clue.left] &= 1 << clue.right
        elif clue.kind == "not_at":
            domains[clue.left] &= ~(1 << clue.right)
    yield from _search(domains, houses, [clue for clue in clues if clue.kind in RELATIONS])


def _search(domains: Domains, houses: int, clues: list[Clue]) -> Iterator[Grid]:
    if not _propagate(domains, houses, clues):
        return
    free = [(domain.bit_count(), value) for value, domain in enumerate(domains) if domain & (domain - 1)]
    if not free:
        yield tuple(domain.bit_length() - 1 for domain in domains)
        return
    _, value = min(free)
    for house in range(houses):
        if domains[value] >> house & 1:
            tried = domains.copy()
            tried[value] = 1 << house
            yield from _search(tried, houses, clues)


def _propagate(domains: Domains, houses: int, clues: list[Clue]) -> bool:
    """Shrink until nothing changes; False when some value has no house left."""
    before: Domains = []
    while before != domains:
        before = domains.copy()
        for clue in clues:
            domains[clue.left], domains[clue.right] = _related(
                clue.kind, domains[clue.left], domains[clue.right], houses
            )
        if not all(_different(domains, start, houses) for start in range(0, len(domains), houses)):
            return False
    return True


def _related(kind: str, left: int, right: int, houses: int) -> tuple[int, int]:
    """The houses of two values that a relation leaves; it may leave too many, never too few."""
    everywhere = (1 << houses) - 1
    if kind == "same":
        return left & right, left & right
    if kind == "left":
        return left & right >> 1, right & left << 1
    if kind == "before":
        return left & ((1 << max(0, right.bit_length() - 1)) - 1), right & ~((left & -left) * 2 - 1) & everywhere
    if kind == "apart":
        return (left & ~right if _single(right) else left), (right & ~left if _single(left) else right)
    step = 1 if kind == "beside" else 2
    return left & (right << step | right >> step), right & (left << step | left >> step)


def _single(domain: int) -> bool:
    return domain != 0 and domain & (domain - 1) == 0


def _different(domains: Domains, start: int, houses: int) -> bool:
    """Values of one attribute stand in different houses, and every house has one."""
    seen = twice = taken = 0
    for value in range(start, start + houses):
        domain = domains[value]
        if not domain or (_single(domain) and domain & taken):
            return False
        taken |= domain if _single(domain) else 0
        twice |= seen & domain
        seen |= domain
    once = seen & ~twice
    for value in range(start, start + houses):
        domain = domains[value]
        if not _single(domain):
            domains[value] = domain & once if domain & once else domain & ~taken
    return seen == (1 << houses) - 1
