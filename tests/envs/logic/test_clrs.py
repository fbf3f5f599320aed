"""CLRS: the algorithms against independent ones, traces, and the text around them."""

from __future__ import annotations

import re
from itertools import combinations, pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvrlab.envs.clrs import Clrs, graphs, lists
from rlvrlab.envs.clrs.tasks import TASKS, TRACED, decimal, matrix
from rlvrlab.types import ErrorKind

keys = st.lists(st.integers(-999, 999), min_size=1, max_size=12, unique=True)
SORTS = [lists.insertion_sort, lists.bubble_sort, lists.heapsort, lists.quicksort]


def graph_of(directed: bool) -> st.SearchStrategy[list[list[int]]]:
    """Matrices with different weights, so that nothing ties."""

    def build(size: int, weights: list[int], kept: list[bool]) -> list[list[int]]:
        graph = [[weights[u * size + v] * kept[u * size + v] for v in range(size)] for u in range(size)]
        return graph if directed else [[graph[min(u, v)][max(u, v)] for v in range(size)] for u in range(size)]

    return st.integers(2, 6).flatmap(
        lambda size: st.builds(
            build,
            st.just(size),
            st.lists(st.integers(1, 10**9), min_size=size * size, max_size=size * size, unique=True),
            st.lists(st.booleans(), min_size=size * size, max_size=size * size),
        )
    )


@given(keys)
def test_sorts_and_their_traces(row: list[int]) -> None:
    for sort in SORTS:
        answer, states = sort(row)
        assert answer == sorted(row)
        assert all(sorted(state) == sorted(row) for state in states)
        assert not states or states[-1] == answer


@given(keys, st.integers(-999, 999))
def test_searches(row: list[int], target: int) -> None:
    assert row[lists.minimum(row)] == min(row)
    assert row[lists.quickselect(row)] == sorted(row)[len(row) // 2]
    row = sorted(row)
    place = lists.binary_search(row, target)
    assert place == min(sum(key < target for key in row), len(row) - 1)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
def test_best_run_by_brute_force(row: list[int]) -> None:
    start, end = lists.maximum_subarray(row)
    best = max(sum(row[i : j + 1]) for i in range(len(row)) for j in range(i, len(row)))
    assert sum(row[start : end + 1]) == best


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(51, 99)) | st.tuples(st.integers(0, 20), st.integers(21, 40)),
                min_size=1, max_size=7, unique_by=lambda pair: pair[1]))  # fmt: skip
def test_activities_by_brute_force(pairs: list[tuple[int, int]]) -> None:
    def compatible(some: tuple[tuple[int, int], ...]) -> bool:
        return all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(some, 2))

    most = max(n for n in range(len(pairs) + 1) if any(compatible(some) for some in combinations(pairs, n)))
    chosen = lists.activity_selector([a for a, _ in pairs], [b for _, b in pairs])
    picked = tuple(pair for pair, kept in zip(pairs, chosen, strict=True) if kept)
    assert len(picked) == most and compatible(picked)


@given(st.text("ab", max_size=8), st.text("ab", min_size=1, max_size=3))
def test_string_match(text: str, pattern: str) -> None:
    found = text.find(pattern)
    assert lists.string_match([*map(ord, text)], [*map(ord, pattern)]) == (found if found >= 0 else len(text))


def path_length(graph: list[list[int]], pi: list[int], source: int, vertex: int) -> int | None:
    total, seen = 0, 0
    while vertex != source:
        if pi[vertex] == vertex or seen > len(graph):
            return None
        total, vertex, seen = total + graph[pi[vertex]][vertex], pi[vertex], seen + 1
    return total


@given(graph_of(directed=True), st.integers(0, 5))
def test_shortest_paths_by_brute_force(graph: list[list[int]], source: int) -> None:
    size = len(graph)
    source %= size
    for vertex in set(range(size)) - {source}:
        others = set(range(size)) - {source, vertex}
        ways = [(source, *middle, vertex) for n in range(size - 1) for middle in permutations(others, n)]
        lengths = [[graph[a][b] for a, b in pairwise(way)] for way in ways]
        best = min((sum(steps) for steps in lengths if all(steps)), default=None)
        for find in (graphs.dijkstra, graphs.bellman_ford):
            assert path_length(graph, find(graph, source)[0], source, vertex) == best
    steps = graphs.bfs(graph, source)[0]
    flat = [[int(weight > 0) for weight in row] for row in graph]
    for vertex in range(size):
        assert path_length(flat, steps, source, vertex) == path_length(
            flat, graphs.dijkstra(flat, source)[0], source, vertex
        )


@given(graph_of(directed=False))
def test_trees_of_least_weight_agree(graph: list[list[int]]) -> None:
    size = len(graph)
    chosen = graphs.kruskal(graph)
    forest = {(u, v) for u in range(size) for v in range(u + 1, size) if chosen[u][v]}
    grown = set()
    for root in range(size):
        pi, _ = graphs.prim(graph, root)
        grown |= {(min(u, v), max(u, v)) for v, u in enumerate(pi) if u != v}
    assert grown == forest


@given(graph_of(directed=True))
def test_components_are_mutually_reachable(graph: list[list[int]]) -> None:
    size = len(graph)
    reach = [[u == v or bool(graph[u][v]) for v in range(size)] for u in range(size)]
    for k in range(size):
        reach = [[reach[u][v] or (reach[u][k] and reach[k][v]) for v in range(size)] for u in range(size)]
    found = graphs.strong_components(graph)
    for u in range(size):
        for v in range(size):
            assert (found[u] == found[v]) is (reach[u][v] and reach[v][u])
    assert all(found[found[u]] == found[u] for u in range(size))


def test_topological_order_respects_every_edge() -> None:
    for problem in Clrs(algorithms=("topological_sort",), lengths=(8,)).problems("train", 40, 0):
        rows = re.findall(r"\[([01 ]+)\]", problem.prompt)
        graph = [[int(x) for x in row.split()] for row in rows]
        following, first = re.fullmatch(r"\[([0-9 ]+)\], (\d+)", problem.reference).groups()  # type: ignore[union-attr]
        order, after = [int(first)], [int(x) for x in following.split()]
        while after[order[-1]] != order[-1]:
            order.append(after[order[-1]])
        assert sorted(order) == list(range(8))
        assert all(not graph[v][u] for u, v in combinations(order, 2))


def test_notation() -> None:
    assert [decimal(x) for x in (550, 0, -418, 1527, 7, 1000)] == ["0.55", "0.0", "-0.418", "1.527", "0.007", "1.0"]
    assert matrix([[0, 1], [1, 0]]) == "[[0 1], [1 0]]"


@pytest.mark.parametrize("name", TASKS)
def test_every_algorithm_makes_problems_with_varied_answers(name: str) -> None:
    problems = Clrs(algorithms=(name,), lengths=(8,)).problems("train", 20, 0)
    assert all(problem.prompt.startswith(f"{name}:\n") and problem.prompt.endswith(":\n") for problem in problems)
    assert len({problem.reference for problem in problems}) >= 2


@pytest.mark.parametrize("name", TRACED)
def test_traces_begin_at_the_input_and_end_at_the_answer(name: str) -> None:
    env = Clrs(algorithms=(name,), lengths=(6,), trace=True)
    for problem in env.problems("train", 10, 0):
        states, _, final = problem.reference.partition(" | ")
        assert states.endswith(final)
        wrong = problem.reference.replace(states, final, 1)
        verdict = env.verify(problem, wrong)
        if states != final:
            assert (verdict.correct, verdict.error, verdict.parts["final"]) == (False, ErrorKind.WRONG, 1.0)


def test_spaces_do_not_matter_and_everything_else_does() -> None:
    env = Clrs(algorithms=("insertion_sort",))
    problem = env.problems("train", 1, 0)[0]
    right = problem.reference
    assert env.verify(problem, f"\n  {right.replace(' ', '  ')}\n\n").correct is True
    for wrong in (right.replace("]", ""), right[:-2] + "]", right.replace(" ", ", "), right + " " + right):
        assert env.verify(problem, wrong).correct is False


@pytest.mark.parametrize("trace", [False, True])
def test_only_what_has_the_form_of_the_answer_earns_the_part_for_it(trace: bool) -> None:
    env = Clrs(algorithms=("insertion_sort",), trace=trace)
    problem = env.problems("train", 1, 0)[0]
    for junk in ("x", "5", "The answer is [0.1 0.2]", "[]", "{}", "\\boxed{[0.5 0.7]}", "\x00"):
        assert env.verify(problem, junk).parts["format"] == 0.0, junk
    assert env.verify(problem, problem.reference.replace("0.", "1.")).parts["format"] == 1.0
