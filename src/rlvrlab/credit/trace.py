"""Blame by execution: a failed program runs beside a right one of its group, and what follows their parting is spared.

    [credit]
    type = "trace"

    failed    x=x[1:]      right    x=x[:3]         after the first statement the values of x differ:
              return max(x)         return max(x)   the first statement is blamed, the second is not

Both run on the tests of the problem, in the jail, and only check sums of variables come out. A state of the failed
program agrees with one of the right program when no variable that both have differs, and both or neither have ended,
with the same result. Its states are matched to the right program's in order, several to one where statements are idle;
the first that finds no partner is where they part, and the statement that made it is blamed. Of several right answers
the one counts that goes along for longest, of several tests the one on which they part first.

    the statement blamed         weight × the group's advantage, which is negative
    all tokens after it          0: they went on from a state that was wrong already
    what came before it          the group's advantage, or 0 (before = "zero")
    no right sibling, no program, or no parting found: the group's advantage

This is shaping (as in EGCA, 2603.16158): the comparison sees the whole answer. It asks the verifier nothing: each
program that is compared runs once more, unscored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rlvrlab.batch import Floats, Ints
from rlvrlab.credit.base import StepCredit
from rlvrlab.registry import register
from rlvrlab.types import Count, NonNegative

State = tuple[int, Mapping[str, int]]
"""The line that was run, and check sums of the variables after it."""
ENDS = ("return", "raise")


@register("credit", "trace")
@dataclass(frozen=True)
class Trace(StepCredit):
    """The blame for a failed program where its execution parts from a right one's."""

    before: Literal["group", "zero"] = "group"
    """What came before the parting: the group's advantage, or none."""
    weight: NonNegative = 1.0
    """Factor on the group's advantage for the statement that is blamed."""
    siblings: Count = 4
    """Right answers of the group that a failed one is compared with, at most."""

    follows: ClassVar[bool] = True
    segmentation = "python"
    needs_replays = False  # nothing is altered

    def blamed(self, steps: int, step: int, gap: float) -> Floats:
        """Credit where `step` is to blame for earning `gap` less than the right answer; unknown is NaN."""
        credit_S = np.zeros(steps)
        credit_S[:step] = np.nan if self.before == "group" else 0.0
        credit_S[step] = -gap
        return credit_S

    def mapped(self, group_T: Floats, step_T: Ints, credit_S: Floats) -> Floats:
        """Advantages of tokens: none after the last token of the step that is blamed."""
        blamed = np.flatnonzero(credit_S < 0)
        if not len(blamed):
            return group_T
        own_T = step_T == blamed[0]
        earlier_T = (step_T >= 0) & (step_T < blamed[0])
        kept_T = np.where(earlier_T & (self.before == "zero"), 0.0, group_T)
        past_T = np.arange(len(step_T)) > np.flatnonzero(own_T).max(initial=-1)
        past_T &= own_T.any()
        return np.where(own_T, self.weight * group_T, np.where(past_T, 0.0, kept_T))


def parting(failed: Sequence[Sequence[State]], right: Sequence[Sequence[State]]) -> tuple[int, int] | None:
    """After how many states the failed program's execution parts from the right one's, and the line that made it part.

    Both are given call by call; None where they do not part on any call that was followed.
    """
    found = [(at, own[at][0]) for own, other in zip(failed, right, strict=False) if (at := _parted(own, other))]
    return min(found, default=None)


def _parted(failed: Sequence[State], right: Sequence[State]) -> int:
    """The first state of the failed call without a partner; 0 where all have one, or too little is known."""
    if not right or not any(name in right[-1][1] for name in ENDS):
        return 0
    partner = 0
    for at, (_, values) in enumerate(failed):
        while partner < len(right) and not _agree(values, right[partner][1]):
            partner += 1
        if partner == len(right):
            return at
    return 0


def _agree(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    shared = one.keys() & other.keys()
    same_end = all((name in one) == (name in other) for name in ENDS)
    return same_end and bool(shared) and all(one[name] == other[name] for name in shared)
