"""Keyed randomness: a generator is a function of what it is for, not of what ran before it.

`generator(seed, "sample", step, problem.id)` gives the same stream on any worker, in any order, after any restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from rlvrlab.types import Problem

T = TypeVar("T")


def key_bits(*key: object) -> int:
    """128 bits from a key of plain values; `1` and `"1"` differ."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=16).digest(), "little")


def plain_seed(*key: object) -> int:
    """31 bits of a key, for what takes a seed of its own: servers, verl, other people's generators."""
    return key_bits(*key) % 2**31


def problem_name(kind: str, *key: object, digits: int = 16) -> str:
    """`gsm8k:0123456789abcdef`: a kind of problems, and what tells one from the others of its kind."""
    return f"{kind}:{f'{key_bits(*key):032x}'[:digits]}"


def generator(*key: object) -> np.random.Generator:
    """A generator for exactly this purpose."""
    return np.random.Generator(np.random.Philox(key=key_bits(*key)))


def shuffled(items: Sequence[T], *key: object) -> list[T]:
    """A new list in a keyed random order."""
    return [items[i] for i in generator(*key).permutation(len(items))]


def drawn(problems: Sequence[Problem], key: tuple[object, ...], first: int, last: int) -> list[Problem]:
    """Places `first` … `last` of an endless stream that visits every problem once per epoch, reshuffled.

    Over the edge of two epochs a problem may come twice; it is kept once, so that its answers are one group.
    """
    chosen: list[Problem] = []
    for epoch in range(first // len(problems), (last - 1) // len(problems) + 1) if last > first else ():
        offset = epoch * len(problems)
        chosen += shuffled(problems, *key, "epoch", epoch)[max(0, first - offset) : last - offset]
    return list({problem.id: problem for problem in chosen}.values())
