"""Who disturbs whom. `I[a, b]`: what one update on skill a does to skill b.

First order: ⟨step_a, ∇J_b⟩ / |step_a|, from gradients. Measured: success (or likelihood) of b after one update on a,
minus before, with the same random numbers, per length of step. Both, and whether they rank the pairs alike: where they
do not, gradient cosines are no guide to forgetting. Suffix S: skills.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlvrlab.batch import Floats


class Agreement(NamedTuple):
    """First-order against measured interference."""

    spearman: float
    """Rank correlation over ordered pairs of different skills; NaN when one side is constant."""
    sign: float
    """Share of those pairs with the same sign."""
    pairs: int


def first_order(step_S: list[Floats] | Floats, size_S: Floats) -> Floats:
    """`step_S[a][b]` = ⟨step_a, ∇J_b⟩, `size_S[a]` = |step_a|."""
    size = np.asarray(size_S, dtype=np.float64)[:, None]
    return np.where(size > 0, np.asarray(step_S, dtype=np.float64) / np.where(size > 0, size, 1.0), 0.0)


def measured(before_S: Floats, after_SS: Floats, size_S: Floats) -> Floats:
    """`after_SS[a, b]` on b after an update on a; paired with `before_S[b]`."""
    return first_order(np.asarray(after_SS, dtype=np.float64) - np.asarray(before_S, dtype=np.float64)[None, :], size_S)


def agreement(one_SS: Floats, other_SS: Floats) -> Agreement:
    """How well two interference matrices agree, over ordered pairs a ≠ b."""
    away = ~np.eye(len(one_SS), dtype=bool)
    left, right = one_SS[away], other_SS[away]
    same = float((np.sign(left) == np.sign(right)).mean()) if len(left) else float("nan")
    return Agreement(spearman(left, right), same, int(away.sum()))


def spearman(left: Floats, right: Floats) -> float:
    """Correlation of ranks, ties sharing theirs."""
    a, b = _ranks(left), _ranks(right)
    if len(a) < 2 or a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(((a - a.mean()) * (b - b.mean())).mean() / (a.std() * b.std()))


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
