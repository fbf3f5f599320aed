"""What a comparison of a given size could show: before anything is run, and after it was found to be too small."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from rlvrlab.evals.noise import Noise
from rlvrlab.evals.statistics import Difference

MOST_SEEDS, MOST_TIMES = 100, 64
"""How far it is looked for a size that would decide: seeds, and times the problems."""


class Size(NamedTuple):
    """A study that would decide 4 times out of 5, were the difference what it looks like."""

    seeds: int
    problems: int


def enough(found: Difference, margin: float, alpha: float) -> Size | None:
    """How many seeds, and where they do not suffice problems, would show a difference or equivalence."""
    noise, now, wanted = found.noise, min(found.seeds), max(abs(found.mean), margin - abs(found.mean))
    if noise is None or wanted <= 0:
        return None
    most = MOST_SEEDS if now > 1 else now
    times = 1
    while times <= MOST_TIMES and noise.resized(now, most, times).reach(1 - alpha) > wanted:
        times *= 2
    if times > MOST_TIMES:
        return None
    sizes = range(now, most + 1)  # every seed more shows smaller differences
    fits = bisect_left(sizes, True, key=lambda seeds: noise.resized(now, seeds, times).reach(1 - alpha) <= wanted)
    return Size(sizes[fits], times * found.problems)


def planned_reach(
    seeds: int, problems: Sequence[tuple[float, int]], seed_spread: float, alpha: float, paired: bool = False
) -> float:
    """What a comparison could show before anything was run.

    `problems` are (weight, number) of each suite; half of all answers are taken to be right, independently in the two
    arms. `seed_spread` is the standard deviation over seeds that is assumed, in pairs too, where it is less if the
    shared start is what differs; one seed says nothing about it.
    """
    by_problem = sum(0.5 * weight**2 / count for weight, count in problems)
    least = max(1, min(count for _, count in problems) - 1)
    by_seed = 2 * seed_spread**2 / seeds if seeds > 1 else 0.0
    return Noise(0.0, by_seed, (1 if paired else 2) * (seeds - 1), by_problem, least).reach(1 - alpha)
