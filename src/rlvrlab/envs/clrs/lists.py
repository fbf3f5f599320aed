"""Algorithms on lists and texts, after Cormen, Leiserson, Rivest and Stein; each with the states it passes through.

A state is the list after one step of the outer loop; algorithms without states return an empty trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial

Keys = Sequence[int]
States = list[list[int]]


def insertion_sort(keys: Keys) -> tuple[list[int], States]:
    """Sorted keys; a state after every insertion."""
    row, states = list(keys), States()
    for j in range(1, len(row)):
        key, i = row[j], j
        while i > 0 and row[i - 1] > key:
            row[i] = row[i - 1]
            i -= 1
        row[i] = key
        states.append(row.copy())
    return row, states


def bubble_sort(keys: Keys) -> tuple[list[int], States]:
    """Sorted keys; a state after every pass that carries the smallest rest to the front."""
    row, states = list(keys), States()
    for i in range(len(row) - 1):
        for j in range(len(row) - 1, i, -1):
            if row[j] < row[j - 1]:
                row[j], row[j - 1] = row[j - 1], row[j]
        states.append(row.copy())
    return row, states


def heapsort(keys: Keys) -> tuple[list[int], States]:
    """Sorted keys; a state after building the heap and after every largest key taken off."""
    row, states = list(keys), States()
    for start in reversed(range(len(row) // 2)):
        _sink(row, start, len(row))
    states.append(row.copy())
    for end in range(len(row) - 1, 0, -1):
        row[0], row[end] = row[end], row[0]
        _sink(row, 0, end)
        states.append(row.copy())
    return row, states


def _sink(heap: list[int], i: int, size: int) -> None:
    while True:
        largest = max((j for j in (i, 2 * i + 1, 2 * i + 2) if j < size), key=lambda j: heap[j])
        if largest == i:
            return
        heap[i], heap[largest] = heap[largest], heap[i]
        i = largest


def quicksort(keys: Keys) -> tuple[list[int], States]:
    """Sorted keys; a state after every partition around the last key."""
    row, states, waiting = list(keys), States(), [(0, len(keys) - 1)]
    while waiting:
        low, high = waiting.pop()
        if low < high:
            border = low
            for j in range(low, high):
                if row[j] <= row[high]:
                    row[border], row[j] = row[j], row[border]
                    border += 1
            row[border], row[high] = row[high], row[border]
            states.append(row.copy())
            waiting += [(border + 1, high), (low, border - 1)]
    return row, states


def minimum(keys: Keys) -> int:
    """Where the smallest key stands."""
    return min(range(len(keys)), key=lambda i: keys[i])


def binary_search(keys: Keys, target: int) -> int:
    """The first place whose key is not below the target, the last place when there is none."""
    return min(bisect_left(keys, target), len(keys) - 1)


def quickselect(keys: Keys) -> int:
    """Where the (upper) median stands."""
    return sorted(range(len(keys)), key=lambda i: keys[i])[len(keys) // 2]


def maximum_subarray(keys: Keys) -> tuple[int, int]:
    """First and last place of the run with the largest sum, by Kadane; the earliest such run."""
    best_start = best_end = start = 0
    best = current = keys[0]
    for i in range(1, len(keys)):
        if current <= 0:
            start, current = i, keys[i]
        else:
            current += keys[i]
        if current > best:
            best, best_start, best_end = current, start, i
    return best_start, best_end


def activity_selector(starts: Keys, ends: Keys) -> list[int]:
    """1 for the activities of a largest set without overlap: always the one that ends first."""
    chosen, free_at = [0] * len(starts), None
    for i in sorted(range(len(starts)), key=lambda i: ends[i]):
        if free_at is None or starts[i] >= free_at:
            chosen[i], free_at = 1, ends[i]
    return chosen


def string_match(text: Keys, pattern: Keys) -> int:
    """Where the pattern first occurs, the text's length when it does not."""
    starts = range(len(text) - len(pattern) + 1)
    return next((at for at in starts if list(text[at : at + len(pattern)]) == list(pattern)), len(text))


def segments_intersect(xs: Keys, ys: Keys) -> int:
    """1 when the segments from point 0 to 1 and from 2 to 3 meet."""
    turn = partial(_turn, xs, ys)

    def touches(i: int, j: int, k: int) -> bool:
        inside = min(xs[i], xs[j]) <= xs[k] <= max(xs[i], xs[j]) and min(ys[i], ys[j]) <= ys[k] <= max(ys[i], ys[j])
        return turn(i, j, k) == 0 and inside

    crossing = turn(0, 1, 2) * turn(0, 1, 3) < 0 and turn(2, 3, 0) * turn(2, 3, 1) < 0
    ends = ((2, 3, 0), (2, 3, 1), (0, 1, 2), (0, 1, 3))
    return int(crossing or any(touches(*end) for end in ends))


def convex_hull(xs: Keys, ys: Keys) -> list[int]:
    """1 for the corners of the hull."""
    order = sorted(range(len(xs)), key=lambda i: (xs[i], ys[i]))
    corners: set[int] = set()
    for walk in (order, order[::-1]):
        chain: list[int] = []
        for point in walk:
            while len(chain) > 1 and _turn(xs, ys, chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        corners |= set(chain)
    return [int(i in corners) for i in range(len(xs))]


def _turn(xs: Keys, ys: Keys, a: int, b: int, c: int) -> int:
    """Above 0 when the way from a over b to c turns left, below when right, 0 when it goes straight on."""
    return (xs[b] - xs[a]) * (ys[c] - ys[a]) - (ys[b] - ys[a]) * (xs[c] - xs[a])
