"""The one small solver behind every projection: min ½ λᵀMλ + qᵀλ over λ ≥ 0, for M = G Gᵀ of a few gradients.

An active-set method after Lawson and Hanson. Rows are scaled to unit length first, so that gradients of very different
size are told apart equally well, and blocks are solved by least squares, so that duplicate rows do no harm (quadprog
refuses both duplicate and zero rows). Suffix S: rows.
"""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np

from rlvrlab.batch import Floats, Ints

TOLERANCE = 1e-12
LARGEST_ENUMERATION = 10


def nonnegative_qp(gramian_SS: Floats, q_S: Floats) -> Floats:
    """The minimiser; without one (M singular along a falling direction), the point that violates KKT least."""
    scale_S = np.sqrt(np.maximum(np.diag(gramian_SS), 0.0))
    live = np.flatnonzero(scale_S > 0)
    multiplier_S = np.zeros(len(q_S))
    if not len(live):
        return multiplier_S
    M = gramian_SS[np.ix_(live, live)] / np.outer(scale_S[live], scale_S[live])
    q = q_S[live] / scale_S[live]
    points = [_active_set(M, q)]
    if _violation(M, q, points[0]) > 1e-9 * max(np.abs(q).max(), 1e-300) and len(q) <= LARGEST_ENUMERATION:
        # Rounding led the active set astray, or there is no solution: try every set before believing the latter.
        sets = chain.from_iterable(combinations(range(len(q)), count) for count in range(1, len(q) + 1))
        tried = (_block(M, q, np.array(chosen)) for chosen in sets)
        points += [point for point in tried if (point >= 0).all()]
    multiplier_S[live] = min(points, key=lambda point: _violation(M, q, point)) / scale_S[live]
    return multiplier_S


def _active_set(M: Floats, q: Floats) -> Floats:
    size, scale = len(q), max(float(np.abs(q).max()), 1e-300)
    point, inside = np.zeros(size), np.zeros(size, dtype=bool)
    for _ in range(10 * size + 10):
        complaint = -(M @ point + q)
        complaint[inside] = -np.inf
        worst = int(np.argmax(complaint))
        if complaint[worst] <= TOLERANCE * scale:
            break
        inside[worst] = True
        while inside.any():
            target = _block(M, q, np.flatnonzero(inside))
            low = inside & (target <= 0)
            if not low.any():
                point = target
                break
            share = float(np.min(point[low] / np.maximum(point[low] - target[low], 1e-300)))
            point = np.maximum(point + share * (target - point), 0.0)
            point[low & (point <= TOLERANCE * max(point.max(), 1e-300))] = 0.0
            inside &= point > 0
    return np.where(inside, point, 0.0)


def _block(M: Floats, q: Floats, index: Ints) -> Floats:
    """The minimiser with only these multipliers other than 0, whatever their sign."""
    target = np.zeros(len(q))
    target[index] = np.linalg.lstsq(M[np.ix_(index, index)], -q[index], rcond=TOLERANCE)[0]
    return target


def _violation(M: Floats, q: Floats, point: Floats) -> float:
    """How far from the Karush–Kuhn–Tucker conditions: slack below 0, or an active row that is not tight."""
    slack = M @ point + q
    return float(max(np.max(-slack), np.max(np.abs(slack[point > 0]), initial=0.0)))
