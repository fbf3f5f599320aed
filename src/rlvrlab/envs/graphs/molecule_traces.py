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
from typing import NamedTuple

from rlvrlab.envs.graphs.graph import Graph, members
from rlvrlab.envs.graphs.solvers.edits import mapping_cost
from rlvrlab.envs.graphs.tasks.base import Instance

TRIES = 5_000
NONE = -1
"""The place of an atom that has none in the other molecule."""


class Pair(NamedTuple):
    """Two molecules, and who is bound to whom."""

    first: Graph
    second: Graph
    rows: list[int]
    others: list[int]


Order = Sequence[int]
"""Atoms of the first molecule, one after the other."""
Places = Sequence[int]
"""Atoms of the second molecule, for as many of an order."""
NextPlaces = Callable[[Pair, Order, Places], list[tuple[int, int]]]
"""The places the next atom may take after earlier ones took theirs, best first, with what each costs."""


def edit_trace(instance: Instance, witness: Sequence[int]) -> tuple[list[str], list[int]]:
    """Each atom takes the cheapest place, and the cost so far is told."""
    pair = _pair(instance)
    labels, others = pair.first.labels, pair.second.labels
    order, places = _optimal(pair, cheapest_places, mapping_cost(pair.first, pair.second, tuple(witness)), witness)
    lines, cost = [*_atoms("A", pair.first), *_atoms("B", pair.second)], 0
    for i, a in enumerate(order):
        cost += _step_cost(pair, order, places[:i], places[i])
        becomes = f"{places[i]} {others[places[i]]}, cost {cost}"
        lines.append(f"{a} {labels[a]}{_bound(pair, order, places, i)} -> {becomes}")
    mapping = dict(zip(order, places, strict=True))
    return lines, [mapping[a] for a in range(len(order))]


def common_trace(
    instance: Instance, witness: tuple[Sequence[int], Sequence[int]]
) -> tuple[list[str], tuple[list[int], list[int]]]:
    """Each atom finds one whose bonds to the earlier ones are the same, or none."""
    pair = _pair(instance)
    proved = dict(zip(*witness, strict=True))
    known = [proved.get(a, NONE) for a in range(pair.first.n)]
    order, places = _optimal(pair, same_bonds, pair.first.n - len(proved), known)
    lines = [*_atoms("A", pair.first), *_atoms("B", pair.second)]
    for i, a in enumerate(order):
        lines.append(f"{a}{_bound(pair, order, places, i)} -> {'none' if places[i] == NONE else places[i]}")
    shared = [(a, b) for a, b in zip(order, places, strict=True) if b != NONE]
    return lines, ([a for a, _ in shared], [b for _, b in shared])


def _pair(instance: Instance) -> Pair:
    first, second = instance.graphs
    return Pair(first, second, first.adjacency(), second.adjacency())


def _optimal(pair: Pair, allowed: NextPlaces, budget: int, known: Sequence[int]) -> tuple[list[int], list[int]]:
    """An order of the first molecule's atoms and their places, which cost no more than the budget."""
    starts = by_bonds(pair.rows)
    for start in starts:
        order = visiting_order(pair.rows, start)
        for place, cost in allowed(pair, order, []):
            found = _search(pair, allowed, order, [place], budget - cost, iter(range(len(order) - 1)))
            if found is not None:
                return order, found
    order = visiting_order(pair.rows, starts[0])
    found = _search(pair, allowed, order, [], budget, iter(range(TRIES)))
    return order, [known[a] for a in order] if found is None else found


def _search(
    pair: Pair, allowed: NextPlaces, order: Order, places: list[int], budget: int, tries: Iterator[int]
) -> list[int] | None:
    """The first places within the budget; as many tries as atoms are the rule alone, more go back and choose anew."""
    if len(places) == len(order):
        return places if budget >= 0 else None
    for place, cost in allowed(pair, order, places):
        if next(tries, None) is None:
            return None
        if cost <= budget:
            found = _search(pair, allowed, order, [*places, place], budget - cost, tries)
            if found is not None:
                return found
    return None


def by_bonds(rows: Sequence[int]) -> list[int]:
    """All atoms, those with the most bonds first."""
    return sorted(range(len(rows)), key=lambda v: -rows[v].bit_count())


def visiting_order(rows: Sequence[int], start: int) -> list[int]:
    """All atoms from one of them on: always the neighbours of those already there, those with the most bonds first."""
    everyone = by_bonds(rows)
    order: list[int] = []
    for v in [start, *everyone]:
        waiting = [v]
        for u in waiting:
            if u not in order:
                order.append(u)
                waiting += [w for w in everyone if rows[u] >> w & 1]
    return order


def cheapest_places(pair: Pair, order: Order, places: Places) -> list[tuple[int, int]]:
    """All free places, by what they cost, then by how alike the numbers of bonds are."""
    costs = {b: _step_cost(pair, order, places, b) for b in range(pair.second.n) if b not in places}
    alike = _likeness(pair, order[len(places)])
    return [(b, costs[b]) for b in sorted(costs, key=lambda b: (costs[b], alike[b]))]


def same_bonds(pair: Pair, order: Order, places: Places) -> list[tuple[int, int]]:
    """The free places with the same bonds to earlier ones; to have none costs one."""
    row, taken, wanted = pair.rows[order[len(places)]], 0, 0
    for u, v in zip(order, places, strict=False):
        if v != NONE:
            taken |= 1 << v
            wanted |= (row >> u & 1) << v
    fitting = [b for b, other in enumerate(pair.others) if not taken >> b & 1 and other & taken == wanted]
    alike = _likeness(pair, order[len(places)])
    return [*[(b, 0) for b in sorted(fitting, key=lambda b: alike[b])], (NONE, 1)]


def _likeness(pair: Pair, a: int) -> list[int]:
    return [abs(other.bit_count() - pair.rows[a].bit_count()) for other in pair.others]


def _step_cost(pair: Pair, order: Order, places: Places, b: int) -> int:
    """What the next atom costs at b: another label, and bonds to earlier atoms that only one molecule has."""
    a = order[len(places)]
    row, other = pair.rows[a], pair.others[b]
    changed = [(row >> u ^ other >> v) & 1 for u, v in zip(order, places, strict=False)]
    return sum(changed) + (pair.first.labels[a] != pair.second.labels[b])


def _atoms(letter: str, graph: Graph) -> list[str]:
    rows = [", ".join(map(str, members(row))) or "none" for row in graph.adjacency()]
    labels = [f" {label}" for label in graph.labels] or [""] * graph.n
    return [f"Molecule {letter}:", *[f"{v}{labels[v]}: {row}" for v, row in enumerate(rows)]]


def _bound(pair: Pair, order: Order, places: Places, i: int) -> str:
    """The earlier neighbours of the i-th atom that have a place, and which: `, bound to 2 now 0`."""
    row = pair.rows[order[i]]
    earlier = [f"{u} now {places[j]}" for j, u in enumerate(order[:i]) if row >> u & 1 and places[j] != NONE]
    return f", bound to {', '.join(earlier)}" if earlier else ""
