"""The file that a job arrives in: room for a mark, the terms, then the job itself.

It passes the template unread. The worker reads the terms; the child reads all of it, and closes it before anything
foreign runs. What the kernel has to bound stands there as the kernel wants it: a child that had to compute it would
copy many pages of memory for that.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from rlvrlab.judge.jail.limits import KINDS, Limits, in_force

INSIDE = b"\0inside\0"
"""What a child writes over the beginning before anything foreign runs: one without it never entered the jail."""
SCRATCH_PLACE = len(INSIDE)
"""Of one byte: may the child write to the scratch directory?"""
_FOLLOWED_PLACE = SCRATCH_PLACE + 1
_BOUND = struct.Struct("=QQ")
"""A `struct rlimit`: soft and hard."""
_BOUNDS_PLACE = _FOLLOWED_PLACE + 1
_LIMITS_PLACE = _BOUNDS_PLACE + _BOUND.size * len(KINDS)
_LIMITS = struct.Struct("=dddqqq")
HEAD_SIZE = _LIMITS_PLACE + _LIMITS.size
BOUNDS = tuple(
    (kind, slice(_BOUNDS_PLACE + _BOUND.size * index, _BOUNDS_PLACE + _BOUND.size * (index + 1)))
    for index, kind in enumerate(KINDS)
)
"""Each kind of bound, and where its `struct rlimit` is."""


class Terms(NamedTuple):
    """What the judge allows a child, and what its worker has to know."""

    limits: Limits
    scratch: bool
    """May it write to the scratch directory?"""
    followed: bool
    """Is another child of the same job started right after it?"""


@lru_cache(maxsize=64)
def head(terms: Terms, imported: tuple[int, int]) -> bytes:
    """The beginning of the file, for a worker whose packages hold so much address space and data."""
    bounds = b"".join(_BOUND.pack(*bound) for bound in in_force(terms.limits, *imported))
    flags = bytes([terms.scratch, terms.followed])
    return bytes(len(INSIDE)) + flags + bounds + _LIMITS.pack(*terms.limits.fields)


@lru_cache(maxsize=64)
def terms_of(beginning: bytes) -> Terms:
    """The terms, from a head without what the child overwrites."""
    whole = bytes(len(INSIDE)) + beginning
    limits = Limits(*_LIMITS.unpack_from(whole, _LIMITS_PLACE))
    return Terms(limits, bool(whole[SCRATCH_PLACE]), bool(whole[_FOLLOWED_PLACE]))
