"""Traces of GED and MCS: both molecules atom by atom, then one atom of A after the other finds its place in B.

    2 C -> 0 C, cost 0                     the atom with the most bonds comes first, its neighbours next
    0 C, bound to 2 now 0 -> 1 C, cost 0
    1 O, bound to 2 now 0 -> 2 C, cost 1   another label costs one; so does a bond that only one molecule has

By the rule an atom takes the cheapest place (GED), or one whose bonds to the earlier atoms are the same (MCS); among
several, one with as many bonds, then the lowest number. Where the rule alone reaches no optimum another first pair is
tried, then other places, and after a long search the proved answer is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rlvrlab.envs.graphs.graph import Graph, members
from rlvrlab.envs.graphs.solvers.edits import mapping_cost
from rlvrlab.envs.graphs.tasks.base import Instance

TRIES = 5_000
NONE = -1
"""The place of an atom that has none in the other molecule."""
NextPlaces = Callable[[Graph, Graph, Sequence[int], Sequence[int]], list[tuple[int, int]]]
"""The places the next atom of an order may take after those of earlier ones, best first, with what each costs."""


def edit_trace(instance: Instance, witness: Sequence[int]) -> tuple[list[str], list[int]]:
    """Each atom takes the cheapest place, and the cost so far is told."""
    first, second = instance.graphs
    order, places = _optimal(first, second, cheapest_places, mapping_cost(first, second, tuple(witness)), witness)
    lines, cost = [*_atoms("A", first), *_atoms("B", second)], 0
    for i, a in enumerate(order):
        cost += _step_cost(first, second, order, places[:i], places[i])
        becomes = f"{places[i]} {second.labels[places[i]]}, cost {cost}"
        lines.append(f"{a} {first.labels[a]}{_bound(first, order, places, i)} -> {becomes}")
    mapping = dict(zip(order, places, strict=True))
    return lines, [mapping[a] for a in range(first.n)]


def common_trace(
    instance: Instance, witness: tuple[Sequence[int], Sequence[int]]
) -> tuple[list[str], tuple[list[int], list[int]]]:
    """Each atom finds one whose bonds to the earlier ones are the same, or none."""
    first, second = instance.graphs
    proved = dict(zip(*witness, strict=True))
    known = [proved.get(a, NONE) for a in range(first.n)]
    order, places = _optimal(first, second, same_bonds, first.n - len(proved), known)
    lines = [*_atoms("A", first), *_atoms("B", second)]
    for i, a in enumerate(order):
        lines.append(f"{a}{_bound(first, order, places, i)} -> {'none' if places[i] == NONE else places[i]}")
    pairs = [(a, b) for a, b in zip(order, places, strict=True) if b != NONE]
    return lines, ([a for a, _ in pairs], [b for _, b in pairs])


def _optimal(
    first: Graph, second: Graph, allowed: NextPlaces, budget: int, known: Sequence[int]
) -> tuple[list[int], list[int]]:
    """An order of the first molecule's atoms and their places, which cost no more than the budget."""
    for start in by_bonds(first):
        order = visiting_order(first, start)
        for place, cost in allowed(first, second, order, []):
            found = _search(first, second, allowed, order, [place], budget - cost, iter(range(first.n - 1)))
            if found is not None:
                return order, found
    order = visiting_order(first, by_bonds(first)[0])
    found = _search(first, second, allowed, order, [], budget, iter(range(TRIES)))
    return order, [known[a] for a in order] if found is None else found


def _search(
    first: Graph,
    second: Graph,
    allowed: NextPlaces,
    order: Sequence[int],
    places: list[int],
    budget: int,
    tries: Iterator[int],
) -> list[int] | None:
    """The first places within the budget; as many tries as atoms are the rule alone, more go back and choose anew."""
    if len(places) == len(order):
        return places
    for place, cost in allowed(first, second, order, places):
        if next(tries, None) is None:
            return None
        if cost <= budget:
            found = _search(first, second, allowed, order, [*places, place], budget - cost, tries)
            if found is not None:
                return found
    return None


def by_bonds(graph: Graph) -> list[int]:
    """All atoms, those with the most bonds first."""
    rows = graph.adjacency()
    return sorted(range(graph.n), key=lambda v: -rows[v].bit_count())


def visiting_order(graph: Graph, start: int) -> list[int]:
    """All atoms from one of them on: always the neighbours of those already there, those with the most bonds first."""
    rows, others = graph.adjacency(), by_bonds(graph)
    order: list[int] = []
    for v in [start, *others]:
        waiting = [v]
        for u in waiting:
            if u not in order:
                order.append(u)
                waiting += [w for w in others if rows[u] >> w & 1]
    return order


def cheapest_places(first: Graph, second: Graph, order: Sequence[int], places: Sequence[int]) -> list[tuple[int, int]]:
    """All free places, by what they cost, then by how alike the numbers of bonds are."""
    costs = {b: _step_cost(first, second, order, places, b) for b in range(second.n) if b not in places}
    alike = _likeness(first, second, order[len(places)])
    return [(b, costs[b]) for b in sorted(costs, key=lambda b: (costs[b], alike[b]))]


def same_bonds(first: Graph, second: Graph, order: Sequence[int], places: Sequence[int]) -> list[tuple[int, int]]:
    """The free places with the same bonds to earlier ones; to have none costs one."""
    a = order[len(places)]
    rows, others = first.adjacency(), second.adjacency()
    taken = [(u, v) for u, v in zip(order, places, strict=False) if v != NONE]
    fitting = [
        b
        for b in range(second.n)
        if b not in places and all((rows[a] >> u & 1) == (others[b] >> v & 1) for u, v in taken)
    ]
    alike = _likeness(first, second, a)
    return [*[(b, 0) for b in sorted(fitting, key=lambda b: alike[b])], (NONE, 1)]


def _likeness(first: Graph, second: Graph, a: int) -> list[int]:
    bonds = first.adjacency()[a].bit_count()
    return [abs(row.bit_count() - bonds) for row in second.adjacency()]


def _step_cost(first: Graph, second: Graph, order: Sequence[int], places: Sequence[int], b: int) -> int:
    """What the next atom costs at b: another label, and bonds to earlier atoms that only one molecule has."""
    a = order[len(places)]
    row, other = first.adjacency()[a], second.adjacency()[b]
    changed = [(row >> u & 1) != (other >> v & 1) for u, v in zip(order, places, strict=False)]
    return sum(changed) + (first.labels[a] != second.labels[b])


def _atoms(letter: str, graph: Graph) -> list[str]:
    rows = [", ".join(map(str, members(row))) or "none" for row in graph.adjacency()]
    labels = [f" {label}" for label in graph.labels] or [""] * graph.n
    return [f"Molecule {letter}:", *[f"{v}{labels[v]}: {row}" for v, row in enumerate(rows)]]


def _bound(graph: Graph, order: Sequence[int], places: Sequence[int], i: int) -> str:
    """The earlier neighbours of the i-th atom that have a place, and which: `, bound to 2 now 0`."""
    row = graph.adjacency()[order[i]]
    earlier = [f"{u} now {places[j]}" for j, u in enumerate(order[:i]) if row >> u & 1 and places[j] != NONE]
    return f", bound to {', '.join(earlier)}" if earlier else ""
