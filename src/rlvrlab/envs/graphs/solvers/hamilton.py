"""Hamiltonian paths, proved either way or given up.

A path is its own proof. That there is none follows from a cut (k nodes whose removal leaves more than k + 1 pieces)
or from a search that ran to its end. Whoever answers No at the first dead end, as a generator in wide use does, is
wrong on most of its No labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from rlvrlab.envs.graphs.graph import members
from rlvrlab.envs.graphs.solvers.effort import spend
from rlvrlab.envs.graphs.solvers.paths import components

MAX_STEPS = 20_000
"""Steps after which a search counts as undecided."""


class Hamilton(NamedTuple):
    """A path through every node, or None with the reason; reason "" means undecided."""

    path: list[int] | None
    reason: str


def hamiltonian_path(adjacency: Sequence[int]) -> Hamilton:
    """Find a path, or prove that there is none."""
    cut = _cut(adjacency)
    if cut:
        return Hamilton(None, cut)
    n = len(adjacency)
    steps = 0
    path: list[int] = []

    def walk(v: int, left: int) -> bool:
        nonlocal steps
        steps += 1
        spend(n)
        path.append(v)
        if not left:
            return True
        if steps <= MAX_STEPS and _possible(adjacency, v, left):
            # Few ways on first (Warnsdorff): a node that is left behind is rarely reached again.
            for u in sorted(members(adjacency[v] & left), key=lambda u: (adjacency[u] & left).bit_count()):
                if walk(u, left & ~(1 << u)):
                    return True
        path.pop()
        return False

    everything = (1 << n) - 1
    for start in sorted(range(n), key=lambda v: adjacency[v].bit_count()):
        if walk(start, everything & ~(1 << start)):
            return Hamilton(path, "path")
    return Hamilton(None, "" if steps > MAX_STEPS else "exhausted search")


def _possible(adjacency: Sequence[int], here: int, left: int) -> bool:
    """All nodes left hang together and at most one of them is a dead end."""
    if len(components(adjacency, left)) > 1:
        return False
    inside = left | 1 << here
    ends = sum((adjacency[v] & inside).bit_count() < 2 for v in members(left))
    return ends <= 1


def _cut(adjacency: Sequence[int]) -> str:
    everything = (1 << len(adjacency)) - 1
    ends = sum(row.bit_count() == 1 for row in adjacency)
    if ends > 2:
        return f"{ends} nodes of degree 1"
    for size in (0, 1, 2):
        for cut in combinations(range(len(adjacency)), size):
            spend(len(adjacency))
            pieces = len(components(adjacency, everything & ~sum(1 << v for v in cut)))
            if pieces > size + 1:
                return f"{pieces} pieces without {list(cut)}"
        if len(adjacency) > 20:
            break
    return ""
