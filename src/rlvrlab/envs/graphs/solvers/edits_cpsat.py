"""GED_random: edit distance of two unrelated molecules of up to 20 atoms, proved by CP-SAT from the extra `ortools`.

The core's branch and bound takes seconds from 12 atoms on unless a good mapping is known beforehand. Here a Boolean
variable says that atom i becomes atom j, another that a bond of the first lands on a bond of the second.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from itertools import product
from random import Random
from typing import Any

from rlvrlab.envs.graphs.graph import Edge, Graph
from rlvrlab.envs.graphs.sampling import molecule
from rlvrlab.envs.graphs.solvers.edits import Mapping, mapping_cost
from rlvrlab.envs.graphs.tasks.base import SMALL, Instance, Solution
from rlvrlab.envs.graphs.tasks.molecules import EditDistance
from rlvrlab.errors import UserError

MAX_EFFORT = 20.0
"""CP-SAT's deterministic time, about seconds: the same on every machine, so the same instances are given up."""


def edit_distance_cpsat(first: Graph, second: Graph) -> Mapping:
    """The cheapest bijection of the nodes, proved by CP-SAT."""
    if not find_spec("ortools"):
        raise UserError("graph task 'GED_random' needs ortools: pip install ortools; or take 'GED'")
    cp_model = import_module("ortools.sat.python.cp_model")
    model, n = cp_model.CpModel(), range(first.n)
    becomes = [[model.new_bool_var("") for _ in n] for _ in n]
    for i in n:
        model.add_exactly_one(becomes[i])
        model.add_exactly_one([becomes[j][i] for j in n])
    kept: dict[tuple[Edge, Edge], Any] = {
        (bond, image): model.new_bool_var("")
        for bond in first.edges
        for edge in second.edges
        for image in (edge, (edge[1], edge[0]))
    }
    # One constraint per bond and atom instead of one per pair of bonds: the linear relaxation becomes tight.
    for (u, v), a in product(first.edges, n):
        model.add(sum(var for (bond, image), var in kept.items() if bond == (u, v) and image[0] == a) <= becomes[u][a])
        model.add(sum(var for (bond, image), var in kept.items() if bond == (u, v) and image[1] == a) <= becomes[v][a])
    for edge in second.edges:
        model.add_at_most_one(var for (_, image), var in kept.items() if image in (edge, (edge[1], edge[0])))
    relabelled = sum(becomes[i][j] for i in n for j in n if first.labels[i] != second.labels[j])
    model.minimize(relabelled - 2 * sum(kept.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = MAX_EFFORT
    if solver.solve(model) != cp_model.OPTIMAL:
        return Mapping(0, (), False)
    nodes = tuple([next(j for j, var in enumerate(row) if solver.value(var)) for row in becomes])
    return Mapping(mapping_cost(first, second, nodes), nodes, True)


class RandomEditDistance(EditDistance):
    """Graph edit distance of two unrelated molecules of any size."""

    name = "GED_random"
    bands = SMALL

    def draw(self, random: Random, size: int) -> Instance | None:
        return Instance((molecule(random, size), molecule(random, size)))

    def solve(self, instance: Instance) -> Solution | None:
        cheapest = edit_distance_cpsat(*instance.graphs)
        return Solution(cheapest.cost, list(cheapest.nodes), "CP-SAT", "proved optimal") if cheapest.proved else None
