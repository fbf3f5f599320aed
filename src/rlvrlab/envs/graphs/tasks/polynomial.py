"""Neighbor, Distance, Connected, Diameter: what a walk over the graph decides.

    Neighbor    [AuthorA, AuthorB, ...]          all common neighbours of two authors
    Distance    [Entity1, Entity2, ..., EntityN]  a shortest path between two entities
    Connected   [UserA, UserB, ...]              one user of every connected component
    Diameter    [Entity1, Entity2, ..., EntityN]  a longest shortest path

Traps: unknown entities, which other scorers skip, bridge a gap in a path; an answer in an earlier bracket counts.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from itertools import pairwise
from random import Random

from rlvrlab.envs.graphs.graph import Graph, as_set, members
from rlvrlab.envs.graphs.names import RELATIONS, entities, people
from rlvrlab.envs.graphs.sampling import cut_out, excerpt, network, walked
from rlvrlab.envs.graphs.solvers.paths import components, distances, shortest_path
from rlvrlab.envs.graphs.tasks.base import MEDIUM, WIDE, Infeasible, Instance, NamedList, Solution, asked, no_duplicates

SEARCH, PROOF = "breadth-first search", "all nodes visited"


class CommonNeighbours(NamedList):
    """All common neighbours of two nodes."""

    name = "Neighbor"
    least = 1
    sense = "max"
    bands = WIDE

    def draw(self, random: Random, size: int) -> Instance | None:
        graph = excerpt(random, "academic", size)
        adjacency = graph.adjacency()
        for _ in range(20):
            a, b = random.sample(range(size), 2)
            if adjacency[a] & adjacency[b]:
                return Instance((graph,), people(random, size), (a, b))
        return None

    def solve(self, instance: Instance) -> Solution | None:
        adjacency, (a, b) = instance.graphs[0].adjacency(), instance.query
        shared = list(members(adjacency[a] & adjacency[b]))
        return Solution(len(shared), shared, "set intersection", PROOF)

    def ask(self, instance: Instance) -> str:
        names, (a, b) = instance.names, instance.query
        links = ", ".join(f"{names[u]} and {names[v]}" for u, v in instance.graphs[0].edges)
        return asked(
            "Your task is to find the common neighbors of two nodes in an undirected academic network, where nodes "
            "are authors and edges are research collaborations.",
            f"- Authors in the network: {', '.join(names)}",
            f"- Research collaborations between these authors: {links}.",
            f"Please identify the common neighbors of {names[a]} and {names[b]} in this network.",
            "Present your answer in the following format: [AuthorA, AuthorB, AuthorC, AuthorD, ...].",
        )

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        adjacency, (a, b) = instance.graphs[0].adjacency(), instance.query
        if as_set(answer) & ~(adjacency[a] & adjacency[b]):
            raise Infeasible("one of the authors is not a common neighbor")
        return len(answer)


class Components(NamedList):
    """One node of every connected component."""

    name = "Connected"
    sense = "max"
    bands = MEDIUM

    def draw(self, random: Random, size: int) -> Instance | None:
        near = network("social")
        walks = random.randint(1, 1 + size // 5)
        nodes = dict.fromkeys(v for _ in range(walks) for v in walked(random, near, size // walks))
        if len(nodes) < self.bands[0][0]:
            return None
        graph = cut_out(random, near, list(nodes))
        return Instance((graph,), people(random, graph.n))

    def solve(self, instance: Instance) -> Solution | None:
        pieces = components(instance.graphs[0].adjacency())
        return Solution(len(pieces), [(piece & -piece).bit_length() - 1 for piece in pieces], SEARCH, PROOF)

    def ask(self, instance: Instance) -> str:
        names = instance.names
        return asked(
            "You are asked to identify all connected components of a social network and to name one representative "
            "of each. Within a component every node can be reached from every other along edges; between "
            "components there are no edges.",
            f"- Names in the network: {', '.join(names)}",
            "- Friendship connections: " + ", ".join(f"{names[u]} to {names[v]}" for u, v in instance.graphs[0].edges),
            "Identify all connected components in this network. For each component, give only one of its nodes.",
            "Present your answer in the following format: [UserA, UserB, UserC, UserD, ...]",
        )

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        chosen = as_set(answer)
        if any((piece & chosen).bit_count() > 1 for piece in components(instance.graphs[0].adjacency())):
            raise Infeasible("two of the users are in one component")
        return len(answer)


class Path(NamedList):
    """A question about a path in a knowledge graph."""

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        adjacency = instance.graphs[0].adjacency()
        if any(not adjacency[u] >> v & 1 for u, v in pairwise(answer)):
            raise Infeasible("two neighbours on the path are not connected")
        return len(answer) - 1

    def _knowledge(self, random: Random, size: int) -> tuple[Graph, tuple[str, ...], tuple[str, ...]]:
        graph = excerpt(random, "knowledge", size)
        return graph, entities(random, size), tuple([random.choice(RELATIONS) for _ in graph.edges])

    def _facts(self, instance: Instance) -> list[str]:
        names = instance.names
        return [
            f"- Entities in this knowledge graph: {', '.join(names)}",
            "- The relationships between these entities are as follows:",
            *[
                f" - {names[u]} is connected to {names[v]} via the relationship {word}."
                for (u, v), word in zip(instance.graphs[0].edges, instance.words, strict=True)
            ],
        ]


class Distance(Path):
    """A shortest path between two nodes."""

    name = "Distance"
    least = 2
    sense = "min"
    bands = WIDE

    def draw(self, random: Random, size: int) -> Instance | None:
        graph, names, words = self._knowledge(random, size)
        a, b = random.sample(range(size), 2)
        return Instance((graph,), names, (a, b), words)

    def solve(self, instance: Instance) -> Solution | None:
        path = shortest_path(instance.graphs[0].adjacency(), *instance.query)
        return Solution(len(path) - 1, path, SEARCH, PROOF) if path else None

    def ask(self, instance: Instance) -> str:
        start, end = [instance.names[v] for v in instance.query]
        return asked(
            "Your task is to find the shortest path between two entities of an undirected knowledge graph, with "
            "the fewest hops.",
            *self._facts(instance),
            f"Please determine the shortest path between {start} and {end} in this network.",
            "Submit your answer in the format: [Entity1, Entity2, ..., EntityN], where Entity1 and EntityN are the "
            "two entities asked for, in this order, and the others lie between them on the path.",
        )

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        if not answer or (answer[0], answer[-1]) != instance.query:
            raise Infeasible("the path does not lead from the first entity asked for to the second")
        return super().measure(instance, answer)


class Diameter(Path):
    """A longest shortest path."""

    name = "Diameter"
    least = 2
    sense = "max"
    bands = MEDIUM

    def draw(self, random: Random, size: int) -> Instance | None:
        graph, names, words = self._knowledge(random, size)
        return Instance((graph,), names, words=words)

    def solve(self, instance: Instance) -> Solution | None:
        adjacency = instance.graphs[0].adjacency()
        longest, a, b = max(
            (hops, a, b) for a in range(len(adjacency)) for b, hops in enumerate(distances(adjacency, a))
        )
        path = shortest_path(adjacency, a, b)
        return Solution(longest, path, "breadth-first search from every node", PROOF)

    def ask(self, instance: Instance) -> str:
        return asked(
            "You are asked to calculate the diameter of an undirected knowledge graph: the largest distance "
            "between any two of its nodes, where the distance is the length of a shortest path between them.",
            *self._facts(instance),
            "Please determine the diameter of this network and output the corresponding path in the following "
            "format: [Entity1, Entity2, ..., EntityN].",
        )

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        length = super().measure(instance, answer)
        if distances(instance.graphs[0].adjacency(), answer[0])[answer[-1]] != length:
            raise Infeasible("there is a shorter way between the ends of the path")
        return length
