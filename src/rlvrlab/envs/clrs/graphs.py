"""Algorithms on graphs given by a matrix, after Cormen, Leiserson, Rivest and Stein.

`pi[v]` is the vertex before v, v itself where there is none; a weight of 0 means no edge. Vertices are looked at in
order, so every result is unique. A state is `pi` after one vertex was settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

Matrix = Sequence[Sequence[int]]
States = list[list[int]]


def bfs(graph: Matrix, source: int) -> tuple[list[int], States]:
    """The tree of a breadth-first search."""
    pi, reached, states = list(range(len(graph))), [source], States()
    for u in reached:
        for v in range(len(graph)):
            if graph[u][v] and v not in reached:
                reached.append(v)
                pi[v] = u
        states.append(pi.copy())
    return pi, states


def dfs(graph: Matrix) -> list[int]:
    """The forest of a depth-first search."""
    return _depth_first(graph, range(len(graph)))[0]


def _depth_first(graph: Matrix, roots: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Predecessors, the order in which vertices are finished, and each vertex's root."""
    size = len(graph)
    pi, root, finished = list(range(size)), [-1] * size, list[int]()
    for start in roots:
        path = [start] if root[start] < 0 else []
        if path:
            root[start] = start
        while path:
            u = path[-1]
            v = next((v for v in range(size) if graph[u][v] and root[v] < 0), None)
            if v is None:
                finished.append(path.pop())
            else:
                pi[v], root[v] = u, start
                path.append(v)
    return pi, finished, root


def topological_sort(graph: Matrix) -> tuple[list[int], int]:
    """Each vertex's successor in the order (the last one's is itself), and the first vertex."""
    order = _depth_first(graph, range(len(graph)))[1][::-1]
    following = list(range(len(graph)))
    for u, v in pairwise(order):
        following[u] = v
    return following, order[0]


def strong_components(graph: Matrix) -> list[int]:
    """The first vertex of each vertex's component, by a second search on the reversed graph."""
    order = _depth_first(graph, range(len(graph)))[1][::-1]
    return _depth_first([list(column) for column in zip(*graph, strict=True)], order)[2]


def articulation_points(graph: Matrix) -> list[int]:
    """1 for vertices without which the graph falls into more pieces."""
    size = len(graph)
    whole = _pieces(graph, set(range(size)))
    # Alone, a vertex is a piece of its own, so taking it away never adds one.
    return [int(_pieces(graph, set(range(size)) - {v}) > whole) for v in range(size)]


def _pieces(graph: Matrix, vertices: set[int]) -> int:
    left, count = set(vertices), 0
    while left:
        count += 1
        waiting = [left.pop()]
        while waiting:
            u = waiting.pop()
            near = {v for v in left if graph[u][v] or graph[v][u]}
            left -= near
            waiting += near
    return count


def bridges(graph: Matrix) -> list[list[int]]:
    """1 for edges without which the graph falls into more pieces, 0 for other edges and the diagonal, -1 for none."""
    size = len(graph)
    everything = set(range(size))
    whole = _pieces(graph, everything)
    marks = [[0 if u == v else -1 for v in range(size)] for u in range(size)]
    for u, v in product(range(size), repeat=2):
        if u != v and graph[u][v]:
            cut = [[0 if {a, b} == {u, v} else graph[a][b] for b in range(size)] for a in range(size)]
            marks[u][v] = int(_pieces(cut, everything) > whole)
    return marks


def dijkstra(graph: Matrix, source: int) -> tuple[list[int], States]:
    """Tree of shortest paths; the nearest unsettled vertex is settled next."""
    return _settled(graph, source, lambda distance, weight: distance + weight)


def prim(graph: Matrix, source: int) -> tuple[list[int], States]:
    """Tree of least weight that grows from the source."""
    return _settled(graph, source, lambda distance, weight: weight)


def _settled(graph: Matrix, source: int, cost: Callable[[int, int], int]) -> tuple[list[int], States]:
    pi, best, open_, states = list(range(len(graph))), {source: 0}, set(range(len(graph))), States()
    while nearest := min(((best[v], v) for v in open_ if v in best), default=None):
        distance, u = nearest
        open_.remove(u)
        for v in sorted(open_):
            if graph[u][v] and (v not in best or cost(distance, graph[u][v]) < best[v]):
                best[v], pi[v] = cost(distance, graph[u][v]), u
        states.append(pi.copy())
    return pi, states


def bellman_ford(graph: Matrix, source: int) -> tuple[list[int], States]:
    """Tree of shortest paths; a state after every round over all edges that changed something."""
    size, states = len(graph), States()
    pi, distance = list(range(size)), {source: 0}
    while True:
        before = dict(distance)
        for u, v in product(range(size), repeat=2):
            if u in before and graph[u][v] and (v not in distance or before[u] + graph[u][v] < distance[v]):
                distance[v], pi[v] = before[u] + graph[u][v], u
        if distance == before:
            return pi, states
        states.append(pi.copy())


def floyd_warshall(graph: Matrix) -> list[list[int]]:
    """Row u holds the vertex before each v on the shortest path from u; u itself where there is none."""
    size = len(graph)
    # A loop counts as the way from a vertex to itself, as in the original.
    distance = {(u, u): 0 for u in range(size)} | {(u, v): graph[u][v] for u, v in _edges(graph)}
    before = [[u for _ in range(size)] for u in range(size)]
    for k, u, v in product(range(size), repeat=3):
        if (u, k) in distance and (k, v) in distance:
            through = distance[u, k] + distance[k, v]
            if (u, v) not in distance or through < distance[u, v]:
                distance[u, v], before[u][v] = through, before[k][v]
    return before


def _edges(graph: Matrix) -> Iterator[tuple[int, int]]:
    return ((u, v) for u, v in product(range(len(graph)), repeat=2) if graph[u][v])


def kruskal(graph: Matrix) -> list[list[int]]:
    """1 for the edges of a forest of least weight."""
    size = len(graph)
    piece, chosen = list(range(size)), [[0] * size for _ in range(size)]
    for _, u, v in sorted((graph[u][v], u, v) for u, v in _edges(graph) if u < v):
        if piece[u] != piece[v]:
            old, new = piece[v], piece[u]
            piece = [new if one == old else one for one in piece]
            chosen[u][v] = chosen[v][u] = 1
    return chosen
