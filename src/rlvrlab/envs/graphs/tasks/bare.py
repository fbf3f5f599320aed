"""The six NP-hard tasks in as few characters as they need, for policies of a few hundred thousand parameters.

    TSP A B C D: AB 4250, AC 9133, AD 8777, BC 12608, BD 12412, CD 7216
    MIS A B C D: AB, BC, CD
    GED 0C 1C 2O: 01, 12 | 0C 1O 2C: 01, 02

Nodes of one graph are letters, atoms of two molecules are numbers; the answer's form is that of the long question.
"""

from __future__ import annotations

from dataclasses import replace
from string import ascii_uppercase as LETTERS

from rlvrlab.envs.graphs.tasks.base import Instance


def lettered(instance: Instance) -> Instance:
    """The same question about A, B, …, Z, A1, …; numbers stay numbers."""
    names = [LETTERS[i % 26] + str(i // 26 or "") for i in range(instance.graphs[0].n)]
    return replace(instance, names=tuple(names)) if instance.names else instance


def ask(task: str, instance: Instance) -> str:
    """One line: the task, its nodes, its edges."""
    graphs = []
    for graph in instance.graphs:
        called = instance.names or tuple(map(str, range(graph.n)))
        joint = "" if max(map(len, called)) == 1 else "-"  # 112 could be 1 and 12, or 11 and 2
        nodes = " ".join(f"{name}{label}" for name, label in zip(called, graph.labels or [""] * graph.n, strict=True))
        weights = [f" {weight}" for weight in graph.weights] or [""] * len(graph.edges)
        edges = [f"{called[u]}{joint}{called[v]}{weight}" for (u, v), weight in zip(graph.edges, weights, strict=True)]
        graphs.append(f"{nodes}: {', '.join(edges)}")
    return f"{task} {' | '.join(graphs)}\n"
