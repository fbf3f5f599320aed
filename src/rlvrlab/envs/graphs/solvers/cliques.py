"""Maximum clique by branch and bound: greedy colouring bounds the rest, bit sets hold it (Tomita 2003).

A clique of the complement is an independent set, and what an independent set leaves out is a vertex cover, so one
search proves MCP, MIS and MVC. It runs to the end, unless its effort is bounded: graphs of 30 nodes take
half a millisecond.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlvrlab.envs.graphs.graph import members
from rlvrlab.envs.graphs.solvers.effort import spend


def max_clique(adjacency: Sequence[int]) -> list[int]:
    """A largest clique, proved."""
    # Nodes of low degree first: the colouring then ends with the promising ones, which are tried first.
    order = sorted(range(len(adjacency)), key=lambda v: adjacency[v].bit_count())
    place = {v: i for i, v in enumerate(order)}
    rows = [sum(1 << place[u] for u in members(adjacency[v])) for v in order]
    best: list[int] = []
    current: list[int] = []

    def expand(candidates: int) -> None:
        nonlocal best
        coloured, bounds = _colour(rows, candidates)
        spend(len(coloured))
        for v, bound in zip(reversed(coloured), reversed(bounds), strict=True):
            if len(current) + bound <= len(best):
                return
            current.append(v)
            if rows[v] & candidates:
                expand(rows[v] & candidates)
            elif len(current) > len(best):
                best = current.copy()
            current.pop()
            candidates &= ~(1 << v)

    expand((1 << len(rows)) - 1)
    return sorted(order[v] for v in best)


def complement(adjacency: Sequence[int]) -> list[int]:
    """The graph of the missing edges."""
    everything = (1 << len(adjacency)) - 1
    return [everything & ~row & ~(1 << v) for v, row in enumerate(adjacency)]


def _colour(rows: Sequence[int], candidates: int) -> tuple[list[int], list[int]]:
    """Candidates in the order of a greedy colouring, with the number of colours used so far: no clique has more."""
    coloured, bounds = [], []
    colours = 0
    while candidates:
        colours += 1
        free = candidates
        while free:
            low = free & -free
            v = low.bit_length() - 1
            candidates ^= low
            free = free & ~low & ~rows[v]
            coloured.append(v)
            bounds.append(colours)
    return coloured, bounds
