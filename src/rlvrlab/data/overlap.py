"""Shared passages: thirteen words in a row that two texts have in common, the usual test for leaked evaluation data.

Signs and case do not count. A passage that stands in more than MOST_TEXTS texts is a turn of phrase, not a leak; one
with fewer than FEWEST_WORDS different words is a row of numbers or variables, as every list of test data has.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

import numpy as np

from rlvrlab.data.texts import Texts

LENGTH = 13
MOST_TEXTS = 10
FEWEST_WORDS = 5


class Overlap(NamedTuple):
    """Two texts with a passage in common."""

    left: int
    right: int
    shared: int
    """Distinct runs of LENGTH words they share."""
    place: tuple[int, int]
    """Where the first telling run begins in either text, in tokens."""


def overlaps(texts: Texts, length: int = LENGTH) -> list[Overlap]:
    """Every pair that shares a run of `length` words."""
    words, among_all = texts.words()
    owners, values, places = words.placed(length, whole_if_short=False)
    ordered = np.sort(values)
    twice = np.isin(values, ordered[1:][ordered[1:] == ordered[:-1]])
    values, owners, places = values[twice], owners[twice], places[twice] - words.starts[owners[twice]]
    passages: dict[int, dict[int, int]] = defaultdict(dict)  # the texts that have it, and its first place there
    for value, owner, place in zip(values.tolist(), owners.tolist(), places.tolist(), strict=True):
        passages[value].setdefault(owner, place)
    common: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for members in passages.values():
        if len(members) <= MOST_TEXTS:
            for (left, at_left), (right, at_right) in combinations(sorted(members.items()), 2):
                common[left, right].append((at_left, at_right))
    overlapping = []
    for pair, shared in sorted(common.items()):
        telling = next((places for places in sorted(shared) if _tells(words, pair, places, length)), None)
        if telling is not None:
            at = [among_all[words.starts[i] + place] - texts.starts[i] for i, place in zip(pair, telling, strict=True)]
            overlapping.append(Overlap(*pair, len(shared), (int(at[0]), int(at[1]))))
    return overlapping


def _tells(words: Texts, pair: tuple[int, int], places: tuple[int, int], length: int) -> bool:
    """Is the run evidence? Its words must be equal (hashes may collide), and FEWEST_WORDS of them different."""
    left, right = (words.tokens[words.starts[i] + at :][:length] for i, at in zip(pair, places, strict=True))
    return bool(np.array_equal(left, right)) and len(set(left[words.has_letter[left]].tolist())) >= FEWEST_WORDS
