"""Largest common induced subgraph of two graphs by McSplit (McCreesh, Prosser, Trimble 2017), proved.

Free nodes of both graphs fall into classes by their adjacency to the pairs chosen so far; only nodes of one class can
be paired, so a class adds at most as many pairs as its smaller side.
"""

from __future__ import annotations

from typing import NamedTuple

from rlvrlab.envs.graphs.graph import Graph, members
from rlvrlab.envs.graphs.solvers.effort import spend

MAX_NODES = 2_000_000
"""Search nodes after which an instance counts as unproved."""


class Pairing(NamedTuple):
    """The largest common subgraph found, as pairs of nodes."""

    pairs: tuple[tuple[int, int], ...]
    proved: bool


Class = tuple[int, int, bool]
"""Free nodes of the first graph, of the second, and whether they touch a chosen pair. A plain tuple: made millions of
times."""


def largest_common(first: Graph, second: Graph) -> Pairing:
    """A largest common induced subgraph; connected or not, labels ignored."""
    return _Search(first, second).run()


class _Search:
    def __init__(self, first: Graph, second: Graph) -> None:
        self.near1, self.near2 = first.adjacency(), second.adjacency()
        self.degree1 = [near.bit_count() for near in self.near1]
        self.degree2 = [near.bit_count() for near in self.near2]
        self.most = min(first.n, second.n)
        self.best: list[tuple[int, int]] = []
        self.pairs: list[tuple[int, int]] = []
        self.visited = 0

    def run(self) -> Pairing:
        self._extend([((1 << len(self.near1)) - 1, (1 << len(self.near2)) - 1, False)])
        return Pairing(tuple(sorted(self.best)), self.visited <= MAX_NODES)

    def _extend(self, classes: list[Class]) -> None:
        self.visited += 1
        spend(2 + len(classes))
        if len(self.pairs) > len(self.best):
            self.best = self.pairs.copy()
        bound, tightest, at = len(self.pairs), 1 << 20, 0
        for place, (first, second, adjacent) in enumerate(classes):
            a, b = first.bit_count(), second.bit_count()
            if a < b:
                a, b = b, a
            bound += b
            # Classes that touch a chosen pair come first: the subgraph grows connected, which is found sooner.
            if not adjacent:
                a += 1 << 10
            if a < tightest:
                tightest, at = a, place
        if bound <= len(self.best) or self.visited > MAX_NODES:
            return
        first, second, adjacent = classes[at]
        v = max(members(first), key=self.degree1.__getitem__)
        for w in sorted(members(second), key=lambda w: abs(self.degree2[w] - self.degree1[v])):
            self.pairs.append((v, w))
            self._extend(self._split(classes, v, w))
            self.pairs.pop()
            if len(self.best) == self.most:
                return
        without = first ^ 1 << v
        self._extend(classes[:at] + classes[at + 1 :] + ([(without, second, adjacent)] if without else []))

    def _split(self, classes: list[Class], v: int, w: int) -> list[Class]:
        near1, near2 = self.near1[v], self.near2[w]
        far1, far2 = ~(near1 | 1 << v), ~(near2 | 1 << w)
        split = []
        for first, second, adjacent in classes:
            touched1, touched2 = first & near1, second & near2
            if touched1 and touched2:
                split.append((touched1, touched2, True))
            apart1, apart2 = first & far1, second & far2
            if apart1 and apart2:
                split.append((apart1, apart2, adjacent))
        return split
