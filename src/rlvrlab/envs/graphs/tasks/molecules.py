"""GED and MCS: what it takes to turn one molecule into another, and what two molecules share.

    GED   [1, 0, 2, 3]            atom 0 of A becomes atom 1 of B, and so on
    MCS   [1, 2, 3], [2, 3, 4]    atoms of A and of B whose bonds among themselves look the same

MCS means the largest common induced subgraph, labels ignored, connected or not; the two lists are sets, as GraphArena
has it. Traps, both paid in full by a training reward in use: atoms that do not exist ([100, 101], [200, 201]: empty
subgraphs are isomorphic), one atom repeated. GED instances of level 3 and up are a molecule and an edited copy, whose
distance (often smaller than the number of edits) can be proved; random pairs beyond 12 atoms take seconds each.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from random import Random

from rlvrlab.envs.graphs.answers import read_indices, read_pair
from rlvrlab.envs.graphs.graph import Graph, induced
from rlvrlab.envs.graphs.sampling import edited, molecule
from rlvrlab.envs.graphs.solvers.edits import edit_distance, mapping_cost
from rlvrlab.envs.graphs.solvers.isomorphism import isomorphic
from rlvrlab.envs.graphs.solvers.mcsplit import largest_common
from rlvrlab.envs.graphs.tasks.base import Bands, Infeasible, Instance, Solution, Task, asked, bracketed, no_duplicates

Pair = tuple[tuple[int, ...], tuple[int, ...]]
MOST_EDITS = 6


class EditDistance(Task):
    """Graph edit distance as the cheapest mapping of atoms."""

    name = "GED"
    least = 1
    suite = "grapharena"
    sense = "min"
    bands: Bands = ((4, 7), (8, 9), (10, 11), (12, 13), (14, 16))

    def draw(self, random: Random, size: int) -> Instance | None:
        first = molecule(random, size)
        if size < self.bands[2][0]:
            return Instance((first, molecule(random, size)))
        second, hint = edited(random, first, random.randint(1, MOST_EDITS))
        return Instance((first, second), hint=tuple(hint))

    def solve(self, instance: Instance) -> Solution | None:
        first, second = instance.graphs
        if first.n != second.n:  # an answer here could not say which atoms are added or deleted
            return None
        cheapest = edit_distance(first, second, instance.hint or None)
        if not cheapest.proved:
            return None
        return Solution(cheapest.cost, list(cheapest.nodes), "edit branch and bound", "exhausted search")

    def ask(self, instance: Instance) -> str:
        return asked(
            "You are asked to solve the Graph Edit Distance problem between two molecules. Adding or deleting an "
            "edge, adding or deleting an isolated node and relabeling a node cost one each. Find a mapping of the "
            "atom IDs of Molecule A to those of Molecule B, one to one, with the smallest edit cost.",
            "You are given the following two molecules:",
            *[
                f"Molecule {letter}:\n"
                f"- Atoms: {', '.join(f'{label} (atom {v})' for v, label in enumerate(graph.labels))}.\n"
                f"- Bonds: {_bonds(graph)}."
                for letter, graph in zip("AB", instance.graphs, strict=True)
            ],
            "Give the mapping as a list of integers: the position in the list is the atom ID in Molecule A, the "
            "value at that position the atom ID in Molecule B. For instance, if atoms 0 and 1 of Molecule A become "
            "atoms 1 and 0 of Molecule B and atom 2 stays atom 2, the mapping is [1, 0, 2, ...].",
        )

    def read(self, instance: Instance, text: str, alone: bool) -> tuple[int, ...]:
        return read_indices(text, instance.graphs[0].n, instance.graphs[0].n)

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        first, second = instance.graphs
        return mapping_cost(first, second, answer)

    def show(self, instance: Instance, witness: list[int]) -> str:
        return bracketed(witness)


class CommonSubgraph(Task):
    """Maximum common induced subgraph."""

    name = "MCS"
    suite = "grapharena"
    sense = "max"
    # Without labels there are too few different pairs of molecules below eight atoms to fill a level.
    bands: Bands = ((4, 8), (9, 9), (10, 12), (13, 15), (16, 20))

    def draw(self, random: Random, size: int) -> Instance | None:
        low, high = next(band for band in self.bands if size <= band[1])
        molecules = molecule(random, size), molecule(random, random.randint(min(low, size), max(high, size)))
        return Instance(tuple([graph._replace(labels=()) for graph in molecules]))

    def solve(self, instance: Instance) -> Solution | None:
        largest = largest_common(*instance.graphs)
        if not largest.proved:
            return None
        witness = [[a for a, _ in largest.pairs], [b for _, b in largest.pairs]]
        return Solution(len(largest.pairs), witness, "McSplit", "exhausted search")

    def ask(self, instance: Instance) -> str:
        return asked(
            "You are asked to solve the Maximum Common Subgraph problem: find the largest set of atoms that two "
            "molecules share, with the same bonds among them.",
            "You are given the following two molecules:",
            *[
                f"Molecule {letter} consists of {graph.n} atoms with the following {len(graph.edges)} bonds:\n"
                f"{_bonds(graph)}."
                for letter, graph in zip("AB", instance.graphs, strict=True)
            ],
            "Provide the indices of the atoms of the common subgraph in each molecule in the following format: "
            "[Node indices in molecular A], [Node indices in molecular B].",
            # Letters, because numbers here could be copied and happen to be right.
            "For example, if atoms i, j, k of molecule A and atoms p, q, r of molecule B form the common subgraph, "
            "you should answer: [i, j, k], [p, q, r].",
        )

    def read(self, instance: Instance, text: str, alone: bool) -> Pair:
        return read_pair(text, (instance.graphs[0].n, instance.graphs[1].n))

    def measure(self, instance: Instance, answer: Pair) -> int:
        for nodes in answer:
            no_duplicates(nodes)
        parts = [induced(graph.adjacency(), nodes) for graph, nodes in zip(instance.graphs, answer, strict=True)]
        if set(parts[0].edges) != set(parts[1].edges) and not isomorphic(*parts):
            raise Infeasible("the two parts differ in their bonds")
        return len(answer[0])

    def show(self, instance: Instance, witness: list[list[int]]) -> str:
        return f"{bracketed(witness[0])}, {bracketed(witness[1])}"


def _bonds(graph: Graph) -> str:
    return ", ".join(f"{u}-{v}" for u, v in graph.edges)
