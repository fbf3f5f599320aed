"""TSP: the shortest round trip through all airports.

    prompt   … - Airports to visit: QXD, ABC, LKJ.
             - Travel distances (in kilometers) between each pair of airports:
             QXD to ABC: 7120 …
    answer   [QXD, ABC, LKJ, QXD]

Traps: a tour that does not return, visits an airport twice, or leaves one out; the length alone.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from random import Random

from rlvrlab.envs.graphs.names import airports
from rlvrlab.envs.graphs.sampling import flights
from rlvrlab.envs.graphs.solvers.tours import TABLE_CITIES, shortest_tour, tour_length
from rlvrlab.envs.graphs.tasks.base import SMALL, Infeasible, Instance, NamedList, Solution, asked, no_duplicates


class Tsp(NamedList):
    """Travelling salesman."""

    name = "TSP"
    sense = "min"
    bands = SMALL

    def draw(self, random: Random, size: int) -> Instance | None:
        return Instance((flights(random, size),), airports(random, size))

    def solve(self, instance: Instance) -> Solution | None:
        distance = instance.graphs[0].matrix()
        tour = shortest_tour(distance)
        solver = "Held-Karp table" if len(distance) <= TABLE_CITIES else "1-tree branch and bound"
        return Solution(tour_length(distance, tour), [*tour, tour[0]], solver, "exhausted search")

    def ask(self, instance: Instance) -> str:
        graph, names = instance.graphs[0], instance.names
        return asked(
            "You are asked to solve the Travelling Salesman Problem in an undirected network of flights. Find the "
            "shortest route that visits each of the airports exactly once and returns to where it began.",
            f"- Airports to visit: {', '.join(names)}",
            "- Travel distances (in kilometers) between each pair of airports:",
            *[f"{names[u]} to {names[v]}: {km}" for (u, v), km in zip(graph.edges, graph.weights, strict=True)],
            "Please calculate the shortest tour and format your answer as follows: "
            "[Airport A, Airport B, Airport C, ..., Airport A]",
        )

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        tour = answer[:-1]
        no_duplicates(tour)
        if not tour or answer[0] != answer[-1]:
            raise Infeasible("the tour does not return to its first airport")
        if len(tour) < len(instance.names):
            raise Infeasible(f"{len(instance.names) - len(tour)} airports are not visited")
        return tour_length(instance.graphs[0].matrix(), tour)
