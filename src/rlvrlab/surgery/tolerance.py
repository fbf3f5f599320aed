"""ε: how much a protected skill may lose in one step.

    relative   ε_s = ε |u| |g_s|                      in units of the cosine between step and gradient
    absolute   ε_s = ε                                in units of the skill's objective J_s, per step
    budget     ε_s = J_s − (J_s* − ε)                 over the whole run, against the anchor's J_s*

A tolerance per step lets drift add up to steps × ε, and even ε = 0 drifts by curvature. The budget counts what was
really lost: a surplus may be spent, a deficit asks for a gain of `repair` × deficit, at most `cap` |u| |g_s| per step.
Suffix S: skills.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlvrlab.batch import Floats

Kind = Literal["budget", "relative", "absolute"]


def tolerances(
    kind: Kind, epsilon: float, size_S: Floats, surplus_S: Floats, *, repair: float = 0.5, cap: float = 0.5
) -> Floats:
    """`size_S` is |u| |g_s|; `surplus_S` is J_s − J_s*, positive where the skill is better than at its anchor."""
    if kind == "relative":
        return epsilon * size_S
    if kind == "absolute":
        return np.full(len(size_S), epsilon)
    left_S = surplus_S + epsilon
    return np.where(left_S >= 0, left_S, np.maximum(repair * left_S, -cap * size_S))
