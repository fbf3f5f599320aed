"""The largest matching: as many as possible get one of their choices, and nobody shares one."""

from __future__ import annotations

from collections.abc import Sequence


def largest_matching(choices: Sequence[Sequence[int]]) -> dict[int, int]:
    """Who gets what, by augmenting paths; `choices[i]` is what i would take."""
    holder: dict[int, int] = {}

    def seat(one: int, tried: set[int]) -> bool:
        for choice in choices[one]:
            if choice not in tried:
                tried.add(choice)
                if choice not in holder or seat(holder[choice], tried):
                    holder[choice] = one
                    return True
        return False

    for one in range(len(choices)):
        seat(one, set())
    return {one: choice for choice, one in sorted(holder.items())}
