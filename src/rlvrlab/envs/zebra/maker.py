"""Zebra puzzles with exactly one solution, proved by exhaustive search, and at most one clue that could be left out.

Clues are added against a counterexample: as long as the solver finds another solution, a clue is chosen that is true of
the wanted one and false of the other; then every clue that is not needed is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rlvrlab.envs.answers import Draws
from rlvrlab.envs.split import role_of
from rlvrlab.envs.zebra.solver import PLACED, RELATIONS, Clue, Grid, solutions
from rlvrlab.randomness import generator, key_bits
from rlvrlab.types import Role

SIZES = {1: (2, 3), 2: (3, 3), 3: (4, 4), 4: (5, 5), 5: (6, 6)}
"""Houses and attributes of each level."""
FRUITLESS = 3000
SPARE_TRIED = 30
RARE = {"at": 4.0, "not_at": 3.0, "apart": 3.0, "before": 1.5}
"""Factor on a clue's random turn, by kind: clues that say little, or too much, tend to be tried later."""
ATTRIBUTES = {
    "Name": ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"),
    "Drink": ("tea", "milk", "water", "cocoa", "juice", "coffee", "soda", "cider"),
    "Pet": ("cat", "dog", "fish", "horse", "parrot", "rabbit", "turtle", "hamster"),
    "Color": ("red", "blue", "green", "white", "yellow", "black", "pink", "grey"),
    "Job": ("baker", "nurse", "pilot", "judge", "tailor", "farmer", "painter", "singer"),
    "Sport": ("golf", "chess", "rowing", "tennis", "judo", "fencing", "running", "darts"),
    "Fruit": ("apple", "pear", "plum", "fig", "mango", "melon", "grape", "peach"),
    "Car": ("jeep", "van", "coupe", "sedan", "truck", "wagon", "cabriolet", "minibus"),
}


class Puzzle(NamedTuple):
    """A puzzle; value number attribute * houses + index is `values[attribute][index]`."""

    level: int
    attributes: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    clues: tuple[Clue, ...]
    grid: Grid


def puzzles(level: int, role: Role, seed: int) -> Iterator[Puzzle]:
    """Distinct puzzles of a role in keyed order; ends when nothing new turns up for long."""
    random = generator(seed, "zebra", level, role)
    draws = Draws(FRUITLESS)
    for _ in draws:
        puzzle = _moved(_drawn(level, random), role, random)
        if puzzle is not None and draws.is_new(puzzle):
            yield puzzle


def _moved(puzzle: Puzzle, role: Role, random: np.random.Generator) -> Puzzle | None:
    """The puzzle if its content belongs to the role, or with one clue more that makes it belong: dev and test are small
    shares, and throwing nine of ten large puzzles away would cost ten times the search."""
    if role_of("zebra", canonical(puzzle)) == role:
        return puzzle
    spare = [clue for clue in _true_clues(len(puzzle.values[0]), puzzle.grid) if clue not in puzzle.clues]
    for index in random.choice(len(spare), min(len(spare), SPARE_TRIED), replace=False):
        longer = puzzle._replace(clues=(*puzzle.clues, spare[int(index)]))
        if role_of("zebra", canonical(longer)) == role:
            return longer
    return None


def _drawn(level: int, random: np.random.Generator) -> Puzzle:
    """A random grid, and clues as described above."""
    houses, many = SIZES[level]
    others = [name for name in ATTRIBUTES if name != "Name"]
    names = ("Name", *(others[int(i)] for i in random.choice(len(others), many - 1, replace=False)))
    values = tuple(tuple(ATTRIBUTES[name][int(i)] for i in random.choice(8, houses, replace=False)) for name in names)
    grid = tuple(int(house) for _ in names for house in random.permutation(houses))
    waiting = _true_clues(houses, grid)
    turn = {clue: float(random.random()) * RARE.get(clue.kind, 1.0) for clue in waiting}
    waiting.sort(key=lambda clue: turn[clue])
    chosen: list[Clue] = []
    while other := other_solution(houses, many, chosen, grid):
        chosen.append(next(clue for clue in waiting if not clue.holds(other)))
    for clue in sorted(chosen, key=lambda clue: -turn[clue]):
        rest = [one for one in chosen if one != clue]
        if other_solution(houses, many, rest, grid) is None:
            chosen = rest
    return Puzzle(level, names, values, tuple(chosen[int(i)] for i in random.permutation(len(chosen))), grid)


def other_solution(houses: int, attributes: int, clues: list[Clue], grid: Grid) -> Grid | None:
    """A solution that is not this one; None proves that it is the only one."""
    return next((other for other in solutions(houses, attributes, clues) if other != grid), None)


def _true_clues(houses: int, grid: Grid) -> list[Clue]:
    values = range(len(grid))
    placed = [Clue("at", v, grid[v]) for v in values]
    placed += [Clue("not_at", v, house) for v in values for house in range(houses) if house != grid[v]]
    pairs = [(a, b) for a in values for b in values if a != b]
    related = [
        clue
        for a, b in pairs
        for kind in RELATIONS
        # Symmetric relations are said once, and two values of one attribute never share a house anyway.
        if (kind in ("left", "before") or a < b)
        and not (kind in ("same", "apart") and a // houses == b // houses)
        and (clue := Clue(kind, a, b)).holds(grid)
    ]
    return placed + related


def canonical(puzzle: Puzzle) -> int:
    """Equal for puzzles that differ only in names of values and attributes, or in the order of clues."""
    houses = len(puzzle.values[0])
    facts = []
    for clue in puzzle.clues:
        other, there = (-1, clue.right) if clue.kind in PLACED else (clue.right // houses, puzzle.grid[clue.right])
        facts.append((clue.kind, clue.left // houses, puzzle.grid[clue.left], other, there))
    colors = [0] * len(puzzle.attributes)
    for _ in range(3):
        signatures: list[list[int]] = [[] for _ in colors]
        for kind, one, house, other, there in facts:
            signatures[one].append(key_bits(kind, "one", house, there, colors[other] if other >= 0 else -1))
            if other >= 0:
                signatures[other].append(key_bits(kind, "other", house, there, colors[one]))
        colors = [key_bits(color, sorted(keys)) for color, keys in zip(colors, signatures, strict=True)]
    return key_bits(sorted(colors))
