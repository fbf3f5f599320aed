"""The style `rows`: a line for each node, for policies that must first learn to read edges at all.

    MIS          MIS        TSP       MCS            GED           one of the six NP-hard tasks
    aCE          answer     a5763     aBC            a7B           node a has neighbours C and E, atom a is nitrogen
    bC           bC         b624      bA             b6A
    cAB          dE         c49       cA             t6U           the second molecule's atoms are t, u, v, …
    dE           a          d6        tU             u7T
    eAD          [b,d,a]              uT             [u,t]

A node is a small letter where it is spoken of and a capital where it is somebody's neighbour: every name is one token
of a tiny policy's vocabulary, and `what follows a small letter` has one place in the question. With one spelling for
both a trial on MIS learnt less in as many updates (studies/npg_muse). Distances of TSP come in nine steps, nearest 1,
and the optimum is that of the steps; each pair is told once, in the row of the earlier node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from rlvrlab.envs.graphs.answers import BRACKETS
from rlvrlab.envs.graphs.graph import Graph, members
from rlvrlab.envs.graphs.tasks.base import Instance

NODES, OTHERS = "abcdefg", "tuvwxyz"
"""Names of nodes, and of those of a second graph."""
ATOMIC_NUMBERS = {"C": "6", "N": "7", "O": "8", "F": "9", "S": "16", "Cl": "17"}
"""Symbols would be capitals too."""
MOST_NODES = len(NODES)
STEP_KM = 2_225
"""A ninth of half the earth's circumference."""


def in_steps(instance: Instance) -> Instance:
    """The same question with distances from 1 to 9."""
    graphs = [graph._replace(weights=tuple([1 + km // STEP_KM for km in graph.weights])) for graph in instance.graphs]
    return replace(instance, graphs=tuple(graphs))


def row(graph: Graph, names: str, node: int, among: int = -1) -> str:
    """A node, its label and its neighbours, or those of them in a set."""
    label = ATOMIC_NUMBERS[graph.labels[node]] if graph.labels else ""
    return names[node] + label + capitals(names, graph.adjacency()[node] & among)


def capitals(names: str, nodes: int) -> str:
    """The nodes of a set as they are named in the rows of others."""
    return "".join(names[v].upper() for v in members(nodes))


def rows_question(task: str, instance: Instance) -> str:
    """The task, then the rows of its graphs."""
    named = zip(instance.graphs, (NODES, OTHERS), strict=False)
    rows = [row(graph, names, v) for graph, names in named for v in range(graph.n)]
    if task == "TSP":
        distance = instance.graphs[0].matrix()
        rows = [NODES[v] + "".join(map(str, line[v + 1 :])) for v, line in enumerate(distance[:-1])]
    return "\n".join([task, *rows, "", ""])


def listed(names: str, nodes: Sequence[int]) -> str:
    """An answer's list without the spaces, which would be tokens."""
    return f"[{','.join(names[v] for v in nodes)}]"


def numbered(task: str, text: str) -> str:
    """An answer about molecules with the numbers of its atoms, which the tasks read; any other token stays as it is."""
    if task not in ("GED", "MCS"):
        return text
    tables = cycle((OTHERS,) if task == "GED" else (NODES, OTHERS))

    def with_numbers(content: str, names: str) -> str:
        tokens = [token.strip() for token in content.split(",")]
        return ",".join(str(names.index(token)) if len(token) == 1 and token in names else token for token in tokens)

    return BRACKETS.sub(lambda found: f"[{with_numbers(found[1], next(tables))}]", text)
