"""Reaching nodes: components, shortest paths, orders, two-colourings."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from rlvrlab.envs.graphs.graph import members


def reachable(adjacency: Sequence[int], start: int, within: int = -1) -> int:
    """Everything that can be reached from a node inside a set, itself included."""
    seen = fresh = 1 << start
    while fresh:
        around = 0
        for v in members(fresh):
            around |= adjacency[v]
        fresh = around & within & ~seen
        seen |= fresh
    return seen


def components(adjacency: Sequence[int], within: int | None = None) -> list[int]:
    """The connected components inside a set, as bit sets, by their smallest node."""
    left = (1 << len(adjacency)) - 1 if within is None else within
    pieces = []
    while left:
        component = reachable(adjacency, (left & -left).bit_length() - 1, left)
        pieces.append(component)
        left &= ~component
    return pieces


def distances(adjacency: Sequence[int], start: int) -> list[int]:
    """Hops from a node to every node; -1 where there is no way."""
    hops = [-1] * len(adjacency)
    seen = fresh = 1 << start
    step = 0
    while fresh:
        around = 0
        for v in members(fresh):
            hops[v] = step
            around |= adjacency[v]
        fresh = around & ~seen
        seen |= fresh
        step += 1
    return hops


def shortest_path(adjacency: Sequence[int], start: int, end: int) -> list[int] | None:
    """A path with the fewest hops."""
    hops = distances(adjacency, end)
    if hops[start] < 0:
        return None
    path = [start]
    while path[-1] != end:
        path.append(next(v for v in members(adjacency[path[-1]]) if hops[v] == hops[path[-1]] - 1))
    return path


def lightest_path(weights: Sequence[dict[int, int]], start: int, end: int) -> tuple[int, list[int]] | None:
    """Dijkstra: total weight and a path with it."""
    settled: dict[int, int] = {}
    before: dict[int, int] = {}
    queue = [(0, start, start)]
    while queue:
        total, v, previous = heappop(queue)
        if v in settled:
            continue
        settled[v], before[v] = total, previous
        if v == end:
            break
        for u, weight in weights[v].items():
            if u not in settled:
                heappush(queue, (total + weight, u, v))
    if end not in settled:
        return None
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return settled[end], path[::-1]


def topological_order(successors: Sequence[int]) -> list[int] | None:
    """An order in which every edge leads forward; None when there is a cycle."""
    waiting = [0] * len(successors)
    for row in successors:
        for v in members(row):
            waiting[v] += 1
    ready = [v for v, count in enumerate(waiting) if not count]
    for v in ready:
        for u in members(successors[v]):
            waiting[u] -= 1
            if not waiting[u]:
                ready.append(u)
    return ready if len(ready) == len(successors) else None


def two_colouring(adjacency: Sequence[int]) -> list[int] | None:
    """Sides 0 and 1 without an edge inside a side; None when an odd cycle forbids it."""
    side = [-1] * len(adjacency)
    for component in components(adjacency):
        start = (component & -component).bit_length() - 1
        for v, hops in enumerate(distances(adjacency, start)):
            if hops >= 0:
                side[v] = hops % 2
    clash = any(side[u] == side[v] for u, row in enumerate(adjacency) for v in members(row))
    return None if clash else side


def has_cycle(adjacency: Sequence[int]) -> bool:
    """Whether an undirected graph has more edges than a forest on its nodes."""
    edges = sum(row.bit_count() for row in adjacency) // 2
    return edges > len(adjacency) - len(components(adjacency))
