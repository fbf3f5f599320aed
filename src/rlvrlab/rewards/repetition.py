"""Does a text go round in circles? An exact test for tandem repeats: a block, at once repeated, five times or more.

A text has one of period p when s[i] == s[i+p] over a stretch of 4p characters. Testing every period costs hundreds of
milliseconds; the detector in common use costs more and, because its binary search needs a property that does not hold,
misses a third of what is there. Here periods are ruled out by the octave, with proof:

- Inside such a stretch every window of 20 characters equals the one p later, for 4p - 19 windows in a row. For periods
  from P to 2P that is more than 2P, so one of the windows 0, 2P, 4P, … equals the one p later.
- The stretch reaches at least 1.5 p to one side of it, so there the next twelve windows, an eighth of p apart, equal
  those p later too.

What is left is compared character by character, so a collision of hashes decides nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_LENGTH = 20
MIN_REPEATS = 5
MAX_TEXT = 40_000
"""Of longer texts only the end is looked at: a policy that goes round in circles does not come out again."""
EIGHTHS = 12
FACTOR = 0x9E3779B97F4A7C15


def tandem_period(text: str) -> int:
    """A period, at least MIN_LENGTH, of a block repeated MIN_REPEATS times in a row; 0 if there is none."""
    if len(text) < MIN_LENGTH * MIN_REPEATS:
        return 0
    text = text[-MAX_TEXT:]
    codes_N = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    hash_N = _window_hashes(codes_N)
    shortest, longest = MIN_LENGTH, len(text) // MIN_REPEATS
    while shortest <= longest:
        for period in _candidates(hash_N, shortest):
            if period <= longest and _repeats(codes_N, period):
                return period
        shortest *= 2
    return 0


def _window_hashes(codes_N: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """A polynomial hash of each window, built by doubling its length."""
    base_N = (codes_N.astype(np.uint64) + np.uint64(1)) * np.uint64(FACTOR)
    hash_N, covered = base_N, 1
    for bit in bin(MIN_LENGTH)[3:]:
        hash_N = hash_N[covered:] + hash_N[:-covered] * np.uint64(pow(FACTOR, covered, 1 << 64))
        covered *= 2
        if bit == "1":
            hash_N = hash_N[:-1] * np.uint64(FACTOR) + base_N[covered:]
            covered += 1
    return hash_N


def _candidates(hash_N: NDArray[np.uint64], shortest: int) -> list[int]:
    """Periods from `shortest` to twice that which the windows do not rule out."""
    rows = -(-len(hash_N) // (2 * shortest))
    hash_RP = np.resize(hash_N, rows * 2 * shortest).reshape(rows, 2 * shortest)
    row_K, gap_K = np.nonzero(hash_RP[:, shortest:] == hash_RP[:, :1])
    period_K, start_K = gap_K + shortest, row_K * 2 * shortest
    one_sided = [_kept(hash_N, start_K, period_K, step) for step in (1, -1)]
    return [int(period) for period in np.unique(np.concatenate(one_sided))]


def _kept(
    hash_N: NDArray[np.uint64], start_K: NDArray[np.int64], period_K: NDArray[np.int64], step: int
) -> NDArray[np.int64]:
    """The periods that the next windows to one side do not rule out."""
    for eighth in range(1, EIGHTHS + 1):
        if not len(period_K):
            break
        here_K = start_K + step * eighth * (period_K // 8)
        inside_K = (here_K >= 0) & (here_K + period_K < len(hash_N))
        here_K = np.where(inside_K, here_K, 0)
        kept_K = inside_K & (hash_N[here_K] == hash_N[np.where(inside_K, here_K + period_K, 0)])
        start_K, period_K = start_K[kept_K], period_K[kept_K]
    return period_K


def _repeats(codes_N: NDArray[np.uint32], period: int) -> bool:
    breaks = np.flatnonzero(codes_N[period:] != codes_N[:-period])
    ends = np.concatenate(([-1], breaks, [len(codes_N) - period]))
    return int(np.diff(ends).max()) - 1 >= (MIN_REPEATS - 1) * period
