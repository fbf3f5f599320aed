"""Room for small objects in one stretch, taken before anything else can come to lie in between (large_pages.py)."""

from __future__ import annotations

ARENA, ARENAS = 1 << 20, 6
"""CPython takes memory for small objects a megabyte at a time. A worker fills six, of which it has two at its start."""
BLOCK, BLOCK_HEAD = 512, 33
_anchors: list[bytes] = []
"""One object in each arena, or it would be given back while it is empty."""


def reserve() -> None:
    """Have the interpreter take its arenas now, one below the other."""
    blocks = [bytes(BLOCK - BLOCK_HEAD) for _ in range(ARENAS * ARENA // BLOCK)]
    _anchors.extend({id(block) // ARENA: block for block in blocks}.values())
