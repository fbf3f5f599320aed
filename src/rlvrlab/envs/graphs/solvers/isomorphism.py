"""Is one graph the other, or inside it? Colour refinement narrows the choices, backtracking decides."""

from __future__ import annotations

from typing import NamedTuple

from rlvrlab.envs.graphs.graph import Graph, colours, members

MAX_STEPS = 100_000
"""Steps after which a search for a pattern gives up."""


def isomorphic(first: Graph, second: Graph) -> bool:
    """Whether two undirected graphs are the same up to numbering."""
    if first.n != second.n or len(first.edges) != len(second.edges):
        return False
    shifted = tuple([(u + first.n, v + first.n) for u, v in second.edges])
    colour = colours(Graph(first.n + second.n, first.edges + shifted))
    mine, theirs = colour[: first.n], colour[first.n :]
    if sorted(mine) != sorted(theirs):
        return False
    near1, near2 = first.adjacency(), second.adjacency()
    same = [sum(1 << w for w in range(second.n) if theirs[w] == mine[v]) for v in range(first.n)]
    order = sorted(range(first.n), key=lambda v: (same[v].bit_count(), -near1[v].bit_count()))
    image: dict[int, int] = {}

    def match(depth: int, free: int) -> bool:
        if depth == first.n:
            return True
        v = order[depth]
        allowed = free & same[v]
        for u in order[:depth]:
            allowed &= near2[image[u]] if near1[u] >> v & 1 else ~near2[image[u]]
        for w in members(allowed):
            image[v] = w
            if match(depth + 1, free ^ 1 << w):
                return True
        return False

    return match(0, (1 << second.n) - 1)


class Occurrence(NamedTuple):
    """Where the pattern's nodes lie, or None when it was not found."""

    nodes: tuple[int, ...] | None
    proved: bool


def occurrence(graph: Graph, pattern: Graph) -> Occurrence:
    """An occurrence of a directed pattern: different nodes, every edge of it present; more edges do no harm."""
    out, back = graph.adjacency(), _reversed(graph).adjacency()
    pattern_out, pattern_back = pattern.adjacency(), _reversed(pattern).adjacency()
    fits = [
        sum(
            1 << w
            for w in range(graph.n)
            if out[w].bit_count() >= pattern_out[v].bit_count() and back[w].bit_count() >= pattern_back[v].bit_count()
        )
        for v in range(pattern.n)
    ]
    order = sorted(range(pattern.n), key=lambda v: -(pattern_out[v] | pattern_back[v]).bit_count())
    image, steps = [0] * pattern.n, 0

    def place(depth: int, free: int) -> bool | None:
        nonlocal steps
        if depth == pattern.n:
            return True
        v = order[depth]
        allowed = free & fits[v]
        for u in order[:depth]:
            if pattern_out[u] >> v & 1:
                allowed &= out[image[u]]
            if pattern_back[u] >> v & 1:
                allowed &= back[image[u]]
        for w in members(allowed):
            steps += 1
            if steps > MAX_STEPS:
                return None
            image[v] = w
            outcome = place(depth + 1, free ^ 1 << w)
            if outcome is not False:
                return outcome
        return False

    outcome = place(0, (1 << graph.n) - 1)
    return Occurrence(tuple(image) if outcome else None, outcome is not None)


def _reversed(graph: Graph) -> Graph:
    return graph._replace(edges=tuple([(v, u) for u, v in graph.edges]))
