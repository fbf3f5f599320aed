"""Who sits where while a call is decoded with graphs, where the prompts lie, and who takes the places that come free.

A place is a row of the batch; a slot holds the keys and values of a prompt. Nothing here touches the device, and who
begins when follows from the tokens that were drawn and from who is still wanted, never from time.
Suffixes: P places, R rows of the call or of an arrival.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Ints
from rlvrlab.engines.hf.asked import Asked, Moves, swap_out

REFILL_SHARE = 1 / 8
"""Rows that wait begin once so large a share of the places can be filled, or all who wait can begin. Nobody else draws
a token meanwhile: prompts are computed without a graph, kernel after kernel, and the weights are read for one prompt as
for many, so a few prompts cost as much time as several steps. Until then less than an eighth of the batch is idle."""
BUCKETS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""Batch sizes that get a graph of their own."""
NOBODY = -1


def bucket(rows: int) -> int:
    """The smallest graph that holds so many rows."""
    return next((size for size in BUCKETS if size >= rows), rows)


def bucket_within(rows: int) -> int:
    """The largest graph with at most so many rows."""
    return max((size for size in BUCKETS if size <= rows), default=1)


def rounded(positions: int) -> int:
    """Rooms grow in steps of 64 positions."""
    return -(-positions // 64) * 64


class Arrivals(NamedTuple):
    """Rows that begin together."""

    place_R: Ints
    row_R: Ints
    slot_R: Ints
    """Where the prompt of each lies."""
    prompt_R: Ints
    """Which of the prompts of these rows each has."""
    groups: list[int]
    """Prompts that are to be computed, in the order of the rows."""
    slots: list[int]
    """Where they are to lie."""
    continued: bool
    """The first rows are further samples of the last arrivals' last prompt, which lies there already."""


class Places:
    """The rows of a call: some sit, some wait, the others have ended."""

    def __init__(self, asked: Asked, most: int, unwanted: Callable[[int], bool] | None = None) -> None:
        self.asked = asked
        self._unwanted = unwanted or (lambda row: False)
        rows = len(asked.group_R)
        count = min(most, rows)
        self.row_P: Ints = np.full(count, NOBODY)
        self.step_P: Ints = np.zeros(count, dtype=np.int64)
        """Tokens drawn before the newest one."""
        self.slots = min(count, len(asked.prompts))
        """Whoever sits needs at most a slot of their own, so whoever finds a place finds a slot."""
        self._slot_of: dict[int, int] = {}
        self._next = 0

    @property
    def taken(self) -> Ints:
        """Places where somebody sits."""
        return np.flatnonzero(self.row_P != NOBODY)

    @property
    def waiting(self) -> int:
        """Rows that have not begun."""
        return len(self.asked.group_R) - self._next

    @property
    def longest(self) -> int:
        """Most tokens that anybody has drawn before the newest one."""
        return int(self.step_P[self.taken].max())

    @property
    def steps_left(self) -> int:
        """Steps until the last of those who sit is cut."""
        taken = self.taken
        return int((self.asked.limit_R[self.row_P[taken]] - 1 - self.step_P[taken]).max())

    def admit(self) -> Arrivals | None:
        """Rows that wait take free places, the first come first, once enough of them can to make it worth while."""
        free, sitting = np.flatnonzero(self.row_P == NOBODY), self.row_P[self.taken]
        enough = int(np.ceil(REFILL_SHARE * len(self.row_P)))
        if not self.waiting or len(free) < min(enough, self.waiting):
            return None
        wanted = self._wanted(len(free))
        if not wanted:
            self._next += self.waiting
            return None
        groups = self.asked.group_R[wanted].tolist()
        kept = {groups[0], *self.asked.group_R[sitting].tolist()}
        slot_of = {group: slot for group, slot in self._slot_of.items() if group in kept}
        vacant = sorted(set(range(self.slots)) - set(slot_of.values()))
        new = dict(zip((group for group in dict.fromkeys(groups) if group not in slot_of), vacant, strict=False))
        self._slot_of = slot_of | new
        return self._seat(free[: len(wanted)], np.array(wanted), new)

    def _wanted(self, most: int) -> list[int]:
        """The first who wait and whom somebody waits for."""
        waiting = range(self._next, len(self.asked.group_R))
        return list(islice((row for row in waiting if not self._unwanted(row)), most))

    def _seat(self, place_R: Ints, row_R: Ints, new: dict[int, int]) -> Arrivals:
        self._next = int(row_R[-1]) + 1
        self.row_P[place_R], self.step_P[place_R] = row_R, 0
        groups, prompt_R = np.unique(self.asked.group_R[row_R], return_inverse=True)
        slot_R = np.array([self._slot_of[group] for group in groups.tolist()])[prompt_R]
        # Groups are in the order of the rows, so only the first can lie there already.
        return Arrivals(place_R, row_R, slot_R, prompt_R, list(new), list(new.values()), len(groups) > len(new))

    def leave(self, place_P: Ints) -> None:
        """These rows have ended."""
        self.row_P[place_P] = NOBODY

    def close_up(self) -> Moves | None:
        """Once nobody waits, the living move to the front as soon as a smaller graph holds them."""
        left = len(self.taken)
        if self.waiting or not left or bucket(left) >= bucket(len(self.row_P)):
            return None
        moves = swap_out(self.row_P == NOBODY)
        for values_P in (self.row_P, self.step_P):
            values_P[moves.to] = values_P[moves.source]
        self.row_P, self.step_P = self.row_P[:left], self.step_P[:left]
        return moves
