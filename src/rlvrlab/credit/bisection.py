"""Which steps of a right answer does it need? Delete many at once, and halve what cannot go.

    8 steps, of which 5 is needed:   −{0..3} right   −{4..7} wrong
                                     −{4,5} wrong    −{6,7} right
                                     −{4} right      −{5} wrong        6 replays instead of 8; of 32 steps 10

Every step that is blamed or cleared alone has exactly the credit that leave_one_out gives it. A set that can go as a
whole clears all its members, which is right as long as fewer deletions do no more harm than more (a statement and the
one that undoes it are a pair of which one alone may be missed). With m needed steps of n it takes about 2 m log2(n / m)
replays and log2 n rounds; where most steps are needed it takes up to 2 n − 2, more than one by one.
"""

from __future__ import annotations

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.edits import COALITION, Edit, Estimate, Replays, coalition

Steps = tuple[int, ...]


def bisect(steps: int, chosen_S: Ints) -> Replays:
    """Deletion effects of the chosen steps of an answer, found by halving."""
    begin = _halves(tuple(int(i) for i in chosen_S))

    def walk(value_E: Floats, whole: float) -> tuple[Floats, list[Steps]]:
        """Credit as far as the values go, and the sets to be deleted next."""
        credit_S, sets, used = np.full(steps, np.nan), begin, 0
        while sets and used + len(sets) <= len(value_E):
            harmed: list[Steps] = []
            for one in sets:
                lost = whole - value_E[used]
                used += 1
                if len(one) == 1 or lost == 0:
                    credit_S[list(one)] = lost
                else:
                    harmed += _halves(one)
            sets = harmed
        return credit_S, sets

    def solve(value_E: Floats, whole: float) -> Estimate:
        return Estimate.exact(walk(value_E, whole)[0])

    def then(value_E: Floats, whole: float) -> tuple[Edit, ...]:
        return tuple(_without(steps, one) for one in walk(value_E, whole)[1])

    return Replays(tuple(_without(steps, one) for one in begin), solve, then)


def _halves(one: Steps) -> list[Steps]:
    middle = len(one) // 2
    return [half for half in (one[:middle], one[middle:]) if half]


def _without(steps: int, gone: Steps) -> Edit:
    """A single step may be left unknown where the answer no longer runs; a set that breaks it is simply needed."""
    return coalition(~np.isin(np.arange(steps), gone), gone[0] if len(gone) == 1 else COALITION)
