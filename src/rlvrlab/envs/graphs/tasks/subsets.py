"""MCP, MIS, MVC: the largest clique, the largest independent set, the smallest vertex cover of a network.

    prompt   … - Users in the network: Ada Abbott, Ivan Klein, Rosa Costa.
             - Friendship connections: Ada Abbott and Ivan Klein, Ivan Klein and Rosa Costa.
             … present your answer in the following format: [UserA, UserB, UserC, UserD, ...].
    answer   [Ada Abbott, Rosa Costa]

Traps, all of them paid in full by a training reward in use: one user repeated as often as the optimum; unknown names,
which are skipped, as padding; the answer inside an unclosed <think>.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from abc import abstractmethod
from random import Random

from rlvrlab.envs.graphs.graph import as_set, members
from rlvrlab.envs.graphs.names import people
from rlvrlab.envs.graphs.sampling import excerpt
from rlvrlab.envs.graphs.solvers.cliques import complement, max_clique
from rlvrlab.envs.graphs.tasks.base import MEDIUM, Infeasible, Instance, NamedList, Solution, asked, no_duplicates

PROOF = "exhausted search"


class Subset(NamedList):
    """A question whose answer is a set of named nodes."""

    bands = MEDIUM
    network = "social"
    least = 1
    """Optima below this are too easy to ask for."""
    opening: str
    nodes_line = "Users in the network"
    edges_line = "Friendship connections"
    closing: str

    def draw(self, random: Random, size: int) -> Instance | None:
        return Instance((excerpt(random, self.network, size),), people(random, size))

    def solve(self, instance: Instance) -> Solution | None:
        best = self.best(instance.graphs[0].adjacency())
        return Solution(len(best), best, "clique branch and bound", PROOF)

    @abstractmethod
    def best(self, adjacency: list[int]) -> list[int]:
        """An optimal set of nodes, found by exhaustive search."""

    def ask(self, instance: Instance) -> str:
        names, edges = instance.names, instance.graphs[0].edges
        return asked(
            self.opening,
            f"- {self.nodes_line}: {', '.join(names)}.",
            f"- {self.edges_line}: {', '.join(f'{names[u]} and {names[v]}' for u, v in edges)}.",
            self.closing,
        )

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        broken = self.broken(instance.graphs[0].adjacency(), as_set(answer))
        if broken:
            raise Infeasible(broken)
        return len(answer)

    @abstractmethod
    def broken(self, adjacency: list[int], chosen: int) -> str:
        """Why a set is not allowed; empty when it is."""


class MaximumClique(Subset):
    """A largest group of authors who have all worked with each other."""

    name = "MCP"
    sense = "max"
    network = "academic"
    opening = (
        "You are asked to solve the Maximum Clique Problem in an undirected academic network, where nodes are authors "
        "and edges are research collaborations. Find the largest set of authors in which every two have collaborated."
    )
    nodes_line = "Authors in the network"
    edges_line = "Research collaborations between these authors"
    closing = (
        "Identify the clique with the maximum number of authors in this network. "
        "Present your answer in the following format: [AuthorA, AuthorB, AuthorC, AuthorD, ...]."
    )

    def best(self, adjacency: list[int]) -> list[int]:
        return max_clique(adjacency)

    def broken(self, adjacency: list[int], chosen: int) -> str:
        strangers = any(chosen & ~adjacency[v] & ~(1 << v) for v in members(chosen))
        return "two of the authors have not collaborated" if strangers else ""


class MaximumIndependentSet(Subset):
    """A largest group of users, no two of whom are friends."""

    name = "MIS"
    sense = "max"
    opening = (
        "Your task is the Maximum Independent Set problem in a social network, where nodes are users and edges are "
        "friendships. Find the largest set of users in which no two are friends."
    )
    closing = (
        "Identify the Maximum Independent Set of this network and present your answer in the following format: "
        "[UserA, UserB, UserC, UserD, ...]."
    )

    def best(self, adjacency: list[int]) -> list[int]:
        return max_clique(complement(adjacency))

    def broken(self, adjacency: list[int], chosen: int) -> str:
        return "two of the users are friends" if any(chosen & adjacency[v] for v in members(chosen)) else ""


class MinimumVertexCover(Subset):
    """A smallest group of users that has a member in every friendship."""

    name = "MVC"
    sense = "min"
    least = 3
    opening = (
        "Your task is the Minimum Vertex Cover problem in a social network, where nodes are users and edges are "
        "friendships. Find the smallest set of users such that every friendship has at least one of them."
    )
    closing = (
        "Identify the Minimum Vertex Cover of this network and present your answer in the following format: "
        "[UserA, UserB, UserC, UserD, ...]."
    )

    def best(self, adjacency: list[int]) -> list[int]:
        independent = set(max_clique(complement(adjacency)))
        return [v for v in range(len(adjacency)) if v not in independent]

    def broken(self, adjacency: list[int], chosen: int) -> str:
        uncovered = any(row & ~chosen for v, row in enumerate(adjacency) if not chosen >> v & 1)
        return "a friendship is not covered" if uncovered else ""
