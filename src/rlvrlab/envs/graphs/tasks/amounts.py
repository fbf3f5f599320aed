"""shortest, triplet, flow, topology: GraphWiz's questions with a number or an order as the answer.

    prompt   … the edges are: (0,1,7) (1,2,2). Give the weight of the shortest path from node 0 to node 2.
    answer   ### 9             topology: ### [0, 2, 1]

Traps in the original scorer: a missing number is 0, -12 is 12, the last number of a trailing path wins; for topology
an empty answer is part of every right one, and any order but the stored one is wrong.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from itertools import combinations
from random import Random

from rlvrlab.envs.graphs.answers import read_marked, whole_number
from rlvrlab.envs.graphs.graph import Graph, members
from rlvrlab.envs.graphs.sampling import scattered
from rlvrlab.envs.graphs.solvers.flows import max_flow
from rlvrlab.envs.graphs.solvers.paths import lightest_path, topological_order
from rlvrlab.envs.graphs.tasks.base import Infeasible, Instance, Marked, NumberedList, Solution, Suite, no_duplicates
from rlvrlab.envs.graphs.tasks.decisions import HUNDRED, UNDIRECTED, listed, pairs

FORM = " Finish with ### followed by the number alone."
MOST_WEIGHT = 10


class Amount(Marked):
    """A question answered by a whole number."""

    suite: Suite = "graphwiz"
    bands = HUNDRED

    def read(self, instance: Instance, text: str, alone: bool) -> int:
        return read_marked(text, alone, whole_number)


class ShortestPath(Amount):
    """The least total weight between two nodes."""

    name = "shortest"

    def draw(self, random: Random, size: int) -> Instance | None:
        graph = weighted(random, scattered(random, size, random.uniform(2.5, 6.0)))
        return Instance((graph,), query=tuple(random.sample(range(size), 2)))

    def solve(self, instance: Instance) -> Solution | None:
        lightest = lightest_path(instance.graphs[0].weighted(), *instance.query)
        if lightest is None:
            return None
        weight, path = lightest
        return Solution(weight, weight, "Dijkstra", f"path {path}")

    def worth_asking(self, instance: Instance, solution: Solution) -> bool:
        lightest = lightest_path(instance.graphs[0].weighted(), *instance.query)
        return lightest is not None and len(lightest[1]) > 2

    def ask(self, instance: Instance) -> str:
        start, end = instance.query
        return (
            "Find the shortest path between two nodes in an undirected graph. In an undirected graph, (i,j,k) means "
            "that node i and node j are connected with an undirected edge with weight k. "
            f"{listed(instance.graphs[0])}. Give the weight of the shortest path from node {start} to node {end}.{FORM}"
        )


class MaximumTriplet(Amount):
    """The heaviest three nodes that are all connected; node weights are the graph's labels."""

    name = "triplet"
    least = 1

    def draw(self, random: Random, size: int) -> Instance | None:
        graph = scattered(random, size, random.uniform(4.0, 7.0))
        return Instance((graph._replace(labels=tuple([str(random.randint(1, MOST_WEIGHT)) for _ in range(size)])),))

    def solve(self, instance: Instance) -> Solution | None:
        graph = instance.graphs[0]
        adjacency, weight = graph.adjacency(), [int(label) for label in graph.labels]
        totals = [
            weight[u] + weight[v] + weight[w]
            for u in range(graph.n)
            for v, w in combinations(members(adjacency[u] >> (u + 1) << (u + 1)), 2)
            if adjacency[v] >> w & 1
        ]
        best = max(totals, default=0)
        return Solution(best, best, "all triangles", f"{len(totals)} triangles compared")

    def ask(self, instance: Instance) -> str:
        graph = instance.graphs[0]
        weights = " ".join(f"[{v}, {label}]" for v, label in enumerate(graph.labels))
        return (
            "Find the maximum sum of the weights of three nodes that are connected to each other. "
            f"[i, k] means that node i has the weight k. {UNDIRECTED}"
            f"Q: The nodes are numbered from 0 to {graph.n - 1}, weights of nodes are: {weights}, and the edges are: "
            f"{pairs(graph)}. What is the maximum sum of the weights of three nodes?{FORM}"
        )


class MaximumFlow(Amount):
    """The most that can flow from one node to another."""

    name = "flow"
    least = 1

    def draw(self, random: Random, size: int) -> Instance | None:
        graph = weighted(random, scattered(random, size, random.uniform(3.0, 8.0), directed=True))
        return Instance((graph,), query=tuple(random.sample(range(size), 2)))

    def solve(self, instance: Instance) -> Solution | None:
        flow = max_flow(instance.graphs[0].weighted(), *instance.query)
        proof = f"cut of the same capacity around {sorted(flow.side)}"
        return Solution(flow.value, flow.value, "augmenting paths", proof)

    def ask(self, instance: Instance) -> str:
        source, sink = instance.query
        return (
            "Find the maximum flow between two nodes in a directed graph. In a directed graph, (i->j,k) means that "
            "there is an edge from node i to node j with capacity k. "
            f"{listed(instance.graphs[0])}. What is the maximum flow from node {source} to node {sink}?{FORM}"
        )


class TopologicalOrder(NumberedList):
    """Any order in which every edge leads forward."""

    name = "topology"
    suite: Suite = "graphwiz"
    sense = "max"
    bands = ((4, 6), (7, 10), (11, 15), (16, 20), (21, 25))

    def draw(self, random: Random, size: int) -> Instance | None:
        rank = random.sample(range(size), size)
        graph = scattered(random, size, random.uniform(2.0, 5.0))
        edges = sorted((u, v) if rank[u] < rank[v] else (v, u) for u, v in graph.edges)
        return Instance((Graph(size, tuple(edges), directed=True),)) if edges else None

    def solve(self, instance: Instance) -> Solution | None:
        order = topological_order(instance.graphs[0].adjacency())
        return Solution(1, order, "Kahn", "the order itself") if order else None

    def ask(self, instance: Instance) -> str:
        return (
            "Find one of the topology sorting paths of a directed graph: an order of all nodes in which every edge "
            "leads forward. In a directed graph, (i->j) means that there is an edge from node i to node j. "
            f"{listed(instance.graphs[0])}. Give one topology sorting path of this graph. "
            "Finish with ### followed by the order of all nodes as a list in square brackets."
        )

    def measure(self, instance: Instance, answer: tuple[int, ...]) -> int:
        no_duplicates(answer)
        place = {node: i for i, node in enumerate(answer)}
        if any(place[u] > place[v] for u, v in instance.graphs[0].edges):
            raise Infeasible("an edge leads backward")
        return 1


def weighted(random: Random, graph: Graph) -> Graph:
    """The graph with random edge weights."""
    return graph._replace(weights=tuple([random.randint(1, MOST_WEIGHT) for _ in graph.edges]))
