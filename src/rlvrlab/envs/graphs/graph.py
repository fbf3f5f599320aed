"""A small graph, as tasks, solvers and verifiers see it, and its hash up to isomorphism.

    Graph(4, ((0, 1), (1, 2), (2, 3)))                       a path
    Graph(3, ((0, 1), (1, 2)), weights=(7, 2))               one weight per edge
    Graph(2, ((0, 1),), directed=True, labels=("C", "O"))    one label per node

Node sets are integers used as bit sets: node 3 is 1 << 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rlvrlab.randomness import key_bits

Edge = tuple[int, int]
ROUNDS = 8
"""Colour refinement of graphs this small is stable after three or four rounds; more would only cost time."""


class Graph(NamedTuple):
    """Nodes 0 … n-1 and their edges."""

    n: int
    edges: tuple[Edge, ...]
    directed: bool = False
    weights: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()

    def adjacency(self) -> list[int]:
        """The neighbours of each node as a bit set; successors where edges have a direction."""
        rows = [0] * self.n
        for u, v in self.edges:
            rows[u] |= 1 << v
            if not self.directed:
                rows[v] |= 1 << u
        return rows

    def weighted(self) -> list[dict[int, int]]:
        """For each node, the weight of the edge to each neighbour (1 without weights)."""
        rows: list[dict[int, int]] = [{} for _ in range(self.n)]
        for (u, v), weight in zip(self.edges, self.weights or (1,) * len(self.edges), strict=True):
            rows[u][v] = weight
            if not self.directed:
                rows[v][u] = weight
        return rows

    def matrix(self) -> list[list[int]]:
        """The weight of the edge between every two nodes, 0 where there is none."""
        return [[row.get(v, 0) for v in range(self.n)] for row in self.weighted()]

    def as_plain(self) -> dict[str, Any]:
        """Plain data for a reference; what is empty is left out."""
        plain: dict[str, Any] = {"n": self.n, "edges": [list(edge) for edge in self.edges]}
        if self.directed:
            plain["directed"] = True
        if self.weights:
            plain["weights"] = list(self.weights)
        if self.labels:
            plain["labels"] = list(self.labels)
        return plain

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Graph:
        """The graph that `as_plain` wrote into a reference."""
        return Graph(
            plain["n"],
            tuple([(u, v) for u, v in plain["edges"]]),
            plain.get("directed", False),
            tuple(plain.get("weights", ())),
            tuple(plain.get("labels", ())),
        )


def members(nodes: int) -> Iterator[int]:
    """The nodes of a bit set, ascending."""
    while nodes:
        low = nodes & -nodes
        yield low.bit_length() - 1
        nodes ^= low


def as_set(nodes: Sequence[int]) -> int:
    """The nodes as a bit set: bit v stands for node v."""
    bits = 0
    for node in nodes:
        bits |= 1 << node
    return bits


def induced(adjacency: Sequence[int], nodes: Sequence[int]) -> Graph:
    """The undirected graph on some nodes, renumbered in their order."""
    return Graph(
        len(nodes),
        tuple([(i, j) for j in range(len(nodes)) for i in range(j) if adjacency[nodes[i]] >> nodes[j] & 1]),
    )


def permuted(graph: Graph, order: Sequence[int]) -> Graph:
    """The same graph with node v called order[v]; edges sorted, so the old order leaves no trace."""
    labels = [""] * graph.n
    for node, label in enumerate(graph.labels):
        labels[order[node]] = label
    renamed = [(order[u], order[v]) for u, v in graph.edges]
    if not graph.directed:
        renamed = [(min(edge), max(edge)) for edge in renamed]
    rows = sorted(zip(renamed, graph.weights or (1,) * len(renamed), strict=True))
    return Graph(
        graph.n,
        tuple([edge for edge, _ in rows]),
        graph.directed,
        tuple([weight for _, weight in rows]) if graph.weights else (),
        tuple(labels) if graph.labels else (),
    )


def colours(graph: Graph, query: Sequence[int] = ()) -> list[int]:
    """Colour refinement: equal for nodes that no neighbourhood tells apart; the nodes asked about start apart."""
    ways: list[list[tuple[int, int, int]]] = [[] for _ in range(graph.n)]
    for (u, v), weight in zip(graph.edges, graph.weights or (1,) * len(graph.edges), strict=True):
        ways[u].append((v, weight, 0))
        ways[v].append((u, weight, 1 if graph.directed else 0))
    labels = graph.labels or ("",) * graph.n
    asked = {node: place for place, node in enumerate(query, start=1)}
    colour = _ranked([(labels[v], asked.get(v, 0)) for v in range(graph.n)])
    for _ in range(ROUNDS):
        finer = _ranked([(colour[v], sorted([(colour[u], w, d) for u, w, d in ways[v]])) for v in range(graph.n)])
        if max(finer, default=0) == max(colour, default=0):
            break
        colour = finer
    return colour


def shape(graph: Graph, query: Sequence[int] = ()) -> int:
    """A hash that isomorphic graphs share, whatever their numbering.

    Different graphs may share it too where refinement cannot tell them apart (two regular graphs, say): then one of
    them is taken for a duplicate, which costs an instance and never leaks one.
    """
    colour = colours(graph, query)
    labels = graph.labels or ("",) * graph.n
    nodes = sorted(zip(colour, labels, strict=True))
    edges = []
    for (u, v), weight in zip(graph.edges, graph.weights or (1,) * len(graph.edges), strict=True):
        a, b = colour[u], colour[v]
        edges.append((a, b, weight) if graph.directed or a < b else (b, a, weight))
    return key_bits(graph.n, graph.directed, nodes, sorted(edges), [colour[node] for node in query])


def _ranked(signatures: list[Any]) -> list[int]:
    """Each signature's place among the different ones: small numbers that do not depend on the node order."""
    keys = [repr(signature) for signature in signatures]
    place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return [place[key] for key in keys]
