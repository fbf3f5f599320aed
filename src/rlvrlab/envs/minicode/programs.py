"""What a program does, and what is made from it: one with a mistake, one with idle work."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any

from rlvrlab.envs.minicode.grammar import Atom, Kind, Program, results, shown
from rlvrlab.envs.minicode.levels import LEVELS, draw_arguments
from rlvrlab.envs.split import role_of_key
from rlvrlab.randomness import key_bits
from rlvrlab.types import Role

PROBE_SIZES = (4, 5, 5, 6, 6, 7, 7, 8, 5, 6, 7, 3)
OTHER_PARAMETER = 0.5

IDLE: dict[Kind, tuple[tuple[str, ...], ...]] = {
    "list": (
        ("x=x[::-1]", "x=x[::-1]"),
        ("x=[0]+x", "x=x[1:]"),
        ("x=[v+2 for v in x]", "x=[v-2 for v in x]"),
        ("x=x[0:]",),
        ("x=x+[]",),
        ("x=[v for v in x]",),
        ("x=[v+0 for v in x]",),
        ("x=[v*1 for v in x]",),
    ),
    "text": (
        ("x=x[::-1]", "x=x[::-1]"),
        ("x='a'+x", "x=x[1:]"),
        ("x=x[0:]",),
        ("x=x+''",),
        ("x=''.join(x)",),
        ("x=x*1",),
    ),
    "dict": (
        ("x={a:b+2 for a,b in x.items()}", "x={a:b-2 for a,b in x.items()}"),
        ("x={a:b for a,b in x.items()}",),
        ("x={a:b*1 for a,b in x.items()}",),
        ("x=dict(x)",),
        ("x={**x}",),
    ),
}
"""Statements that change nothing, by the kind of x."""
BEFORE_SORT = ("x=x[::-1]", "x=x[1:]+x[:1]")


@lru_cache(maxsize=16)
def _probes(kinds: tuple[Kind, ...]) -> tuple[list[Any], list[Any]]:
    """The fixed inputs of a fingerprint: all first arguments, all second ones."""
    random = Random(key_bits("minicode probes", kinds))
    drawn = [draw_arguments(kinds, random, size, size) for size in PROBE_SIZES]
    return [arguments[0] for arguments in drawn], [arguments[1] if len(kinds) > 1 else None for arguments in drawn]


@lru_cache(maxsize=1 << 12)
def _after(kinds: tuple[Kind, ...], first: tuple[Atom, ...]) -> list[Any]:
    """What the first statement makes of the probes: there are far fewer of those than programs."""
    return results(first, *_probes(kinds))


@lru_cache(maxsize=1 << 16)
def behaviour(program: Program) -> int:
    """A fingerprint of what it does: its results on fixed inputs, whatever its text and level."""
    kinds, atoms, end = program
    seen = results((*atoms[1:], end), _after(kinds, atoms[:1]), _probes(kinds)[1])
    return key_bits("minicode", kinds, shown(seen))


def role_of(program: Program) -> Role:
    """Decided by behaviour alone, so no two roles ever share one; two tenths are test, two dev."""
    return role_of_key(behaviour(program), held_out=2)


def with_mistake(program: Program, level: int, random: Random) -> Program:
    """The same with one atom changed: another parameter, or another operation of the level."""
    place = random.randrange(len(program.atoms))
    old = program.atoms[place]
    fitting = _fitting(level, program.arguments, old.takes, old.gives)
    rivals = [atom for atom in fitting if atom.operation == old.operation and atom is not old]
    new = random.choice(rivals if rivals and random.random() < OTHER_PARAMETER else fitting)
    return program._replace(atoms=(*program.atoms[:place], new, *program.atoms[place + 1 :]))


@lru_cache
def _fitting(level: int, arguments: tuple[Kind, ...], takes: Kind, gives: Kind) -> tuple[Atom, ...]:
    pools = {id(pool): pool for plan in LEVELS[level] if plan.arguments == arguments for pool in plan.pools}
    atoms = [atom for pool in pools.values() for atom in pool.atoms]
    return tuple(atom for atom in atoms if (atom.takes, atom.gives) == (takes, gives))


def with_idle_work(program: Program, random: Random) -> list[str]:
    """Its statements and some that change nothing; always more characters than before."""
    statements = [*(atom.text for atom in program.atoms), program.end.text]
    way = random.randrange(5)
    numbered = [(place, atom) for place, atom in enumerate(program.atoms) if type(atom.parameter) is int]
    adds = [place for place, atom in numbered if atom.operation == "add" and atom.takes == "list"]
    sorts = [place for place, atom in enumerate(program.atoms) if atom.operation in ("sort", "uniq")]
    if way == 0 and adds:
        place = random.choice(adds)
        part = random.randint(1, 5)
        rest = program.atoms[place].parameter - part
        statements[place : place + 1] = [f"x=[v+{part} for v in x]", f"x=[v{rest:+d} for v in x]"]
    elif way == 1 and sorts:
        statements.insert(random.choice(sorts), random.choice(BEFORE_SORT))
    else:
        place = random.randrange(len(statements))
        kind = program.atoms[place].takes if place < len(program.atoms) else program.end.takes
        statements[place:place] = random.choice(IDLE[kind])
    return statements
