"""Shortest round trips, proved: dynamic programming for few cities, Held and Karp's 1-trees beyond.

A 1-tree (a spanning tree of all cities but one, and the two shortest edges of that one) is never longer than a tour.
Prices on the cities, raised where the 1-tree has too many edges and lowered where too few, leave the tours' order as
it is and lift the bound (Held and Karp 1971); what gap remains is closed by branching on an edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rlvrlab.envs.graphs.solvers.effort import spend

Matrix = Sequence[Sequence[int]]
TABLE_CITIES = 12
"""Up to here the table of all subsets is the faster proof."""
FIRST_ROUNDS, LATER_ROUNDS = 120, 30
FAR = 1e15


def tour_length(distance: Matrix, tour: Sequence[int]) -> int:
    """Length of the round trip; the return is added where the last city is not the first."""
    return sum(distance[a][b] for a, b in zip(tour, [*tour[1:], tour[0]], strict=True))


def shortest_tour(distance: Matrix) -> list[int]:
    """An optimal order of the cities, starting with 0."""
    if len(distance) <= 3:
        return list(range(len(distance)))
    return _by_table(distance) if len(distance) <= TABLE_CITIES else _OneTreeSearch(distance).solve()


@lru_cache(maxsize=TABLE_CITIES)
def _layers(cities: int) -> list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """For each size and city: the city, all subsets of that size that contain it, and the same without it."""
    subsets = np.arange(1 << cities)
    sizes = np.array([int(s).bit_count() for s in subsets])
    layers = []
    for size in range(2, cities + 1):
        of_size = subsets[sizes == size]
        for last in range(cities):
            chosen = of_size[of_size >> last & 1 == 1]
            layers.append((last, chosen, chosen ^ (1 << last)))
    return layers


def _by_table(distance: Matrix) -> list[int]:
    """Held-Karp: the shortest way from city 0 through a subset, ending in each of its cities."""
    away = np.asarray(distance, dtype=np.int64)
    cities = len(away) - 1
    between = away[1:, 1:]
    table = np.full((1 << cities, cities), 1 << 40, dtype=np.int64)
    table[1 << np.arange(cities), np.arange(cities)] = away[0, 1:]
    for last, subsets, without in _layers(cities):
        table[subsets, last] = (table[without] + between[:, last]).min(axis=1)
    subset = (1 << cities) - 1
    last = int((table[subset] + away[1:, 0]).argmin())
    tour = [last + 1]
    while subset := subset ^ (1 << last):
        last = int((table[subset] + between[:, last]).argmin())
        tour.append(last + 1)
    return [0, *reversed(tour)]


class _OneTreeSearch:
    """Branch and bound over forced and forbidden edges; both are one bit set of partners per city."""

    def __init__(self, distance: Matrix) -> None:
        self.distance = [list(map(float, row)) for row in distance]
        self.whole = distance
        self.n = len(distance)
        self.best = min((self._greedy(start) for start in range(self.n)), key=lambda tour: tour_length(distance, tour))
        self.shortest = tour_length(distance, self.best)

    def solve(self) -> list[int]:
        self._branch([0.0] * self.n, [0] * self.n, [0] * self.n, FIRST_ROUNDS)
        start = self.best.index(0)
        return self.best[start:] + self.best[:start]

    def _branch(self, prices: list[float], forced: list[int], forbidden: list[int], rounds: int) -> None:
        bound, prices, edges = self._bound(prices, forced, forbidden, rounds)
        if math.ceil(bound - 1e-6) >= self.shortest:
            return
        degree = _degrees(self.n, edges)
        crowded = next(v for v in range(self.n) if degree[v] > 2)
        a, b = next((a, b) for a, b in edges if crowded in (a, b) and not forced[a] >> b & 1)
        self._branch(prices, forced, _with(forbidden, a, b), LATER_ROUNDS)
        forced = _with(forced, a, b)
        forbidden = forbidden.copy()
        for city in (a, b):
            if forced[city].bit_count() > 2:
                return
            if forced[city].bit_count() == 2:
                for other in range(self.n):
                    if other != city and not forced[city] >> other & 1:
                        forbidden[city] |= 1 << other
                        forbidden[other] |= 1 << city
        self._branch(prices, forced, forbidden, LATER_ROUNDS)

    def _bound(
        self, prices: list[float], forced: list[int], forbidden: list[int], rounds: int
    ) -> tuple[float, list[float], list[tuple[int, int]]]:
        """Subgradient ascent; the best bound met, its prices and its 1-tree."""
        best, best_prices, best_edges = -FAR, prices, [(0, 0)]
        pace, stalled = 2.0, 0
        for _ in range(rounds):
            length, edges = self._one_tree(prices, forced, forbidden)
            if length >= FAR / 2:
                return FAR, prices, edges
            excess = [d - 2 for d in _degrees(self.n, edges)]
            if length > best:
                best, best_prices, best_edges, stalled = length, prices, edges, 0
            else:
                stalled += 1
            if not any(excess):
                self._improve(edges)
                return length, prices, edges
            if math.ceil(best - 1e-6) >= self.shortest:
                break
            if stalled >= 4:
                pace, stalled = pace * 0.6, 0
            step = pace * (self.shortest - length) / sum(e * e for e in excess)
            if step < 1e-4:
                break
            prices = [price + step * e for price, e in zip(prices, excess, strict=True)]
        return best, best_prices, best_edges

    def _one_tree(
        self, prices: list[float], forced: list[int], forbidden: list[int]
    ) -> tuple[float, list[tuple[int, int]]]:
        """Prim's tree over cities 1 … n-1, forced edges first, and the two shortest edges of city 0."""
        spend(self.n * self.n)
        near, parent = [FAR * 2] * self.n, [1] * self.n
        left = list(range(2, self.n))
        edges: list[tuple[int, int]] = []
        total, city = -2 * sum(prices), 1
        while left:
            row, price, must, never = self.distance[city], prices[city], forced[city], forbidden[city]
            nearest = left[0]
            for other in left:
                if not never >> other & 1:
                    cost = row[other] + price + prices[other]
                    if must >> other & 1:
                        cost -= FAR
                    if cost < near[other]:
                        near[other], parent[other] = cost, city
                if near[other] < near[nearest]:
                    nearest = other
            if near[nearest] > FAR:
                return FAR, edges
            city = nearest
            left.remove(city)
            edges.append((parent[city], city))
            total += self.distance[parent[city]][city] + prices[parent[city]] + prices[city]
        row, must, never = self.distance[0], forced[0], forbidden[0]
        ends = sorted(
            (row[v] + prices[v] - (FAR if must >> v & 1 else 0), v) for v in range(1, self.n) if not never >> v & 1
        )[:2]
        if len(ends) < 2:
            return FAR, edges
        edges += [(0, v) for _, v in ends]
        return total + sum(row[v] + prices[0] + prices[v] for _, v in ends), edges

    def _improve(self, edges: list[tuple[int, int]]) -> None:
        """A 1-tree with two edges at every city is a tour."""
        partners: list[list[int]] = [[] for _ in range(self.n)]
        for a, b in edges:
            partners[a].append(b)
            partners[b].append(a)
        tour, before = [0], -1
        while len(tour) < self.n:
            here = tour[-1]
            tour.append(next(city for city in partners[here] if city != before))
            before = here
        length = tour_length(self.whole, tour)
        if length < self.shortest:
            self.shortest, self.best = length, tour

    def _greedy(self, start: int) -> list[int]:
        """Nearest neighbour, then 2-opt."""
        distance, left, tour, improved = self.distance, set(range(self.n)) - {start}, [start], True
        while left:
            tour.append(min(left, key=lambda city: (distance[tour[-1]][city], city)))
            left.remove(tour[-1])
        while improved:
            spend(self.n * self.n)
            improved = False
            for i in range(self.n - 2):
                a, b = tour[i], tour[i + 1]
                for j in range(i + 2, self.n - (i == 0)):
                    c, d = tour[j], tour[(j + 1) % self.n]
                    if distance[a][c] + distance[b][d] < distance[a][b] + distance[c][d] - 1e-9:
                        tour[i + 1 : j + 1] = tour[j:i:-1]
                        b, improved = tour[i + 1], True
        return tour


def _degrees(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    degree = [0] * n
    for a, b in edges:
        degree[a] += 1
        degree[b] += 1
    return degree


def _with(edges: list[int], a: int, b: int) -> list[int]:
    edges = edges.copy()
    edges[a] |= 1 << b
    edges[b] |= 1 << a
    return edges
