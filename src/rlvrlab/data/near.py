"""Near-duplicates: MinHash finds candidates, exact Jaccard similarity decides.

    J(A, B) = |A ∩ B| / |A ∪ B| over distinct token n-grams; P(one MinHash agrees) = J        (Broder 1997)
    candidate: all ROWS values of some band agree, P = 1 - (1 - J^ROWS)^BANDS
               0.9987 at J = 0.6, 0.95 at 0.5, 0.07 at 0.2
A pair below the threshold is never reported: its similarity is counted, not estimated. The MinHash values come from
rensa where it is installed (extra `audit`), otherwise from NumPy, a few times slower.
Trap: a 64-bit product that silently becomes a float, or values that are no random order, cost a third of the recall
and show nowhere; the tests plant duplicates and count.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlvrlab.data.texts import OWNER_BITS, Grams, Indices, Numbers, Texts, scattered

SHINGLE = 3
"""Tokens of an n-gram by which texts are compared."""
BANDS, ROWS = 48, 4
VALUES = BANDS * ROWS
SEED = 20250217
MARGIN = 0.15
"""An estimate this far under the threshold is out: four standard deviations of 192 agreements."""
CROWD = 32
"""Texts made from one template are all alike: each is compared with this many neighbours of a bucket, and no more once
it has found this many partners."""
FEWEST = 5
"""N-grams below which likeness means nothing; equal short texts are found as exact duplicates."""
CHUNK = 512
"""Texts hashed, or pairs compared, at a time, so that a block stays in the cache."""

Signatures = NDArray[np.uint32]


class Near(NamedTuple):
    """Two texts, by number, whose similarity reaches the threshold."""

    left: int
    right: int
    jaccard: float


class Found(NamedTuple):
    """All pairs, and whether some bucket was too crowded to compare everyone with everyone."""

    pairs: list[Near]
    crowded: int
    hashing: str
    """rensa or numpy."""


def near_duplicates(grams: Grams, threshold: float) -> Found:
    """Pairs with Jaccard ≥ threshold; texts with equal n-grams are represented by the first of them."""
    seen: dict[bytes, int] = {}
    first = np.arange(len(grams))  # texts with too few n-grams stand for themselves
    for index in np.flatnonzero(grams.sizes >= FEWEST).tolist():
        first[index] = seen.setdefault(grams.of(index).tobytes(), index)
    members = np.flatnonzero((first == np.arange(len(grams))) & (grams.sizes >= FEWEST))
    signatures, hashing = signed(grams, members)
    keys = np.zeros((len(signatures), BANDS), np.uint64)
    for row in range(ROWS):
        keys = scattered(keys + signatures[:, row::ROWS][:, :BANDS].astype(np.uint64) + np.uint64(row + 1))
    order = np.lexsort(signatures[:, :3].T[::-1]) if len(members) else np.zeros(0, np.int64)
    pairs: list[Near] = []
    partners = np.zeros(len(members), np.int64)
    crowded = 0
    for band in range(BANDS):
        left, right, packed = _neighbours(keys[:, band], order)
        crowded += packed
        # A pair that already met in an earlier band was looked at there.
        fresh = ~(keys[left, :band] == keys[right, :band]).any(axis=1)
        left, right = left[fresh], right[fresh]
        alike = (signatures[left] == signatures[right]).mean(axis=1) >= threshold - MARGIN
        alike &= np.minimum(partners[left], partners[right]) < CROWD
        left, right = left[alike], right[alike]
        values = jaccards(grams, members[left], members[right])
        sure = values >= threshold
        left, right, values = left[sure], right[sure], values[sure]
        partners += np.bincount(np.concatenate((left, right)), minlength=len(members))
        pairs += map(Near, members[left].tolist(), members[right].tolist(), values.tolist())
    pairs += [Near(int(first[i]), int(i), 1.0) for i in np.flatnonzero(first != np.arange(len(grams)))]
    return Found(sorted({Near(min(p[:2]), max(p[:2]), p.jaccard) for p in pairs}), crowded, hashing)


def near_prompts(prompts: Sequence[str], parts: Indices, threshold: float) -> list[Near]:
    """Pairs of prompts that are nearly or wholly the same; words that a whole part is wrapped in do not count."""
    if not prompts:
        return []
    grams = Texts.of(prompts).grams(SHINGLE)
    return near_duplicates(grams.without(grams.form(parts)), threshold).pairs


def jaccards(grams: Grams, left: Indices, right: Indices) -> NDArray[np.float64]:
    """The similarity of each pair, exactly: both texts' n-grams sorted together; equal neighbours are shared."""
    similarities = [np.zeros(0)]
    for start in range(0, len(left), CHUNK):
        one, other = left[start : start + CHUNK], right[start : start + CHUNK]
        pair = np.arange(len(one), dtype=np.uint64) << np.uint64(64 - OWNER_BITS)
        both = [np.repeat(pair, grams.sizes[side]) | grams.gathered(side) for side in (one, other)]
        together = np.sort(np.concatenate(both))
        twice = together[1:][together[1:] == together[:-1]] >> np.uint64(64 - OWNER_BITS)
        shared = np.bincount(twice.astype(np.int64), minlength=len(one))
        similarities.append(shared / np.maximum(1, grams.sizes[one] + grams.sizes[other] - shared))
    return np.concatenate(similarities)


def signed(grams: Grams, members: Indices, hashing: str | None = None) -> tuple[Signatures, str]:
    """VALUES MinHash values for each of the texts, and who computed them."""
    starts = np.concatenate(([0], np.cumsum(grams.sizes[members])))
    values = scattered(grams.gathered(members) + np.uint64(1))
    if hashing is None:
        hashing = "rensa" if importlib.util.find_spec("rensa") else "numpy"
    if hashing == "rensa":
        from rensa import RMinHash

        matrix = RMinHash.digest_matrix_from_flat_token_hashes(values, starts.astype(np.uint64), VALUES, SEED)
        return np.array(matrix.to_rows(), np.uint32).reshape(len(members), VALUES), hashing
    # Multiply-shift hashing of values that are scattered already; uint64 arithmetic wraps, as it must here.
    numbers = scattered(np.arange(1, 2 * VALUES + 1, dtype=np.uint64) * np.uint64(SEED))
    factors, summands = numbers[:VALUES] | np.uint64(1), numbers[VALUES:]
    signatures = np.empty((VALUES, len(members)), np.uint32)
    for low in range(0, len(members), CHUNK):
        high = min(len(members), low + CHUNK)
        block, offsets = values[starts[low] : starts[high]], starts[low:high] - starts[low]
        for index in range(VALUES):
            hashed = ((block * factors[index] + summands[index]) >> np.uint64(32)).astype(np.uint32)
            signatures[index, low:high] = np.minimum.reduceat(hashed, offsets)
    return np.ascontiguousarray(signatures.T), hashing


def _neighbours(key: Numbers, order: Indices) -> tuple[Indices, Indices, int]:
    """Pairs that share a bucket; in a crowded one each text with the CROWD that follow it, most alike first."""
    ordered = order[np.argsort(key[order], kind="stable")]
    sorted_keys = key[ordered]
    left: list[Indices] = []
    right: list[Indices] = []
    for distance in range(1, min(CROWD, max(1, len(ordered) - 1)) + 1):
        together = np.flatnonzero(sorted_keys[:-distance] == sorted_keys[distance:])
        if not len(together):
            return _joined(left), _joined(right), 0
        left.append(ordered[together])
        right.append(ordered[together + distance])
    return _joined(left), _joined(right), int(len(ordered) > CROWD + 1)


def _joined(parts: list[Indices]) -> Indices:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
