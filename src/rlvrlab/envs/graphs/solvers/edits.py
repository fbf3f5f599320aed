"""Edit distance between two labelled graphs of equal size: the cheapest bijection of their nodes, proved.

A bijection costs one for each node whose label changes and one for each edge that appears or disappears. (Deleting a
node and inserting another never beats relabelling at unit costs, so this is the true graph edit distance.) Depth
first over the nodes of the first graph; what is still to come costs at least
  - the labels that cannot be matched,
  - half the difference of the sorted degrees among the free nodes (one edge changes two degrees),
  - for each node already mapped, the difference in its number of edges to free nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rlvrlab.envs.graphs.graph import Graph, members
from rlvrlab.envs.graphs.solvers.effort import spend

MAX_NODES = 300_000
"""Search nodes after which an instance counts as unproved."""


class Mapping(NamedTuple):
    """The cheapest bijection found: node v of the first graph becomes nodes[v] of the second."""

    cost: int
    nodes: tuple[int, ...]
    proved: bool


def mapping_cost(first: Graph, second: Graph, nodes: Sequence[int]) -> int:
    """Edits that a bijection of the nodes needs: labels changed, edges added and removed."""
    kept = set(second.edges) & {tuple(sorted((nodes[u], nodes[v]))) for u, v in first.edges}
    relabelled = sum(label != second.labels[nodes[v]] for v, label in enumerate(first.labels))
    return relabelled + len(first.edges) + len(second.edges) - 2 * len(kept)


def edit_distance(first: Graph, second: Graph, known: Sequence[int] | None = None) -> Mapping:
    """The cheapest bijection; a good one known beforehand spares the search most of its work."""
    return _Search(first, second, known).run()


class _Search:
    def __init__(self, first: Graph, second: Graph, known: Sequence[int] | None) -> None:
        self.n = first.n
        self.near1, self.near2 = first.adjacency(), second.adjacency()
        kinds = {label: kind for kind, label in enumerate(sorted({*first.labels, *second.labels}))}
        self.kind1, self.kind2 = [[kinds[label] for label in g.labels] for g in (first, second)]
        self.of_kind2 = [sum(1 << v for v in range(self.n) if self.kind2[v] == kind) for kind in kinds.values()]
        self.order = _by_connection(self.near1)
        self.left1 = [sum(1 << v for v in self.order[depth:]) for depth in range(self.n + 1)]
        self.degrees1 = [sorted([(self.near1[v] & left).bit_count() for v in members(left)]) for left in self.left1]
        self.kinds1 = [[sum(self.kind1[v] == k for v in members(left)) for k in kinds.values()] for left in self.left1]
        self.image = [0] * self.n
        self.visited = 0
        start = tuple(known) if known is not None else self._greedy()
        self.best, self.cost = start, mapping_cost(first, second, start)

    def run(self) -> Mapping:
        self._extend(0, (1 << self.n) - 1, 0)
        return Mapping(self.cost, self.best, self.visited <= MAX_NODES)

    def _extend(self, depth: int, free: int, cost: int) -> None:
        if depth == self.n:
            self.cost, self.best = cost, tuple(self.image)
            return
        self.visited += 1
        spend(self.n)
        if self.visited > MAX_NODES or cost + self._to_come(depth, free) >= self.cost:
            return
        node = self.order[depth]
        left = self.left1[depth]
        wanted = sum(1 << self.image[v] for v in members(self.near1[node] & ~left))
        degree, kind = (self.near1[node] & left).bit_count(), self.kind1[node]
        choices = []
        for v in members(free):
            near = self.near2[v]
            added = (self.kind2[v] != kind) + ((near & ~free) ^ wanted).bit_count()
            if cost + added < self.cost:
                choices.append((added, abs(degree - (near & free).bit_count()), v))
        for added, _, v in sorted(choices):
            if cost + added < self.cost:
                self.image[node] = v
                self._extend(depth + 1, free & ~(1 << v), cost + added)

    def _to_come(self, depth: int, free: int) -> int:
        near2, left = self.near2, self.left1[depth]
        degrees = sorted([(near2[v] & free).bit_count() for v in members(free)])
        inside = sum([a - b if a > b else b - a for a, b in zip(self.degrees1[depth], degrees, strict=True)])
        matched = 0
        for count, nodes in zip(self.kinds1[depth], self.of_kind2, strict=True):
            there = (nodes & free).bit_count()
            matched += count if count < there else there
        across = 0
        for v in self.order[:depth]:
            gap = (self.near1[v] & left).bit_count() - (near2[self.image[v]] & free).bit_count()
            across += gap if gap > 0 else -gap
        return self.n - depth - matched + (inside + 1) // 2 + across

    def _greedy(self) -> tuple[int, ...]:
        """Each node in turn to where it costs least."""
        free = (1 << self.n) - 1
        for depth, node in enumerate(self.order):
            left = self.left1[depth]
            wanted = sum(1 << self.image[v] for v in members(self.near1[node] & ~left))
            degree = self.near1[node].bit_count()
            _, _, self.image[node] = min(
                (
                    (self.kind1[node] != self.kind2[v]) + ((self.near2[v] & ~free) ^ wanted).bit_count(),
                    abs(degree - self.near2[v].bit_count()),
                    v,
                )
                for v in members(free)
            )
            free &= ~(1 << self.image[node])
        return tuple(self.image)


def _by_connection(near: Sequence[int]) -> list[int]:
    """Always the node with most edges into those already taken: its cost is decided earliest."""
    order: list[int] = []
    taken = 0
    for _ in near:
        free = [v for v in range(len(near)) if not taken >> v & 1]
        order.append(max(free, key=lambda v: ((near[v] & taken).bit_count(), near[v].bit_count(), -v)))
        taken |= 1 << order[-1]
    return order
