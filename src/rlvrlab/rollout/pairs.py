"""Which two answers to one problem become a preference pair: the same rule on-line and for files.

right   right answers against wrong ones; diagonals first, so that every answer appears once before one appears twice
score   any answer against one that scored less, the widest gaps first: where nothing is right yet, passing more tests
        is still better than passing fewer
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Literal, TypeVar

T = TypeVar("T")
By = Literal["right", "score"]


def right_pairs(right: Sequence[T], wrong: Sequence[T]) -> Iterator[tuple[T, T]]:
    """(chosen, rejected): every right answer with every wrong one, in the order in which they should be taken."""
    order = sorted(product(range(len(right)), range(len(wrong))), key=lambda ij: (abs(ij[0] - ij[1]), ij))
    for i, j in order:
        yield right[i], wrong[j]


def score_pairs(answers: Sequence[tuple[float, T]], margin: float) -> Iterator[tuple[T, T]]:
    """(chosen, rejected) of answers with their scores; scores that differ by less than `margin`, or not at all, never.

    Equal gaps keep the order of the answers.
    """
    ranked = sorted(range(len(answers)), key=lambda i: (-answers[i][0], i))
    gaps = [(answers[i][0] - answers[j][0], i, j) for i, j in combinations(ranked, 2)]
    for gap, i, j in sorted(gaps, key=lambda one: (-one[0], one[1:])):
        if gap > 0 and gap >= margin:
            yield answers[i][1], answers[j][1]
