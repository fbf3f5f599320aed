"""Maximum flow, with the minimum cut that proves it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple


class Flow(NamedTuple):
    """What flows at most, and the nodes on the source's side of a cut with exactly that capacity."""

    value: int
    side: frozenset[int]


def max_flow(capacities: Sequence[dict[int, int]], source: int, sink: int) -> Flow:
    """Edmonds and Karp: augment along shortest paths of the residual graph until none is left."""
    residual: list[dict[int, int]] = [dict(row) for row in capacities]
    for u, row in enumerate(capacities):
        for v in row:
            residual[v].setdefault(u, 0)
    value = 0
    while True:
        before, queue = {source: source}, deque([source])
        while queue and sink not in before:
            u = queue.popleft()
            for v, capacity in residual[u].items():
                if capacity and v not in before:
                    before[v] = u
                    queue.append(v)
        if sink not in before:
            break
        path = [sink]
        while path[-1] != source:
            path.append(before[path[-1]])
        steps = list(zip(path[1:], path[:-1], strict=True))
        amount = min(residual[u][v] for u, v in steps)
        for u, v in steps:
            residual[u][v] -= amount
            residual[v][u] += amount
        value += amount
    side = frozenset(before)
    cut = sum(capacity for u in side for v, capacity in capacities[u].items() if v not in side)
    assert cut == value, "a maximum flow equals its minimum cut"
    return Flow(value, side)
