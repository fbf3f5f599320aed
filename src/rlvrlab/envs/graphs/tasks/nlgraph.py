"""NLGraph's tasks as tasks of ours: how an answer is read and measured. The questions come from its files."""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from itertools import pairwise
from random import Random

from rlvrlab.envs.graphs.answers import read_indices, read_numbers
from rlvrlab.envs.graphs.solvers.hamilton import hamiltonian_path
from rlvrlab.envs.graphs.solvers.paths import lightest_path
from rlvrlab.envs.graphs.tasks.amounts import Amount, MaximumFlow, TopologicalOrder
from rlvrlab.envs.graphs.tasks.base import Infeasible, Instance, NumberedList, Solution, Suite, Task, no_duplicates
from rlvrlab.envs.graphs.tasks.decisions import HUNDRED, Connectivity, Cycle
from rlvrlab.matching import largest_matching

YES_OR_NO = "Finish with ### followed by Yes or No."
NUMBER = "Finish with ### followed by the number alone."
LIST = "Finish with ### followed by {} as a list in square brackets."


class _Loaded(Task):
    """A task whose instances come from a file."""

    suite: Suite = "graphwiz"
    bands = HUNDRED
    form: str

    def draw(self, random: Random, size: int) -> Instance | None:
        return None

    def ask(self, instance: Instance) -> str:
        return self.form


class LoadedConnectivity(_Loaded, Connectivity):
    """Is there a path between two nodes?"""

    name = "nlgraph connectivity"
    form = YES_OR_NO


class LoadedCycle(_Loaded, Cycle):
    """Is there a cycle?"""

    name = "nlgraph cycle"
    form = YES_OR_NO


class LoadedFlow(_Loaded, MaximumFlow):
    """The largest flow between two nodes."""

    name = "nlgraph flow"
    form = NUMBER


class LoadedOrder(_Loaded, TopologicalOrder):
    """Any order in which every edge leads forward."""

    name = "nlgraph topology"
    form = LIST.format("the order of all nodes")


class LoadedHamilton(_Loaded, NumberedList):
    """A path through every node."""

    name = "nlgraph hamilton"
    sense = "max"
    form = LIST.format("the path")

    def solve(self, instance: Instance) -> Solution | None:
        search = hamiltonian_path(instance.graphs[0].adjacency())
        return Solution(1, search.path, "depth-first search", "the path itself") if search.path else None

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        adjacency = instance.graphs[0].adjacency()
        if len(answer) != len(adjacency) or any(not adjacency[u] >> v & 1 for u, v in pairwise(answer)):
            raise Infeasible("the list is no path through every node")
        return 1


class LoadedShortest(_Loaded, NumberedList):
    """A lightest path between two nodes."""

    name = "nlgraph shortest_path"
    sense = "min"
    form = LIST.format("the nodes of the path")

    def solve(self, instance: Instance) -> Solution | None:
        lightest = lightest_path(instance.graphs[0].weighted(), *instance.query)
        return Solution(lightest[0], lightest[1], "Dijkstra", "all nearer nodes settled") if lightest else None

    def read(self, instance: Instance, text: str, alone: bool) -> tuple[int, ...]:
        return read_numbers(text, instance.graphs[0].n)

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        weights = instance.graphs[0].weighted()
        if not answer or (answer[0], answer[-1]) != instance.query:
            raise Infeasible("the path does not lead from the first node asked for to the second")
        if any(v not in weights[u] for u, v in pairwise(answer)):
            raise Infeasible("two neighbours on the path are not connected")
        return sum(weights[u][v] for u, v in pairwise(answer))


class LoadedMatching(_Loaded, Amount):
    """How many applicants can get a job."""

    name = "nlgraph matching"
    form = (
        "Finish with ### followed by the number of applicants who find a job they are interested in, the number alone."
    )

    def solve(self, instance: Instance) -> Solution | None:
        graph, (applicants,) = instance.graphs[0], instance.query
        wishes: list[list[int]] = [[] for _ in range(applicants)]
        for applicant, job in graph.edges:
            wishes[applicant].append(job)
        seated = largest_matching(wishes)
        return Solution(len(seated), len(seated), "augmenting paths", f"assignment {seated}")


class LoadedConvolution(_Loaded, NumberedList):
    """Node embeddings after two layers, each the sum over the neighbours."""

    name = "nlgraph GNN"
    sense = "max"
    form = LIST.format("all embeddings, node after node, two numbers each,")

    def solve(self, instance: Instance) -> Solution | None:
        graph = instance.graphs[0]
        near = [list(row) for row in graph.weighted()]
        values = [[int(number) for number in label.split(",")] for label in graph.labels]
        for _ in range(2):
            values = [[sum(values[u][i] for u in near[v]) for i in (0, 1)] for v in range(graph.n)]
        return Solution(1, [number for pair in values for number in pair], "two sums", "computed")

    def read(self, instance: Instance, text: str, alone: bool) -> tuple[int, ...]:
        return read_indices(text, 10**6, 2 * instance.graphs[0].n)

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        solution = self.solve(instance)
        if solution is None or list(answer) != solution.witness:
            raise Infeasible("an embedding is wrong")
        return 1


NLGRAPH_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *(LoadedConnectivity(), LoadedCycle(), LoadedFlow(), LoadedOrder()),
        *(LoadedHamilton(), LoadedShortest(), LoadedMatching(), LoadedConvolution()),
    )
}
