"""Solver traces: how a proved answer to an NP-hard question is found, in lines a small language model can write.

    Ada Abbott: Ivan Klein = 1                    the neighbours of every node, and how many they are
    Ivan Klein: Ada Abbott, Rosa Costa = 2
    Rosa Costa: Ivan Klein = 1
    Take Ada Abbott: out go Ivan Klein.           everyone with at most one neighbour left, else one of the fewest
    Take Rosa Costa.

Every line follows from the prompt and earlier lines by copying or by one small decision, and the last ones are the
answer. Decisions follow a plain rule (fewest left, cheapest place, same bonds) wherever a run by that rule reaches the
proved optimum; the rare others follow the proved answer. No line holds brackets: those are for the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations
from typing import Any, NamedTuple

from rlvrlab.envs.graphs.graph import as_set, members
from rlvrlab.envs.graphs.molecule_traces import common_trace, edit_trace
from rlvrlab.envs.graphs.solvers.tours import tour_length
from rlvrlab.envs.graphs.tasks.base import Instance, Task

Traced = tuple[list[str], Any]
"""The lines, and the answer they end in."""
TRIES = 2_000
OTHER_ORDERS = 720
HUNDRED = 100
"""Distances are compared without their last two digits: short sums, and the digits are copied."""


def traced(task: Task, instance: Instance, answer: str) -> tuple[str, str]:
    """The trace of a question with a proved answer, and the answer it ends in, which may be another optimal one."""
    lines, found = WRITERS[task.name](instance, task.read(instance, answer, alone=True))
    return "\n".join(lines), task.show(instance, found)


def independent_trace(instance: Instance, witness: Sequence[int]) -> Traced:
    """Take whoever has at most one neighbour left, else one of the fewest; the neighbours go out."""
    lines, taken, _ = _taking(instance, witness)
    return lines, taken


def cover_trace(instance: Instance, witness: Sequence[int]) -> Traced:
    """The same, and the cover is whoever went out."""
    others = [v for v in range(instance.graphs[0].n) if v not in set(witness)]
    lines, _, out = _taking(instance, others)
    return [*lines, "The cover is all who went out."], out


def _taking(instance: Instance, witness: Sequence[int]) -> tuple[list[str], list[int], list[int]]:
    adjacency, names = instance.graphs[0].adjacency(), instance.names
    lines, left, out = _neighbours(instance), (1 << len(names)) - 1, list[int]()
    rounds = picking_rounds(adjacency, witness, clique=False)
    for number, picks in enumerate(rounds):
        if number:
            lines.append(_left(instance, adjacency, left))
        for node in picks:
            gone = adjacency[node] & left
            left &= ~gone & ~(1 << node)
            out += members(gone)
            others = f": out go {', '.join(names[v] for v in members(gone))}" if gone else ""
            lines.append(f"Take {names[node]}{others}.")
    return lines, [node for picks in rounds for node in picks], out


def clique_trace(instance: Instance, witness: Sequence[int]) -> Traced:
    """Take whoever has the most links among those left; only the neighbours stay."""
    adjacency, names = instance.graphs[0].adjacency(), instance.names
    lines, left = _neighbours(instance), (1 << len(names)) - 1
    picks = [node for (node,) in picking_rounds(adjacency, witness, clique=True)]
    for node in picks:
        left &= adjacency[node]
        lines.append(f"Take {names[node]}.")
        if left:
            lines.append(_left(instance, adjacency, left))
    return lines, picks


def picking_rounds(adjacency: Sequence[int], witness: Sequence[int], clique: bool) -> list[list[int]]:
    """An optimal set in rounds of picking by the rule, ties in prompt order while they lead to an optimum.

    Where a bounded search by the rule leads to none, it picks among the witness's nodes.
    """
    everyone, size = (1 << len(adjacency)) - 1, len(witness)
    for allowed in (everyone, as_set(witness)):
        found = _picked(adjacency, clique, everyone, allowed, size, iter(range(TRIES)))
        if found is not None:
            return found
    return [[node] for node in witness]


def _picked(
    adjacency: Sequence[int], clique: bool, left: int, allowed: int, wanted: int, tries: Iterator[int]
) -> list[list[int]] | None:
    """So many more nodes by the rule, going back over ties; None when no run by the rule finds them."""
    if not left & allowed:
        return None if wanted else []
    for picks in _choices(adjacency, clique, left, allowed):
        if next(tries, None) is None:
            return None
        rest = left
        for node in picks:
            rest &= adjacency[node] if clique else ~adjacency[node] & ~(1 << node)
        more = _picked(adjacency, clique, rest, allowed, wanted - len(picks), tries)
        if more is not None:
            return [picks, *more]
    return None


def _choices(adjacency: Sequence[int], clique: bool, left: int, allowed: int) -> list[list[int]]:
    """What the rule may pick next. Nodes with at most one neighbour left are never wrong to take, all in one round."""
    links = {v: (adjacency[v] & left).bit_count() for v in members(left & allowed)}
    best = max(links.values()) if clique else min(links.values())
    if clique or best > 1:
        return [[v] for v in links if links[v] == best]
    picks: list[int] = []
    for v in links:
        if links[v] <= 1 and not adjacency[v] & as_set(picks):
            picks.append(v)
    return [picks]


def _neighbours(instance: Instance) -> list[str]:
    names = instance.names
    rows = [[names[v] for v in members(row)] for row in instance.graphs[0].adjacency()]
    return [f"{name}: {', '.join(row) or 'nobody'} = {len(row)}" for name, row in zip(names, rows, strict=True)]


def _left(instance: Instance, adjacency: Sequence[int], left: int) -> str:
    """Who is left, with how many neighbours left; by first name where nobody else has it, since this is said often."""
    first_names = [name.split()[0] for name in instance.names]
    called = [
        first if first_names.count(first) == 1 else name
        for first, name in zip(first_names, instance.names, strict=True)
    ]
    counts = [f"{called[v]} {(adjacency[v] & left).bit_count()}" for v in members(left)]
    return f"Left: {', '.join(counts)}."


class Addition(NamedTuple):
    """One airport more: the tour before it, the airport, its nearest on the tour, and the legs on both its sides."""

    tour: list[int]
    city: int
    near: int
    sides: list[tuple[int, int]]


def tour_trace(instance: Instance, witness: Sequence[int]) -> Traced:
    """Begin with three airports, put each other one beside its nearest on the tour, on the cheaper side."""
    distance, names = instance.graphs[0].matrix(), instance.names
    short = [[km // HUNDRED for km in row] for row in distance]
    optimum = tour_length(distance, witness[:-1])
    for order in _orders(distance):
        steps, tour = _added(distance, short, order, ())
        if tour_length(distance, tour) == optimum:
            break
    else:
        start = list(witness).index(0)
        known = [*witness[start:-1], *witness[:start]]
        steps, tour = _added(distance, short, next(_orders(distance)), known)
    return [line for step in steps for line in _told(short, names, step)], [*tour, tour[0]]


def _orders(distance: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Orders of adding: the farthest from the first airport first, that order with one airport moved, some others."""
    far = sorted(range(1, len(distance)), key=lambda v: -distance[0][v])
    yield [0, *far]
    for v in far:
        others = [u for u in far if u != v]
        for place in range(len(far)):
            if far[place] != v:
                yield [0, *others[:place], v, *others[place:]]
    yield from ([0, *order] for order in islice(permutations(reversed(far)), OTHER_ORDERS))


def _added(
    distance: Sequence[Sequence[int]], short: Sequence[Sequence[int]], order: Sequence[int], known: Sequence[int]
) -> tuple[list[Addition], list[int]]:
    """The steps of adding airports in an order and the tour they end in; a known tour decides where they go."""
    tour = sorted(order[:3], key=known.index) if known else list(order[:3])
    steps: list[Addition] = []
    for city in order[3:]:
        near = min(tour, key=distance[city].__getitem__)
        after = tour.index(near)
        sides = [(tour[after - 1], near), (near, tour[(after + 1) % len(tour)])]
        steps.append(Addition(tour.copy(), city, near, sides))
        if known:
            tour = sorted([*tour, city], key=known.index)
            continue
        before, behind = (short[a][city] + short[city][b] - short[a][b] for a, b in sides)
        # Before the first airport means at the end, so that every tour begins with it.
        tour.insert((after or len(tour)) if before <= behind else after + 1, city)
    return steps, tour


def _told(short: Sequence[Sequence[int]], names: Sequence[str], step: Addition) -> tuple[str, str]:
    city, sums = step.city, []
    for a, b in step.sides:
        to, on, instead = short[a][city], short[city][b], short[a][b]
        sums.append(f"{names[a]} {names[b]} {to}+{on}-{instead}={to + on - instead}")
    tour = " ".join(names[v] for v in step.tour)
    return f"Tour {tour}", f"Add {names[city]} near {names[step.near]}: {', '.join(sums)}"


WRITERS: dict[str, Callable[[Instance, Any], Traced]] = {
    "TSP": tour_trace,
    "GED": edit_trace,
    "MCP": clique_trace,
    "MIS": independent_trace,
    "MVC": cover_trace,
    "MCS": common_trace,
}
