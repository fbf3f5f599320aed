"""Keyed randomness: a generator is a function of what it is for, not of what ran before it.

`generator(seed, "sample", step, problem.id)` gives the same stream on any worker, in any order, after any restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def key_bits(*key: object) -> int:
    """128 bits from a key of plain values; `1` and `"1"` differ."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=16).digest(), "little")


def generator(*key: object) -> np.random.Generator:
    """A generator for exactly this purpose."""
    return np.random.Generator(np.random.Philox(key=key_bits(*key)))


def shuffled(items: Sequence[T], *key: object) -> list[T]:
    """A new list in a keyed random order."""
    return [items[i] for i in generator(*key).permutation(len(items))]
