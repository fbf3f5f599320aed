"""connectivity, cycle, bipartite, hamilton, substructure: GraphWiz's questions with the answer Yes or No.

    prompt   … Q: The nodes are numbered from 0 to 3, and the edges are: (0,1) (1,2) (2,3). Is there a cycle …?
    answer   ### No

Yes and no come equally often, so guessing is worth a half and never more. Traps in the original scorer: "no" is found
in "node", "not" and "unknown". Its generator of Hamiltonian labels answers No at the first dead end; see hamilton.py.
"""

# ruff: noqa: D102  (the methods are documented in Task)
from __future__ import annotations

from random import Random
from string import ascii_lowercase

from rlvrlab.envs.graphs.answers import read_marked, yes_or_no
from rlvrlab.envs.graphs.graph import Edge, Graph
from rlvrlab.envs.graphs.sampling import scattered, shuffled_nodes
from rlvrlab.envs.graphs.solvers.hamilton import hamiltonian_path
from rlvrlab.envs.graphs.solvers.isomorphism import occurrence
from rlvrlab.envs.graphs.solvers.paths import components, has_cycle, reachable, two_colouring
from rlvrlab.envs.graphs.tasks.base import Bands, Instance, Marked, Solution, Suite

HUNDRED: Bands = ((4, 20), (21, 40), (41, 60), (61, 80), (81, 100))
UNDIRECTED = "In an undirected graph, (i,j) means that node i and node j are connected with an undirected edge. "
DIRECTED = "In a directed graph, (i->j) means that there is an edge from node i to node j. "
FORM = " Finish with ### followed by Yes or No."


class Decision(Marked):
    """A question answered by Yes or No."""

    suite: Suite = "graphwiz"
    bands = HUNDRED
    balanced = True
    task: str
    question: str

    def ask(self, instance: Instance) -> str:
        graph = instance.graphs[0]
        return f"{self.task}{listed(graph)}. {self.question.format(*instance.query)}{FORM}"

    def read(self, instance: Instance, text: str, alone: bool) -> bool:
        return read_marked(text, alone, yes_or_no)

    def show(self, instance: Instance, witness: object) -> str:
        return "### Yes" if witness else "### No"


class Connectivity(Decision):
    """Is there a path between two nodes?"""

    name = "connectivity"
    task = "Determine whether two nodes are connected in an undirected graph. " + UNDIRECTED
    question = "Is there a path between node {} and node {}?"

    def draw(self, random: Random, size: int) -> Instance | None:
        graph = scattered(random, size, random.uniform(0.8, 3.0))
        a, b = random.sample(range(size), 2)
        return None if graph.adjacency()[a] >> b & 1 else Instance((graph,), query=(a, b))

    def solve(self, instance: Instance) -> Solution | None:
        a, b = instance.query
        connected = bool(reachable(instance.graphs[0].adjacency(), a) >> b & 1)
        return Solution(connected, connected, "breadth-first search", "all nodes visited")


class Cycle(Decision):
    """Is there a cycle?"""

    name = "cycle"
    task = "Determine whether there is a cycle in an undirected graph. " + UNDIRECTED
    question = "Is there a cycle in this graph?"

    def draw(self, random: Random, size: int) -> Instance | None:
        edges = {(random.randrange(v), v) for v in range(1, size) if random.random() < 0.9}
        if random.random() < 0.5:
            extra = [sorted(random.sample(range(size), 2)) for _ in range(random.randint(1, 3))]
            edges |= {(u, v) for u, v in extra}
        return Instance((shuffled_nodes(random, Graph(size, tuple(sorted(edges)))),))

    def solve(self, instance: Instance) -> Solution | None:
        cyclic = has_cycle(instance.graphs[0].adjacency())
        return Solution(cyclic, cyclic, "edge count of a forest", "all components counted")


class Bipartite(Decision):
    """Can the nodes be split into two sides with all edges between them?"""

    name = "bipartite"
    task = "Determine whether a graph is bipartite; the directions of its edges do not matter for that. " + DIRECTED
    question = "Is this graph bipartite?"

    def draw(self, random: Random, size: int) -> Instance | None:
        side = [random.random() < 0.5 for _ in range(size)]
        chance = min(1.0, 5 / size)
        edges: set[Edge] = {
            (u, v) if random.random() < 0.5 else (v, u)
            for u in range(size)
            for v in range(u)
            if side[u] != side[v] and random.random() < chance
        }
        if random.random() < 0.5:
            edges |= {(a, b) for a, b in [random.sample(range(size), 2)] if (b, a) not in edges}
        return Instance((Graph(size, tuple(sorted(edges)), directed=True),)) if edges else None

    def solve(self, instance: Instance) -> Solution | None:
        colourable = two_colouring(instance.graphs[0]._replace(directed=False).adjacency()) is not None
        return Solution(colourable, colourable, "two-colouring", "a colouring, or an odd cycle")


class HamiltonianPath(Decision):
    """Is there a path through every node?"""

    name = "hamilton"
    bands: Bands = ((4, 10), (11, 20), (21, 30), (31, 40), (41, 50))
    task = (
        "Determine whether there is a Hamiltonian path, visiting every node exactly once, in an undirected graph. "
        + UNDIRECTED
    )
    question = "Is there a Hamiltonian path in this graph?"

    def draw(self, random: Random, size: int) -> Instance | None:
        graph = scattered(random, size, random.uniform(2.2, 0.3 * size + 2.5))
        return Instance((graph,)) if len(components(graph.adjacency())) == 1 else None

    def solve(self, instance: Instance) -> Solution | None:
        search = hamiltonian_path(instance.graphs[0].adjacency())
        if not search.reason:
            return None
        return Solution(search.path is not None, search.path or False, "depth-first search with cuts", search.reason)


class Substructure(Decision):
    """Does a small directed graph occur in a larger one?"""

    name = "substructure"
    bands: Bands = ((4, 9), (10, 14), (15, 19), (20, 24), (25, 30))
    task = (
        "Determine whether the directed graph g occurs in the directed graph G: different nodes of G for the nodes of "
        "g, with every edge of g among them. " + DIRECTED
    )
    question = "Does g occur in G?"

    def draw(self, random: Random, size: int) -> Instance | None:
        graph = scattered(random, size, random.uniform(2.0, 5.0), directed=True)
        pattern = scattered(random, random.randint(3, min(5, size)), random.uniform(2.0, 3.5), directed=True)
        whole = len(components(pattern._replace(directed=False).adjacency())) == 1
        return Instance((graph, pattern)) if whole else None

    def solve(self, instance: Instance) -> Solution | None:
        search = occurrence(*instance.graphs)
        if not search.proved:
            return None
        answer = search.nodes is not None
        return Solution(answer, list(search.nodes) if search.nodes else False, "backtracking", "exhausted search")

    def ask(self, instance: Instance) -> str:
        graph, pattern = instance.graphs
        letters = " ".join(f"({ascii_lowercase[u]}->{ascii_lowercase[v]})" for u, v in pattern.edges)
        return (
            f"{self.task}Q: The nodes of graph G are numbered from 0 to {graph.n - 1}, and the edges are: "
            f"{pairs(graph)}. The nodes of graph g are a to {ascii_lowercase[pattern.n - 1]}, and the edges are: "
            f"{letters}. {self.question}{FORM}"
        )


def listed(graph: Graph) -> str:
    """`Q: The nodes are numbered from 0 to 3, and the edges are: (0,1) (1,2)`."""
    return f"Q: The nodes are numbered from 0 to {graph.n - 1}, and the edges are: {pairs(graph)}"


def pairs(graph: Graph) -> str:
    """`(0,1) (1,2)`, `(0->1)`, with weights `(0,1,7)`."""
    arrow = "->" if graph.directed else ","
    weights = [f",{weight}" for weight in graph.weights] or [""] * len(graph.edges)
    return " ".join(f"({u}{arrow}{v}{weight})" for (u, v), weight in zip(graph.edges, weights, strict=True))
