"""Large pages under what every job shares: the kernel copies and drops the map of 512 pages as one.

A fork copies the map of all memory, and the end of a child takes it down, page by page: for some thousand small pages
that is a fifth of all that a short job costs. Memory that is a single large page for the kernel costs next to nothing
of it, and a child that writes to it still copies no more than four kilobytes.

A large page begins at a multiple of its size, and what lies on it is of one kind. So small objects get one stretch of
memory before there are many of them (arenas.py), and what the C library allots gets one that begins and ends so. Where
the kernel has no such pages, or none left, all stays as it was.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import islice

from rlvrlab.judge.jail.files import content

LARGE, PAGE = 2 << 20, 4096
OF_A_TEMPLATE = 8
"""Large pages that a template makes once more for itself alone: all that a worker without packages has."""
LEAST_SHARE = 8
"""A large page is made where at least one small one in so many is there."""
PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, MAP_FIXED_NOREPLACE = 3, 0x22, 0x100000
MADV_COLLAPSE = 25
MAP_FAILED = ctypes.c_void_p(-1).value

libc = ctypes.CDLL(None)
_map, _advise, _look, _grow = libc.mmap, libc.madvise, libc.mincore, libc.sbrk
_map.restype = _grow.restype = ctypes.c_void_p
_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_look.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_grow.argtypes = [ctypes.c_long]

_empty: list[int] = []


def reserve() -> None:
    """Let the heap begin where a large page does."""
    start = next((begin for begin, _, name in _writable() if name == "[heap]"), 0)
    below = start % LARGE
    flags = MAP_PRIVATE_ANONYMOUS | MAP_FIXED_NOREPLACE
    if below and _map(start - below, below, PROT_READ_WRITE, flags, -1, 0) == start - below:
        _empty.append(below)


def fill_up() -> None:
    """Let the heap end where a large page does."""
    missing = -_grow(0) % LARGE
    if missing and _grow(missing) != MAP_FAILED:
        _empty.append(missing)


def empty() -> int:
    """Bytes of memory that only make large pages whole, which does not count against a job."""
    return sum(_empty)


def gather(at_most: int | None = None) -> None:
    """Make large pages of this process's memory, the first so many of those that can be."""
    for place in islice(_worth_it(), at_most):
        _advise(place, LARGE, MADV_COLLAPSE)


def _worth_it() -> Iterator[int]:
    """The stretches of memory that could each be one large page, and of which enough is in use."""
    seen = ctypes.create_string_buffer(LARGE // PAGE)
    for begin, end, _ in list(_writable()):
        for place in range(-(-begin // LARGE) * LARGE, end - LARGE + 1, LARGE):
            if _look(place, LARGE, seen) == 0 and seen.raw.count(1) * LEAST_SHARE >= LARGE // PAGE:
                yield place


def _writable() -> Iterator[tuple[int, int, str]]:
    """Where writable memory that is no file's begins and ends, and what the kernel calls it."""
    for line in content("/proc/self/maps").decode().splitlines():
        place, rights, *others = line.split()
        name = others[3] if len(others) > 3 else ""
        if rights == "rw-p" and name in ("", "[heap]"):
            begin, end = place.split("-")
            yield int(begin, 16), int(end, 16), name
