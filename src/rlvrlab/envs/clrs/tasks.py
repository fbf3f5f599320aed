"""Inputs for each algorithm and the text around them, as CLRS-Text writes it.

Decimals are whole thousandths inside, so sums never round: decimals([550, 708, 0]) -> "[0.55 0.708 0.0]".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from rlvrlab.envs.clrs import graphs, lists

NEIGHBOURS, FEW_NEIGHBOURS = 3.0, 1.8
"""Edges per vertex on average: enough for detours, or few enough for cuts."""


class Instance(NamedTuple):
    """One run of an algorithm, in text."""

    inputs: str
    field: str
    answer: str
    states: tuple[str, ...] = ()
    initial: str = ""
    """The state before the first step."""


Random = np.random.Generator
Graph = list[list[int]]
Sort = Callable[[Sequence[int]], tuple[list[int], list[list[int]]]]
Tree = Callable[[Sequence[Sequence[int]], int], tuple[list[int], list[list[int]]]]


def decimal(thousandths: int) -> str:
    """550 as 0.55, 0 as 0.0."""
    whole, part = divmod(abs(thousandths), 1000)
    return f"{'-' if thousandths < 0 else ''}{whole}.{f'{part:03}'.rstrip('0') or '0'}"


def array(values: Sequence[int], write: Callable[[int], str] = str) -> str:
    """`[0 1 2]`, each value as `write` writes it."""
    return f"[{' '.join(map(write, values))}]"


def decimals(values: Sequence[int]) -> str:
    """`[0.55 0.708]` from thousandths."""
    return array(values, decimal)


def matrix(rows: Sequence[Sequence[int]], write: Callable[[int], str] = str) -> str:
    """`[[0 1], [1 0]]`, each value as `write` writes it."""
    return f"[{', '.join(array(row, write) for row in rows)}]"


def _keys(random: Random, size: int) -> list[int]:
    """Different decimals between 0 and 1, in thousandths."""
    return [int(key) for key in random.choice(np.arange(1, 1000), size, replace=False)]


def _graph(random: Random, size: int, directed: bool, weighted: bool, neighbours: float = NEIGHBOURS) -> Graph:
    edges = random.random((size, size)) < min(0.5, neighbours / size)
    weights = random.integers(1, 1000, (size, size)) if weighted else np.ones((size, size), int)
    graph = np.where(edges, weights, 0)
    if not directed:
        graph = np.triu(graph) + np.triu(graph, 1).T
    return [[int(value) for value in row] for row in graph]


def _acyclic(random: Random, size: int, weighted: bool) -> Graph:
    graph = np.triu(np.array(_graph(random, size, True, weighted)), 1)
    order = random.permutation(size)
    return [[int(value) for value in row] for row in graph[order][:, order]]


def _rooted(random: Random, draw: Callable[[], Graph]) -> tuple[Graph, int]:
    """A graph and a source that has an edge to another vertex; from an isolated one there is nothing to find."""
    while True:
        graph = draw()
        starts = [u for u, row in enumerate(graph) if any(weight for v, weight in enumerate(row) if v != u)]
        if starts:
            return graph, starts[int(random.integers(len(starts)))]


def _sorting(sort: Sort, random: Random, size: int) -> Instance:
    keys = _keys(random, size)
    answer, states = sort(keys)
    shown = decimals(keys)
    return Instance(f"key: {shown}", "pred", decimals(answer), tuple(map(decimals, states)), shown)


def _tree(grow: Tree, weighted: bool, random: Random, size: int) -> Instance:
    graph, source = _rooted(random, lambda: _graph(random, size, False, weighted))
    answer, states = grow(graph, source)
    inputs = f"s: {source}, A: {matrix(graph, decimal if weighted else str)}"
    return Instance(inputs, "pi", array(answer), tuple(map(array, states)), array(range(size)))


def _place(search: Callable[[Sequence[int]], int], field: str, random: Random, size: int) -> Instance:
    keys = _keys(random, size)
    return Instance(f"key: {decimals(keys)}", field, str(search(keys)))


def _marks(
    algorithm: Callable[[Graph], list[int]], field: str, directed: bool, neighbours: float, random: Random, size: int
) -> Instance:
    """A number per vertex of a graph without weights."""
    graph = _graph(random, size, directed, False, neighbours)
    return Instance(f"A: {matrix(graph)}", field, array(algorithm(graph)))


def _pairs(
    algorithm: Callable[[Graph], Graph], field: str, weighted: bool, neighbours: float, random: Random, size: int
) -> Instance:
    """A number per pair of vertices of an undirected graph."""
    graph = _graph(random, size, False, weighted, neighbours)
    return Instance(f"A: {matrix(graph, decimal if weighted else str)}", field, matrix(algorithm(graph)))


def _binary_search(random: Random, size: int) -> Instance:
    keys, target = sorted(_keys(random, size)), int(random.integers(1, 1000))
    place = str(lists.binary_search(keys, target))
    return Instance(f"key: {decimals(keys)}, target: {decimal(target)}", "return", place)


def _kadane(random: Random, size: int) -> Instance:
    keys = [key - 500 for key in _keys(random, size)]
    start, end = lists.maximum_subarray(keys)
    return Instance(f"key: {decimals(keys)}", "start, end", f"{start}, {end}")


def _activities(random: Random, size: int) -> Instance:
    ends = _keys(random, 2 * size)
    pairs = [sorted(ends[2 * i : 2 * i + 2]) for i in range(size)]
    starts, finishes = [low for low, _ in pairs], [high for _, high in pairs]
    chosen = lists.activity_selector(starts, finishes)
    return Instance(f"s: {decimals(starts)}, f: {decimals(finishes)}", "selected", array(chosen))


def _matching(random: Random, size: int) -> Instance:
    length = max(1, size // 4)
    text = [int(letter) for letter in random.integers(0, 4, size - length)]
    start = int(random.integers(0, len(text) - length + 1))
    planted = random.random() < 0.7
    pattern = text[start : start + length] if planted else [int(letter) for letter in random.integers(0, 4, length)]
    inputs = f"string: {array([0] * len(text) + [1] * length)}, key: {array(text + pattern)}"
    return Instance(inputs, "match", str(lists.string_match(text, pattern)))


def _segments(random: Random, size: int) -> Instance:
    xs, ys = _keys(random, 4), _keys(random, 4)
    return Instance(f"x: {decimals(xs)}, y: {decimals(ys)}", "intersect", str(lists.segments_intersect(xs, ys)))


def _hull(random: Random, size: int) -> Instance:
    xs, ys = ([2 * key - 1000 for key in _keys(random, size)] for _ in range(2))
    return Instance(f"x: {decimals(xs)}, y: {decimals(ys)}", "in_hull", array(lists.convex_hull(xs, ys)))


def _topological(random: Random, size: int) -> Instance:
    graph = _acyclic(random, size, False)
    following, first = graphs.topological_sort(graph)
    return Instance(f"A: {matrix(graph)}", "topo, topo_head", f"{array(following)}, {first}")


def _dag_paths(random: Random, size: int) -> Instance:
    graph, source = _rooted(random, lambda: _acyclic(random, size, True))
    answer = array(graphs.bellman_ford(graph, source)[0])
    return Instance(f"s: {source}, A: {matrix(graph, decimal)}", "pi", answer)


TASKS: dict[str, Callable[[Random, int], Instance]] = {
    "insertion_sort": partial(_sorting, lists.insertion_sort),
    "bubble_sort": partial(_sorting, lists.bubble_sort),
    "heapsort": partial(_sorting, lists.heapsort),
    "quicksort": partial(_sorting, lists.quicksort),
    "minimum": partial(_place, lists.minimum, "min"),
    "binary_search": _binary_search,
    "quickselect": partial(_place, lists.quickselect, "median"),
    "find_maximum_subarray_kadane": _kadane,
    "activity_selector": _activities,
    "naive_string_matcher": _matching,
    "kmp_matcher": _matching,
    "segments_intersect": _segments,
    "graham_scan": _hull,
    "jarvis_march": _hull,
    "bfs": partial(_tree, graphs.bfs, False),
    "dijkstra": partial(_tree, graphs.dijkstra, True),
    "bellman_ford": partial(_tree, graphs.bellman_ford, True),
    "mst_prim": partial(_tree, graphs.prim, True),
    "dfs": partial(_marks, graphs.dfs, "pi", True, NEIGHBOURS),
    "topological_sort": _topological,
    "dag_shortest_paths": _dag_paths,
    "strongly_connected_components": partial(_marks, graphs.strong_components, "scc_id", True, FEW_NEIGHBOURS),
    "articulation_points": partial(_marks, graphs.articulation_points, "is_cut", False, FEW_NEIGHBOURS),
    "bridges": partial(_pairs, graphs.bridges, "is_bridge", False, FEW_NEIGHBOURS),
    "floyd_warshall": partial(_pairs, graphs.floyd_warshall, "Pi", True, NEIGHBOURS),
    "mst_kruskal": partial(_pairs, graphs.kruskal, "in_mst", True, NEIGHBOURS),
}
TRACED = ("insertion_sort", "bubble_sort", "heapsort", "quicksort", "bfs", "dijkstra", "bellman_ford", "mst_prim")
