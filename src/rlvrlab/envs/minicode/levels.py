"""What a level is made of, and how a program and its inputs are drawn.

1, 2, 3  that many list statements        6  strings                      9  five statements: lists, a conditional,
4        with a conditional               7  dictionaries                    a loop and a second argument
5        with a loop                      8  a second argument
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from rlvrlab.envs.minicode.arguments import BY_LIST, BY_NUMBER
from rlvrlab.envs.minicode.control import BRANCHES, LOOPS
from rlvrlab.envs.minicode.grammar import Atom, Kind, Pool, Program
from rlvrlab.envs.minicode.lists import LIST_ENDS, LISTS
from rlvrlab.envs.minicode.texts import DICT_ENDS, DICTS, LETTERS, TABLES, TEXT_ENDS, TEXTS

T = TypeVar("T")
PLAIN_END = 0.6
"""Share of programs that return x itself."""
FLAT_DRAW = 0.5
"""Share of draws that weigh atoms equally; the others weigh operations equally."""


@dataclass(frozen=True, eq=False)
class Template:
    """One pool per statement, in any order unless the kinds forbid it."""

    pools: tuple[Pool, ...]
    ends: tuple[Atom, ...] = LIST_ENDS
    arguments: tuple[Kind, ...] = ("list",)
    shuffled: bool = False

    def draw(self, random: Random) -> Program:
        """A random program of this template."""
        pools = sample(self.pools, len(self.pools), random) if self.shuffled else self.pools
        atoms = tuple(draw_atom(pool, random) for pool in pools)
        end = self.ends[0] if random.random() < PLAIN_END else pick(self.ends[1:], random)
        return Program(self.arguments, atoms, end)


LEVELS: dict[int, tuple[Template, ...]] = {
    1: (Template((LISTS,)),),
    2: (Template((LISTS, LISTS)),),
    3: (Template((LISTS, LISTS, LISTS)),),
    4: (Template((BRANCHES, LISTS, LISTS), shuffled=True),),
    5: (Template((LOOPS, LISTS, LISTS), shuffled=True),),
    6: (Template((TEXTS, TEXTS, TEXTS), TEXT_ENDS, ("text",)),),
    7: (
        Template((TEXTS, TABLES, DICTS, DICTS), DICT_ENDS, ("text",)),
        Template((DICTS, DICTS, DICTS), DICT_ENDS, ("dict",)),
    ),
    8: (
        Template((BY_NUMBER, LISTS, LISTS), arguments=("list", "number"), shuffled=True),
        Template((BY_LIST, LISTS, LISTS), arguments=("list", "list"), shuffled=True),
    ),
    9: (Template((BY_NUMBER, BRANCHES, LOOPS, LISTS, LISTS), arguments=("list", "number"), shuffled=True),),
}


def draw_program(level: int, random: Random) -> Program:
    """A random program of this level."""
    templates = LEVELS[level]
    return (templates[0] if len(templates) == 1 else pick(templates, random)).draw(random)


def draw_atom(pool: Pool, random: Random) -> Atom:
    """Half the draws over atoms, half over operations, so that operations with one atom are not rare."""
    if random.random() < FLAT_DRAW:
        return pick(pool.atoms, random)
    return pick(pick(pool.operations, random), random)


def pick(items: Sequence[T], random: Random) -> T:
    """The item that random.choice would draw, without its overhead."""
    return items[below(len(items), random)]


def below(count: int, random: Random) -> int:
    """What random.randrange draws."""
    bits, size = random.getrandbits, count.bit_length()
    drawn = bits(size)
    while drawn >= count:
        drawn = bits(size)
    return drawn


def sample(items: Sequence[T], count: int, random: Random) -> list[T]:
    """What random.sample draws from a few items."""
    pool, drawn = list(items), []
    for left in range(len(pool), len(pool) - count, -1):
        place = below(left, random)
        drawn.append(pool[place])
        pool[place] = pool[left - 1]
    return drawn


def draw_arguments(kinds: tuple[Kind, ...], random: Random, shortest: int, longest: int) -> list[Any]:
    """Arguments of these kinds; a list or string has between `shortest` and `longest` items."""
    draw, values = random.random, list[Any]()
    for kind in kinds:
        if kind == "number":
            values.append(1 + below(5, random))
            continue
        size = shortest + int(draw() * (longest - shortest + 1))
        if kind == "list":
            values.append([int(draw() * 10.0) for _ in range(size)])  # like random.choices, without its overhead
        elif kind == "text":
            values.append("".join([LETTERS[int(draw() * 5.0)] for _ in range(size)]))
        else:
            values.append({key: int(draw() * 7.0) for key in sample(LETTERS, min(size, len(LETTERS)), random)})
    return values
