"""Do no harm: the step nearest to u that no protected skill loses more than ε_s by, to first order.

    min_d ½ |d − u|²   subject to   ⟨g_s, d⟩ ≥ −ε_s          g_s = ∇J_s points uphill
    d = u + Σ λ_s g_s,   λ = argmin_{λ ≥ 0} ½ λᵀMλ + λᵀq,   M = G Gᵀ,   q_s = ⟨g_s, u⟩ + ε_s

    relative   ε_s = ε |u| |g_s|                      in units of the cosine between step and gradient
    absolute   ε_s = ε                                in units of the skill's objective J_s, per step
    budget     ε_s = J_s − (J_s* − ε)                 over the whole run, against the anchor's J_s*

A tolerance per step lets drift add up to steps × ε, and even ε = 0 drifts by curvature. The budget counts what was
really lost: a surplus may be spent, a deficit asks for a gain of `repair` × deficit, at most `cap` |u| |g_s| per step.
Everything needed is in the Gramian of (g_1 … g_S, u). With ε ≥ 0 there is always a solution (d = 0 is allowed). A
negative ε demands a gain, and two opposed skills cannot both gain: then all demands are cut by the largest common
factor that can be met, and the caller is told.
`sequential` and `dykstra` are named approximations: one pass of single projections (as A-GEM and PCGrad do) may leave
a constraint violated and is not the nearest step; Dykstra's passes converge to the exact projection. Suffix S: skills.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from rlvrlab.batch import Bools, Floats
from rlvrlab.surgery.quadratic import nonnegative_qp

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


Solver = Literal["exact", "sequential", "dykstra"]
DYKSTRA_PASSES = 100
HALVINGS = 30
REACH = 3.0
"""A correction longer than this many steps is refused: nearly opposed demands would throw the policy far away."""
SLACK = 1e-9


class Projected(NamedTuple):
    """How a step is corrected."""

    multiplier_S: Floats
    """λ: how much of each g_s is added."""
    change_S: Floats
    """⟨g_s, d⟩: the predicted first-order change of each skill."""
    epsilon_S: Floats
    """What was enforced in the end; larger than asked where `relaxed`."""
    active_S: Bools
    """Skills whose constraint bends the step."""
    relaxed: bool
    """The demands contradicted each other and were cut."""


def project(gramian_SS: Floats, along_S: Floats, epsilon_S: Floats, norm: float, solver: Solver = "exact") -> Projected:
    """`along_S` is ⟨g_s, u⟩ and `norm` is |u|; a skill without gradient cannot be protected and asks for nothing."""
    if not all(np.isfinite(array).all() for array in (gramian_SS, along_S, epsilon_S)):
        raise ValueError("projection: a gradient, the step or a tolerance is NaN or infinite")
    dead_S = np.diag(gramian_SS) <= 0
    epsilon_S = np.where(dead_S, np.maximum(epsilon_S, 0.0), epsilon_S)
    if solver == "exact":
        multiplier_S = nonnegative_qp(gramian_SS, along_S + epsilon_S)
    else:
        # Projecting on half-spaces in turn, each time taking the skill's earlier correction back: coordinate descent.
        multiplier_S = np.zeros(len(along_S))
        for s in [*np.flatnonzero(~dead_S)] * (1 if solver == "sequential" else DYKSTRA_PASSES):
            row_S = gramian_SS[s]
            lacking = along_S[s] + row_S @ multiplier_S - row_S[s] * multiplier_S[s] + epsilon_S[s]
            multiplier_S[s] = max(0.0, -lacking / row_S[s])
    relaxed = False
    if solver == "exact" and (epsilon_S < 0).any() and not _fits(gramian_SS, along_S, epsilon_S, multiplier_S, norm):
        relaxed = True
        epsilon_S, multiplier_S = _relaxed(gramian_SS, along_S, epsilon_S, norm)
    change_S = along_S + gramian_SS @ multiplier_S
    return Projected(multiplier_S, change_S, epsilon_S, multiplier_S > 0, relaxed)


def gem_multipliers(gramian_SS: Floats, along_S: Floats, margin: float) -> Floats:
    """GEM's v: the gradient g becomes g + Σ v_s ℓ_s. `along_S` is ⟨ℓ_s, g⟩; all are gradients of losses.

    v = argmin_{v ≥ margin} ½ vᵀMv + vᵀ⟨ℓ, g⟩ (Lopez-Paz and Ranzato 2017, eq. 11); 0 where no constraint is violated.
    """
    if (along_S >= 0).all():
        return np.zeros(len(along_S))
    least_S = np.full(len(along_S), margin)
    return least_S + nonnegative_qp(gramian_SS, along_S + gramian_SS @ least_S)


def correction_norm(gramian_SS: Floats, multiplier_S: Floats) -> float:
    """|Σ λ_s g_s|."""
    return float(np.sqrt(max(float(multiplier_S @ gramian_SS @ multiplier_S), 0.0)))


def _fits(M: Floats, along_S: Floats, epsilon_S: Floats, multiplier_S: Floats, norm: float) -> bool:
    size_S = np.sqrt(np.diag(M)) * max(norm, 1e-300)
    met = along_S + M @ multiplier_S + epsilon_S >= -SLACK * size_S
    return bool(met.all()) and correction_norm(M, multiplier_S) <= REACH * norm


def _relaxed(M: Floats, along_S: Floats, epsilon_S: Floats, norm: float) -> tuple[Floats, Floats]:
    """Cut the demanded gains by the largest common factor that can be met; losses allowed stay allowed."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        tried_S = np.where(epsilon_S < 0, middle * epsilon_S, epsilon_S)
        fits = _fits(M, along_S, tried_S, nonnegative_qp(M, along_S + tried_S), norm)
        low, high = (middle, high) if fits else (low, middle)
    final_S = np.where(epsilon_S < 0, low * epsilon_S, epsilon_S)
    return final_S, nonnegative_qp(M, along_S + final_S)
