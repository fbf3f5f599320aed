"""References of the style `rows`: each line is a row of the question, or what is left of one, then the answer.

    cE           MIS, MVC: take c, so E goes out; fewest neighbours left first
    dA
    b
    [c,d,b]      MIS: who was taken; MVC: who went out

MCP takes the node with most neighbours left and keeps those. GED sets each atom's row beside the row of the atom it
becomes, MCS copies the rows of both parts. TSP has no lines: its answer is read off the distances at once. Of several
best answers it is always the first in order, so that equal questions have equal references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import Any

from rlvrlab.envs.graphs.graph import Graph, induced, members
from rlvrlab.envs.graphs.rows import NODES, OTHERS, capitals, listed, row
from rlvrlab.envs.graphs.solvers.edits import mapping_cost
from rlvrlab.envs.graphs.solvers.isomorphism import isomorphic
from rlvrlab.envs.graphs.solvers.tours import tour_length
from rlvrlab.envs.graphs.tasks.base import Instance, Task
from rlvrlab.envs.graphs.traces import picking_rounds

Short = tuple[list[str], str]
"""The lines, and the answer they end in."""


def short_traced(task: Task, instance: Instance, answer: str, optimum: Any) -> Short:
    """The lines of a question with a proved answer, and the answer they end in."""
    return WRITERS[task.name](instance, task.read(instance, answer, alone=True), optimum)


def _independent(instance: Instance, witness: Sequence[int], _: Any) -> Short:
    lines, taken, _out = _taking(instance.graphs[0], witness)
    return lines, listed(NODES, taken)


def _cover(instance: Instance, witness: Sequence[int], _: Any) -> Short:
    others = [v for v in range(instance.graphs[0].n) if v not in set(witness)]
    lines, _taken, out = _taking(instance.graphs[0], others)
    return lines, listed(NODES, out)


def _taking(graph: Graph, witness: Sequence[int]) -> tuple[list[str], list[int], list[int]]:
    """Take whoever has fewest neighbours left; they go out."""
    adjacency, left = graph.adjacency(), (1 << graph.n) - 1
    lines, out = list[str](), list[int]()
    taken = [node for picks in picking_rounds(adjacency, witness, clique=False) for node in picks]
    for node in taken:
        gone = adjacency[node] & left
        left &= ~gone & ~(1 << node)
        out += members(gone)
        lines.append(NODES[node] + capitals(NODES, gone))
    return lines, taken, out


def _clique(instance: Instance, witness: Sequence[int], _: Any) -> Short:
    adjacency, left = instance.graphs[0].adjacency(), -1
    lines, taken = list[str](), [node for (node,) in picking_rounds(adjacency, witness, clique=True)]
    for node in taken:
        left &= adjacency[node]
        lines.append(NODES[node] + capitals(NODES, left))
    return lines, listed(NODES, taken)


def _tour(instance: Instance, _witness: Sequence[int], optimum: int) -> Short:
    graph = instance.graphs[0]
    distance = graph.matrix()
    tours = ((0, *order) for order in permutations(range(1, graph.n)))
    return [], listed(NODES, [*next(tour for tour in tours if tour_length(distance, tour) == optimum), 0])


def _edit(instance: Instance, _witness: Sequence[int], optimum: int) -> Short:
    first, second = instance.graphs
    places = next(order for order in permutations(range(second.n)) if mapping_cost(first, second, order) == optimum)
    lines = [row(first, NODES, a) + row(second, OTHERS, b) for a, b in enumerate(places)]
    return lines, listed(OTHERS, places)


def _common(instance: Instance, _witness: Any, optimum: int) -> Short:
    first, second = instance.graphs
    rows, others = first.adjacency(), second.adjacency()
    part, other = next(
        (part, other)
        for part in combinations(range(first.n), optimum)
        for other in combinations(range(second.n), optimum)
        if isomorphic(induced(rows, part), induced(others, other))
    )
    lines = [row(first, NODES, v) for v in part]
    lines += [row(second, OTHERS, v) for v in other]
    return lines, f"{listed(NODES, part)},{listed(OTHERS, other)}"


WRITERS: dict[str, Callable[[Instance, Any, Any], Short]] = {
    "TSP": _tour,
    "GED": _edit,
    "MCP": _clique,
    "MIS": _independent,
    "MVC": _cover,
    "MCS": _common,
}
