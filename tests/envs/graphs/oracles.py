"""Optima by other means: networkx, brute force and textbook tables, from the reference alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations, permutations
from typing import Any

import networkx as nx
import numpy as np

Reference = Mapping[str, Any]


def graph_of(plain: Mapping[str, Any]) -> nx.Graph:
    graph = nx.DiGraph() if plain.get("directed") else nx.Graph()
    labels = plain.get("labels") or [""] * plain["n"]
    graph.add_nodes_from((v, {"label": label}) for v, label in enumerate(labels))
    weights = plain.get("weights") or [1] * len(plain["edges"])
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(plain["edges"], weights, strict=True))
    return graph


def only(reference: Reference) -> nx.Graph:
    return graph_of(reference["graphs"][0])


def largest_clique(graph: nx.Graph) -> int:
    return max(map(len, nx.find_cliques(graph)))


def tour(reference: Reference) -> int:
    """Held-Karp, from the textbook."""
    graph = only(reference)
    d = nx.to_numpy_array(graph).astype(int).tolist()
    n = len(d)
    best = {(1 << j, j): d[0][j] for j in range(1, n)}
    for size in range(2, n):
        for subset in combinations(range(1, n), size):
            bits = sum(1 << j for j in subset)
            for j in subset:
                best[bits, j] = min(best[bits ^ 1 << j, k] + d[k][j] for k in subset if k != j)
    everything = sum(1 << j for j in range(1, n))
    return min(best[everything, j] + d[j][0] for j in range(1, n))


@cache
def bijections(n: int) -> np.ndarray:
    return np.array(list(permutations(range(n))))


def edit_distance(reference: Reference) -> int:
    """Every bijection."""
    first, second = [graph_of(plain) for plain in reference["graphs"]]
    n = len(first)
    a, b = nx.to_numpy_array(first) > 0, nx.to_numpy_array(second) > 0
    differ = np.array([[first.nodes[i]["label"] != second.nodes[j]["label"] for j in range(n)] for i in range(n)])
    perms = bijections(n)
    cost = differ[np.arange(n), perms].sum(axis=1)
    for i in range(n):
        for j in range(i):
            cost = cost + (b[perms[:, i], perms[:, j]] != a[i, j])
    return int(cost.min())


def common_subgraph(reference: Reference) -> int:
    """The largest clique of the product graph."""
    first, second = [graph_of(plain) for plain in reference["graphs"]]
    product = nx.Graph()
    product.add_nodes_from((i, j) for i in first for j in second)
    for (i, j), (k, m) in combinations(product.nodes, 2):
        if i != k and j != m and first.has_edge(i, k) == second.has_edge(j, m):
            product.add_edge((i, j), (k, m))
    return nx.max_weight_clique(product, weight=None)[1]


def hamilton(reference: Reference) -> bool:
    """Which nodes a path over a subset can end in."""
    graph = only(reference)
    n = len(graph)
    near = [sum(1 << u for u in graph[v]) for v in range(n)]
    ends = {1 << v: 1 << v for v in range(n)}
    for subset in range(1, 1 << n):
        for v in range(n):
            if ends.get(subset, 0) >> v & 1:
                for u in range(n):
                    if near[v] >> u & 1 and not subset >> u & 1:
                        ends[subset | 1 << u] = ends.get(subset | 1 << u, 0) | 1 << u
    return bool(ends.get((1 << n) - 1))


def triplet(reference: Reference) -> int:
    graph = only(reference)
    cliques = [clique for clique in nx.enumerate_all_cliques(graph) if len(clique) == 3]
    return max(sum(int(graph.nodes[v]["label"]) for v in clique) for clique in cliques)


def substructure(reference: Reference) -> bool:
    graph, pattern = [graph_of(plain) for plain in reference["graphs"]]
    return nx.isomorphism.DiGraphMatcher(graph, pattern).subgraph_is_monomorphic()


def topic(reference: Reference) -> str:
    """The most probable topic, counted by hand."""
    graph, asked = only(reference), reference["query"][0]
    scores = {}
    topics = {label for _, label in graph.nodes(data="label")} - {"?"}
    for topic in topics:
        same = [v for v, label in graph.nodes(data="label") if label == topic]
        other = [v for v, label in graph.nodes(data="label") if label not in (topic, "?")]
        hits, strays = sum(graph.has_edge(asked, v) for v in same), sum(graph.has_edge(asked, v) for v in other)
        scores[topic] = (
            hits * math.log(0.6) + (len(same) - hits) * math.log(0.4)
            + strays * math.log(0.08) + (len(other) - strays) * math.log(0.92)
        )  # fmt: skip
    return max(scores, key=lambda topic: scores[topic])


ORACLES: dict[str, Callable[[Reference], Any]] = {
    "TSP": tour,
    "GED": edit_distance,
    "MCS": common_subgraph,
    "MCP": lambda r: largest_clique(only(r)),
    "MIS": lambda r: largest_clique(nx.complement(only(r))),
    "MVC": lambda r: r["graphs"][0]["n"] - largest_clique(nx.complement(only(r))),
    "Neighbor": lambda r: len(list(nx.common_neighbors(only(r), *r["query"]))),
    "Distance": lambda r: nx.shortest_path_length(only(r), *r["query"]),
    "Connected": lambda r: nx.number_connected_components(only(r)),
    "Diameter": lambda r: nx.diameter(only(r)),
    "connectivity": lambda r: nx.has_path(only(r), *r["query"]),
    "cycle": lambda r: bool(nx.cycle_basis(only(r))),
    "bipartite": lambda r: nx.is_bipartite(only(r).to_undirected()),
    "topology": lambda r: int(nx.is_directed_acyclic_graph(only(r))),
    "shortest": lambda r: nx.dijkstra_path_length(only(r), *r["query"]),
    "triplet": triplet,
    "flow": lambda r: nx.maximum_flow_value(only(r), *r["query"], capacity="weight"),
    "hamilton": hamilton,
    "substructure": substructure,
    "node_classification": topic,
    "link_prediction": lambda r: len(list(nx.common_neighbors(only(r), *r["query"]))) >= 2,
}
EASY_SIZES = {"TSP": (4, 9), "GED": (4, 8), "MCS": (4, 7), "hamilton": (4, 11)}
"""Where an oracle takes too long beyond."""
