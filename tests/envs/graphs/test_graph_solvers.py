"""Every optimum against an independent one, and the solvers' own laws."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from oracles import EASY_SIZES, ORACLES

from rlvrlab.envs.graphs.environment import GraphEnvironment
from rlvrlab.envs.graphs.graph import Graph, permuted, shape
from rlvrlab.envs.graphs.sampling import edited, flights, molecule, scattered
from rlvrlab.envs.graphs.solvers import tours
from rlvrlab.envs.graphs.solvers.cliques import max_clique
from rlvrlab.envs.graphs.solvers.edits import edit_distance, mapping_cost
from rlvrlab.envs.graphs.solvers.hamilton import hamiltonian_path
from rlvrlab.envs.graphs.solvers.isomorphism import isomorphic
from rlvrlab.envs.graphs.solvers.mcsplit import largest_common
from rlvrlab.errors import UserError


def assert_agreement(task: str, count: int, seed: int) -> None:
    env = GraphEnvironment(tasks=(task,), sizes=EASY_SIZES.get(task, ()), levels=(1,) if task in EASY_SIZES else (1, 2))
    for problem in env.problems("train", count, seed):
        assert problem.reference["optimum"] == problem.meta["bound"] == ORACLES[task](problem.reference), problem.id


@pytest.mark.parametrize("task", ORACLES)
def test_optima_agree_with_an_independent_solver(task: str) -> None:
    assert_agreement(task, 12, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("task", ORACLES)
def test_optima_agree_with_an_independent_solver_on_500_instances(task: str) -> None:
    assert_agreement(task, 500, seed=11)


def matrix_of(random: Random, size: int, flown: bool) -> list[list[int]]:
    """Distances on the globe, or numbers without any geometry, which leave a gap for the search to close."""
    graph = flights(random, size)
    if not flown:
        graph = graph._replace(weights=tuple([random.randint(1, 9) for _ in graph.edges]))
    return [[graph.weighted()[u].get(v, 0) for v in range(size)] for u in range(size)]


@pytest.mark.parametrize("flown", [True, False])
@pytest.mark.parametrize("size", [4, 7, 10, 12])
def test_both_tour_solvers_agree(size: int, flown: bool) -> None:
    for seed in range(25 if size < 12 else 5):
        matrix = matrix_of(Random(seed), size, flown)
        table, search = tours._by_table(matrix), tours._OneTreeSearch(matrix)
        assert sorted(table) == sorted(search.solve()) == list(range(size))
        assert tours.tour_length(matrix, table) == search.shortest
        # From a bad start the bounds have to do the work that the greedy tour did above.
        unlucky = tours._OneTreeSearch(matrix)
        unlucky.best, unlucky.shortest = list(range(size)), tours.tour_length(matrix, range(size))
        assert tours.tour_length(matrix, unlucky.solve()) == tours.tour_length(matrix, table)


def test_tours_with_equal_and_zero_distances() -> None:
    for matrix in ([[0] * 14 for _ in range(14)], [[int(u != v) for u in range(14)] for v in range(14)]):
        assert tours.tour_length(matrix, tours.shortest_tour(matrix)) == sum(matrix[0][1:2]) * 14


def test_planted_edits_are_an_upper_bound_and_the_hint_changes_nothing() -> None:
    for seed in range(25):
        random = Random(seed)
        first = molecule(random, 8)
        second, hint = edited(random, first, edits := random.randint(1, 6))
        with_hint, without = edit_distance(first, second, hint), edit_distance(first, second)
        assert with_hint.cost == without.cost <= mapping_cost(first, second, hint) <= edits
        assert with_hint.proved and without.proved
        assert mapping_cost(first, second, with_hint.nodes) == with_hint.cost


def test_random_pairs_with_ortools_agree_with_the_core() -> None:
    pytest.importorskip("ortools")
    for problem in GraphEnvironment(tasks=("GED_random",), levels=(1,)).problems("train", 10, 0):
        assert problem.reference["optimum"] == ORACLES["GED"](problem.reference)
        assert GraphEnvironment().verify(problem, problem.reference["answer"]).correct is True


def test_random_pairs_without_ortools_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvrlab.envs.graphs.solvers.edits_cpsat.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install ortools"):
        GraphEnvironment(tasks=("GED_random",)).problems("train", 1, 0)


def test_common_subgraph_of_a_graph_with_itself_is_the_graph() -> None:
    for seed in range(10):
        graph = molecule(Random(seed), 10)
        other = permuted(graph, Random(seed + 1).sample(range(10), 10))
        assert len(largest_common(graph, other).pairs) == 10
        assert isomorphic(graph._replace(labels=()), other._replace(labels=()))


def test_shape_is_the_same_for_isomorphic_graphs_and_separates_others() -> None:
    shapes = set()
    for seed in range(60):
        random = Random(seed)
        graph = scattered(random, 9, 3.0, directed=seed % 2 == 0)._replace(labels=tuple(random.choices("CNO", k=9)))
        order = random.sample(range(9), 9)
        query = random.sample(range(9), 2)
        assert shape(graph, query) == shape(permuted(graph, order), [order[v] for v in query])
        assert shape(graph, query) != shape(graph, query[::-1]) or shape(graph, query) == shape(graph)
        shapes.add(shape(graph))
    assert len(shapes) == 60


def test_isomorphism_tells_apart_what_colours_cannot() -> None:
    hexagon = Graph(6, ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)))
    triangles = Graph(6, ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)))
    assert shape(hexagon) == shape(triangles) and not isomorphic(hexagon, triangles)
    assert isomorphic(hexagon, permuted(hexagon, [3, 1, 5, 0, 2, 4]))


@pytest.mark.parametrize(
    ("edges", "n", "exists"),
    [
        ([(0, 1), (1, 2), (2, 3)], 4, True),
        ([(0, 1), (0, 2), (0, 3)], 4, False),
        ([(0, 1), (2, 3)], 4, False),
        ([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)], 5, True),
        # The dead end comes first: a search that stops there says no.
        ([(0, 1), (0, 2), (2, 3), (3, 1), (1, 4)], 5, True),
        ([(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4), (5, 3), (5, 4)], 6, False),
    ],
)
def test_hamiltonian_paths(edges: list[tuple[int, int]], n: int, exists: bool) -> None:
    graph = Graph(n, tuple(edges))
    found = hamiltonian_path(graph.adjacency())
    assert found.reason and (found.path is not None) is exists
    if found.path:
        assert sorted(found.path) == list(range(n))
        assert all(graph.adjacency()[u] >> v & 1 for u, v in pairwise(found.path))


def test_cliques_of_extreme_graphs() -> None:
    assert max_clique([0, 0, 0]) in ([0], [1], [2])
    assert max_clique(Graph(6, tuple((u, v) for v in range(6) for u in range(v))).adjacency()) == [0, 1, 2, 3, 4, 5]
